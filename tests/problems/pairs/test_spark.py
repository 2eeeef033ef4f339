"""Oracle and restart tests: pairs on Spark that stop and go on, come late, or cannot be asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conformance.asked import ONE
from conformance.pairs.questions import ALIKE, QUESTIONS, ROWS, TRADES, WINDOW
from engines.spark.streams import lines, read_batches, run_stream, run_to_files, split, write_batches
from pyspark.sql import SparkSession

import skyband as sb

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return TRADES[ONE]


@pytest.fixture(scope="module")
def folder(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_batches(tmp_path_factory.mktemp("pairs") / "input", split(table, 3))


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
    options: dict[str, Any] = {"k": 1, "by": ALIKE, "ascending": True, "window": WINDOW}
    outcome = run_stream(spark, folder, lambda rows: sb.top_k_pairs(rows, **options))
    assert outcome.observed("rows_in") == ROWS + 10
    assert outcome.observed("rows_late") == 10


def test_mistakes(spark: SparkSession, table: pa.Table, folder: Path) -> None:
    rows = spark.read.parquet(str(folder))
    with pytest.raises(sb.InvalidQuery, match="Spark has no arrival order"):
        sb.top_k_pairs(rows, k=1, by=ALIKE, window=sb.sliding(4))
    with pytest.raises(sb.UnknownColumn):
        sb.top_k_pairs(rows, k=1, by="abs(a.prise - b.price)", window=WINDOW)
