"""What looks on while a session works: the HTTP server, the console, a widget. It is told of each push."""

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
    """The part of a session that lets others look on."""

    query: Any
    plan: Plan
    _turn: RLock
    _observers: tuple[Observer, ...] = ()

    @abstractmethod
    def stats(self) -> Stats:
        """Counts of rows so far, and of what is held now."""

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

    def live(self) -> Any:
        """A widget that shows the answer and the skyband as rows are pushed, in Jupyter, VS Code or marimo.

        Needs `pip install 'skyband[notebook]'`.
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
