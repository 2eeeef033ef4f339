"""Top-k across streams on Spark: streams tagged and put together, objects spread over buckets, answers merged.

    streams ─ tag ─ union ─ pack by object ─ one session per bucket ─ the best of all buckets, per window

An object's rows all go to one bucket, whose session is exact for its objects. All buckets have the same watermark, so
what they say of a window comes in one micro-batch, and the best k of it are the answer: that takes no state. Where
windows are not closed by the watermark (windows of arrivals, and answers with each arrival) there is one bucket.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from skyband.engines.embedded.across import TopKAcrossSession
from skyband.engines.output import across_layout
from skyband.engines.spark.candidates import pane_tally, times_of
from skyband.engines.spark.gathering import Gatherer
from skyband.engines.spark.pages import BatchFunction, Tally
from skyband.engines.spark.plan import run
from skyband.engines.spark.recipe import PREFIX, Recipe, arrow_schema, bucket, check_no_jump, check_order, quoted, tie
from skyband.expressions import as_floats
from skyband.operators.across.protocol import AcrossAnswer
from skyband.planner.across import idle_ticks, plan, specify
from skyband.planner.distribution import spread
from skyband.queries import TopKAcross
from skyband.structures.panes import shape_of

STREAM: Final = PREFIX + "stream"
LATEST: Final = PREFIX + "latest"  # when an object's most recent row was: decides between equal scores


@dataclass(frozen=True)
class AcrossRecipe(Recipe):
    """What a worker has to know of a top-k query across streams."""

    query: TopKAcross

    def open(self, state: bytes | None = None, *, external_clock: bool = False) -> BucketSession:
        return BucketSession(self.query, self.schema, state, external_clock=external_clock)

    def gatherer(self) -> Gatherer:
        return CountingGatherer(self)


class BucketSession(TopKAcrossSession):
    """A session that also says when an object's most recent row was."""

    @property
    def output_schema(self) -> pa.Schema:
        return super().output_schema.append(pa.field(LATEST, pa.int64()))

    def _table(self, answer: AcrossAnswer) -> pa.Table:
        if not len(answer.at):
            return self.output_schema.empty_table()
        return self._shown(answer, self._layout).append_column(LATEST, pa.array(answer.time))


class CountingGatherer(Gatherer):
    """Counts rows without a value, and those that may turn out to be late."""

    _recipe: AcrossRecipe

    def prepare(self, table: pa.Table) -> tuple[pa.Table, Tally]:
        timeless = self.timeless(table)
        value = as_floats(table.column(self._recipe.query.value), table.num_rows, "a value")
        unranked = np.isnan(value) & ~timeless
        tally = Tally(table.num_rows, int(timeless.sum()), int(unranked.sum()))
        ticks = self._recipe.ticks
        if self._recipe.by_pane:
            times = times_of(table.column(str(self._recipe.window.on)))[~timeless]
            tally.ends, tally.rows = pane_tally(times, np.ones(len(times), np.int32), shape_of(ticks.size, ticks.every))
        return self.typed(table, ~timeless), tally


def top_k_across(data: DataFrame | Mapping[str, DataFrame], query: TopKAcross) -> DataFrame:
    """The k best objects of a window across streams, batch or streaming. Columns: as of `skyband.top_k_across`.

    Of objects with equal scores whose most recent rows have equal times, the one in the later bucket comes last.
    """
    if isinstance(data, Mapping):
        query.check_columns(next(iter(data.values())).columns)
        needed = [query.id, query.value, query.window.on, query.window.order]
        columns = [quoted(name) for name in dict.fromkeys(name for name in needed if name is not None)]
        tagged = [data[name].select(*columns, sf.lit(name).alias(STREAM)) for name in query.streams]
        return _top_k(reduce(DataFrame.unionByName, tagged), query, STREAM)
    query.check_columns(data.columns)
    if query.stream is None:
        return _top_k(data.withColumn(STREAM, sf.lit(query.streams[0])), query, STREAM)
    return _top_k(data, query, query.stream)


def _top_k(df: DataFrame, query: TopKAcross, stream: str) -> DataFrame:
    recipe = _resolve(df, query, stream)
    answers = run(df, recipe, lambda df, buckets: _rows_to_gather(df, recipe, buckets))
    if not recipe.is_spread:
        return answers.drop(LATEST)
    shown = [name for name in answers.columns if name != LATEST]
    # All that is said of a window comes to one place.
    together = answers.repartition(quoted("window_end"))
    recall = None if query.recall is None else shown[-1]
    return together.mapInArrow(best_of_all(query.k, recall), answers.select(*map(quoted, shown)).schema)


