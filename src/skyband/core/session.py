"""What the running queries of all problems have in common: time advances, windows close, state is saved."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import wraps
from typing import Any, ClassVar, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyband.core import snapshots
from skyband.core.operator import Arrays, Ints, Operator
from skyband.errors import InvalidInput, InvalidQuery, SessionFailed, SnapshotCorrupt, SnapshotMismatch
from skyband.kernels.jumps import NO_TIME, set_aside
from skyband.kernels.panes import all_within
from skyband.windows import FOREVER, Span, Window, parse_span, span_ticks, whole_number

_NO_TIMES = np.empty(0, np.int64)


@dataclass(slots=True)
class Stats:
    """What happened to the rows so far: rows_in = rows_used + rows_late + rows_null_time + rows_jumped.

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
    rows_used: int = 0  # took their place in a window
    rows_late: int = 0  # dropped: every window that would hold them had closed
    rows_null_time: int = 0  # dropped: no event time
    rows_jumped: int = 0  # dropped: with `max_jump`, too far ahead of all before
    rows_unranked: int = 0  # used, but with a null or NaN score, so never ranked
    rows_held: int = 0  # kept now because they may still be shown
    rows_missed: int = 0  # with `error`: belonged in an answer, and were not shown
    groups: int = 0
    queries_refused: int = 0  # changes of queries that could not be taken, and were passed over


class Saved(NamedTuple):
    """What a session has to remember, beside the state of its operator."""

    counters: dict[str, int]
    arrays: Arrays
    tables: dict[str, pa.Table]


S = TypeVar("S", bound="Session")
P = ParamSpec("P")
R = TypeVar("R")


