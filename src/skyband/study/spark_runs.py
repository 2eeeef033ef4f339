"""Timing streaming queries on Spark: the best micro-batch of each, after its first.

Rows lie in Parquet files and are read as streams, several files a micro-batch, into a sink that drops what it gets.
A rate is in rows per second of a whole trigger (`triggerExecution`: planning, running, committing state and offsets),
as Spark reports it; the same for both sides of a comparison.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skyband.engines.spark.processor import STATE_NAME
from skyband.study.processes import Cpu, cpu_seconds
from skyband.study.results import Result

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


START_US: Final = 1_767_603_600_000_000  # 2026-01-05 09:00 UTC
ROW_US: Final = 1_000  # from one row to the next: a thousand rows a second

# Both sides keep their state in RocksDB; Spark's own operators refuse the encoding that ours uses.
SETTINGS_OF_OWN: Final = {"spark.sql.streaming.stateStore.encodingFormat": "unsaferow"}


@dataclass(frozen=True, slots=True)
class Run:
    """A streaming query to time."""

    question: Callable[..., DataFrame]  # of one DataFrame a folder
    folders: tuple[str, ...]  # of its input
    files_per_batch: int
    needed_for: tuple[str, ...]
    ours: bool = False
    rounds: int = 1
    mode: str = "append"
    keys: tuple[str, ...] = ("window_end", "rank")  # what tells its answers apart
    values: tuple[str, ...] = ("score", "id")  # what they say, as far as it is compared
    checked_files: int | None = None  # the answers about so many files are compared; about all if not said


@dataclass(frozen=True, slots=True)
class Timing:
    rate: float = 0.0  # rows per second of the best micro-batch
    rows_held: int | None = None  # by our state, at the end
    cpu: Cpu | None = None  # of the whole run


def time_all(
    spark: SparkSession, folder: Path, runs: Mapping[str, Run], wanted: Collection[str], say: Callable[[str], None]
) -> dict[str, Timing]:
    """Every run that a wanted line needs, taking turns, so that what else the machine does falls on all."""
    needed = {name: run for name, run in runs.items() if not set(wanted).isdisjoint(run.needed_for)}
    for name, run in needed.items():
        if run.ours:  # which also lets Java compile what is timed afterwards
            say(f"Spark, {name}: checking answers")
            check_answers(spark, [folder / name for name in run.folders], run)
    best: dict[str, Timing] = {}
    for number in range(max((run.rounds for run in needed.values()), default=0)):
        for name, run in needed.items():
            if number < run.rounds:
                say(f"Spark, {name}: turn {number + 1} of {run.rounds}")
                timing = _time(spark, folder, run)
                best[name] = max(best.get(name, timing), timing, key=lambda found: found.rate)
    return best


def _time(spark: SparkSession, folder: Path, run: Run) -> Timing:
    with settings(spark, {} if run.ours else SETTINGS_OF_OWN), tempfile.TemporaryDirectory(dir=folder) as checkpoint:
        asked = run.question(*(stream(spark, folder / name, run.files_per_batch) for name in run.folders))
        writer = asked.writeStream.format("noop").outputMode(run.mode).option("checkpointLocation", checkpoint)
        before = cpu_seconds()
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        after = cpu_seconds()
        rate = max(
            1000 * progress["numInputRows"] / progress["durationMs"]["triggerExecution"]
            for progress in query.recentProgress
            if progress["batchId"] > 0  # the first one warms up, and has no watermark yet that could close a window
        )
        used = after.since(before) if before and after else None
        return Timing(rate, _rows_held(spark, checkpoint) if run.ours else None, used)


def check_answers(spark: SparkSession, folders: Sequence[Path], run: Run) -> None:
    """Raise unless Spark says of these files what the embedded engine says, of all windows that they have closed."""
    columns, order = [*run.keys, *run.values], [(name, "ascending") for name in run.keys]
    with tempfile.TemporaryDirectory(dir=folders[0].parent) as name:
        target, checkpoint = Path(name, "answers"), Path(name, "checkpoint")
        sources = [_first_files(folder, Path(name, folder.name), run.checked_files) for folder in folders]
        asked = run.question(*(stream(spark, source, run.files_per_batch) for source in sources)).select(*columns)
        writer = asked.writeStream.format("parquet").option("checkpointLocation", str(checkpoint))
        writer.trigger(availableNow=True).start(str(target)).awaitTermination()
        said = pq.read_table(target).select(columns).sort_by(order)
        inputs = [pq.read_table(source) for source in sources]
    expected: Any = run.question(*inputs)
    closed_until = min((pc.max(rows["ts"]) for rows in inputs), key=lambda instant: instant.value)
    closed = expected.filter(pc.less_equal(expected["window_end"], closed_until)).select(columns).sort_by(order)
    if not said.num_rows or not said.equals(closed.cast(said.schema)):
        raise AssertionError("Spark and the embedded engine say different things about the same rows")


def _first_files(folder: Path, target: Path, count: int | None) -> Path:
    """A folder `target` with the first files of this one, or with all of them."""
    target.mkdir()
    for path in sorted(folder.glob("*.parquet"))[:count]:
        os.link(path, target / path.name)
    return target


def stream(spark: SparkSession, folder: Path, files_per_batch: int) -> DataFrame:
    columns = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(columns).option("maxFilesPerTrigger", files_per_batch).parquet(str(folder))


def _rows_held(spark: SparkSession, checkpoint: str) -> int:
    """What our buckets hold at the end of the run, asked of Spark's state store."""
    state = spark.read.format("statestore").option("stateVarName", STATE_NAME).load(checkpoint)
    return int(state.selectExpr("coalesce(sum(value.rows_held), 0)").collect()[0][0])


@contextmanager
def settings(spark: SparkSession, chosen: dict[str, str]) -> Iterator[None]:
    before = {name: str(spark.conf.get(name)) for name in chosen}
    for name, value in chosen.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def write_files(folder: Path, tables: Iterable[pa.Table]) -> None:
    """A file for each table, in the order in which Spark will read them."""
    folder.mkdir()
    for number, table in enumerate(tables):
        path = folder / f"{number:05}.parquet"
        pq.write_table(table, path)
        os.utime(path, (number, number))  # Spark reads files in the order of their times


def instants(milliseconds: np.ndarray) -> pa.Array:
    """Instants so many milliseconds after the start."""
    return pa.array(START_US + ROW_US * milliseconds).view(pa.timestamp("us", tz="UTC"))


def compared(
    name: str, workload: str, against: str, ours: Timing, reference: Timing, bar: float, expected: str = ""
) -> Result:
    """The line of a table that sets one rate against another."""
    return Result(
        name,
        workload,
        against,
        ours.rate / reference.rate,
        bar,
        rows_per_second=ours.rate,
        reference_rows_per_second=reference.rate,
        rows_held=ours.rows_held,
        rows_expected=expected,
        how="the best micro-batch of each but the first: numInputRows / triggerExecution",
        cpu="" if ours.cpu is None else f"{ours.cpu}; against {reference.cpu}",
    )
