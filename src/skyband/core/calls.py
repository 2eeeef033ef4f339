"""How calls reach a session: one at a time, none after one that failed midway, with observers and counts of rows.

`core/session.py` has what each call does.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from importlib import import_module
from threading import RLock
from typing import Any, Concatenate, NoReturn, ParamSpec, SupportsIndex, TypeVar

import numpy as np
import pyarrow as pa

from skyband.core import notebook
from skyband.core.operator import KnowsTheLatest, Operator
from skyband.core.plan import Plan
from skyband.core.validation import Saved
from skyband.errors import RAISED_THIS, SessionCopied, SessionFailed, SkybandError
from skyband.windows import NEVER

# The rows of one push, each batch with whose rows they are, where there are several inputs.
Came = Sequence[tuple[Any, pa.RecordBatch]]
# A session calls it after each push with the arrival number of the first row, the rows and the new answers. There are
# no rows if only time has passed. An observer must not raise, and must be quick.
Observer = Callable[[int, Came, pa.Table], None]

P = ParamSpec("P")
R = TypeVar("R")


class SessionCalls:
    """The base of `Session`: guards its calls, says where its clock is, and informs observers."""

    query: Any
    plan: Plan
    _operator: Operator[Any, Any, Any]
    _turn: RLock  # held by the thread that is calling; one call may call another
    _went_on = False  # was it opened from a snapshot?
    _changing = False  # has the current call begun to change the state?
    _failure: BaseException | None = None  # the error that stopped a call while it changed the state
    _observers: tuple[Observer, ...] = ()

    @abstractmethod
    def stats(self) -> Stats:
        """Counts of the rows so far, and of the rows held now."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse `copy`, `deepcopy` and `pickle`: the copy would be a second handle on the same arrays."""
        raise SessionCopied(
            "A session cannot be copied or pickled: both would change one state. Open the query again with "
            "session.snapshot()."
        )

    def next_held(self) -> int | None:
        """When the window closes that `top` ranks if it is given no size.

        Returns
        -------
        The end of the earliest open window that holds a row, in units of its column; None if none does.
        """
        with self._turn:
            return self._operator.next_held()

    def latest(self) -> int | None:
        """How far the rows have come.

        Returns
        -------
        The largest value of the window's column so far, in its ticks; None without rows, or if nobody knows.
        """
        with self._turn:
            found = self._operator.latest if isinstance(self._operator, KnowsTheLatest) else -NEVER
            return None if found == -NEVER else found

    def observe(self, observer: Observer) -> Callable[[], None]:
        """Call a function after each push, in the thread that pushes.

        Parameters
        ----------
        observer
            A function that takes the arrival number of the first row pushed, the rows as a RecordBatch (None if only
            time has passed), and the new answers. It must not raise, and must be fast.

        Returns
        -------
        A function. Call it to stop.
        """
        with self._turn:
            self._observers = (*self._observers, observer)

        def end() -> None:
            with self._turn:
                self._observers = tuple(each for each in self._observers if each is not observer)

        return end

    def serve(self, **options: Any) -> Any:
        """Serve the answers and the console over HTTP. This needs `pip install 'skyband[serve]'`.

        Parameters
        ----------
        options
            `name`: the name of the query in addresses. `host`: the address to listen on, 127.0.0.1 unless you name
            another, which then requires a token. `port`: 0 takes any free one.

        Returns
        -------
        A server. `server.url` is its address, `server.token` its token; `close()` or the end of a `with` stops it.

        Raises
        ------
        EnvironmentProblem
            The port is taken, or the packages for serving are not installed.
        """
        # By name, because `serving` is an extra and a higher layer.
        return import_module("skyband.serving").serve(self, **options)

    def live(self) -> Any:
        """Show the answer and the skyband in a widget that updates with each push, in Jupyter, VS Code or marimo.

        Returns
        -------
        A widget: show it as the last value of a cell.

        Raises
        ------
        EnvironmentProblem
            The package for widgets is not installed: `pip install 'skyband[notebook]'`.
        """
        return import_module("skyband.serving.widget").live(self)

    def _repr_html_(self) -> str:
        plan, stats = self.plan, self.stats()
        runs = {"runs": f"{plan.algorithm}: {plan.why}", "window": getattr(self.query, "window", "")}
        return notebook.page(f"A running {type(self.query).__name__}", notebook.facts({**runs, **stats.told()}))

    def _observed(self, first: int, came: Came, result: pa.Table) -> pa.Table:
        for observer in self._observers:
            observer(first, came, result)
        return result

    def _at_once(self, change: Callable[[], R]) -> R:
        """Run a change of the state that is complete unless it raises."""
        before, self._changing = self._changing, True
        result = change()
        self._changing = before
        return result


