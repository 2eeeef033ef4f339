"""The codec of across: from rows to objects and their values in streams, and from answers to tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.core.calls import Stats
from skyband.core.codec import Codec
from skyband.core.encoding.groups import GroupCodes, check_live
from skyband.core.encoding.output import AdHoc, Outputs, OutputSchema, free_name
from skyband.core.encoding.rows import RowStore, column_of
from skyband.core.encoding.schemas import check_keys, is_value, stored
from skyband.core.encoding.times import measured_type
from skyband.core.operator import Codes, Floats, Ints
from skyband.core.plan import TOOK_SNAPSHOT, Plan
from skyband.core.registry import find
from skyband.core.snapshots import Part
from skyband.errors import InvalidInput
from skyband.expressions import as_floats, check_exact, is_number
from skyband.problems.across.operator import NO_KEYS, AcrossAnswer, AcrossBatch, AcrossOperator
from skyband.problems.across.planning import plan, specify
from skyband.problems.across.query import TopKAcross

_ODD: Final = np.uint64(0x9E3779B97F4A7C15)  # a multiplier for hashes

Source = int | Codes | None  # the stream of all rows, or of each row; None: a column names it


@dataclass(slots=True)
class AcrossStats(Stats):
    """`Stats` of a query across streams. `groups` is the number of objects that Skyband knows."""

    values_clipped: int = 0  # values out of bounds, which were moved to the bound
    rows_repeated: int = 0  # an object came more often than repeat= and max_repeats= allow, as far as Skyband noticed


def output_of(query: TopKAcross, schema: pa.Schema, emit: str) -> OutputSchema:
    """The columns of the answers of `query` over rows of `schema`: the object, and one for each stream."""
    fields = [*map(schema.field, query.ids), *(pa.field(name, pa.float64()) for name in query.streams)]
    if query.recall is not None:
        fields.append(pa.field("recall", pa.float64()))
    return OutputSchema.of(emit, measured_type(query.window.on, schema), pa.float64(), others=fields)


class AcrossCodec(Codec[AcrossBatch, AcrossAnswer]):
    """A top-k query across streams, over rows of one schema. Its answers have objects and values, not rows."""

    query: TopKAcross
    kept = None
    any_size = False
    stats_type = AcrossStats
    _operator: AcrossOperator

    def __init__(self, query: TopKAcross, schema: pa.Schema, *, external_clock: bool = False) -> None:
        super().__init__(query, schema, external_clock=external_clock)
        check_keys(query.ids, self.plain, "id")
        self._check_types()
        self._spec = specify(query, self.plain, external_clock=external_clock)
        self.window, self.k, self.max_jump = self._spec.window, query.k, query.max_jump
        self._outputs = Outputs(str(query.emit), lambda emit: output_of(query, self.plain, emit))
        self.output_schema = self._outputs.emitted.schema
        self._low, self._high = np.array(self._spec.low), np.array(self._spec.high)
        self._objects = GroupCodes(pa.schema([self.plain.field(name) for name in query.ids]))
        needed = dict.fromkeys(name for name in (*query.ids, query.window.on) if name is not None)
        self._value, self._stream = free_name("value", set(needed)), free_name("stream", set(needed))
        added = [pa.field(self._value, pa.float64()), pa.field(self._stream, pa.int32())]
        self._needed = list(needed)
        self._arranged = pa.schema([*(self.plain.field(name) for name in needed), *added])
        self._clipped = 0

    def _check_types(self) -> None:
        query, plain = self.query, self.plain
        named_by = None if query.stream is None else plain.field(query.stream).type
        if named_by is not None and (not is_value(named_by) or isinstance(named_by, pa.BaseExtensionType)):
            raise InvalidInput(f"stream={query.stream!r} must name a stream in each row, but the column is {named_by}.")
        for name in query.values:
            if not is_number(plain.field(name).type):
                raise InvalidInput(f"A value must be a number, but column {name!r} is {self.schema.field(name).type}.")

    def choose(self, saved: str | None) -> Plan:
        return plan(self._spec, self.query.algorithm) if saved is None else Plan.fixed(saved, TOOK_SNAPSHOT)

    def open(self, algorithm: str, rows: RowStore | None) -> AcrossOperator:
        self._operator = find(algorithm, "across").open(self._spec)
        return self._operator

    # -- rows come in ------------------------------------------------------------------------------------------------

    def stream_number(self, stream: str | None) -> int | None:
        """The number of the stream that a user names; None if a column names the stream of each row."""
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

    def arrange(self, batch: pa.RecordBatch, source: Source) -> pa.RecordBatch:
        """Arrange the columns as object, time, value and number of the stream; raises for values out of bounds."""
        batch = super().arrange(batch, source)
        rows = batch.num_rows
        if source is None:
            stream = self._numbers(batch)
        else:
            stream = np.full(rows, source, np.int32) if isinstance(source, int) else source
        value = self._values(batch, stream)
        self._check_bounds(batch, stream, value)
        added = column_of(value, np.float64, pa.float64()), column_of(stream, np.int32, pa.int32())
        return pa.record_batch([*(batch.column(name) for name in self._needed), *added], schema=self._arranged)

    def _values(self, batch: pa.RecordBatch, stream: Codes) -> Floats:
        """The value of each row, from the column of its stream."""
        names = list(dict.fromkeys(self.query.values))
        if len(names) == 1:
            return _floats(batch.column(names[0]), names[0])
        found = np.empty(batch.num_rows)
        for name in names:
            mine = np.isin(stream, [s for s, column in enumerate(self.query.values) if column == name])
            found[mine] = _floats(batch.column(name).filter(pa.array(mine)), name)
        return found

    def read(self, batch: pa.RecordBatch, time: Ints, source: Source) -> tuple[pa.RecordBatch, Any]:
        batch = self._objects.normal(batch)
        value, stream = (batch.column(name).to_numpy(zero_copy_only=True) for name in (self._value, self._stream))
        clipped = 0
        if self.query.clip:
            low, high = self._bounds(stream)
            clipped = int(np.count_nonzero((value < low) | (value > high)))
            value = np.clip(value, low, high) if clipped else value
        key = _keys(batch.select(self.query.ids)) if self._operator.wants_keys else NO_KEYS
        return batch, (stream, value, key, clipped)

    def encode(self, numbers: Any, batch: pa.RecordBatch, time: Ints, first: int) -> AcrossBatch:
        stream, value, key, clipped = numbers
        code = self._objects.encode(batch)
        self._clipped += clipped
        return AcrossBatch(stream, code, value, time, first, len(self._objects), key)

    def _numbers(self, batch: pa.RecordBatch) -> Codes:
        """The stream of each row, from the column that names it."""
        column = batch.column(str(self.query.stream)).cast(pa.string())
        found = pc.index_in(column, value_set=pa.array(self.query.streams))
        if found.null_count:
            row = int(np.flatnonzero(pc.is_null(found).to_numpy(zero_copy_only=False))[0])
            raise InvalidInput(
                f"Row {row} of this batch is of stream {column[row].as_py()!r}, which is none of "
                f"{', '.join(self.query.streams)}. Skyband rejected the batch."
            )
        numbers: Codes = found.to_numpy(zero_copy_only=True)
        return numbers

    def _bounds(self, stream: Codes) -> tuple[Any, Any]:
        one = len(self._low) == 1
        return (self._low[0], self._high[0]) if one else (self._low[stream], self._high[stream])

    def _check_bounds(self, batch: pa.RecordBatch, stream: Codes, value: Floats) -> None:
        low, high = self._bounds(stream)
        outside = (value < low) | (value > high) | (value == np.inf)
        if not outside.any():
            return
        row = int(np.flatnonzero(outside)[0])
        s = int(stream[row])
        infinite = np.isinf(value[row]) and np.isinf(self._high[s])
        if infinite or not self.query.clip:
            bounds = f"{self._low[s]:g} to {self._high[s]:g}"
            what = ", ".join(repr(batch.column(name)[row].as_py()) for name in self.query.ids)
            raise InvalidInput(
                f"Row {row} of this batch: the value {value[row]:g} of {what} in "
                f"stream {self.query.streams[s]!r} is out of bounds ({bounds}). Skyband rejected the batch. Give other "
                "bounds, or clip=True."
            )

    # -- answers go out ----------------------------------------------------------------------------------------------

    def decode(self, answer: AcrossAnswer, rows: pa.RecordBatch | None, ad_hoc: AdHoc | None) -> pa.Table:
        objects = self._objects.take(answer.code).columns
        values = [pa.array(column, from_pandas=True) for column in answer.values.T]
        recall = [] if self.query.recall is None else [pa.array(answer.recall, from_pandas=True)]
        columns, score = [*objects, *values, *recall], column_of(answer.score, np.float64, pa.float64())
        return self._outputs.table(answer, columns, score, self.window, ad_hoc)

    # -- what it remembers -------------------------------------------------------------------------------------------

    def compact(self) -> None:
        self._objects.compact(self.few_codes, self._operator.live_codes, self._operator.compact)

    def counts(self) -> dict[str, int]:
        return {
            "rows_unranked": self._operator.unranked,
            "groups": len(self._objects),
            "values_clipped": self._clipped,
            "rows_repeated": self._operator.repeated,
        }

    def state(self) -> Part:
        counters = {"recount_at": self._objects.recount_at, "values_clipped": self._clipped}
        return Part(counters, {}, {"keys": self._objects.keys})

    def restore(self, saved: Part) -> None:
        self._objects.load(saved.tables["keys"])
        self._objects.recount_at, self._clipped = saved.counters["recount_at"], saved.counters["values_clipped"]
        check_live(self._operator.live_codes(), len(self._objects))


def _floats(values: pa.Array, name: str) -> Floats:
    check_exact(values, f"value={name!r}")
    return as_floats(values, len(values), name)


def _keys(ids: pa.RecordBatch) -> Ints:
    """A hash of each object's id, which is the same whenever the object comes."""
    import polars as pl  # deferred: few need it, and it takes a while to import

    hashed = np.zeros(ids.num_rows, np.uint64)
    for column in ids.columns:
        column = column.cast(pa.string()) if pa.types.is_decimal256(column.type) else stored(column)
        # With one column this is its hash; with several, (1, 2) and (2, 1) differ.
        hashed = hashed * _ODD + pl.Series(column).hash(seed=1).to_numpy()
    return hashed.view(np.int64)
