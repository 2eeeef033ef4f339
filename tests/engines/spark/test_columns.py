"""Example tests of what comes out of Spark: names, types, and scores of every kind."""

from __future__ import annotations

import pytest
from engines.spark.streams import lines, trades
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import skyband as sb

pytestmark = pytest.mark.spark


def test_names_and_types_come_through(spark: SparkSession) -> None:
    rows = spark.sql(
        "SELECT TIMESTAMP_NTZ '2024-01-01 00:00:01' AS `when.it was`, 3 AS rank, CAST(7 AS DECIMAL(9, 2)) AS score, "
        "STRUCT(1 AS a, MAP('x', 2) AS b) AS nested, X'00FF' AS `by``tes`, DATE '2024-02-03' AS day"
    )
    window = sb.tumbling("1 second", on="when.it was")
    answer = sb.top_k(rows, k=1, by="rank + score", window=window, per="day")
    added, given = ["rank", "score"], ["when.it was", "rank_", "score_", "nested", "by`tes"]
    assert answer.columns == ["window_start", "window_end", "day", *added, *given]
    for name, source in {"rank_": "rank", "score_": "score"}.items():
        assert answer.schema[name].dataType == rows.schema[source].dataType
    for name in ("when.it was", "nested", "by`tes", "day"):
        assert answer.schema[name].dataType == rows.schema[name].dataType
    row = answer.collect()[0]
    assert row["score"] == 10.0
    assert row["nested"].b == {"x": 2}
    assert row["by`tes"] == b"\x00\xff"


def test_a_column_is_computed_once_even_if_it_is_random(spark: SparkSession) -> None:
    half_of_them = sf.when(sf.rand(7) < 0.5, 1).otherwise(0)
    window = sb.tumbling("10 seconds", on="ts")
    answer = sb.top_k(spark.createDataFrame(trades(400)), k=3, by=half_of_them, window=window).collect()
    assert [row.score for row in answer] == [1.0] * 30, "what is shown is what was compared"


def test_a_column_gives_what_the_same_expression_gives(spark: SparkSession) -> None:
    table = trades(200)
    window = sb.sliding("20 seconds", every="10 seconds", on="ts")
    expected = sb.top_k(table, k=2, by="price * 3 + 1", window=window)
    by_column = sb.top_k(spark.createDataFrame(table), k=2, by=sf.col("price") * 3 + 1, window=window)
    assert lines(by_column.toArrow()) == lines(expected)


@pytest.mark.parametrize("on", ["seq", "price"])
def test_a_score_that_is_also_the_time_is_shown_once(spark: SparkSession, on: str) -> None:
    table = trades(100).set_column(4, "price", trades(100).column("seq"))
    window = sb.sliding(40, every=20, on=on)
    expected = sb.top_k(table, k=2, by=on, window=window)
    answer = sb.top_k(spark.createDataFrame(table), k=2, by=on, window=window).toArrow()
    assert answer.column_names == expected.column_names
    assert lines(answer) == lines(expected)
