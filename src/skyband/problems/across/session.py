"""Top-k across streams over Arrow data, in this process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.core import snapshots
from skyband.core.encoding.groups import GroupCodes
from skyband.core.encoding.output import Layout, across_layout, free_name
from skyband.core.encoding.schemas import (
    cast_batch,
    check_keys,
    common_type,
    is_value,
    plain_batch,
    plain_schema,
    stored,
)
from skyband.core.operator import Codes, Floats, Ints
from skyband.core.registry import find
from skyband.core.session import Jumps, Saved, Session, Stats, check_schema, entry, measured_type, with_times
from skyband.engines.embedded.frames import common
from skyband.engines.embedded.inputs import Held, Source, in_batches, read, rows_for
from skyband.engines.embedded.merging import in_turn
from skyband.engines.embedded.ordering import check_order, ordered
from skyband.engines.embedded.running import Running, run, started
from skyband.errors import InvalidInput, InvalidQuery
from skyband.expressions import as_floats, check_exact, is_number
from skyband.problems.across.operator import NO_KEYS, AcrossAnswer, AcrossBatch, AcrossOperator
from skyband.problems.across.planning import plan, specify
from skyband.problems.across.query import TopKAcross
from skyband.windows import Window, whole_number


@dataclass(slots=True)
class AcrossStats(Stats):
    """`groups` is the number of objects that something is known of."""

    values_clipped: int = 0  # out of bounds, moved to the bound
    rows_repeated: int = 0  # an object came more often in a stream than repeat= and max_repeats= say, as noticed


class TopKAcrossSession(Session):
    """A top-k query across streams, running: fed by `push`, asked by `top`, saved by `snapshot`."""

    query: TopKAcross
    _operator: AcrossOperator

    def __init__(
        self, query: TopKAcross, schema: pa.Schema, state: bytes | None = None, *, external_clock: bool = False
    ) -> None:
        check_schema(schema)
        self.query = query
        self.schema = schema
        self._plain = plain_schema(schema)
        query.check_columns(schema.names)
        check_keys((query.id,), self._plain, "id")
        named_by = None if query.stream is None else self._plain.field(query.stream).type
        if named_by is not None and (not is_value(named_by) or isinstance(named_by, pa.BaseExtensionType)):
            raise InvalidInput(f"stream={query.stream!r} must name a stream in each row, but the column is {named_by}.")
        if not is_number(self._plain.field(query.value).type):
            raise InvalidInput(
                f"A value must be a number, but column {query.value!r} is {schema.field(query.value).type}."
            )
        self._spec = specify(query, self._plain, external_clock=external_clock)
        self._layout = across_layout(query, self._plain, str(query.emit))
        self._answer_layout = across_layout(query, self._plain, "windows")
        on_type = measured_type(query.window.on, self._plain)
        saved = self._begin(query.fingerprint(schema), on_type, state, external_clock=external_clock)
        self.algorithm = saved.algorithm if saved else plan(self._spec, query.algorithm).algorithm
        self._operator = find(self.algorithm, "across").open(self._spec)
        self._low, self._high = np.array(self._spec.low), np.array(self._spec.high)
        self._objects = GroupCodes(pa.schema([self._plain.field(query.id)]))
        self._recount_at = self.few_groups
        self._jumps = Jumps(query.max_jump, query.window, self._on_type)
        self._position = 0
        self._stats = AcrossStats()
        self._resume(saved)

    @property
    def output_schema(self) -> pa.Schema:
        return self._layout.schema

    # -- rows and time ------------------------------------------------------------------------------------------------

    @entry
    def push(self, rows: Any, stream: str | None = None) -> pa.Table:
        """Take rows in, in arrival order; return what they make known, always as a pyarrow Table.

        Rows are whatever `top_k` takes; of a stream, all there are. `stream` says whose rows they are, unless a column
        does, or there is only one stream.
        """
        rows = rows_for(rows, self.schema)
        number = self._stream_number(stream)
        if isinstance(rows, pa.RecordBatch):
            return self._push(rows, number)
        # As one batch, so that a row that cannot be taken keeps all of them out.
        results = [self._push(batch, number) for batch in rows.combine_chunks().to_batches()]
        return pa.concat_tables(results) if results else self.output_schema.empty_table()

    @entry
    def top(self, k: int | None = None) -> pa.Table:
        """The best objects right now, up to the query's k; with a slide, those of the window that closes next."""
        number = self.query.k if k is None else whole_number(k)
        if number is None or not 1 <= number <= self.query.k:
            raise InvalidQuery(f"k must be a whole number from 1 to the query's {self.query.k}, got {k!r}.")
        return self._shown(self._operator.top(number), self._answer_layout)

    # -- state --------------------------------------------------------------------------------------------------------

    def stats(self) -> AcrossStats:
        """Counts of rows so far, and of what is held now."""
        stats = self._stats
        stats.rows_late, stats.rows_unranked = self._operator.late, self._operator.unranked
        stats.rows_used = stats.rows_in - stats.rows_null_time - stats.rows_jumped - stats.rows_late
        stats.rows_repeated = self._operator.repeated
        stats.rows_held = self._operator.rows_held()
        stats.groups = len(self._objects)
        return AcrossStats(**asdict(stats))

    def _saved(self) -> Saved:
        return Saved({"position": self._position, **self._jumps.state()}, {}, {"keys": self._objects.keys})

    def _restore(self, saved: snapshots.Snapshot) -> None:
        self._operator.restore(dict(saved.arrays))
        self._objects.load(saved.tables["keys"])
        counters = dict(saved.counters)
        self._position = counters.pop("position")
        self._jumps.restore(counters)
        self._stats = AcrossStats(**counters)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _stream_number(self, stream: str | None) -> int | None:
        """Which stream all rows are of; None: a column says."""
        names = self.query.streams
        if self.query.stream is not None:
            if stream is not None:
                raise InvalidInput(
                    f"The column {self.query.stream!r} names the stream of each row: push(rows) is enough."
                )
            return None
        if stream is None and len(names) == 1:
            return 0
        if stream not in names:
            raise InvalidInput(
                f"Whose rows are these? push(rows, stream='…') with one of {', '.join(names)}; got {stream!r}."
            )
        return names.index(stream)

    def _push(self, batch: pa.RecordBatch, stream: int | None) -> pa.Table:
        batch = batch if self._plain is self.schema else plain_batch(batch, self._plain)
        return self._take(batch, self._numbers(batch) if stream is None else np.full(batch.num_rows, stream, np.int32))

    def _take(self, batch: pa.RecordBatch, stream: Codes) -> pa.Table:
        rows_in = batch.num_rows
        check_exact(batch.column(self.query.value), f"value={self.query.value!r}")
        value = as_floats(batch.column(self.query.value), rows_in, self.query.value)
        value, clipped = self._within_bounds(batch, stream, value)
        timed, time = with_times(batch, self.query.window.on, in_order=self.in_order)
        if timed.num_rows < rows_in:
            kept = pc.is_valid(batch.column(str(self.query.window.on))).to_numpy(zero_copy_only=False)
            stream, value = stream[kept], value[kept]
        with_time = timed.num_rows
        if (kept := self._jumps.keep(time)) is not None:
            timed, time, stream, value = timed.filter(pa.array(kept)), time[kept], stream[kept], value[kept]
        timed = self._objects.normal(timed.select([self.query.id]))
        key = _keys(timed.column(self.query.id)) if self._operator.wants_keys else NO_KEYS
        # A batch that is refused is refused before this line, and leaves the session as it was.
        self._changing = True
        code = self._objects.encode(timed)
        self._stats.rows_in += rows_in
        self._stats.rows_null_time += rows_in - with_time
        self._stats.rows_jumped += with_time - timed.num_rows
        self._jumps.accept()
        self._stats.values_clipped += clipped
        first = self._position
        self._position += timed.num_rows
        answer = self._operator.push(AcrossBatch(stream, code, value, time, first, len(self._objects), key))
        result = self._table(answer)
        self._forget_objects()
        return result

    def _numbers(self, batch: pa.RecordBatch) -> Codes:
        """The stream of each row, from the column that names it."""
        column = batch.column(str(self.query.stream)).cast(pa.string())
        found = pc.index_in(column, value_set=pa.array(self.query.streams))
        if found.null_count:
            row = int(np.flatnonzero(pc.is_null(found).to_numpy(zero_copy_only=False))[0])
            raise InvalidInput(
                f"Row {row} of this batch is of stream {column[row].as_py()!r}, which is none of "
                f"{', '.join(self.query.streams)}. Nothing of it was taken."
            )
        numbers: Codes = found.to_numpy(zero_copy_only=True)
        return numbers

    def _within_bounds(self, batch: pa.RecordBatch, stream: Codes, value: Floats) -> tuple[Floats, int]:
        one = len(self._low) == 1
        low, high = (self._low[0], self._high[0]) if one else (self._low[stream], self._high[stream])
        outside = (value < low) | (value > high) | (value == np.inf)
        if not outside.any():
            return value, 0
        row = int(np.flatnonzero(outside)[0])
        s = int(stream[row])
        infinite = np.isinf(value[row]) and np.isinf(self._high[s])
        if infinite or not self.query.clip:
            bounds = f"{self._low[s]:g} to {self._high[s]:g}"
            raise InvalidInput(
                f"Row {row} of this batch: the value {value[row]:g} of {batch.column(self.query.id)[row].as_py()!r} in "
                f"stream {self.query.streams[s]!r} is out of bounds ({bounds}). Nothing of it was taken. Give other "
                "bounds, or clip=True."
            )
        return np.clip(value, low, high), int(np.count_nonzero(outside))

    def _table(self, answer: AcrossAnswer) -> pa.Table:
        return self._shown(answer, self._layout) if len(answer.at) else self.output_schema.empty_table()

    def _shown(self, answer: AcrossAnswer, layout: Layout) -> pa.Table:
        objects = self._objects.take(answer.code).column(0)
        values = [pa.array(column, from_pandas=True) for column in answer.values.T]
        recall = [] if self.query.recall is None else [pa.array(answer.recall)]
        rows = pa.record_batch([objects, *values, *recall], schema=layout.rows_schema)
        return layout.table(answer, rows, self._spec.window, False)

    def _forget_objects(self) -> None:
        """Drop objects that the operator has dropped, when there are enough of them to pay for the work."""
        if len(self._objects) >= self._recount_at:
            live = np.flatnonzero(self._operator.live_codes())
            if 2 * len(live) < len(self._objects):
                self._operator.recode(live)
                self._objects.keep(live)
            self._recount_at = max(self.few_groups, 2 * len(self._objects))