def best_of_all(k: int, recall: str | None = None) -> BatchFunction:
    """For mapInArrow: of what buckets say of each window, the k best objects, ranked.

    The recall of a window, in the column of that name, is the mean of those of the buckets that its objects come from.
    """

    def merge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables = [pa.Table.from_batches([batch]) for batch in batches]
        if not tables:
            return
        rows = pa.concat_tables(tables).combine_chunks()
        ways = [("window_end", "ascending"), ("score", "descending"), (LATEST, "descending"), ("rank", "ascending")]
        rows = rows.take(pc.sort_indices(rows, sort_keys=ways))
        starts = np.flatnonzero(pc.not_equal(rows["window_end"].slice(1), rows["window_end"].slice(0, len(rows) - 1)))
        first = np.zeros(len(rows), np.int64)
        first[starts + 1] = starts + 1
        rank = (np.arange(len(rows)) - np.maximum.accumulate(first) + 1).astype(np.int32)
        rows = rows.drop_columns([LATEST]).set_column(rows.schema.names.index("rank"), "rank", pa.array(rank))
        rows = rows.filter(pa.array(rank <= k))
        if recall is not None:
            window = rows["window_end"].combine_chunks().dictionary_encode().indices.to_numpy()
            mean = np.bincount(window, rows[recall].to_numpy()) / np.bincount(window)
            rows = rows.set_column(rows.schema.names.index(recall), recall, pa.array(mean[window]))
        yield from rows.to_batches()

    return merge


def _resolve(df: DataFrame, query: TopKAcross, stream: str) -> AcrossRecipe:
    """The recipe for `query` over `df`, whose column `stream` names the stream of each row."""
    added = [stream] if stream == STREAM else []
    whole = arrow_schema(df.drop(*added).schema)
    check_order(query.window, whole)
    plan(specify(query, whole), query.algorithm)  # refuses an algorithm that cannot answer
    ticks = query.window.ticks(whole, query.lateness)
    # There is one watermark for all streams, that of the first: so it waits as long as any may be behind.
    ticks = replace(ticks, lateness=ticks.lateness + idle_ticks(query, whole))
    check_no_jump(df, query.max_jump)
    needed = [query.id, query.value, query.window.on, query.window.order, None if added else stream]
    names = dict.fromkeys(name for name in needed if name is not None)
    fields = [whole.field(name) for name in names]
    schema = pa.schema([*fields, *(pa.field(name, pa.string()) for name in added)])
    output = across_layout(query, whole, str(query.emit)).schema
    return AcrossRecipe(
        window=query.window,
        ticks=ticks,
        schema=schema,
        added=tuple(added),
        output=output.append(pa.field(LATEST, pa.int64())),
        sources=(*[None] * 4, query.id, *[None] * (len(output) - 5), None),
        changes=query.emit != "windows",
        is_spread=spread(query, ticks).is_spread,
        fingerprint=query.fingerprint(whole),
        query=_of_a_bucket(query, stream),
    )


def _of_a_bucket(query: TopKAcross, stream: str) -> TopKAcross:
    """The same query, asked of a bucket: a column names the stream of each row, and Spark does the waiting."""
    return TopKAcross(
        k=query.k,
        id=query.id,
        value=query.value,
        window=query.window,
        streams=query.streams,
        stream=stream,
        combine=dict(query.combine) if isinstance(query.combine, tuple) else query.combine,
        bounds=dict(zip(query.streams, query.bounds, strict=True)),
        repeat=query.repeat,
        max_repeats=query.max_repeats,
        clip=query.clip,
        emit=query.emit,
        recall=query.recall,
        algorithm=query.algorithm,
    )


def _rows_to_gather(df: DataFrame, recipe: AcrossRecipe, buckets: int) -> DataFrame:
    columns = [quoted(name).alias(plain) for name, plain in recipe.plain_names.items()]
    columns += [quoted(name) for name in recipe.added]
    columns.append(tie(df))
    if recipe.is_spread:
        columns.append(bucket((recipe.query.id,), buckets))
    return df.select(*columns)
