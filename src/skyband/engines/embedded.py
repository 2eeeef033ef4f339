"""The embedded engine: one query over Arrow data, in this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband import expressions
from skyband.engines import snapshots
from skyband.engines.groups import Codes, GroupCodes
from skyband.engines.output import layout
from skyband.engines.rows import RowStore
from skyband.engines.schemas import check_keys, plain_batch, plain_schema, whole_batch
from skyband.errors import InvalidInput, InvalidQuery, SnapshotCorrupt, SnapshotMismatch
from skyband.operators.objects.asking import NEXT_WINDOW, top_many
from skyband.operators.protocol import Answer, Batch, Ints
from skyband.operators.registry import find
from skyband.planner.plan import plan, specify
from skyband.queries import TopK
from skyband.structures.panes import all_within
from skyband.windows import FOREVER, Span, parse_span, span_ticks

_NO_TIMES = np.empty(0, np.int64)
_NO_GROUPS = np.empty(0, np.int32)


@dataclass(slots=True)
class Stats:
    """What happened to the rows so far: rows_in = rows_used + rows_late + rows_null_time."""

    rows_in: int = 0
    rows_used: int = 0  # took their place in a window
    rows_late: int = 0  # dropped: every window that would hold them had closed
    rows_null_time: int = 0  # dropped: no event time
    rows_unranked: int = 0  # used, but with a null or NaN score, so never ranked
    rows_held: int = 0  # kept now because they may still be shown
    groups: int = 0


class Session:
    """A query, running: fed by `push`, asked by `top` and `top_many`, saved by `snapshot`."""

    def __init__(
        self, query: TopK, schema: pa.Schema, state: bytes | None = None, *, external_clock: bool = False
    ) -> None:
        if not isinstance(schema, pa.Schema):
            raise InvalidInput(f"The schema must be a pyarrow.Schema, got {type(schema).__name__}.")
        self.query = query
        self.schema = schema
        self._plain = plain_schema(schema)
        query.check_columns(schema.names)
        check_keys(query.per, self._plain)
        self._score = expressions.bind(query.by, self._plain)
        self._spec = specify(query, schema, external_clock=external_clock)
        self._layout = layout(query, self._plain, str(query.emit))
        self._answer_layout = layout(query, self._plain, "windows")
        self._many_layout = layout(query, self._plain, "questions")
        self._on_type = None if query.window.on is None else schema.field(query.window.on).type
        # The largest size that may be asked for without a unit.
        plain = self._on_type is None or pa.types.is_integer(self._on_type)
        self._longest = min(self._spec.window.size, FOREVER - 1) if plain else 0
        self._fingerprint = query.fingerprint(schema) + (" with an external clock" if external_clock else "")
        saved = None if state is None else self._read(state)
        self.algorithm = saved.algorithm if saved else plan(self._spec, query.algorithm, expect=query.expect).algorithm
        self._operator = find(self.algorithm).open(self._spec)
        self._rows = RowStore(self._layout.rows_schema)
        self._groups = GroupCodes(pa.schema([self._plain.field(name) for name in query.per])) if query.per else None
        self._recount_groups_at = 1024
        self._position = 0
        self._stats = Stats()
        if saved:
            self._restore(saved)

    @property
    def output_schema(self) -> pa.Schema:
        return self._layout.schema

    # -- rows and time ---------------------------------------------------------------------------------------------

    def push(self, rows: pa.RecordBatch | pa.Table) -> pa.Table:
        """Take rows in, in arrival order; return what they make known."""
        if not isinstance(rows, (pa.RecordBatch, pa.Table)):
            raise InvalidInput(
                f"push takes a pyarrow RecordBatch or Table, got {type(rows).__name__}. sb.top_k takes more."
            )
        self._check_schema(rows.schema)
        if isinstance(rows, pa.RecordBatch):
            return self._push(rows)
        # As one batch, so that a row that cannot be taken keeps all of them out.
        results = [self._push(batch) for batch in rows.combine_chunks().to_batches()]
        return pa.concat_tables(results) if results else self.output_schema.empty_table()

    def advance(self, watermark: int | datetime) -> pa.Table:
        """By value: no row before `watermark` is waited for. Closes the windows that end there or before."""
        if self.query.window.by_count or self.query.window.every is None:
            raise InvalidQuery("Only windows by value with a slide close as time advances; this query has none.")
        return self._table(self._operator.advance(self._as_ticks(watermark)))

    def next_close(self) -> int | None:
        """The end of the earliest open window that has something to show, in ticks of the window's column."""
        return self._operator.next_close()

    def finish(self) -> pa.Table:
        """The input is over: by value, every window that holds a row closes."""
        return self._table(self._operator.finish())

    def top(self, k: int | None = None, size: Span | None = None) -> pa.Table:
        """The best rows right now: of the window that closes next, or of the last `size`; up to the query's k and size.

        By value, the last `size` is what is later than now - size, where now is the latest time seen. With a slide,
        sizes that reach back to where no open window begins need a query with ad_hoc=True.
        """
        k, ticks = self._asked(k, size)
        answer = self._operator.top(k, ticks)
        self._rows.join()
        rows = self._rows.take(answer.position)
        return self._answer_layout.table(answer, rows, self._spec.window, self.query.ascending, ticks)

    def top_many(self, questions: Sequence[tuple[int | None, Span | None]]) -> pa.Table:
        """As `top` for each k and size, all at once, which is cheaper; the column `question` counts them from 0."""
        asked = [self._read_question(question) for question in questions]
        k = np.array([k for k, _ in asked], np.int64)
        size = np.array([NEXT_WINDOW if ticks is None else ticks for _, ticks in asked], np.int64)
        answer, ends = top_many(self._operator, k, size)
        question = np.repeat(np.arange(len(k), dtype=np.int32), np.diff(ends))
        covered = np.where(size == NEXT_WINDOW, self._spec.window.size, size)[question]
        self._rows.join()
        rows = self._rows.take(answer.position)
        return self._many_layout.table(answer, rows, self._spec.window, self.query.ascending, covered, question)

    # -- state -----------------------------------------------------------------------------------------------------

    def stats(self) -> Stats:
        """Counts of rows so far, and of what is held now."""
        self._stats.rows_late, self._stats.rows_unranked = self._operator.late, self._operator.unranked
        self._stats.rows_used = self._stats.rows_in - self._stats.rows_null_time - self._stats.rows_late
        self._stats.rows_held = len(self._operator.held())
        self._stats.groups = 1 if self._groups is None else len(self._groups)
        return Stats(**asdict(self._stats))

    def check(self) -> None:
        """Assert every invariant of the running algorithm: for tests, and for whoever doubts."""
        self._operator.check()
        assert self._rows.take(self._operator.held()).num_rows == len(self._operator.held()), (
            "every row held has its columns"
        )

    def snapshot(self) -> bytes:
        """Everything needed to go on elsewhere with `query.open(schema, state)`, exactly from here."""
        held = self._operator.held()
        self._rows.keep(held)
        tables = {"rows": pa.Table.from_batches([self._rows.take(held)])}
        if self._groups is not None:
            tables["keys"] = self._groups.keys
        return snapshots.write(
            snapshots.Snapshot(
                self._fingerprint,
                self.algorithm,
                {"position": self._position, **asdict(self.stats())},
                {"held": held, **self._operator.state()},
                tables,
            )
        )

    def _read(self, state: bytes) -> snapshots.Snapshot:
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

    def _restore(self, saved: snapshots.Snapshot) -> None:
        arrays = dict(saved.arrays)
        self._rows.load(arrays.pop("held"), whole_batch(saved.tables["rows"]))
        self._operator.restore(arrays)
        if self._groups is not None:
            self._groups.load(saved.tables["keys"])
        counters = dict(saved.counters)
        self._position = counters.pop("position")
        self._stats = Stats(**counters)

    # -- inside ----------------------------------------------------------------------------------------------------

    def _asked(self, k: int | None, size: Span | None) -> tuple[int, int | None]:
        """A question's k, and its size in ticks."""
        k = self.query.k if k is None else k
        if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= self.query.k:
            raise InvalidQuery(f"k must be a whole number from 1 to the query's {self.query.k}, got {k!r}.")
        if size is None:
            return k, None
        ticks = span_ticks(parse_span(size, "size"), self.query.window.on, self._on_type, "size")
        if ticks > self._spec.window.size:
            raise InvalidQuery(f"size={size} is larger than the query's window ({self.query.window}).")
        return k, ticks

    def _read_question(self, question: Any) -> tuple[int, int | None]:
        if not isinstance(question, (tuple, list)) or len(question) != 2:
            raise InvalidQuery(f"A question is a k and a size, such as (10, 600); got {question!r}.")
        k, size = question
        # Most questions are two numbers, and there may be many: these need no more than this.
        if type(k) is type(size) is int and 1 <= k <= self.query.k and 1 <= size <= self._longest:
            return k, size
        return self._asked(k, size)

    def _check_schema(self, schema: pa.Schema) -> None:
        if schema.names != self.schema.names or schema.types != self.schema.types:
            differences = [
                f"{name}: {_type_of(name, self.schema)} before, {_type_of(name, schema)} now"
                for name in dict.fromkeys([*self.schema.names, *schema.names])
                if _type_of(name, self.schema) != _type_of(name, schema)
            ]
            raise InvalidInput(
                "This batch has another schema than the first one. "
                + ("; ".join(differences) or f"Column order before: {', '.join(self.schema.names)}")
                + ". Nothing of it was taken."
            )

    def _push(self, batch: pa.RecordBatch) -> pa.Table:
        rows_in = batch.num_rows
        batch = batch if self._plain is self.schema else plain_batch(batch, self._plain)
        batch, time = self._times(batch)
        score = self._score.evaluate(batch)
        if self.query.ascending:
            score = -score
        group = self._codes(batch)
        # Nothing can fail from here on, so a bad batch leaves the session as it was.
        self._stats.rows_in += rows_in
        self._stats.rows_null_time += rows_in - batch.num_rows
        first = self._position
        self._position += batch.num_rows
        answer = self._operator.push(Batch(score, time, group, first))
        self._rows.append(first, batch.select(self._layout.rows_schema.names))
        result = self._table(answer)
        self._forget_groups()
        return result

    def _times(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Ints]:
        """The batch without rows that have no time, and the times of the others."""
        if self.query.window.on is None:
            return batch, _NO_TIMES
        column = batch.column(self.query.window.on)
        if column.null_count:
            batch = batch.filter(pc.is_valid(column))
            column = batch.column(self.query.window.on)
        if pa.types.is_timestamp(column.type):
            column = column.view(pa.int64())
        elif column.type != pa.int64():
            try:
                column = column.cast(pa.int64())
            except pa.ArrowInvalid as error:
                raise InvalidInput(
                    f"Column {self.query.window.on!r} does not fit in 64 bits with a sign: {error}"
                ) from None
        time = column.to_numpy(zero_copy_only=True)
        if not all_within(time, FOREVER):
            raise InvalidInput(f"Column {self.query.window.on!r} has values beyond ±2**62: too far for a window.")
        return batch, time

    def _codes(self, batch: pa.RecordBatch) -> Codes:
        return self._groups.encode(batch) if self._groups is not None else _NO_GROUPS

    def _table(self, answer: Answer) -> pa.Table:
        """The answer with its rows; rows that the operator has dropped are forgotten when it pays."""
        shown = len(answer.at)
        if self._rows.is_wasteful(self._operator.rows_held()):
            held = self._operator.held()
            rows = self._rows.take(np.concatenate([answer.position, held]))
            self._rows.load(held, rows.slice(shown))
        elif shown:
            rows = self._rows.take(answer.position)
        if not shown:
            return self.output_schema.empty_table()
        return self._layout.table(answer, rows.slice(0, shown), self._spec.window, self.query.ascending)

    def _forget_groups(self) -> None:
        """Drop groups that the operator has dropped, when there are enough of them to pay for the work."""
        if self._groups is not None and len(self._groups) >= self._recount_groups_at:
            live = np.flatnonzero(self._operator.live_groups())
            if 2 * len(live) < len(self._groups):
                self._operator.regroup(live)
                self._groups.keep(live)
            self._recount_groups_at = max(1024, 2 * len(self._groups))

    def _as_ticks(self, watermark: int | datetime) -> int:
        on_type = self.schema.field(str(self.query.window.on)).type
        if isinstance(watermark, datetime) and pa.types.is_timestamp(on_type):
            return int(pa.scalar(watermark, on_type).value)
        if isinstance(watermark, bool) or not isinstance(watermark, int):
            raise InvalidQuery(f"A watermark on {self.query.window.on!r} ({on_type}) cannot be {watermark!r}.")
        return watermark


