"""Prepares rows of a join for their buckets: it filters them, converts them to numbers and merges them.

On a stream, Spark's own aggregation would keep state of its own; it cannot aggregate within a micro-batch alone. So
rows cross to Python first. If that is exact, Python merges the rows of each pane, cell and partition into one before
the shuffle. Such a row has the keys, the sums or extremes of the arguments, and the number of rows it stands for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skyband.core.encoding.schemas import whole_batch
from skyband.core.encoding.times import with_times
from skyband.core.plan import Plan
from skyband.engines.spark.bucket_job import BUCKET, PREFIX, TIE
from skyband.engines.spark.gathering import Gatherer, pane_tally, times_of
from skyband.engines.spark.pages import Tally
from skyband.engines.spark.projection import WEIGHT
from skyband.kernels.panes import shape_of
from skyband.problems.joins.codec import JoinsCodec
from skyband.problems.joins.codes import JoinCodes
from skyband.problems.joins.columns import bind
from skyband.problems.joins.drivers.lifetimes import one_for_each_pane
from skyband.problems.joins.operator import UNMATCHED, Rows
from skyband.problems.joins.planning import coalesces
from skyband.problems.joins.reading import Read, RowReader
from skyband.problems.joins.session import JoinSession

if TYPE_CHECKING:
    from skyband.problems.joins.spark import JoinJob

INPUT: Final = PREFIX + "input"
TIME: Final = PREFIX + "time"
VALID: Final = PREFIX + "valid"

Bucket = npt.NDArray[np.int32]
Names = dict[str, dict[str, str]]  # by stream: its columns, and their names in the union of all streams


def shared(types: Mapping[str, Mapping[str, str]], prefix: str) -> Names:
    """Name the columns of several streams, given their types, so that streams share columns of the same type: each
    column costs time on the way between processes.

    >>> shared({"a": {"x": "long", "y": "long"}, "b": {"z": "long", "s": "string"}}, "_")
    {'a': {'x': '_0', 'y': '_1'}, 'b': {'z': '_0', 's': '_2'}}
    """
    taken: dict[str, list[str]] = {}  # by type
    names: Names = {}
    for stream, columns in types.items():
        names[stream] = {}
        free = {kind: list(alike) for kind, alike in taken.items()}
        for column, kind in columns.items():
            if not free.get(kind):
                new = f"{prefix}{sum(map(len, taken.values()))}"
                taken.setdefault(kind, []).append(new)
                free[kind] = [new]
            names[stream][column] = free[kind].pop(0)
    return names


def argument(number: int) -> str:
    return f"{PREFIX}argument_{number}"


def by_input(rows: pa.Table) -> Iterable[tuple[int, pa.Table]]:
    """Split rows by their input."""
    source = rows.column(INPUT).to_numpy()
    for i in np.unique(source).tolist():
        mine = source == i
        yield i, rows if mine.all() else rows.filter(pa.array(mine))


def with_all(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Add the columns that only other streams have, with nulls."""
    for field in schema:
        if field.name not in rows.column_names:
            rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
    return rows


