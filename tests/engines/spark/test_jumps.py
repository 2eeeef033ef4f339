"""Oracle tests: times that jump, and the end of a batch, mean the same on Spark as in this process."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from engines.spark.streams import INSTANTS, lines, shuffled, trades
from pyspark.sql import SparkSession

import skyband as sb

pytestmark = pytest.mark.spark

ROWS = 600


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return trades(ROWS)


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
