"""A running query of any problem: it takes rows, gives answers and saves state. Its codec knows the problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime
from threading import RLock
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa

from skyband.core import snapshots
from skyband.core.ad_hoc import NEXT_WINDOW, top_many
from skyband.core.calls import Came, Counters, SessionCalls, Stats, entry
from skyband.core.codec import Codec, SessionQuery, question, read_questions
from skyband.core.encoding.inputs import rows_for
from skyband.core.encoding.output import AdHoc
from skyband.core.encoding.rows import RowStore
from skyband.core.encoding.schemas import in_one_batch
from skyband.core.encoding.times import Times, as_ticks
from skyband.core.operator import Ints, Operator
from skyband.core.plan import Plan
from skyband.core.validation import Saved, check_kinds
from skyband.errors import InvalidQuery, SkybandError, SnapshotMismatch
from skyband.windows import Span

__all__ = ["Arrivals", "Session", "Stats", "entry"]


class Arrivals(NamedTuple):
    """Rows that the session has read and validated, but not yet taken."""

    counted: Counters
    batch: pa.RecordBatch  # the rows that are left after dropping
    time: Ints
    numbers: Any  # what the codec read from them
    came: Came = ()  # the rows as observers see them


class Session(SessionCalls):
    """A running query. `query.open(schema)` opens one; `push` feeds it rows, `top` ranks them now, `snapshot` saves it.

    Several threads may call a session; they take turns.

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
    >>> resumed = query.open(schema, session.snapshot())  # continues where the session stopped
    >>> resumed.push(pa.table({"price": [5, 6, 7]}))["score"].to_pylist()
    [7, 6]
    """

    query: SessionQuery
    plan: Plan  # what runs and why: as EXPLAIN prints it, or the algorithm that took the snapshot
    schema: Any  # of the rows that are pushed; with several inputs, a mapping from their names
    in_order: bool = False  # do all rows come in the order of their times? The caller sets it if it knows
    about: dict[str, Any] | None = None  # what its snapshots say of the query: see core/about.py

    def __init__(self, codec: Codec[Any, Any], state: bytes | None = None, plan: Plan | None = None) -> None:
        """Start, or continue exactly from a snapshot. `plan` is the plan, if the caller has chosen one already."""
        self._turn = RLock()
        self._codec = codec
        self.query, self.schema = codec.query, codec.schema
        self._fingerprint = codec.fingerprint + (" with an external clock" if codec.external_clock else "")
        saved = None if state is None else snapshots.read_of(state, self._fingerprint, codec.query.algorithm)
        self.plan = self._planned(None if saved is None else saved.algorithm, plan)
        self._rows = None if codec.kept is None else RowStore(codec.kept, dense=codec.holds_window)
        self._kept_names = None if codec.kept is None else codec.kept.names
        self._operator: Operator[Any, Any, Any] = codec.open(self.algorithm, self._rows)
        self._times = Times(codec.window, codec.max_jump, codec.query.window.on, codec.on_type)
        self._nothing = codec.output_schema.empty_table()
        self._counted = Counters()
        if saved is not None:
            self._restore(saved)

    @property
    def algorithm(self) -> str:
        """The running algorithm, with its options; for a join, the plan's name."""
        return self.plan.algorithm

    @property
    def output_schema(self) -> pa.Schema:
        """The columns of every answer."""
        return self._codec.output_schema

    @property
    def rows_late(self) -> int:
        """How many rows have arrived after all their windows had closed."""
        return self._operator.late

    # -- rows and time -----------------------------------------------------------------------------------------------

    @entry
    def push(self, rows: Any) -> pa.Table:
        """Feed rows to the query, in the order in which they arrive.

        Parameters
        ----------
        rows
            Any input that `top_k` takes. `push` reads a stream to its end.

        Returns
        -------
        A pyarrow Table with the new answers: closed windows, changes or entries. It is often empty.

        Raises
        ------
        InvalidInput
            The rows do not fit. The session took none of them and is as it was.
        SessionFailed
            An earlier call failed in the middle of its work.
        """
        return self._push(rows_for(rows, self.schema))

    def _push(self, rows: pa.RecordBatch | pa.Table, source: Any = None) -> pa.Table:
        """`source` names the input of these rows, if there are several inputs."""
        if isinstance(rows, pa.RecordBatch):
            return self._take(self._read(rows, source))
        # As one batch: if one row is refused, none is taken.
        results = [self._take(self._read(batch, source)) for batch in in_one_batch(rows)]
        return pa.concat_tables(results) if results else self._nothing

    def _read(self, batch: pa.RecordBatch, source: Any) -> Arrivals:
        """Read and validate a batch. If this raises, the session is as it was."""
        codec, rows_in = self._codec, batch.num_rows
        batch = codec.arrange(batch, source)
        # With several inputs the slowest closes windows, so a batch of one input says nothing about them.
        closes = None if isinstance(self.schema, dict) else self._operator.next_close
        on = codec.time_column(source)
        batch, time, jumped = self._times.read(batch, on, closes, in_order=self.in_order)
        without_time = rows_in - batch.num_rows - jumped
        batch, numbers = codec.read(batch, time, source)
        counted = Counters(batch.num_rows, rows_in, without_time, jumped)
        return Arrivals(counted, batch, time, numbers, ((source, batch),))

    def _take(self, arrivals: Arrivals) -> pa.Table:
        counted, batch, time, numbers, came = arrivals
        codec, first = self._codec, self._counted.position
        self._changing = True
        encoded = codec.encode(numbers, batch, time, first)
        try:
            answer = self._operator.push(encoded)
        except Exception as error:
            self._changing = not codec.undo(error)
            self._raise(error)
        self._counted.add(counted)
        self._times.accept(time)
        if self._rows is not None:
            self._rows.append(first, batch.select(self._kept_names))
        result = self._table(answer)
        codec.compact()
        if (planned := codec.replan()) is not None:
            self.plan, self._operator = planned
        return self._observed(first, came, result)

    @entry
    def advance(self, watermark: int | datetime) -> pa.Table:
        """Promise that no row before `watermark` will arrive, and close all windows that end there or before.

        Parameters
        ----------
        watermark
            A time or number in the window's column.

        Returns
        -------
        A pyarrow Table with the new answers.

        Raises
        ------
        InvalidQuery
            The window counts arrivals or has no slide, so time does not close it.
        """
        window = self._codec.window
        if not window.closes_by_value:
            raise InvalidQuery("Only windows by value with a slide close as time advances; this query has none.")
        ticks = as_ticks(watermark, str(self.query.window.on), self._codec.on_type)
        return self._closed(lambda: self._operator.advance(ticks))

    @entry
    def next_close(self) -> int | None:
        """When the next window closes.

        Returns
        -------
        The end of the earliest open window that has something to show, in units of its column; None if there is none.
        """
        return self._operator.next_close()

    @entry
    def finish(self) -> pa.Table:
        """End the input, and close every window by value that contains a row.

        Returns
        -------
        A pyarrow Table with the new answers.

        Raises
        ------
        InvalidInput
            The last row is in more than a million windows that are still open.
        """
        self._times.check_end(self._operator.next_close)
        return self._closed(self._operator.finish)

    def _closed(self, close: Callable[[], Any]) -> pa.Table:
        """Close windows without a new row, and return their answers."""
        self._changing = True
        try:
            answer = close()
        except Exception as error:
            self._raise(error)
        return self._observed(self._counted.position, (), self._table(answer))

    # -- ad-hoc questions --------------------------------------------------------------------------------------------

    @entry
    def top(self, k: int | None = None, size: Span | None = None) -> pa.Table:
        """Rank the current rows, before the window closes.

        Parameters
        ----------
        k
            How many rows, up to the query's k, which is the default.
        size
            Rank only the last `size` arrivals, or the rows later than the latest time minus `size`. None: the window
            that closes next of those that hold a row. If the window slides, a smaller size may need `ad_hoc=True`.

        Returns
        -------
        A pyarrow Table, as for a closed window.

        Raises
        ------
        InvalidQuery
            `k` or `size` is larger than the query's, or the rows for that size are not kept.
        """
        most, ticks = question(self._codec, k, size)
        self._at_once(self._codec.settle)
        return self._answered(self._operator.top(most, ticks), AdHoc(ticks))

    @entry
    def top_many(self, questions: Sequence[tuple[int | None, Span | None]]) -> pa.Table:
        """Answer many such queries at once, which is cheaper than one by one.

        Parameters
        ----------
        questions
            A list of (k, size), each as for `top`.

        Returns
        -------
        A pyarrow Table of all answers. Its first column, `question`, numbers them from 0.

        Raises
        ------
        InvalidQuery
            One of the queries cannot be answered.
        """
        k, size = read_questions(self._codec, questions)
        self._at_once(self._codec.settle)
        answer, ends = top_many(self._operator, k, size)
        asked = np.repeat(np.arange(len(k), dtype=np.int32), np.diff(ends))
        covered = np.where(size == NEXT_WINDOW, self._codec.window.size, size)[asked]
        return self._answered(answer, AdHoc(covered, asked))

    # -- state -------------------------------------------------------------------------------------------------------

    def stats(self) -> Stats:
        """Count the rows so far: used, late and otherwise dropped, and the rows that the session holds now.

        Returns
        -------
        The counts, as `Stats`. You can call this after a failure, too.
        """
        with self._turn:
            return self._stats()

    def _stats(self) -> Stats:
        late, counted = self._operator.late, self._counted
        return self._codec.stats_type(
            rows_in=counted.rows_in,
            rows_used=counted.rows_in - counted.rows_null_time - counted.rows_jumped - late,
            rows_late=late,
            rows_null_time=counted.rows_null_time,
            rows_jumped=counted.rows_jumped,
            rows_held=self._operator.rows_held() if self._rows is None else len(self._operator.held()),
            **self._codec.counts(),
        )

    @entry
    def held(self) -> Ints:
        """List the rows that the session holds because an answer may still show them.

        Returns
        -------
        Their arrival numbers, counted from 0, as a numpy array.
        """
        return self._operator.held()

    @entry
    def check(self) -> None:
        """Assert every invariant of the running algorithm. This is for tests.

        Raises
        ------
        AssertionError
            An invariant is broken, which is a bug of Skyband.
        """
        self._operator.check()
        if self._rows is not None:
            held = self._operator.held()
            assert self._rows.take(held).num_rows == len(held), "every row held has its columns"

    @entry
    def snapshot(self) -> bytes:
        """Save the session's state, so that `query.open(schema, state)` continues exactly from here.

        Returns
        -------
        Bytes, with a version, a checksum and a fingerprint of the query. `Store` keeps them on disk.
        """
        counters = asdict(self._counted) | self._times.state()
        arrays, tables = {}, {}
        if self._rows is not None:
            held = self._operator.held()
            self._changing = True
            self._rows.keep(held)
            arrays["held"], tables["rows"] = held, pa.Table.from_batches(self._rows.in_ranges(held))
        parts = {
            "session": snapshots.Part(counters, arrays, tables),
            "codec": self._codec.state(),
            "operator": snapshots.Part({}, self._operator.state(), {}),
        }
        return snapshots.write(snapshots.Snapshot(self._fingerprint, self.algorithm, parts, self.about))

    def _planned(self, saved: str | None, given: Plan | None) -> Plan:
        try:
            return self._codec.choose(saved) if saved is not None or given is None else given
        except InvalidQuery as error:
            if saved is None:
                raise
            raise SnapshotMismatch(f"This snapshot was taken by {saved!r}, which cannot run here. {error}") from error

    def _restore(self, saved: snapshots.Snapshot) -> None:
        """Continue from a snapshot of this query."""
        try:
            session, codec, operator = (saved.parts[name] for name in ("session", "codec", "operator"))
            check_kinds(operator.arrays, self._operator.state())
            check_kinds(codec.arrays, self._codec.state().arrays)
            self._codec.validate(Saved(operator.arrays), codec)
            self._operator.validate(Saved(operator.arrays))
            self._operator.restore(dict(operator.arrays))
            if self._rows is not None:
                self._rows.restore(session, self._operator.held())
            self._codec.restore(codec)
            self._counted = Counters.restored(session.counters)
            self._times.restore(session.counters)
            self._went_on = True
        except SkybandError:
            raise
        except Exception as problem:  # a part is missing, or another version wrote it
            raise SnapshotMismatch(
                f"This snapshot was taken by {saved.algorithm!r} of another version of Skyband, whose state differs "
                f"({type(problem).__name__}: {problem}). Open it with that version, or start without it."
            ) from problem

    # -- inside ------------------------------------------------------------------------------------------------------

    def _table(self, answer: Any) -> pa.Table:
        """Decode an answer. When it pays, this also forgets rows that the operator has dropped."""
        shown, store, rows = len(answer.at), self._rows, None
        if store is not None:
            if store.is_wasteful(self._operator.rows_held()):
                rows = store.take_and_keep(self._codec.positions(answer), self._operator.held())
            elif shown:
                rows = store.take(self._codec.positions(answer))
        return self._codec.decode(answer, rows, None) if shown else self._nothing

    def _answered(self, answer: Any, ad_hoc: AdHoc) -> pa.Table:
        if self._rows is None:
            return self._codec.decode(answer, None, ad_hoc)
        self._rows.join()
        return self._codec.decode(answer, self._rows.take(self._codec.positions(answer)), ad_hoc)

    def _raise(self, error: Exception) -> NoReturn:
        explained = self._codec.explain(error)
        if explained is None:
            raise error
        raise explained from error
