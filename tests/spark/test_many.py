"""Oracle tests: many queries, the embedded engine and Spark, batch and streaming, the same answer."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from spark.questions import Asked
from spark.streams import lines, run_stream, split, trades, write_batches

import skyband as sb

pytestmark = pytest.mark.spark

ROWS = 400
QUERIES = pa.table(
    {"id": list("abcdefg"), "price": [1.0, 9.0, 20.0, 39.0, 50.0, 20.0, 7.0], "k": [1, 2, 3, 1, 2, 3, 4]}
)
ASKED = {"k": "q.k", "by": "abs(price - q.price)", "ascending": True, "for_each": QUERIES}  # one score: one to compile
QUESTIONS: dict[str, Asked] = {
    "time": Asked({**ASKED, "window": sb.sliding("20 seconds", every="5 seconds", on="ts")}),
    "changes": Asked({**ASKED, "window": sb.sliding("20 seconds", every="5 seconds", on="ts"), "emit": "changes"}),
    "each arrival": Asked({**ASKED, "window": sb.sliding(30, order="seq")}, closes=False),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_batches(tmp_path_factory.mktemp("many") / "input", split(trades(ROWS), 3))


@pytest.mark.parametrize("name", ["time", "each arrival"])
def test_batch(spark: SparkSession, folder: Path, name: str) -> None:
    options = QUESTIONS[name].options
    expected = sb.top_k(trades(ROWS), **options)
    answer = sb.top_k(spark.read.parquet(str(folder)), **options).toArrow()
    assert answer.column_names == expected.column_names
    assert sorted(lines(answer), key=str) == sorted(lines(expected), key=str)
    assert answer.num_rows >= 100


@pytest.mark.parametrize("asked", QUESTIONS.values(), ids=QUESTIONS.keys())
def test_streaming(spark: SparkSession, folder: Path, asked: Asked) -> None:
    table = trades(ROWS)
    expected = lines(sb.top_k(table, **asked.options))
    if asked.closes:
        latest = lines(table.select(["ts"]))[-1][0]
        expected = [line for line in expected if line[2 if asked.mode == "append" else 1] <= latest]
    outcome = run_stream(spark, folder, lambda rows: sb.top_k(rows, **asked.options), mode=asked.mode)
    assert sorted(outcome.lines, key=str) == sorted(expected, key=str)
    assert len(expected) >= 100
    assert outcome.observed("rows_in") == ROWS, "a row is counted once, however many buckets it is sent to"


def test_a_statement_and_what_is_refused(spark: SparkSession, folder: Path) -> None:
    rows = spark.read.parquet(str(folder))
    text = """SELECT seq FROM trades t [WINDOW 50 ROWS EVERY 50 ROWS ORDER BY seq], people q
              ORDER BY abs(t.price - q.price) LIMIT 2 BY q.id"""
    people = spark.createDataFrame([("a", 1.0), ("b", 9.0)], "id string, price double")
    assert sb.sql(text, trades=rows, people=people).count() == 2 * 2 * (ROWS // 50)
    with pytest.raises(sb.InvalidQuery, match="Spark has no arrival order"):
        sb.top_k(rows, **ASKED, window=sb.sliding(30))
    with pytest.raises(sb.InvalidQuery, match="not yet a DataFrame"):
        sb.top_k(rows, **{**ASKED, "for_each": people}, window=sb.sliding(30, order="seq"))
