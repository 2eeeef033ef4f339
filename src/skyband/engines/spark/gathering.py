"""From the rows of a partition to what a bucket's session takes: scored, typed, ruled out once more, counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skyband.engines.spark.candidates import groups_of, times_of
from skyband.engines.spark.pages import BatchFunction, Ints, Tally, page_batch
from skyband.engines.spark.recipe import BUCKET, GROUP, SCORE, TIE, WEIGHT, Recipe
from skyband.engines.spark.workers import spare_the_collector
from skyband.structures.panes import Shape, shape_of
from skyband.structures.sieve import Sieve
from skyband.windows import FOREVER

# As much as is handled together; a partition may have much more.
_GATHERED_ROWS: Final = 1 << 18
_GATHERED_BYTES: Final = 1 << 26


def packer(recipe: Recipe) -> BatchFunction:
    """For mapInArrow: the rows of a partition as pages, one row a bucket."""

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_the_collector()
        for rows, tally in Gatherer(recipe).gather(batches):
            yield page_batch(_by_bucket(rows, recipe), tally)

    return pack


def _by_bucket(rows: pa.Table, recipe: Recipe) -> Iterator[tuple[int, pa.Table]]:
    """At least one page, if an empty one: it carries the counts."""
    columns = [*recipe.schema.names, TIE]
    if not recipe.buckets_by_group or not rows.num_rows:
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

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._sieve = None
        if recipe.by_pane:
            self._shape: Shape = shape_of(recipe.ticks.size, recipe.ticks.every)
            self._sieve = Sieve(recipe.query.k, self._shape, ascending=recipe.query.ascending)

    def gather(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[pa.Table, Tally]]:
        """What a session takes, and the counts, until all batches are done."""
        waiting: list[pa.RecordBatch] = []
        rows = size = 0
        for batch in batches:
            waiting.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if rows >= _GATHERED_ROWS or size >= _GATHERED_BYTES:
                yield self.prepare(pa.Table.from_batches(waiting))
                waiting, rows, size = [], 0, 0
        if rows:
            yield self.prepare(pa.Table.from_batches(waiting))

    def prepare(self, table: pa.Table) -> tuple[pa.Table, Tally]:
        """The rows of `table` that a session needs, and the counts of those they stand for."""
        names = {plain: name for name, plain in self._recipe.plain_names.items()}
        table = table.combine_chunks().rename_columns([names.get(name, name) for name in table.column_names])
        if self._recipe.score is not None:
            scores = self._recipe.score.evaluate(table.to_batches()[0])
            table = table.append_column(SCORE, pa.array(scores))
        else:
            scores = table.column(SCORE).fill_null(np.nan).to_numpy()
        on = self._recipe.query.window.on
        timeless = np.zeros(table.num_rows, np.bool_) if on is None else np.asarray(table.column(on).is_null())
        unranked = np.isnan(scores) & ~timeless
        weights = table.column(WEIGHT).to_numpy() if self._sieve else np.ones(table.num_rows, np.int32)
        tally = Tally(int(weights.sum()), int(weights[timeless].sum()), int(weights[unranked].sum()))
        if self._sieve is None:
            # A row without a score takes its place among the arrivals all the same; one without a time has none.
            return self._typed(table, ~timeless), tally
        return self._typed(table, self._candidates(table, scores, weights, timeless | unranked, tally)), tally

    def _candidates(self, table: pa.Table, scores: Any, weights: Any, out: Any, tally: Tally) -> npt.NDArray[np.bool_]:
        """Once more which rows may be shown, now that TIE tells equal ones apart; and the tally of their panes."""
        assert self._sieve is not None
        times = times_of(table.column(str(self._recipe.query.window.on)))
        tally.ends, tally.rows = _pane_tally(times[~out], weights[~out], self._shape)
        groups, null_groups = groups_of(table.column(GROUP) if self._recipe.query.per else None)
        # A column that orders the rows decides before TIE does, so then equal rows all stay.
        ties = None if self._recipe.query.window.order else table.column(TIE).to_numpy()
        return self._sieve.keep(times, np.where(out, np.nan, scores), groups, null_groups, ties)

    def _typed(self, table: pa.Table, kept: npt.NDArray[np.bool_]) -> pa.Table:
        """The kept rows with the columns a session takes, in its types: Spark's depend on the settings of the day."""
        extra = [name for name in (TIE, BUCKET) if name in table.column_names]
        if not kept.all():
            table = table.filter(pa.array(kept))
        types = pa.schema([*self._recipe.schema, *(table.schema.field(name) for name in extra)])
        return table.select(types.names).cast(types)


def _pane_tally(times: Ints, weights: npt.NDArray[np.int32], shape: Shape) -> tuple[Ints, Ints]:
    """Where the last windows of these rows end, and how many rows are in them. A landmark's never do."""
    counted = weights > 0
    if shape.whole == FOREVER or not counted.any():
        return np.empty(0, np.int64), np.empty(0, np.int64)
    times = times[counted]
    slide = times // shape.every
    second = times - slide * shape.every >= shape.every - shape.rest if shape.rest else 0
    ends, which = np.unique((slide + shape.whole + second) * shape.every, return_inverse=True)
    return ends, np.bincount(which, weights[counted]).astype(np.int64)