S = TypeVar("S", bound=SessionCalls)


def entry(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Decorate a method that users call. If one fails while `_changing` is set, every later call raises.

    Threads take turns: one call ends before the next begins. An error before the state has changed, such as a batch
    with another schema, leaves the session as it was. An interrupt by the user counts as a failure, because it may come
    anywhere. In a session that was opened from a snapshot, unexpected errors become `SessionFailed`.
    """

    @wraps(method)
    def guarded(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._turn:
            if self._failure is not None:
                raise _failed_before(self._failure) from self._failure
            self._changing = False
            try:
                return method(self, *args, **kwargs)
            except BaseException as error:
                if self._changing:
                    self._failure = error
                if self._went_on and isinstance(error, Exception) and not _is_expected(error):
                    raise _should_not_be(error) from error
                raise

    return guarded


def _is_expected(error: Exception) -> bool:
    """Is it an error that Skyband raises on purpose, or one of a user's function?"""
    return isinstance(error, SkybandError) or any(
        note.endswith(RAISED_THIS) for note in getattr(error, "__notes__", ())
    )


def _failed_before(problem: BaseException) -> SessionFailed:
    return SessionFailed(
        f"This session failed before, in the middle of its work ({type(problem).__name__}: {problem}), so its state is "
        "incomplete. Open the query again with its last snapshot, as in query.open(schema, state), or start again "
        "without one."
    )


def _should_not_be(problem: Exception) -> SessionFailed:
    return SessionFailed(
        "This session continued from a snapshot, and failed in a way that should be impossible "
        f"({type(problem).__name__}: {problem}). If somebody may have changed the snapshot, use an earlier one. "
        "Otherwise this is a bug in Skyband: please report it."
    )


@dataclass(slots=True)
class Counters:
    """Counts of rows: of one batch, or of all batches so far."""

    position: int = 0  # rows that arrived, without those dropped for their time
    rows_in: int = 0  # all rows, dropped ones too
    rows_null_time: int = 0
    rows_jumped: int = 0

    def add(self, others: Counters) -> None:
        self.position += others.position
        self.rows_in += others.rows_in
        self.rows_null_time += others.rows_null_time
        self.rows_jumped += others.rows_jumped

    @classmethod
    def restored(cls, counters: dict[str, int]) -> Counters:
        names = [field.name for field in fields(cls)]
        Saved({}).counts("counters", np.array([counters[name] for name in names]))
        return cls(*(counters[name] for name in names))


@dataclass(slots=True)
class Stats:
    """Counts of the rows so far: rows_in = rows_used + rows_late + rows_null_time + rows_jumped.

    Attributes
    ----------
    rows_in
        All rows that were pushed.
    rows_used
        Rows that took their place in a window.
    rows_late
        Rows dropped because all their windows had closed.
    rows_null_time
        Rows dropped because they have no event time.
    rows_jumped
        Rows dropped by `max_jump`, because their time is too far ahead of all earlier rows.
    rows_unranked
        Rows used but never ranked, because their score is null or NaN.
    rows_held
        Rows that the session keeps now, because an answer may still show them.
    rows_missed
        With `error`: rows that belonged in an answer and were not shown.
    groups
        Groups that the session keeps now; for subscriptions, queries.
    queries_refused
        Changes of queries that could not be applied, and were skipped.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> rows = pa.table({"t": [1, 25, None, 2], "x": [5, 6, 7, 8]})
    >>> session = sb.TopK(k=1, by="x", window=sb.tumbling(10, on="t")).open(rows.schema)
    >>> _ = session.push(rows)
    >>> stats = session.stats()
    >>> stats.rows_in, stats.rows_used, stats.rows_null_time, stats.rows_late
    (4, 2, 1, 1)
    """

    rows_in: int = 0
    rows_used: int = 0
    rows_late: int = 0
    rows_null_time: int = 0
    rows_jumped: int = 0
    rows_unranked: int = 0
    rows_held: int = 0
    rows_missed: int = 0
    groups: int = 0
    queries_refused: int = 0

    def _repr_html_(self) -> str:
        return notebook.page("Rows so far", notebook.facts(self.told()))

    def told(self) -> dict[str, int]:
        """Name the counts in words: rows in, used and held, and every other count that is not zero.

        Returns
        -------
        A dict from names such as "rows held" to counts.
        """
        always = ("rows_in", "rows_used", "rows_held")
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name.replace("_", " "): value for name, value in found.items() if value or name in always}
