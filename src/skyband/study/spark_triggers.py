"""Small micro-batches on Spark: how long a trigger of 1,000 rows takes, and an empty one, and until there is an answer.

A file of 1,000 rows is added, Spark takes it, and the watermark that it moves makes Spark run an empty trigger behind
it; then the next file is added. Spark's own side is a streaming aggregation by one-second windows, kept in RocksDB too.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skyband.api import top_k
from skyband.study.processes import cpu_seconds
from skyband.study.results import Result
from skyband.study.sizes import SPARK_TRIGGER_LINES
from skyband.study.spark_runs import SETTINGS_OF_OWN, Run, check_answers, instants, settings
from skyband.windows import sliding

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TRIGGER, TRIGGER_P95, EMPTY, FIRST = SPARK_TRIGGER_LINES

ROWS: Final = 1_000
_OWN: Final = (
    "SELECT window(ts, '1 second') AS w, count(*) AS n, max(score) AS best FROM {rows} GROUP BY window(ts, '1 second')"
)


class Triggers(NamedTuple):
    with_rows: list[float]  # seconds of each trigger, the first one excepted
    empty: list[float]
    first: float  # from `start` until the first file is answered
    cpu: str


def measure(
    spark: SparkSession, folder: Path, wanted: Collection[str], triggers: int, say: Callable[[str], None]
) -> Iterator[Result]:
    def ours(rows: DataFrame) -> DataFrame:
        return top_k(rows, k=10, by="score", window=sliding("60 seconds", every="1 second", on="ts"))

    def own(rows: DataFrame) -> DataFrame:
        return spark.sql(_OWN, rows=rows.withWatermark("ts", "0 seconds"))

    # The first turn lets Java compile what both sides need, which would otherwise be a burden of who comes first.
    for turn in (1, 2):
        with settings(spark, SETTINGS_OF_OWN):
            theirs = _run(spark, folder / f"own-triggers-{turn}", own, triggers, partial(_say, say, turn, "its own"))
        mine = _run(spark, folder / f"triggers-{turn}", ours, triggers, partial(_say, say, turn, "ours"))
    say("Spark, small triggers: checking answers")
    check_answers(spark, [folder / "triggers-2"], Run(ours, (), triggers, ()))
    workload, against = f"Spark: top 10, window 60 s, slide 1 s, {ROWS:,} rows a trigger", "its own aggregation"
    lines = {
        TRIGGER: (f"{workload}, median", _rank(mine.with_rows, 50), _rank(theirs.with_rows, 50), 1.3),
        TRIGGER_P95: ("the same, 95th percentile", _rank(mine.with_rows, 95), _rank(theirs.with_rows, 95), 1.3),
        EMPTY: ("the same, an empty trigger, median", _rank(mine.empty, 50), _rank(theirs.empty, 50), 1.2),
        FIRST: ("the same, from start() to the first answer", mine.first, theirs.first, 1.3),
    }
    for name, (what, seconds, reference, bar) in lines.items():
        if name in wanted:
            how = f"triggerExecution: {seconds:.3f} s against {reference:.3f} s" if name != FIRST else "the clock"
            cpu = f"{mine.cpu}; against {theirs.cpu}"
            yield Result(name, what, against, seconds / reference, bar, at_most=True, how=how, cpu=cpu)


def _say(say: Callable[[str], None], turn: int, whose: str, number: int) -> None:
    say(f"Spark, small triggers, {whose}: turn {turn} of 2, trigger {number}")


def _rank(values: list[float], percent: int) -> float:
    return float(np.percentile(values, percent))


def _run(
    spark: SparkSession, folder: Path, ask: Callable[[DataFrame], DataFrame], triggers: int, say: Callable[[int], None]
) -> Triggers:
    say(0)
    folder.mkdir()
    random = np.random.default_rng(1)
    _write(folder, 0, random)
    schema = spark.read.parquet(str(folder)).schema
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))
    before, started = cpu_seconds(), time.perf_counter()
    writer = ask(rows).writeStream.format("noop").option("checkpointLocation", f"{folder}-checkpoint")
    query = writer.outputMode("append").trigger(processingTime="0 seconds").start()
    try:
        query.processAllAvailable()
        first = time.perf_counter() - started
        for number in range(1, triggers + 1):
            say(number)
            _write(folder, number, random)
            query.processAllAvailable()
        progress = query.recentProgress
    finally:
        query.stop()
    after = cpu_seconds()
    took = [(one["numInputRows"], one["durationMs"]) for one in progress if one["batchId"] > 1]
    # What only looks for new files, and finds none, is no trigger.
    ran = [(rows, took_ms["triggerExecution"] / 1000) for rows, took_ms in took if "addBatch" in took_ms]
    with_rows, empty = ([seconds for rows, seconds in ran if (rows > 0) == has] for has in (True, False))
    return Triggers(with_rows, empty, first, str(after.since(before)) if before and after else "")


def _write(folder: Path, number: int, random: np.random.Generator) -> None:
    """One more second of rows. The file has its name only when it is whole: Spark may look at any time."""
    times = np.arange(number * ROWS, (number + 1) * ROWS)
    waiting, path = folder / f".{number:05}.parquet", folder / f"{number:05}.parquet"
    pq.write_table(pa.table({"ts": instants(times), "id": times, "score": random.random(ROWS)}), waiting)
    os.replace(waiting, path)
