"""Oracle tests of state that is read from a checkpoint: it is what the query holds, also where it is in pages, and the
answer that it gives right now."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from engines.spark.streams import read_batches, split, trades, write_batches
from pyspark.sql import DataFrame, SparkSession

import skyband as sb
from skyband.core.snapshot_pages import DIGEST_BYTES
from skyband.engines.spark.kept_state import key_of

pytestmark = pytest.mark.spark

ROWS = 2_400
TEXT_BYTES = 2_500  # twice as many characters: ten megabytes in a window
WINDOW = sb.sliding(2_000, every=400, order="seq")
BY = "abs(a.price - b.price) + abs(a.seq - b.seq)"


def test_what_a_query_holds_is_read_from_its_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    """Pairs hold their window: with long texts it is more than one value takes, so it is in pages, and the rows that
    came last are in a journal."""
    texts = np.random.default_rng(1).bytes(ROWS * TEXT_BYTES).hex()
    rows = trades(ROWS).append_column("text", pa.array(texts[i::ROWS] for i in range(ROWS)))
    batches = [rows.slice(0, 2_000), rows.slice(2_000, 200), rows.slice(2_200)]
    stream = read_batches(spark, write_batches(tmp_path / "input", batches))
    checkpoint = str(tmp_path / "checkpoint")
    run(sb.top_k_pairs(stream, k=2, by=BY, ascending=True, window=WINDOW), checkpoint)
    held = sb.read_state(spark, checkpoint).orderBy("position").toArrow()
    assert held["seq"].to_pylist() == rows["seq"].to_pylist()[-2_000:]
    assert held["symbol"].to_pylist() == rows["symbol"].to_pylist()[-2_000:]
    assert held["text"].to_pylist() == rows["text"].to_pylist()[-2_000:]
    session = sb.TopKPairs(k=2, by=BY, ascending=True, window=WINDOW).open(rows.schema)
    session.push(rows)
    columns = ["window_end", "rank", "score", "a_seq", "b_seq"]
    for asked in ({}, {"k": 1, "size": 300}):
        now = sb.read_answer(spark, checkpoint, **asked).select(columns).toArrow()
        assert now.to_pylist() == session.top(**asked).select(columns).to_pylist()
    pages = spark.read.format("statestore").option("stateVarName", "pages").load(checkpoint)
    lengths = [len(row.key) for row in pages.selectExpr("user_map_key.digest AS key").collect()]
    assert lengths.count(DIGEST_BYTES) > 1
    assert lengths.count(len(key_of(0))) == 2
    with pytest.raises(sb.InvalidInput, match="no state of a query 'best'"):
        sb.read_state(spark, checkpoint, query="best")
    with pytest.raises(sb.InvalidInput, match="not the checkpoint of a Skyband query"):
        sb.read_state(spark, str(tmp_path / "input"))


def run(answers: DataFrame, checkpoint: str, mode: str = "append") -> None:
    writer = answers.writeStream.format("noop").outputMode(mode).option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()


def best(rows: pa.Table, start: int, end: int, k: int) -> set[tuple[str, int, int]]:
    """(symbol, rank, seq) of the k best trades of each symbol in [start, end), the later one first if prices are equal:
    sorted, and by nothing that a bucket runs."""
    found = set[tuple[str, int, int]]()
    lines = [line for line in rows.to_pylist() if start <= micros(line["ts"]) < end]
    for symbol in {line["symbol"] for line in lines}:
        mine = sorted((line for line in lines if line["symbol"] == symbol), key=lambda it: (-it["price"], -it["seq"]))
        found |= {(symbol, rank, line["seq"]) for rank, line in enumerate(mine[:k], 1)}
    return found


def micros(instant: datetime) -> int:
    return (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def test_the_ranking_right_now_is_read_from_a_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    """Of groups in several buckets, which are not equally far; two windows are open, as rows may be 12 seconds late."""
    rows = trades(403)
    stream = read_batches(spark, write_batches(tmp_path / "input", split(rows, 3)))
    window = sb.sliding("40 seconds", every="10 seconds", on="ts")
    checkpoint = str(tmp_path / "checkpoint")
    run(sb.top_k(stream, k=3, by="price", window=window, per="symbol", lateness="12 seconds"), checkpoint)
    second, latest = 1_000_000, micros(rows["ts"][-1].as_py())
    slide = 10 * second
    closes = ((latest - 12 * second) // slide + 1) * slide  # the first window that the watermark has not reached
    after = (latest // slide + 1) * slide
    assert closes < after

    def said(answer: DataFrame) -> tuple[set[tuple[str, int, int]], set[tuple[int, int]]]:
        table = answer.toArrow()
        lines = table.to_pylist()
        windows = {(micros(line["window_start"]), micros(line["window_end"])) for line in lines}
        return {(line["symbol"], line["rank"], line["seq"]) for line in lines}, windows

    whole = closes - 40 * second, closes
    assert said(sb.read_answer(spark, checkpoint)) == (best(rows, *whole, 3), {whole})
    assert said(sb.read_answer(spark, checkpoint, k=1)) == (best(rows, *whole, 1), {whole})
    part = after - 20 * second, after
    assert said(sb.read_answer(spark, checkpoint, k=2, size="20 seconds")) == (best(rows, *part, 2), {part})
    for wrong, words in (
        ({"k": 4}, "k must be a whole number from 1 to the query's 3"),
        ({"size": "15 seconds"}, "no window begins there"),
        ({"size": "50 seconds"}, "larger than the query's window"),
    ):
        with pytest.raises(sb.InvalidQuery, match=words):
            sb.read_answer(spark, checkpoint, **wrong)


def test_the_pairs_of_all_cells_are_one_ranking(spark: SparkSession, tmp_path: Path) -> None:
    rows = trades(240)
    stream = read_batches(spark, write_batches(tmp_path / "input", split(rows, 2)))
    asked = sb.TopKPairs(k=4, by=BY, ascending=True, window=sb.tumbling("40 seconds", on="ts"))
    checkpoint = str(tmp_path / "checkpoint")
    run(sb.top_k_pairs(stream, k=4, by=BY, ascending=True, window=asked.window), checkpoint)
    session = asked.open(rows.schema)
    session.push(rows)
    columns = ["window_end", "rank", "score", "a_seq", "b_seq"]
    now = sb.read_answer(spark, checkpoint, k=3).select(columns).orderBy("rank").toArrow()
    assert now.to_pydict() == session.top(k=3).select(columns).cast(now.schema).to_pydict()
    assert now.num_rows == 3


def test_a_join_cannot_be_asked_from_outside(spark: SparkSession, tmp_path: Path) -> None:
    stream = read_batches(spark, write_batches(tmp_path / "input", split(trades(40), 1)))
    window = sb.sliding("5 seconds", on="ts")
    counts = sb.join_aggregate(
        {"a": stream, "b": stream},
        inputs={"a": window, "b": window},
        on="a.seq = b.seq",
        group_by="a.symbol",
        aggregates={"n": "COUNT(*)"},
        every="5 seconds",
    )
    run(counts, str(tmp_path / "checkpoint"))
    with pytest.raises(sb.InvalidInput, match="joins cannot be asked from outside"):
        sb.read_answer(spark, str(tmp_path / "checkpoint"))
