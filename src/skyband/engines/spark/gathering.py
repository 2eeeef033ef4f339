"""From the rows of a partition to the input of a bucket's session: typed, counted, packed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skyband.engines.spark.bucket_job import BUCKET, PREFIX, TIE, BucketJob
from skyband.engines.spark.pages import BatchFunction, Ints, Tally, page_batch
from skyband.engines.spark.workers import spare_the_collector
from skyband.kernels.panes import Shape
from skyband.windows import NEVER

# As much as is handled together; a partition may have much more.
GATHERED_ROWS: Final = 1 << 18
_GATHERED_BYTES: Final = 1 << 26

COPY: Final = PREFIX + "side"  # which of a row's copies it is; of each row one is 0. Checkpoints know it by this name

Mask = npt.NDArray[np.bool_]
Weights = npt.NDArray[np.int32]


def packer(job: BucketJob) -> BatchFunction:
    """For mapInArrow: the rows of a partition as pages, one row a bucket."""

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_the_collector()
        gatherer = job.gatherer()
        for rows, tally in gatherer.gather(batches):
            yield page_batch(gatherer.pages(rows), tally)

    return pack


def by_bucket(rows: pa.Table, job: BucketJob) -> Iterator[tuple[int, pa.Table]]:
    """At least one page, if an empty one: it carries the counts."""
    columns = job.schema.names if job.in_any_order else [*job.schema.names, TIE]
    if not job.is_spread or not rows.num_rows:
        yield 0, rows.select(columns)
        return
    bucket = rows.column(BUCKET).to_numpy()
    order = np.argsort(bucket, kind="stable")
    rows, bucket = rows.select(columns).take(pa.array(order)), bucket[order]
    starts = np.flatnonzero(np.diff(bucket, prepend=-1))
    for start, end in zip(starts, [*starts[1:], len(bucket)], strict=True):
        yield int(bucket[start]), rows.slice(start, end - start)


class Gatherer:
    """Prepares the rows of one partition, a large table at a time."""

    def __init__(self, job: BucketJob) -> None:
        self._job = job

    def gather(
        self, batches: Iterator[pa.RecordBatch], *, without_rows: bool = False
    ) -> Iterator[tuple[pa.Table, Tally]]:
        """What a session takes, and the counts, until all batches are done.

        If all batches are empty, there is nothing to take; `without_rows` asks for the counts then, too. The last of it
        comes when all rows have been read, so that it can bring what was counted of them elsewhere.
        """
        waiting: list[pa.RecordBatch] = []
        rows = size = 0
        for batch in batches:
            if rows >= GATHERED_ROWS or size >= _GATHERED_BYTES:
                yield self._prepared(waiting)
                waiting, rows, size = [], 0, 0
            waiting.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows or (without_rows and waiting):
            yield self._prepared(waiting)

    def _prepared(self, batches: list[pa.RecordBatch]) -> tuple[pa.Table, Tally]:
        names = {plain: name for name, plain in self._job.plain_names.items()}
        table = pa.Table.from_batches(batches).combine_chunks()
        return self.prepare(table.rename_columns([names.get(name, name) for name in table.column_names]))

    def prepare(self, table: pa.Table) -> tuple[pa.Table, Tally]:
        """The rows of `table` that a session needs, and the counts of those they stand for."""
        timeless = self.timeless(table)
        return self.typed(table, ~timeless), self.tally(table, self.weights(table), timeless)

    def weights(self, table: pa.Table) -> Weights:
        """How many input rows each row stands for. Of the copies of a row, one is COPY 0 and counts."""
        if COPY not in table.column_names:
            return np.ones(table.num_rows, np.int32)
        return (table.column(COPY).to_numpy() == 0).astype(np.int32)

    def tally(self, table: pa.Table, weights: Weights, timeless: Mask, unranked: Mask | None = None) -> Tally:
        """The counts of rows of these weights. Those with a rank count as late where all their windows have closed."""
        out = timeless if unranked is None else timeless | unranked
        without_rank = 0 if unranked is None else int(weights[unranked].sum())
        tally = Tally(int(weights.sum()), int(weights[timeless].sum()), without_rank)
        if self._job.by_pane:
            times, shape = times_of(table.column(str(self._job.window.on))), self._job.shape
            tally.ends, tally.rows = pane_tally(times[~out], weights[~out], shape)
        return tally

    def pages(self, rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """What was prepared, by the bucket it goes to."""
        return by_bucket(rows, self._job)

    def timeless(self, table: pa.Table) -> Mask:
        """Which rows have no time, so that no window by value can hold them?"""
        on = self._job.window.on
        return np.zeros(table.num_rows, np.bool_) if on is None else np.asarray(table.column(on).is_null())

    def typed(self, table: pa.Table, kept: Mask) -> pa.Table:
        """The kept rows with the columns a session takes, in its types: Spark's depend on the settings of the day."""
        if not kept.all():
            table = table.filter(pa.array(kept))
        types = self.types(table)
        return table.select(types.names).cast(types)

    def types(self, table: pa.Table) -> pa.Schema:
        """The columns that a session takes, and behind them those of `table` that say where a row goes, and when."""
        extra = [table.schema.field(name) for name in (TIE, BUCKET) if name in table.column_names]
        return pa.schema([*self._job.schema, *extra])


def times_of(column: pa.Array | pa.ChunkedArray) -> Ints:
    """Ticks of a timestamp or integer column; 0 for null."""
    if column.type != pa.int64():
        column = column.cast(pa.int64())  # Spark's timestamps are microseconds
    if column.null_count:
        column = column.fill_null(0)
    return column.to_numpy(zero_copy_only=False)


def pane_tally(times: Ints, weights: Weights | Ints, shape: Shape) -> tuple[Ints, Ints]:
    """Where the last windows of these rows end, and how many rows are in them. A landmark's never do."""
    counted = weights > 0
    if shape.whole == NEVER or not counted.any():
        return np.empty(0, np.int64), np.empty(0, np.int64)
    times = times[counted]
    slide = times // shape.every
    second = times - slide * shape.every >= shape.every - shape.rest if shape.rest else 0
    ends, which = np.unique((slide + shape.whole + second) * shape.every, return_inverse=True)
    return ends, np.bincount(which, weights[counted]).astype(np.int64)
