"""Oracle and example tests: streams across on Spark, one DataFrame each, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from conformance.across.questions import COMMON, QUESTIONS, ROUTERS
from conformance.asked import ONE
from engines.spark.streams import lines, split, write_batches
from pyspark.sql import SparkSession

import skyband as sb

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return ROUTERS[ONE]


@pytest.fixture(scope="module")
def folder(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_batches(tmp_path_factory.mktemp("across") / "input", split(table, 3))


@pytest.mark.parametrize("question", ["panes", "panes of objects of two columns, with values of two"])
def test_a_mapping_of_frames(spark: SparkSession, table: pa.Table, folder: Path, question: str) -> None:
    frame, options = spark.read.parquet(str(folder)), QUESTIONS[question].options
    asked = {name: value for name, value in options.items() if name not in ("stream", "streams")}
    unread = {"r1": "share", "r2": "value", "r3": "share"} if isinstance(asked["value"], dict) else {}
    frames = {name: frame.where(frame.router == name).drop(unread.get(name, "")) for name in ("r1", "r2", "r3")}
    answer, expected = sb.top_k_across(frames, **asked), sb.top_k_across(table, **options)
    assert sorted(map(str, lines(answer.toArrow()))) == sorted(map(str, lines(expected)))


def test_refusals(spark: SparkSession, folder: Path) -> None:
    frame = spark.read.parquet(str(folder))
    with pytest.raises(sb.InvalidQuery, match="order="):
        sb.top_k_across(frame, **COMMON, window=sb.sliding(10))
    with pytest.raises(sb.UnknownColumn, match="Did you mean 'value'"):
        sb.top_k_across(frame, **(COMMON | {"value": "valeu"}), window=sb.tumbling("1 second", on="ts"))
    with pytest.raises(sb.InvalidQuery, match="may come again"):
        sb.top_k_across(frame, **COMMON, window=sb.tumbling("1 second", on="ts"), repeat="sum", algorithm="staircase")