class JoinGatherer(Gatherer):
    """Converts rows of the streams to numbers, and merges them if it can."""

    _job: JoinJob

    def __init__(self, job: JoinJob) -> None:
        super().__init__(job)
        self._bound = bind(job.query, job.schemas)
        self._codes = JoinCodes(self._bound)
        self._reader = RowReader(self._bound, self._codes)
        self._as_one = coalesces(job.query, self._bound) if job.by_pane else (None,) * len(self._bound.inputs)

    def prepare(self, table: pa.Table) -> tuple[pa.Table, Tally]:
        timeless = self.timeless(table)
        tally = Tally(table.num_rows, int(timeless.sum()), 0)
        if timeless.any():
            table = table.filter(pa.array(~timeless))
        parts = [self.types(table).empty_table()]
        for i, mine in by_input(table):
            part, unmatched = self._in_numbers(i, mine)
            tally.rows_unranked += unmatched
            parts.append(part.cast(parts[0].schema))
            if self._job.by_pane:
                self._count(i, part, tally)
        rows = pa.concat_tables(parts)
        if not self._job.in_any_order:  # then no rows were merged, so they can return to their order
            rows = rows.take(np.argsort(np.argsort(table.column(INPUT).to_numpy(), kind="stable")))
        return rows, tally

    def _in_numbers(self, i: int, table: pa.Table) -> tuple[pa.Table, int]:
        """Convert the rows of one input. Returns them, and how many match nothing."""
        source = self._bound.inputs[i]
        names, schema = self._job.columns[source.name], self._job.schemas[source.name]
        batch = whole_batch(table.select(list(names.values())).rename_columns(list(names)).cast(schema))
        read = self._reader.read(i, *with_times(batch, source.on))
        rows = self._reader.encode(i, read)
        extra = {name: table.column(name).to_numpy() for name in (TIE, BUCKET) if name in table.column_names}
        if self._job.by_pane and read.unmatched:
            matched = rows.cell != UNMATCHED  # other rows only move the clock, and Spark moves it itself
            rows, extra = rows.part(matched), {name: column[matched] for name, column in extra.items()}
        ways = self._as_one[i]
        if ways is not None and len(rows.time):
            rows, bucket = self._as_few(i, rows, ways, extra.get(BUCKET))
            extra = {} if bucket is None else {BUCKET: bucket}
        return self._written(i, rows, extra), read.unmatched

    def _as_few(self, i: int, rows: Rows, ways: tuple[int, ...], bucket: Bucket | None) -> tuple[Rows, Bucket | None]:
        """Merge rows into rows with weights. Returns them and their buckets."""
        size, every = self._bound.inputs[i].size, self._bound.every
        if bucket is None:
            return one_for_each_pane(rows, ways, size, every), None
        of_cell = np.zeros(len(self._codes.inputs[i]), np.int32)
        of_cell[rows.cell] = bucket
        if (of_cell[rows.cell] == bucket).all():
            few = one_for_each_pane(rows, ways, size, every)
            return few, of_cell[few.cell]
        # A cell is in several buckets. Each bucket needs its rows in order of time, or it would take some for late.
        which = np.unique(bucket)
        parts = [one_for_each_pane(rows.part(bucket == each), ways, size, every) for each in which]
        few = Rows(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
        return few, np.repeat(which, [len(part.time) for part in parts])

    def _count(self, i: int, rows: pa.Table, tally: Tally) -> None:
        """Count the rows of each pane, because they may turn out to be late."""
        shape = shape_of(self._bound.inputs[i].size, self._bound.every)
        ends, counted = pane_tally(times_of(rows.column(TIME)), rows.column(WEIGHT).to_numpy(), shape)
        tally.ends, tally.rows = np.append(tally.ends, ends), np.append(tally.rows, counted)

    def _written(self, i: int, rows: Rows, extra: Mapping[str, npt.NDArray[Any]]) -> pa.Table:
        n, name = len(rows.time), self._bound.inputs[i].name
        # A row that matches nothing has weight 0.
        weight = (rows.cell != UNMATCHED).astype(np.int64) if rows.weight is None else rows.weight
        columns = {
            INPUT: pa.array(np.full(n, i, np.int32)),
            TIME: pa.array(rows.time).view(self._bound.time_type),
            VALID: pa.array(rows.valid),
            WEIGHT: pa.array(weight),
            **{argument(a): pa.array(rows.arguments[:, a]) for a in range(rows.arguments.shape[1])},
            **{extra_name: pa.array(column) for extra_name, column in extra.items()},
        }
        which = pa.array(rows.cell, mask=rows.cell == UNMATCHED)
        for key, called in self._job.keys[name].items():
            columns[called] = self._codes.inputs[i].keys.column(key).combine_chunks().take(which)
        return with_all(pa.table(columns), self._job.schema).select([*self._job.schema.names, *extra])


class BucketOfJoins(JoinSession):
    """A join session that takes rows of all its streams at once, in numbers."""

    def __init__(
        self, codec: JoinsCodec, state: bytes | None, plan: Plan, keys: Names, arguments: Mapping[str, int]
    ) -> None:
        super().__init__(codec, state, plan)
        self._keys, self._arguments = keys, arguments

    def push(self, rows: Any, input: str | None = None) -> pa.Table:
        """Push plain rows of a named input, or rows of all streams in numbers."""
        if input is not None:
            return super().push(rows, input)
        table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
        pushed = {i: self._in_numbers(i, mine) for i, mine in by_input(table)}
        return self.push_rows(pushed, table.column(INPUT).to_numpy())

    def _in_numbers(self, i: int, table: pa.Table) -> Read:
        name = self.query.names[i]
        names, weight = self._keys[name], table.column(WEIGHT).to_numpy()
        # With INPUT, because a batch without columns would have no rows.
        keys = whole_batch(table.select([INPUT, *names.values()]).rename_columns([INPUT, *names]))
        numbers = [table.column(argument(a)).to_numpy() for a in range(self._arguments[name])]
        rows = Rows(
            times_of(table.column(TIME)),
            np.where(weight > 0, 0, UNMATCHED).astype(np.int32),
            np.stack(numbers, axis=1) if numbers else np.zeros((len(weight), 0), np.int64),
            table.column(VALID).to_numpy(),
            weight if (weight > 1).any() else None,
        )
        return Read(rows, keys.filter(pa.array(rows.cell != UNMATCHED)))