def entry(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """A method that users call. Once one has failed after it set `_changing`, all of them refuse to go on.

    What fails before that, such as a batch with another schema, leaves the session as it was. An interruption by the
    user counts as a failure, too: it may come anywhere.
    """

    @wraps(method)
    def guarded(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if self._failure is not None:
            problem = self._failure
            raise SessionFailed(
                f"This session failed before, in the middle of its work ({type(problem).__name__}: {problem}), so what "
                "it holds is incomplete. Open the query again with its last snapshot, as in query.open(schema, state), "
                "or start afresh."
            ) from problem
        self._changing = False
        try:
            return method(self, *args, **kwargs)
        except BaseException as error:
            if self._changing:
                self._failure = error
            raise

    return guarded


class Question(Protocol):
    """What a session needs to know of its query."""

    @property
    def window(self) -> Window: ...

    @property
    def algorithm(self) -> str | None: ...


class Session(ABC):
    """A running query: `push` feeds it rows, `top` asks it now, `snapshot` saves it. `query.open(schema)` gives one.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> query = sb.TopK(k=2, by="price", window=sb.sliding(3, every=3), ad_hoc=True)
    >>> schema = pa.schema({"price": pa.int64()})
    >>> session = query.open(schema)
    >>> session.push(pa.table({"price": [10, 30, 20]}))["score"].to_pylist()  # the window closes with its third row
    [30, 20]
    >>> session.top(k=1, size=1)["score"].to_pylist()  # the best of the last row alone
    [20]
    >>> resumed = query.open(schema, session.snapshot())  # goes on where the session stopped
    >>> resumed.push(pa.table({"price": [5, 6, 7]}))["score"].to_pylist()
    [7, 6]
    """

    query: Question
    algorithm: str  # what runs: asked for, chosen, or what the snapshot was taken of
    _operator: Operator[Any, Any]
    _fingerprint: str  # of the query and its columns: what a snapshot must have in common with it
    _on_type: pa.DataType | None  # of the column that the window measures
    _changing = False  # the current call has begun to change what is held
    _failure: BaseException | None = None  # what stopped a call while it did
    few_groups: ClassVar[int] = 1024  # with fewer groups, it does not pay to forget those that are gone
    in_order: bool = False  # do all rows come in the order of their times? Whoever pushes them may know

    @property
    def rows_late(self) -> int:
        """Rows so far that came after all windows that would hold them had closed."""
        return self._operator.late

    @property
    @abstractmethod
    def output_schema(self) -> pa.Schema:
        """The columns of every answer."""

    @abstractmethod
    def stats(self) -> Stats:
        """Counts of rows so far, and of what is held now."""

    @abstractmethod
    def _table(self, answer: Any) -> pa.Table:
        """An operator's answer as the user sees it."""

    @abstractmethod
    def _saved(self) -> Saved:
        """What `_restore` needs."""

    @abstractmethod
    def _restore(self, saved: snapshots.Snapshot) -> None:
        """Go on from a snapshot of this query."""

    @entry
    def advance(self, watermark: int | datetime) -> pa.Table:
        """By value: no row before `watermark` is waited for. Closes the windows that end there or before."""
        window = self.query.window
        if window.by_count or window.every is None:
            raise InvalidQuery("Only windows by value with a slide close as time advances; this query has none.")
        ticks = as_ticks(watermark, str(window.on), self._on_type)
        self._changing = True
        return self._table(self._operator.advance(ticks))

    @entry
    def next_close(self) -> int | None:
        """The end of the earliest open window that has something to show, in ticks of the window's column."""
        return self._operator.next_close()

    @entry
    def finish(self) -> pa.Table:
        """The input is over: by value, every window that holds a row closes."""
        self._changing = True
        return self._table(self._operator.finish())

    @entry
    def check(self) -> None:
        """Assert every invariant of the running algorithm: for tests, and for whoever doubts."""
        self._operator.check()

    @entry
    def snapshot(self) -> bytes:
        """Everything needed to go on elsewhere with `query.open(schema, state)`, exactly from here."""
        saved = self._saved()
        return snapshots.write(
            snapshots.Snapshot(
                self._fingerprint,
                self.algorithm,
                {**asdict(self.stats()), **saved.counters},
                {**self._operator.state(), **saved.arrays},
                saved.tables,
            )
        )

    def _begin(
        self, fingerprint: str, on_type: pa.DataType | None, state: bytes | None, *, external_clock: bool
    ) -> snapshots.Snapshot | None:
        """Once the query is checked: what it is known by, and the snapshot to go on from, if there is one."""
        self._on_type = on_type
        self._fingerprint = fingerprint + (" with an external clock" if external_clock else "")
        return None if state is None else self._read(state)

    def _read(self, state: bytes) -> snapshots.Snapshot:
        """A snapshot of this very query, or an error that says what it is instead."""
        if not isinstance(state, (bytes, bytearray, memoryview)):
            raise SnapshotCorrupt(f"A snapshot is bytes, got {type(state).__name__}.")
        saved = snapshots.read(bytes(state))
        if saved.fingerprint != self._fingerprint:
            raise SnapshotMismatch(
                "This snapshot was taken by another query, or over other columns. Open it with the query that made it; "
                "a changed query starts afresh."
            )
        if self.query.algorithm not in (None, saved.algorithm):
            raise SnapshotMismatch(
                f"This snapshot was taken by {saved.algorithm!r}; {self.query.algorithm!r} cannot read it."
            )
        return saved

    def _resume(self, saved: snapshots.Snapshot | None) -> None:
        """Go on from the snapshot, if there is one."""
        if saved is None:
            return
        try:
            self._restore(saved)
        except (KeyError, ValueError) as problem:  # a part is not there, or has another shape
            raise SnapshotMismatch(
                f"This snapshot was taken by {saved.algorithm!r} of another version of Skyband, which keeps "
                f"other things ({problem}). Read it with that version, or start afresh."
            ) from problem


def check_schema(schema: object) -> None:
    """Raise unless it is one."""
    if not isinstance(schema, pa.Schema):
        raise InvalidInput(f"The schema must be a pyarrow.Schema, got {type(schema).__name__}.")


def measured_type(on: str | None, schema: pa.Schema) -> pa.DataType | None:
    """Of the column that a window measures; None: it counts arrivals."""
    return None if on is None else schema.field(on).type


def with_times(batch: pa.RecordBatch, on: str | None, *, in_order: bool = False) -> tuple[pa.RecordBatch, Ints]:
    """The batch without rows that have no time, and the times of the others, in ticks of the column; if they are known
    to be in order, the first and the last of them say how far they reach."""
    if on is None:
        return batch, _NO_TIMES
    column = batch.column(on)
    if column.null_count:
        batch = batch.filter(pc.is_valid(column))
        column = batch.column(on)
    if pa.types.is_timestamp(column.type):
        column = column.view(pa.int64())
    elif column.type != pa.int64():
        try:
            column = column.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise InvalidInput(f"Column {on!r} does not fit in 64 bits with a sign: {error}") from None
    time = column.to_numpy(zero_copy_only=True)
    if not all_within(time[[0, -1]] if in_order and len(time) else time, FOREVER):
        raise InvalidInput(f"Column {on!r} has values of ±2**62 or beyond: too far for a window.")
    return batch, time


class Jumps:
    """Keeps out rows whose time lies so far ahead of all before that one alone would make the others late."""

    def __init__(self, most: Span | None, window: Window, on_type: pa.DataType | None) -> None:
        self._most = None if most is None else span_ticks(parse_span(most, "max_jump"), window.on, on_type, "max_jump")
        self._clocks = np.full(2, NO_TIME, np.int64)
        self._next = self._clocks

    def keep(self, time: Ints) -> npt.NDArray[np.bool_] | None:
        """Which rows stay; None: all of them. Nothing is remembered before `accept`."""
        if self._most is None or not len(time):
            return None
        self._next, kept = self._clocks.copy(), np.empty(len(time), np.bool_)
        # A copy: kernels would be compiled a second time for an array that cannot be written to.
        return kept if set_aside(time.copy(), self._most, self._next, kept) else None

    def accept(self) -> None:
        self._clocks = self._next

    def state(self) -> dict[str, int]:
        return {f"jumps_{i}": int(clock) for i, clock in enumerate(self._clocks)}

    def restore(self, counters: dict[str, int]) -> None:
        self._clocks = self._next = np.array([counters.pop(f"jumps_{i}") for i in range(2)], np.int64)


def as_ticks(watermark: int | datetime, on: str, on_type: pa.DataType | None) -> int:
    """A moment on the column that the window measures, in its ticks."""
    if isinstance(watermark, datetime) and pa.types.is_timestamp(on_type):
        return int(pa.scalar(watermark, on_type).value)
    number = whole_number(watermark)
    if number is None:
        raise InvalidQuery(f"A watermark on {on!r} ({on_type}) cannot be {watermark!r}.")
    return number
