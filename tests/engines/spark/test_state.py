"""Oracle tests of state that is read from a checkpoint: it is what the query holds, also where it is in pages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from engines.spark.streams import read_batches, split, trades, write_batches
from pyspark.sql import SparkSession

import skyband as sb

pytestmark = pytest.mark.spark

ROWS = 2_400
TEXT_BYTES = 2_500  # twice as many characters: ten megabytes in a window
WINDOW = sb.sliding(2_000, every=400, order="seq")


def test_what_a_query_holds_is_read_from_its_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    """Pairs hold their window: with long texts it is more than one value takes, so it is in pages."""
    texts = np.random.default_rng(1).bytes(ROWS * TEXT_BYTES).hex()
    rows = trades(ROWS).append_column("text", pa.array(texts[i::ROWS] for i in range(ROWS)))
    stream = read_batches(spark, write_batches(tmp_path / "input", split(rows, 2)))
    nearest = sb.top_k_pairs(
        stream, k=2, by="abs(a.price - b.price) + abs(a.seq - b.seq)", ascending=True, window=WINDOW
    )
    checkpoint = str(tmp_path / "checkpoint")
    writer = nearest.writeStream.format("noop").option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()
    held = sb.read_state(spark, checkpoint).orderBy("position").toArrow()
    assert held["seq"].to_pylist() == rows["seq"].to_pylist()[-2_000:]
    assert held["symbol"].to_pylist() == rows["symbol"].to_pylist()[-2_000:]
    assert held["text"].to_pylist() == rows["text"].to_pylist()[-2_000:]
    pages = spark.read.format("statestore").option("stateVarName", "pages").load(checkpoint)
    assert pages.count() > 1
    with pytest.raises(sb.InvalidInput, match="no state of a query 'best'"):
        sb.read_state(spark, checkpoint, query="best")
    with pytest.raises(sb.InvalidInput, match="not the checkpoint of a Skyband query"):
        sb.read_state(spark, str(tmp_path / "input"))