def open_session(
    query: TopK, schema: pa.Schema, state: bytes | None = None, *, external_clock: bool = False
) -> Session:
    """A session for rows of `schema`. With an external clock only `advance` closes windows, never a row's time."""
    return Session(query, schema, state, external_clock=external_clock)


def top_k(data: Any, query: TopK) -> pa.Table | pa.RecordBatchReader:
    """The answers of `query` over Arrow data: a table for a table, a reader for a reader or an iterator of batches."""
    if isinstance(data, pa.Table):
        return _run_table(data.schema, data.to_batches(), query)
    if isinstance(data, pa.RecordBatch):
        return _run_table(data.schema, [data], query)
    if isinstance(data, pa.RecordBatchReader):
        return _run_reader(data.schema, data, query)
    if hasattr(data, "__arrow_c_stream__"):
        try:
            reader = pa.RecordBatchReader.from_stream(data)
        except pa.ArrowException as error:
            raise InvalidInput(f"Cannot read this {type(data).__name__} as Arrow data: {error}") from error
        return _run_table(reader.schema, reader, query)
    if isinstance(data, Iterator):
        return _run_iterator(data, query)
    raise InvalidInput(
        f"Cannot read rows from {type(data).__name__}. Possible: a pyarrow Table or RecordBatchReader, a pandas or "
        "polars DataFrame (anything with the Arrow C stream interface), an iterator of record batches, or a Spark "
        "DataFrame."
    )