def _keys(column: pa.Array) -> Ints:
    """A number for each object that is the same whenever it comes."""
    import polars as pl  # deferred: few need it, and it takes a while to import

    column = column.cast(pa.string()) if pa.types.is_decimal256(column.type) else stored(column)
    hashed = pl.Series(column).hash(seed=1).to_numpy()
    return np.ascontiguousarray(hashed).view(np.int64).copy()


def top_k_across(data: Any, query: TopKAcross) -> Any:
    """The answers of `query` over one stream, over one in which a column names the source, or over a mapping."""
    return start(data, query).answer()


def start(data: Any, query: TopKAcross) -> Running:
    """The same, as it runs."""
    if isinstance(data, Mapping):
        return _start_all(data, query)
    if query.stream is None and len(query.streams) > 1:
        raise InvalidInput(
            f"Rows of {len(query.streams)} streams ({', '.join(query.streams)}), but whose is which? Give a "
            "mapping of the streams' names to their rows, or name the column that says it with stream=."
        )
    return run(data, query.open, query.window)


def _start_all(data: Mapping[str, Any], query: TopKAcross) -> Running:
    by = query.window.order if query.window.by_count else query.window.on
    if by is None:
        raise InvalidQuery(
            "In a window of arrivals over several streams, which row arrived first? Name the column that says it, as "
            "in sliding(1000, order='seq'), or give one stream in which a column names the source (stream=)."
        )
    sources = [read(data[name]) for name in query.streams]
    schema = _common_schema(sources, query)
    session = query.open(schema)
    check_order(query.window, schema)
    sources = [source.mapped(schema, partial(cast_batch, schema=schema)) for source in sources]
    is_whole = all(source.is_whole for source in sources)
    return started(session, _answers(session, sources, by), is_whole, common([source.like for source in sources]))


