"""Oracle test of `error` on Spark: what comes out is the exact answer but for the rows that it counts as missed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from engines.spark.streams import lines, run_stream, write_batches
from pyspark.sql import SparkSession

import skyband as sb

pytestmark = pytest.mark.spark

ROWS = 64_000


def test_no_more_rows_are_missed_than_error_allows(spark: SparkSession, tmp_path: Path) -> None:
    """Two groups, in buckets of their own; scores are random and then fall, right after a micro-batch."""
    scores = np.concatenate([np.random.default_rng(5).random(ROWS - 2_000), -np.arange(2_000.0)])
    table = pa.table({"s": scores, "g": np.arange(ROWS) % 2, "row": np.arange(ROWS)})
    options: dict[str, Any] = {"k": 9, "by": "s", "per": "g", "window": sb.sliding(400, order="row"), "emit": "entries"}
    batches = [table.slice(0, ROWS - 2_000), table.slice(ROWS - 2_000, 300), table.slice(ROWS - 1_700)]
    outcome = run_stream(
        spark, write_batches(tmp_path / "in", batches), lambda rows: sb.top_k(rows, error=0.5, **options)
    )
    right, said = Counter(lines(sb.top_k(table, **options))), Counter(outcome.lines)
    assert not said - right
    missed = (right - said).total()
    assert 0 < missed <= 0.5 * ROWS / 400
    assert outcome.observed("rows_missed") == missed
