"""Oracle tests of state that is a snapshot and a journal, for every problem: stopped in between, and all answers are
those of the embedded engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from engines.spark.streams import INSTANTS, START_US, lines, read_batches, run_to_files, split, write_batches
from pyspark.sql import SparkSession

import skyband as sb
from skyband.core.snapshot_pages import DIGEST_BYTES
from skyband.engines.spark.kept_state import key_of

pytestmark = pytest.mark.spark

ROWS = 3_000  # one a millisecond
WINDOW = sb.sliding("1 second", every="250 milliseconds", on="ts")


def rows() -> pa.Table:
    """Ties, nulls and NaN among the scores; texts that are long enough for a journal."""
    random = np.random.default_rng(7)
    score = random.integers(0, 500, ROWS) / 4
    score[random.random(ROWS) < 0.02] = np.nan
    return pa.table(
        {
            "ts": pa.array(START_US + 1_000 * np.arange(ROWS), INSTANTS),
            "seq": np.arange(ROWS),
            "item": pa.array([f"item {number:04}" for number in random.integers(0, 300, ROWS)]),
            "side": pa.array(random.choice(["a", "b"], ROWS)),
            "score": pa.array(score, mask=random.random(ROWS) < 0.02),
            "text": pa.array([random.bytes(12).hex() for _ in range(ROWS)]),
        }
    )


def _pairs(data: Any) -> Any:
    by = "abs(a.score - b.score) + abs(a.seq - b.seq) / 100.0"
    return sb.top_k_pairs(data, k=3, by=by, ascending=True, window=sb.sliding(2_000, every=250, order="seq"))


def _across(data: Any) -> Any:
    options: dict[str, Any] = {
        "k": 4,
        "id": "item",
        "value": "score",
        "combine": "sum",
        "repeat": "max",
        "bounds": (0, 125),
    }
    if isinstance(data, pa.Table):
        data = {side: data.filter(pc.equal(data["side"], side)) for side in ("a", "b")}
    else:
        options |= {"stream": "side", "streams": ("a", "b")}
    return sb.top_k_across(data, window=WINDOW, **options)


def _subscriptions(data: Any) -> Any:
    queries = pa.table({"id": np.arange(40), "near": np.arange(40) * 3.0})
    return sb.top_k(data, for_each=queries, k=3, by="abs(score - q.near)", ascending=True, window=WINDOW)


def _joins(data: Any) -> Any:
    sides = {
        side: data.filter(pc.equal(data["side"], side))
        if isinstance(data, pa.Table)
        else data.where(f"side = '{side}'")
        for side in ("a", "b")
    }
    inputs = dict.fromkeys(sides, sb.sliding("1 second", on="ts"))
    aggregates = {"n": "COUNT(*)", "total": "SUM(b.score)", "most": "MAX(a.seq)"}
    return sb.join_aggregate(
        sides, inputs=inputs, on="a.item = b.item", group_by="a.item", aggregates=aggregates, every="250 milliseconds"
    )


def _groups(data: Any) -> Any:
    return sb.top_k(data, k=2, by="score", per="item", window=WINDOW)


QUESTIONS = {
    "rows": (_groups, ["window_end", "item", "rank", "score", "seq"]),
    "subscriptions": (_subscriptions, ["window_end", "id", "rank", "score", "seq"]),
    "pairs": (_pairs, ["window_end", "rank", "score", "a_seq", "b_seq"]),
    "across": (_across, ["window_end", "rank", "score", "item"]),
    "joins": (_joins, ["window_end", "item", "n", "total", "most"]),
}


@pytest.mark.parametrize("problem", QUESTIONS)
def test_stopped_and_continued_a_journal_gives_the_answers_of_one_process(
    spark: SparkSession, tmp_path: Path, problem: str
) -> None:
    question: Callable[[Any], Any]
    question, columns = QUESTIONS[problem]
    table = rows()
    batches = split(table, 8)
    folder = write_batches(tmp_path / "in", batches[:5])
    run_to_files(question(read_batches(spark, folder)), tmp_path)
    write_batches(folder, batches[5:], first=5)
    run_to_files(question(read_batches(spark, folder)), tmp_path)
    said = pq.read_table(tmp_path / "answers").select(columns)
    expected = question(table).select(columns)
    if problem != "pairs":  # by value, the embedded engine also closes the windows at the end of a table
        latest = table["ts"][-1].value
        expected = expected.filter(pc.less_equal(expected["window_end"].cast(INSTANTS).cast(pa.int64()), latest))
    assert sorted(lines(said), key=repr) == sorted(lines(expected), key=repr)
    pages = spark.read.format("statestore").option("stateVarName", "pages").load(str(tmp_path / "checkpoint"))
    lengths = [len(row.key) for row in pages.selectExpr("user_map_key.digest AS key").collect()]
    assert DIGEST_BYTES in lengths
    assert len(key_of(0)) in lengths, "no bucket has a journal"
