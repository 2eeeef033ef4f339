"""The plan of a query on Spark: DataFrame in, DataFrame out, streaming or batch.

    rows ─ score ─ rule out ─ pack by bucket ─ one session per bucket ─ count ─ unpack

Ruling out is for windows by value that slide by panes. In a window of arrivals nothing can be ruled out early: how long
a row stays depends on how many come after it, which nobody knows before all rows are in one place and in order. And in
a window that slides with each arrival every row may be shown for a moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType, VariantType

from skyband.engines.embedded.objects import TopKSession
from skyband.engines.spark.candidates import group_key, only_candidates
from skyband.engines.spark.clock import with_clock
from skyband.engines.spark.gathering import Gatherer, packer
from skyband.engines.spark.pages import (
    ANSWER_COLUMNS,
    COUNTS,
    PAGE_COLUMNS,
    BatchFunction,
    answer_batches,
    unpacker,
)
from skyband.engines.spark.processor import BucketProcessor
from skyband.engines.spark.recipe import BUCKET, GROUP, SCORE, TIE, WEIGHT, Recipe, quoted, resolve
from skyband.errors import EnvironmentProblem, InvalidQuery
from skyband.queries import TopK

BUCKETS_SETTING: Final = "spark.skyband.buckets"
DEFAULT_BUCKETS: Final = 16
_STATE_STORE_SETTING: Final = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

_metrics_numbers = count(1)


def top_k(df: DataFrame, query: TopK, score: Column | None = None) -> DataFrame:
    """The k best rows of a window as it slides over `df`, batch or streaming. Columns: as of `skyband.top_k`.

    `score` is the column by which rows are ranked, if the query has only its text.

    Write a streaming result in append mode, or in update mode with emit="changes" and emit="entries". Windows close
    when the watermark reaches their end: the one set on the window's column, or else one that waits for `lateness`.
    Spark's watermark starts in 1970, so windows before that close only when it has passed that year.

    Each micro-batch reports rows_in, rows_late, rows_null_time and rows_unranked in the progress of the streaming
    query, under `observedMetrics`, in an entry whose name starts with "skyband".

    Groups are hashed to `spark.skyband.buckets` buckets of state: 16 unless set, and about 8 a core is right. A
    checkpoint belongs to one number of buckets.
    """
    given = score is not None
    recipe, score = resolve(df, query, score)
    if given and score is not None:
        # Computed once, so that what is shown is what was compared, even if the column is random.
        df, score = df.withColumn(SCORE, score), sf.col(SCORE)
    packed = _streaming(df, recipe, score) if df.isStreaming else _batch(df, recipe, score)
    counted = packed.observe(
        f"skyband_{next(_metrics_numbers)}",
        *(sf.coalesce(sf.sum(name), sf.lit(0)).alias(name) for name in COUNTS),
    )
    return counted.mapInArrow(unpacker(recipe.output.names), _output_type(df.schema, recipe))


def as_column(by: Any) -> tuple[Column | None, Any]:
    """A score that is a Spark column, and its text; other scores are only that."""
    return (by, str(by)) if isinstance(by, Column) else (None, by)


def _streaming(df: DataFrame, recipe: Recipe, score: Column | None) -> DataFrame:
    """Rows of ANSWER_COLUMNS, from one session a bucket whose state Spark keeps."""
    if df.sparkSession.conf.get(_STATE_STORE_SETTING, None) != _ROCKSDB:
        raise EnvironmentProblem(
            "Spark keeps this query's state in RocksDB only. Before the query starts: "
            f"spark.conf.set({_STATE_STORE_SETTING!r}, {_ROCKSDB!r}), or use skyband.engines.spark.local_session()."
        )
    buckets = _buckets(df)
    clock = None
    if recipe.by_pane:
        df, clock = with_clock(df, recipe, recipe.ticks.lateness)
    pages = _rows_to_gather(df, recipe, score, buckets).mapInArrow(packer(recipe), PAGE_COLUMNS)
    return pages.groupBy("bucket").transformWithState(
        BucketProcessor(recipe, clock, buckets),
        outputStructType=ANSWER_COLUMNS,
        outputMode="Append" if recipe.query.emit == "windows" else "Update",
        timeMode="EventTime" if clock else "None",
    )


def _batch(df: DataFrame, recipe: Recipe, score: Column | None) -> DataFrame:
    """The same from all the rows there are: no state and no watermark, since rows can be put in order first."""
    rows = _rows_to_gather(df, recipe, score, _buckets(df))
    together = rows.repartition(BUCKET) if recipe.buckets_by_group else rows.repartition(1)
    names = recipe.plain_names
    in_order = together.sortWithinPartitions(
        *(sf.col(names.get(name, name)).asc_nulls_last() for name in recipe.arrival_order)
    )
    return in_order.mapInArrow(_runner(recipe), ANSWER_COLUMNS)


def _runner(recipe: Recipe) -> BatchFunction:
    """For mapInArrow: the answers over the rows of a partition, which are in order of arrival."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        session = TopKSession(recipe.query, recipe.schema)
        for rows, tally in Gatherer(recipe).gather(batches):
            known = session.push(rows.select(recipe.schema.names))
            yield from answer_batches(known, tally.counts())
        yield from answer_batches(session.finish(), {})

    return run


def _rows_to_gather(df: DataFrame, recipe: Recipe, score: Column | None, buckets: int) -> DataFrame:
    """What is needed of each row that may be shown; when nothing can be ruled out, of each row."""
    per = recipe.query.per
    columns = [quoted(name).alias(plain) for name, plain in recipe.plain_names.items()]
    if score is not None:
        columns.append(score)
    # Rows that nothing else orders come in the order of a hash of their contents, whichever way they were read.
    columns.append(sf.xxhash64(*(quoted(field.name) for field in df.schema if _is_hashable(field.dataType))).alias(TIE))
    if recipe.buckets_by_group:
        columns.append(sf.pmod(sf.xxhash64(*map(quoted, per)), sf.lit(buckets)).cast("int").alias(BUCKET))
    if recipe.by_pane:
        df = only_candidates(df, recipe, score)
        columns.append(sf.col(WEIGHT))
        if per:
            columns.append(group_key(df, per).alias(GROUP))
    return df.select(*columns)


def _buckets(df: DataFrame) -> int:
    text = df.sparkSession.conf.get(BUCKETS_SETTING, str(DEFAULT_BUCKETS))
    if not str(text).isdigit() or not 1 <= int(str(text)) < 2**31:
        raise InvalidQuery(f"{BUCKETS_SETTING} must be a whole number, at least 1, got {text!r}.")
    return int(str(text))


def _is_hashable(data_type: DataType) -> bool:
    if isinstance(data_type, StructType):
        return all(_is_hashable(field.dataType) for field in data_type)
    if isinstance(data_type, ArrayType):
        return _is_hashable(data_type.elementType)
    return not isinstance(data_type, (MapType, VariantType))


def _output_type(schema: StructType, recipe: Recipe) -> StructType:
    """The columns of the answer; those that come from the input keep its Spark types."""
    types = [
        from_arrow_type(field.type) if source is None else schema[source].dataType
        for field, source in zip(recipe.output, recipe.sources, strict=True)
    ]
    return StructType([StructField(name, type_) for name, type_ in zip(recipe.output.names, types, strict=True)])
