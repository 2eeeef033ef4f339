"""Example: on Spark, too, every option of every query is used or refused: what workers are told of it differs."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from core.test_options import EVERY_OPTION, JOINED, ROWS, STREAMS, both, used_or_refused

import skyband as sb

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def streaming(df: DataFrame) -> DataFrame:
    """A stream of the same columns; nothing of it is ever run."""
    from pyspark.sql import functions as sf

    rates = df.sparkSession.readStream.format("rate").load()
    return rates.select(*(sf.lit(None).cast(field.dataType).alias(field.name) for field in df.schema))


def told(df: DataFrame, others: dict[str, DataFrame], query: Any) -> str:
    """All that workers, and the ways to and from them, are told of a query, but for what a checkpoint is known by."""
    from skyband.engines.spark.jumps import without_jumps
    from skyband.problems.across import spark as across
    from skyband.problems.joins import spark as joins
    from skyband.problems.pairs import spark as pairs
    from skyband.problems.rows import spark as objects
    from skyband.problems.subscriptions import spark as subscriptions

    more: Any = None
    job: Any
    match query:
        case sb.TopK():
            job, more = objects.resolve(df, query, None)
        case sb.TopKForEach():
            job = subscriptions.resolve(df, query)
        case sb.TopKPairs():
            job = pairs.resolve(df, query)
        case sb.TopKAcross():
            job = across._resolve(others["which"], query, query.stream or "few")
        case _:
            join = joins.resolve({name: others[name] for name in JOINED}, query)
            job, more = join.job, join.merge and inspect.getclosurevars(join.merge).nonlocals["query"]
    jumps = isinstance(query, sb.TopK | sb.TopKForEach | sb.TopKAcross) and without_jumps(df, query) is not df
    return f"{replace(job, fingerprint='')} {more} {jumps}"


@pytest.mark.parametrize("is_stream", [False, True], ids=["batch", "stream"])
def test_each_option_reaches_the_workers_or_is_refused(spark: SparkSession, is_stream: bool) -> None:
    from pyspark.sql import functions as sf

    tables = {"rows": ROWS, **JOINED, "which": STREAMS["r"]}
    frames = {name: spark.createDataFrame(table.to_pandas().astype(object)) for name, table in tables.items()}
    frames["which"] = frames["which"].withColumn("which", sf.lit("r"))
    frames = {name: streaming(df) if is_stream else df for name, df in frames.items()}
    dropped = []
    for query, option in EVERY_OPTION:
        base, changed = both(query, option)
        for asked in (base, changed):
            window = asked.get("window")
            if window is not None and window.by_count:
                asked["window"] = replace(window, order="seq")

        def is_used(query: Any = query, base: Any = base, changed: Any = changed) -> bool:
            before, after = (told(frames["rows"], frames, query(**asked)) for asked in (base, changed))
            return before != after

        if not used_or_refused(option, is_used):
            dropped.append((query, option))
    assert not dropped
