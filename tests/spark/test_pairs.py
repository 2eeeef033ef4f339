"""Oracle tests: pairs, the embedded engine and Spark, batch and streaming, the same answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from spark.questions import Asked
from spark.streams import (
    INSTANTS,
    START_US,
    lines,
    read_batches,
    run_stream,
    run_to_files,
    shuffled,
    split,
    write_batches,
)

import skyband as sb

pytestmark = pytest.mark.spark

ROWS = 400
ALIKE = "abs(a.price - b.price) + abs(a.volume - b.volume)"
MINUTE = sb.sliding("20 seconds", every="5 seconds", on="ts")

# Two scores, since every worker has to compile each.
QUESTIONS: dict[str, Asked] = {
    "time": Asked({"k": 4, "by": ALIKE, "ascending": True, "window": MINUTE}),
    "time, same": Asked({"k": 3, "by": ALIKE, "ascending": True, "window": MINUTE, "same": "symbol"}),
    "time, different, where, late": Asked(
        {
            "k": 3,
            "by": ALIKE,
            "window": sb.sliding(60, every=20, on="seq"),
            "different": ["symbol"],
            "where": "a.price < b.price",
            "lateness": 7,
        }
    ),
    "changes": Asked({"k": 2, "by": ALIKE, "ascending": True, "window": MINUTE, "emit": "changes"}),
    "strings and times": Asked(
        {
            "k": 3,
            "by": "abs(a.ts - b.ts) + a.seq",
            "window": MINUTE,
            "where": "a.symbol < b.symbol AND a.symbol <> 'S3' AND b.ts > '2000-01-01 00:00:00'",
        }
    ),
    "count": Asked({"k": 2, "by": ALIKE, "ascending": True, "window": sb.sliding(50, every=25, order="seq")}),
    "each arrival": Asked({"k": 2, "by": ALIKE, "ascending": True, "window": sb.sliding(30, order="seq")}, False),
}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(1)
    number = np.arange(ROWS)
    return pa.table(
        {
            "ts": pa.array(START_US + number * 250_000, INSTANTS),
            "seq": pa.array(number),
            "symbol": pa.array([f"S{code}" for code in rng.integers(0, 5, ROWS)]),
            "price": pa.array(rng.integers(1, 40, ROWS).astype(np.float64)),  # few, so that many scores are equal
            "volume": pa.array([None if i % 50 == 0 else float(rng.integers(1, 9)) for i in number]),
        }
    )


@pytest.fixture(scope="module")
def folder(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_batches(tmp_path_factory.mktemp("pairs") / "input", split(table, 3))


@pytest.mark.parametrize("name", ["time", "time, same", "time, different, where, late", "each arrival"])
def test_batch(spark: SparkSession, table: pa.Table, folder: Path, name: str) -> None:
    asked = QUESTIONS[name]
    expected = sb.top_k_pairs(shuffled(table), **asked.options)
    answer = sb.top_k_pairs(spark.read.parquet(str(folder)), **asked.options).toArrow()
    assert answer.column_names == expected.column_names
    assert sorted(lines(answer), key=str) == sorted(lines(expected), key=str)
    assert answer.num_rows >= 20


@pytest.mark.parametrize("asked", QUESTIONS.values(), ids=QUESTIONS.keys())
def test_streaming(spark: SparkSession, table: pa.Table, folder: Path, asked: Asked) -> None:
    expected = lines(sb.top_k_pairs(table, **asked.options))
    window = asked.options["window"]
    if window.on is not None and asked.closes:
        latest = lines(table.select([window.on]))[-1][0] - asked.options.get("lateness", 0)
        expected = [line for line in expected if line[1 if asked.mode == "append" else 0] <= latest]
    outcome = run_stream(spark, folder, lambda rows: sb.top_k_pairs(rows, **asked.options), mode=asked.mode)
    assert sorted(outcome.lines, key=str) == sorted(expected, key=str)
    assert len(expected) >= 20
    assert outcome.observed("rows_in") == ROWS, "a row is counted once, however many cells it is sent to"
    assert outcome.observed("rows_late") == 0
    assert outcome.state_rows() <= 3 * 16, "as many states as cells, not as colours or rows"


def test_a_stream_that_stops_and_goes_on_answers_as_a_table_does(
    spark: SparkSession, table: pa.Table, tmp_path: Path
) -> None:
    options = QUESTIONS["time, same"].options
    parts = split(table, 4)
    for half in range(2):
        rows = write_batches(tmp_path / "input", parts[2 * half : 2 * half + 2], first=2 * half)
        run_to_files(sb.top_k_pairs(read_batches(spark, rows), **options), tmp_path)
    latest = lines(table.select(["ts"]))[-1][0]
    expected = [line for line in lines(sb.top_k_pairs(table, **options)) if line[1] <= latest]
    written = lines(spark.read.parquet(str(tmp_path / "answers")).toArrow())
    assert sorted(written, key=str) == sorted(expected, key=str)
    assert len(written) >= 20


def test_late_rows_are_counted_once(spark: SparkSession, table: pa.Table, tmp_path: Path) -> None:
    late = table.slice(0, 10)
    folder = write_batches(tmp_path / "late", [table.slice(0, 200), table.slice(200), late])
    options: dict[str, Any] = {"k": 1, "by": ALIKE, "ascending": True, "window": MINUTE}
    outcome = run_stream(spark, folder, lambda rows: sb.top_k_pairs(rows, **options))
    assert outcome.observed("rows_in") == ROWS + 10
    assert outcome.observed("rows_late") == 10


def test_mistakes(spark: SparkSession, table: pa.Table, folder: Path) -> None:
    rows = spark.read.parquet(str(folder))
    with pytest.raises(sb.InvalidQuery, match="Spark has no arrival order"):
        sb.top_k_pairs(rows, k=1, by=ALIKE, window=sb.sliding(4))
    with pytest.raises(sb.UnknownColumn):
        sb.top_k_pairs(rows, k=1, by="abs(a.prise - b.price)", window=MINUTE)
