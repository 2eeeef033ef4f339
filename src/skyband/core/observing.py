"""Observers of a session: the HTTP server, the console and the widget. The session calls them after each push."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from importlib import import_module
from threading import RLock
from typing import Any

import pyarrow as pa

from skyband.core import notebook
from skyband.core.plan import Plan
from skyband.core.stats import Stats

# Called after each push with the arrival of its first row, its rows and what they made known; the rows are None where
# only time has passed. It must not raise, and not take long.
Observer = Callable[[int, pa.RecordBatch | None, pa.Table], None]


class Observed:
    """The part of a session that has observers."""

    query: Any
    plan: Plan
    _turn: RLock
    _observers: tuple[Observer, ...] = ()

    @abstractmethod
    def stats(self) -> Stats:
        """Counts of the rows so far, and of the rows held now."""

    def observe(self, observer: Observer) -> Callable[[], None]:
        """Call `observer` after each push. Call the returned function to stop."""
        with self._turn:
            self._observers = (*self._observers, observer)

        def end() -> None:
            with self._turn:
                self._observers = tuple(each for each in self._observers if each is not observer)

        return end

    def serve(self, **options: Any) -> Any:
        """Serve the answers and the console over HTTP, until you call `close()` of the returned server.

        `skyband.serving.serve` lists the options. This needs `pip install 'skyband[serve]'`.
        """
        # By name: the package stands above this one, and is an extra.
        return import_module("skyband.serving").serve(self, **options)

    def live(self) -> Any:
        """Show the answer and the skyband in a widget that updates with each push, in Jupyter, VS Code or marimo.

        This needs `pip install 'skyband[notebook]'`.
        """
        return import_module("skyband.serving.widget").live(self)

    def _repr_html_(self) -> str:
        plan, stats = self.plan, self.stats()
        runs = {"runs": f"{plan.algorithm}: {plan.why}", "window": getattr(self.query, "window", "")}
        return notebook.page(f"A running {type(self.query).__name__}", notebook.facts({**runs, **stats.told()}))

    def _observed(self, first: int, batch: pa.RecordBatch | None, result: pa.Table) -> pa.Table:
        for observer in self._observers:
            observer(first, batch, result)
        return result
