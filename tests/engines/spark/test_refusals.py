"""Example tests of bad input on Spark: an error of ours, before a query starts, that says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import skyband as sb

pytestmark = pytest.mark.spark

MINUTE = sb.sliding("1 minute", every="10 seconds", on="timestamp")


@pytest.fixture(scope="module")
def stream(spark: SparkSession) -> DataFrame:
    rows = spark.readStream.format("rate").load()
    return rows.selectExpr("timestamp", "value", "CAST(value AS STRING) AS name", "ARRAY(value) AS values")


def ask(rows: DataFrame, **options: Any) -> DataFrame:
    return sb.top_k(rows, **{"k": 1, "by": "value", "window": MINUTE} | options)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"by": "vale"}, sb.UnknownColumn, "Did you mean 'value'"),
        ({"per": "nam"}, sb.UnknownColumn, "Did you mean 'name'"),
        ({"window": sb.sliding("1 minute", every="1 minute", on="timestam")}, sb.UnknownColumn, "'timestamp'"),
        ({"by": "name"}, sb.InvalidExpression, "must be a number"),
        ({"by": lambda vale: vale}, sb.UnknownColumn, "Did you mean 'value'"),
        ({"window": sb.sliding(100, every=10)}, sb.InvalidQuery, "order='…'"),
        ({"window": sb.sliding(100, every=10, order="values")}, sb.InvalidQuery, "cannot put rows in order"),
        ({"window": sb.sliding("1 minute", every="10 seconds", on="value")}, sb.InvalidQuery, "duration"),
        ({"window": sb.sliding(60, every=10, on="timestamp")}, sb.InvalidQuery, "seconds"),
        ({"window": sb.sliding("1 minute", on="name")}, sb.InvalidQuery, "timestamp or integer"),
        ({"k": 0}, sb.InvalidQuery, "at least 1"),
        ({"algorithm": "magic"}, sb.InvalidQuery, "No algorithm"),
    ],
)
def test_a_bad_question_is_refused(
    stream: DataFrame, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ask(stream, **options)


def test_a_bad_column_is_refused(stream: DataFrame) -> None:
    with pytest.raises(sb.UnknownColumn, match="Did you mean 'value'"):
        ask(stream, by=sf.col("vale") * 2)
    with pytest.raises(sb.InvalidExpression, match=r"must be a number, but .* is string"):
        ask(stream, by=sf.col("name"))
    with pytest.raises(sb.InvalidExpression, match="Spark cannot compute"):
        ask(stream, by=sf.expr("value + values"))


def test_two_watermarks_are_one_too_many(stream: DataFrame) -> None:
    marked = stream.withColumn("seen", sf.col("timestamp")).withWatermark("seen", "1 second")
    with pytest.raises(sb.InvalidQuery, match="watermark on 'seen', but the window measures 'timestamp'"):
        ask(marked)


def test_column_names_must_differ_and_ours_are_ours(stream: DataFrame) -> None:
    with pytest.raises(sb.InvalidInput, match="come twice: value"):
        ask(stream.select("*", "value"))
    with pytest.raises(sb.InvalidInput, match="are reserved"):
        ask(stream.withColumn("__skyband_score", sf.lit(1)))


@pytest.fixture
def setting(spark: SparkSession) -> Iterator[Any]:
    before: dict[str, str | None] = {}

    def change(name: str, value: str) -> None:
        before[name] = spark.conf.get(name, None)
        spark.conf.set(name, value)

    yield change
    for name, value in before.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)


def test_a_state_store_that_spark_would_refuse_later(stream: DataFrame, setting: Any) -> None:
    store = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    setting("spark.sql.streaming.stateStore.providerClass", store)
    with pytest.raises(sb.EnvironmentProblem, match="RocksDBStateStoreProvider"):
        ask(stream)


@pytest.mark.parametrize("buckets", ["0", "many"])
def test_a_number_of_buckets_that_is_none(stream: DataFrame, setting: Any, buckets: str) -> None:
    setting("spark.skyband.buckets", buckets)
    with pytest.raises(sb.InvalidQuery, match="at least 1"):
        ask(stream)
