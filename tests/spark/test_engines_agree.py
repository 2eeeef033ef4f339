"""Oracle tests: one question, the embedded engine and Spark, batch and streaming, the same answer."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from spark.questions import QUESTIONS, Asked
from spark.streams import INSTANTS, Line, lines, run_stream, shuffled, split, trades, write_batches

import skyband as sb

pytestmark = pytest.mark.spark

ROWS = 600


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return trades(ROWS)


@pytest.fixture(scope="module")
def folder(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_batches(tmp_path_factory.mktemp("trades") / "input", split(table, 3))


def closed(expected: list[Line], asked: Asked, table: pa.Table) -> list[Line]:
    """What a stream says by its end: a window whose end the watermark has not reached stays open."""
    window = asked.options["window"]
    if window.on is None or not asked.closes:
        return expected
    latest = lines(table.select([window.on]))[-1][0] - asked.options.get("lateness", 0)
    at = 1 if asked.mode == "append" else 0
    return [line for line in expected if line[at] <= latest]


@pytest.mark.parametrize("asked", QUESTIONS.values(), ids=QUESTIONS.keys())
def test_batch(spark: SparkSession, table: pa.Table, folder: Path, asked: Asked) -> None:
    """A table in whichever order: here it is shuffled, there it is in files that interleave."""
    expected = sb.top_k(shuffled(table), **asked.options)
    answer = sb.top_k(spark.read.parquet(str(folder)), **asked.options).toArrow()
    assert answer.column_names == expected.column_names
    assert sorted(lines(answer)) == sorted(lines(expected))
    assert answer.num_rows >= 20


@pytest.mark.parametrize("asked", QUESTIONS.values(), ids=QUESTIONS.keys())
def test_streaming(spark: SparkSession, table: pa.Table, folder: Path, asked: Asked) -> None:
    expected = closed(lines(sb.top_k(table, **asked.options)), asked, table)
    outcome = run_stream(spark, folder, lambda rows: sb.top_k(rows, **asked.options), mode=asked.mode)
    assert sorted(outcome.lines) == sorted(expected)
    if "per" not in asked.options:
        assert outcome.lines == expected, "one ranking comes in the order in which it became known"
    assert len(expected) >= 20
    assert outcome.observed("rows_in") == ROWS


def test_max_jump_of_a_batch(spark: SparkSession, table: pa.Table) -> None:
    """One wrong time, and a pause: in order of time, a row that is so much later than the one before is left out."""
    times = table["ts"].cast(pa.int64()).to_numpy().copy()
    times[100] += 10**12
    times[400:] += 10**8
    rows = table.set_column(0, "ts", pa.array(times, INSTANTS))
    asked = {"k": 2, "by": "price", "window": sb.sliding("1 minute", every="10 seconds", on="ts"), "per": "symbol"}
    expected = sb.top_k(shuffled(rows), **asked, max_jump="30 seconds")
    answer = sb.top_k(spark.createDataFrame(shuffled(rows)), **asked, max_jump="30 seconds").toArrow()
    assert sorted(lines(answer)) == sorted(lines(expected))
    assert sorted(lines(answer)) != sorted(lines(sb.top_k(rows, **asked)))
    assert json.loads(expected.schema.metadata[b"skyband"])["rows_jumped"] == 2


def test_at_the_end_of_a_batch_groups_are_told_what_leaves(spark: SparkSession) -> None:
    """Windows close up to the last row of all, which is of another group, and was in another bucket."""
    rows = pa.table({"t": [0, 1, 2, 30, 31, 32, 60], "g": list("AABBCDE"), "x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]})
    asked = {"k": 1, "by": "x", "window": sb.sliding(10, every=5, on="t"), "per": "g", "emit": "changes"}
    answer = sb.top_k(spark.createDataFrame(rows.to_pandas()), **asked).toArrow()
    assert sorted(lines(answer)) == sorted(lines(sb.top_k(rows, **asked)))
    assert answer.column("change").to_pylist().count("leave") == 5
