"""The contents of a server: queries by name, their metrics, and a place to run statements, if there is one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from skyband.serving.served import Served

if TYPE_CHECKING:
    from skyband.serving.workshop import Workshop


@dataclass
class Catalog:
    """All that is served."""

    title: str
    metrics: Callable[[], bytes] | None = None  # in Prometheus's text format; None: made of the figures
    workshop: Workshop | None = None
    _queries: dict[str, Served] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def add(self, query: Served) -> None:
        with self._lock:
            self._queries[query.name] = query

    def remove(self, name: str) -> None:
        with self._lock:
            self._queries.pop(name, None)

    def queries(self) -> list[Served]:
        with self._lock:
            return list(self._queries.values())

    def find(self, name: str) -> Served | None:
        with self._lock:
            return self._queries.get(name)
