"""Example tests of many groups and of one that has nearly all rows: what is gathered, and what is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from engines.spark.streams import START_US, lines, run_stream, split, write_batches
from pyspark.sql import SparkSession

import skyband as sb
from skyband.problems.rows.spark import projection, resolve

pytestmark = pytest.mark.spark

WINDOW = sb.sliding("40 seconds", every="20 seconds", on="ts")


def rows(groups: Any) -> pa.Table:
    """A row a millisecond."""
    count = len(groups)
    times = pa.array(START_US + np.arange(count) * 1_000).cast(pa.timestamp("us", "UTC"))
    return pa.table({"ts": times, "id": pa.array(groups), "value": pa.array(np.random.default_rng(2).random(count))})


def test_a_hundred_thousand_groups_are_few_values_of_state(spark: SparkSession, tmp_path: Path) -> None:
    table = rows(np.random.default_rng(1).permutation(100_000))
    options: dict[str, Any] = {"k": 1, "by": "value", "window": WINDOW, "per": "id"}
    outcome = run_stream(spark, write_batches(tmp_path / "in", split(table, 2)), lambda df: sb.top_k(df, **options))
    expected = [line for line in lines(sb.top_k(table, **options)) if line[1] <= START_US + 99_999_000]
    assert sorted(outcome.lines) == sorted(expected)
    assert len({line[2] for line in expected}) == 80_000
    assert 16 <= outcome.state_rows() <= 100_000 / 50


def test_a_group_with_nearly_all_rows_is_not_gathered(spark: SparkSession, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    table = rows(np.where(rng.random(60_000) < 0.9, 7, rng.integers(0, 50, 60_000)))
    folder = write_batches(tmp_path / "in", split(table, 3))
    query = sb.TopK(k=5, by="value", window=WINDOW, per="id")
    whole = spark.read.parquet(str(folder))
    job, score = resolve(whole, query, None)
    gathered = projection(whole, job, score).rows(whole, 16).groupBy(job.plain_names["id"]).count().collect()
    files, panes = 6, 3
    assert dict(gathered)[7] <= (query.k + 1) * files * panes
    options: dict[str, Any] = {"k": 5, "by": "value", "window": WINDOW, "per": "id"}
    outcome = run_stream(spark, folder, lambda df: sb.top_k(df, **options))
    expected = [line for line in lines(sb.top_k(table, **options)) if line[1] <= START_US + 59_999_000]
    assert sorted(outcome.lines) == sorted(expected)