def _run_table(schema: pa.Schema, batches: Iterable[pa.RecordBatch], query: TopK) -> pa.Table:
    session = Session(query, schema)
    return pa.Table.from_batches(_answers(session, batches), session.output_schema)


def _run_reader(schema: pa.Schema, batches: Iterable[pa.RecordBatch], query: TopK) -> pa.RecordBatchReader:
    session = Session(query, schema)
    return pa.RecordBatchReader.from_batches(session.output_schema, _answers(session, batches))


def _run_iterator(batches: Iterator[pa.RecordBatch], query: TopK) -> pa.RecordBatchReader:
    first = next(batches, None)
    if first is not None and not isinstance(first, (pa.RecordBatch, pa.Table)):
        raise InvalidInput(f"The iterator must give pyarrow record batches, got {type(first).__name__}.")
    if first is None:
        raise InvalidInput(
            "The iterator gave no batch, so the columns are unknown. Use a RecordBatchReader, which has a schema."
        )

    def all_batches() -> Iterator[pa.RecordBatch]:
        yield first
        yield from batches

    return _run_reader(first.schema, all_batches(), query)


def _answers(session: Session, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from session.push(batch).to_batches()
    yield from session.finish().to_batches()


def _type_of(name: str, schema: pa.Schema) -> str:
    return str(schema.field(name).type) if name in schema.names else "missing"