def _common_schema(sources: list[Source], query: TopKAcross) -> pa.Schema:
    """The columns that are read, in types that have a place for what each stream has there."""
    needed = query.id, query.value, query.window.on, query.window.order
    fields = []
    for source in sources:
        query.check_columns(source.schema.names)
    plain = [plain_schema(source.schema) for source in sources]
    for column in dict.fromkeys(name for name in needed if name is not None):
        types = {name: schema.field(column).type for name, schema in zip(query.streams, plain, strict=True)}
        found = common_type(types.values())
        if found is None:
            said = ", ".join(f"{kind} in {name!r}" for name, kind in types.items())
            raise InvalidInput(f"Column {column!r} has no type that holds what all streams have: it is {said}.")
        fields.append(plain[0].field(column).with_type(found))
    return pa.schema(fields)


def _answers(session: TopKAcrossSession, sources: list[Source], by: str) -> Iterator[pa.Table]:
    window = session.query.window
    is_whole = all(source.is_whole for source in sources)
    session.in_order = is_whole and window.on is not None
    together = _sorted(sources, window) if is_whole else in_turn([iter(ordered(one, window)) for one in sources], by)
    for batch, stream in together:
        yield session._take(batch, stream)
    yield session.finish()


def _sorted(sources: list[Source], window: Window) -> Iterator[tuple[pa.RecordBatch, Codes]]:
    """The rows of streams that are all there, and the stream of each; of equal ones, the first stream's first."""
    schema = sources[0].schema
    number = pa.field(free_name("stream", set(schema.names)), pa.int32())
    rows = (
        batch.append_column(number, pa.array(np.full(batch.num_rows, stream, np.int32)))
        for stream, source in enumerate(sources)
        for batch in in_batches(source.batches)
    )
    for batch in ordered(Source(schema.append(number), Held(rows), is_whole=True), window):
        yield batch.select(schema.names), batch.column(number.name).to_numpy()
