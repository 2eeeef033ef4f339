"""Oracle tests: top-k across streams on Spark, batch and streaming, is what the embedded engine answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from spark.streams import INSTANTS, START_US, lines, run_stream, shuffled, split, write_batches

import skyband as sb
from skyband.streams.incomplete import incomplete

pytestmark = pytest.mark.spark

ROWS = 600
SECOND = 1_000_000
ASKED: dict[str, Any] = {"k": 4, "id": "id", "value": "value", "stream": "router", "streams": ["r1", "r2", "r3"]}
QUESTIONS: dict[str, dict[str, Any]] = {
    "panes": {"window": sb.sliding("30 seconds", every="10 seconds", on="ts")},
    "panes of heavy hitters": {
        "window": sb.sliding("30 seconds", every="10 seconds", on="ts"),
        "repeat": "sum",
        "id": "client",
        "combine": {"r1": 1, "r2": 2, "r3": 0.5},
    },
    # In its first window and a half every object is held: later, each bucket learns for itself, and answers may differ.
    "panes, most of it": {"window": sb.sliding("150 seconds", every="50 seconds", on="ts"), "recall": 0.9},
    "arrivals": {"window": sb.sliding(100, every=50, order="seq")},
    "each row": {"window": sb.sliding("20 seconds", on="ts", order="seq")},
}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    made = incomplete(ROWS, recent=20)
    return pa.table(
        {
            "ts": pa.array(START_US + made["time"].to_numpy() * SECOND // 4, INSTANTS),
            "seq": made["time"],
            "router": made["stream"],
            "id": made["id"],
            "client": pa.array(np.random.default_rng(2).zipf(1.5, ROWS) % 50),
            "value": pc.divide(pc.floor(pc.multiply(made["value"], 4096.0)), 4096.0),
        }
    )


@pytest.fixture(scope="module")
def folder(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_batches(tmp_path_factory.mktemp("across") / "input", split(table, 3))


@pytest.mark.parametrize("options", QUESTIONS.values(), ids=QUESTIONS)
def test_batch(spark: SparkSession, table: pa.Table, folder: Path, options: dict[str, Any]) -> None:
    expected = sb.top_k_across(shuffled(table), **(ASKED | options))
    answer = sb.top_k_across(spark.read.parquet(str(folder)), **(ASKED | options)).toArrow()
    assert answer.column_names == expected.column_names
    assert sorted(map(str, lines(answer))) == sorted(map(str, lines(expected)))
    assert answer.num_rows >= 20


@pytest.mark.parametrize("options", QUESTIONS.values(), ids=QUESTIONS)
def test_streaming(spark: SparkSession, table: pa.Table, folder: Path, options: dict[str, Any]) -> None:
    expected = lines(sb.top_k_across(table, **(ASKED | options)))
    changes = options["window"].every is None
    if options["window"].on and not changes:
        latest = START_US + (ROWS - 1) * SECOND // 4
        expected = [line for line in expected if line[1] <= latest]
    mode = "update" if changes else "append"
    outcome = run_stream(spark, folder, lambda rows: sb.top_k_across(rows, **(ASKED | options)), mode=mode)
    assert sorted(map(str, outcome.lines)) == sorted(map(str, expected))
    assert len(expected) >= 12
    assert outcome.observed("rows_in") == ROWS


def test_a_mapping_of_frames(spark: SparkSession, table: pa.Table, folder: Path) -> None:
    frame = spark.read.parquet(str(folder))
    asked = {name: value for name, value in ASKED.items() if name not in ("stream", "streams")}
    answer = sb.top_k_across(
        {name: frame.where(frame.router == name) for name in ("r1", "r2", "r3")}, **asked, **QUESTIONS["panes"]
    )
    expected = sb.top_k_across(table, **(ASKED | QUESTIONS["panes"]))
    assert sorted(map(str, lines(answer.toArrow()))) == sorted(map(str, lines(expected)))


def test_refusals(spark: SparkSession, folder: Path) -> None:
    frame = spark.read.parquet(str(folder))
    with pytest.raises(sb.InvalidQuery, match="order="):
        sb.top_k_across(frame, **ASKED, window=sb.sliding(10))
    with pytest.raises(sb.UnknownColumn, match="Did you mean 'value'"):
        sb.top_k_across(frame, **(ASKED | {"value": "valeu"}), window=sb.tumbling("1 second", on="ts"))
    with pytest.raises(sb.InvalidQuery, match="may come again"):
        sb.top_k_across(frame, **ASKED, window=sb.tumbling("1 second", on="ts"), repeat="sum", algorithm="staircase")
