"""Reads what the queries of a pipeline keep from their checkpoints, and their answers right now."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from skyband.engines.spark.sharing import number_of
from skyband.engines.spark.state import Bucket, buckets_in, read_answer, read_state
from skyband.errors import InvalidInput
from skyband.pipelines.model import Pipeline
from skyband.pipelines.streams import checkpoints_of
from skyband.windows import Span


def held_by(spark: SparkSession, pipeline: Pipeline) -> pa.Table:
    """A line for each query whose stream has committed a micro-batch."""
    lines = []
    for location, names in _checkpoints(spark, pipeline):
        buckets = buckets_in(spark, location)
        for name in names:
            mine = [one for one in buckets if one.question in (None, number_of(name))]
            lines.append({"query": name, **_sums(mine), "checkpoint": location})
    if not lines:
        raise InvalidInput(f"No query of {pipeline.name!r} has committed a micro-batch: nothing is held yet.")
    return pa.Table.from_pylist(lines)


def rows_held_by(spark: SparkSession, pipeline: Pipeline, query: str, most: int) -> pa.Table:
    """Rows that a query holds, `most` of them."""
    rows = read_state(spark, *_place(spark, pipeline, query))
    return rows.orderBy("bucket", "position").limit(most).toArrow()


def answer_of(spark: SparkSession, pipeline: Pipeline, query: str, k: int | None, size: Span | None) -> pa.Table:
    """The answer of a query right now."""
    return read_answer(spark, *_place(spark, pipeline, query), k=k, size=size).toArrow()


def _place(spark: SparkSession, pipeline: Pipeline, query: str) -> tuple[str, str | None]:
    """The checkpoint with the state of a query, and its name there, if it shares a stream."""
    for location, names in _checkpoints(spark, pipeline):
        if query in names:
            shared = buckets_in(spark, location)[:1]
            return location, query if shared and shared[0].question is not None else None
    raise InvalidInput(f"Query {query!r} has not committed a micro-batch: nothing is held yet.")


def _sums(buckets: list[Bucket]) -> dict[str, int]:
    return {
        "buckets": len(buckets),
        "rows": sum(one.rows_held for one in buckets),
        "groups": sum(one.groups for one in buckets),
        "bytes": sum(one.stored.nbytes for one in buckets),
    }


def _checkpoints(spark: SparkSession, pipeline: Pipeline) -> Iterator[tuple[str, list[str]]]:
    """Where streams have committed micro-batches, and the queries of each."""
    for checkpoint in checkpoints_of(spark, pipeline):
        if checkpoint.exists_in(f"{checkpoint.location}/commits", ""):
            yield checkpoint.location, sorted(checkpoint.queries())
