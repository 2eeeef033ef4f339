"""What looks on while a session works: the HTTP server, the console, a widget. It is told of each push."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from threading import RLock
from typing import Any

import pyarrow as pa

# Called after each push with the arrival of its first row, its rows and what they made known; the rows are None where
# only time has passed. It must not raise, and not take long.
Observer = Callable[[int, pa.RecordBatch | None, pa.Table], None]


class Observed:
    """The part of a session that lets others look on."""

    _turn: RLock
    _observers: tuple[Observer, ...] = ()

    def observe(self, observer: Observer) -> Callable[[], None]:
        """Have `observer` called after each push, until the function that is returned is called."""
        with self._turn:
            self._observers = (*self._observers, observer)

        def end() -> None:
            with self._turn:
                self._observers = tuple(each for each in self._observers if each is not observer)

        return end

    def serve(self, **options: Any) -> Any:
        """Answer over HTTP, with a console to look at, until `close()` of what this returns.

        `skyband.serving.serve` says which options there are. Needs `pip install 'skyband[serve]'`.
        """
        # By name: the package stands above this one, and is an extra.
        return import_module("skyband.serving").serve(self, **options)

    def _observed(self, first: int, batch: pa.RecordBatch | None, result: pa.Table) -> pa.Table:
        for observer in self._observers:
            observer(first, batch, result)
        return result
