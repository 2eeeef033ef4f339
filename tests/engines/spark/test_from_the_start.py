"""Windows from the start on: every bucket would have to know of the others' rows, so there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import skyband as sb

pytestmark = pytest.mark.spark

WINDOW = sb.landmark(every=20, on="t")
# Found by a statement over few rows: a bucket that had none in a while did not say again what it had.
QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "rows, per group": lambda rows: sb.top_k(rows, k=2, by="x", window=WINDOW, per="g"),
    "across": lambda rows: sb.top_k_across(
        rows, k=3, id="id", value="x", stream="s", streams=["r1", "r2"], window=WINDOW, repeat="sum"
    ),
    "groups": lambda rows: sb.join_aggregate(rows, window=WINDOW, group_by="g", aggregates={"n": "COUNT(*)"}),
}


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS.keys())
def test_few_rows_far_apart(spark: SparkSession, ask: Callable[[Any], Any]) -> None:
    random, count = np.random.default_rng(3), 14
    rows = pa.table(
        {
            "t": np.sort(random.choice(200, count, replace=False)),
            "g": [f"G{number}" for number in random.integers(0, 3, count)],
            "x": random.random(count),
            "id": np.arange(count) % 9,
            "s": [("r1", "r2")[i % 2] for i in range(count)],
        }
    )
    found, expected = ask(spark.createDataFrame(rows.to_pandas())).toArrow().to_pylist(), ask(rows).to_pylist()
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert len(expected) > 20
