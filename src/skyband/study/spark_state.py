"""What a micro-batch of 1,000 rows writes to Spark's state, and how long it takes, with few and with many rows held.

One large micro-batch fills a window, and small ones follow. What is written is the size of the files that Spark adds to
the checkpoint's `state` for the small ones; what arrives are the columns of their rows in Arrow. Copies of the whole
state, which Spark makes in the background now and then, are not counted.

Now and then a small micro-batch writes a snapshot instead of an entry of a journal. With the smallest window there are
so many small ones that some write snapshots. With larger windows a snapshot is larger and rarer in the same proportion.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from skyband.api import join_aggregate, top_k, top_k_across, top_k_pairs
from skyband.study.results import Result
from skyband.study.sizes import SPARK_STATE_LINES
from skyband.study.spark_runs import instants, stream, write_files
from skyband.windows import sliding

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS: Final = 1_000  # of a small micro-batch, and of each second
_KEYS: Final = 1_000  # of joins, and of objects across streams
_QUERIES: Final = 100
_MANY, _FEW = 50, 16  # small micro-batches; the first ones each start a worker that has to open a snapshot
_MOST_BYTES, _MOST_TIME = 3.0, 1.5  # against what arrived; against the fewest rows held

Ask = Callable[["DataFrame", int], "DataFrame"]  # from rows, and how many a window has, to answers


@dataclass(frozen=True, slots=True)
class Cost:
    """Of a small micro-batch."""

    bytes_written: float  # the mean
    seconds: float  # the median
    slowest: float
    most_written: float
    rows_held: int


def measure(
    spark: SparkSession, folder: Path, wanted: Collection[str], windows: tuple[int, ...], say: Callable[[str], None]
) -> Iterator[Result]:
    for problem, ask in ASKED.items():
        size_line, time_line = f"spark-state-{problem}", f"spark-state-{problem}-time"
        assert {size_line, time_line} <= set(SPARK_STATE_LINES)
        if {size_line, time_line}.isdisjoint(wanted):
            continue
        costs, arrived = {}, 0
        for window in windows:
            say(f"Spark, state of {problem}: window of {window:,} rows")
            rows = folder / f"state-{problem}-{window}"
            arrived = _write(rows, window, _MANY if window == windows[0] else _FEW)
            costs[window] = _cost(spark, rows, ask, window)
        fewest, most = costs[windows[0]], costs[windows[-1]]
        written = max(costs.values(), key=lambda cost: cost.bytes_written)
        each = ", ".join(
            f"{window:,}: {cost.bytes_written:,.0f} B (once {cost.most_written:,.0f} B), "
            f"{cost.seconds:.2f} s (once {cost.slowest:.2f} s)"
            for window, cost in costs.items()
        )
        workload = (
            f"Spark: {problem}, windows of {windows[0]:,} to {windows[-1]:,} rows, micro-batches of {ROWS:,} rows"
        )
        if size_line in wanted:
            yield Result(
                size_line,
                f"{workload}: bytes written, mean",
                "bytes that arrived",
                written.bytes_written / arrived,
                _MOST_BYTES,
                at_most=True,
                rows_held=most.rows_held,
                how=f"by rows of a window: {each}",
            )
        if time_line in wanted:
            yield Result(
                time_line,
                "the same: time of a micro-batch",
                f"a window of {windows[0]:,} rows",
                most.seconds / fewest.seconds,
                _MOST_TIME,
                at_most=True,
                rows_held=most.rows_held,
                how=f"triggerExecution, by rows of a window: {each}",
            )


def _rows(rows: DataFrame, window: int) -> DataFrame:
    return top_k(rows, k=10, by="score", window=sliding(f"{window // ROWS} seconds", every="1 second", on="ts"))


def _pairs(rows: DataFrame, window: int) -> DataFrame:
    return top_k_pairs(
        rows,
        k=10,
        by="abs(a.score - b.score) * abs(a.weight - b.weight)",
        ascending=True,
        window=sliding(window, every=ROWS, order="id"),
    )


def _across(rows: DataFrame, window: int) -> DataFrame:
    return top_k_across(
        rows,
        k=10,
        id="item",
        value="score",
        stream="side",
        streams=("a", "b"),
        combine="sum",
        repeat="max",
        window=sliding(f"{window // ROWS} seconds", every="1 second", on="ts"),
    )


def _joins(rows: DataFrame, window: int) -> DataFrame:
    of = sliding(f"{window // ROWS} seconds", on="ts")
    return join_aggregate(
        {"a": rows.where("side = 'a'"), "b": rows.where("side = 'b'")},
        inputs={"a": of, "b": of},
        on="a.item = b.item",
        group_by="a.item",
        aggregates={"n": "COUNT(*)", "total": "SUM(b.score)"},
        every="1 second",
    )


def _subscriptions(rows: DataFrame, window: int) -> DataFrame:
    random = np.random.default_rng(3)
    queries = pa.table({"query": np.arange(_QUERIES), "x": random.random(_QUERIES), "y": random.random(_QUERIES)})
    return top_k(
        rows,
        k=10,
        by="sqrt(power(score - q.x, 2) + power(weight - q.y, 2))",
        ascending=True,
        for_each=queries,
        key="query",
        window=sliding(window, every=ROWS, order="id"),
    )


ASKED: Final[dict[str, Ask]] = {
    "rows": _rows,
    "pairs": _pairs,
    "across": _across,
    "joins": _joins,
    "subscriptions": _subscriptions,
}


def _write(folder: Path, window: int, small: int) -> int:
    """A file that fills the window and more by a little, and small ones; how many bytes a small one has in Arrow."""
    random = np.random.default_rng(7)

    def table(start: int, count: int) -> pa.Table:
        return pa.table(
            {
                "ts": instants(np.arange(start, start + count)),
                "id": np.arange(start, start + count),
                "score": random.random(count),
                "weight": random.random(count),
                "item": random.integers(_KEYS, size=count),
                "side": pa.array(["a", "b"]).take(pa.array(random.integers(2, size=count))),
            }
        )

    filled = window + ROWS
    tables = [table(0, filled), *(table(filled + number * ROWS, ROWS) for number in range(small))]
    write_files(folder, tables)
    return int(tables[-1].nbytes)


def _cost(spark: SparkSession, folder: Path, ask: Ask, window: int) -> Cost:
    checkpoint = Path(f"{folder}-checkpoint")
    answers = ask(stream(spark, folder, 1), window)
    writer = answers.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    took: list[tuple[int, float]] = []
    held = 0
    for progress in query.recentProgress:
        held += sum(entry["rows_held_change"] or 0 for entry in (progress["observedMetrics"] or {}).values())
        if progress["numInputRows"] in (ROWS, 2 * ROWS):  # a join reads its stream for both sides
            took.append((progress["batchId"], progress["durationMs"]["triggerExecution"] / 1000))
    batches = [batch for batch, _ in took[1:]]
    written = [bytes_written(checkpoint, batch + 1) for batch in batches]  # the state that a micro-batch leaves
    seconds = [seconds for _, seconds in took[1:]]
    return Cost(float(np.mean(written)), float(np.median(seconds)), max(seconds), max(written), held)


def bytes_written(checkpoint: Path, version: int) -> int:
    """The size of the files with which the operator's stores came to this version."""
    return sum(path.stat().st_size for path in checkpoint.glob(f"state/*/*/{version}.changelog"))
