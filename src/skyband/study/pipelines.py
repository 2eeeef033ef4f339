"""A pipeline against the same question written in PySpark by hand: rows per second, and time to the first answer.

The question is the top 10 of a window of 60 s that slides by 1 s; rows lie in Parquet files; answers go to Parquet. By
hand that is `sb.top_k`, `writeStream` and Spark's own file sink; as a pipeline it is a file run by the code behind
`skyband run`. Throughput is that of the median micro-batch, once Spark is warm: single ones differ by a third. For the
first answer both are new processes, from their start until a file with answers is there.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from skyband.study.results import Result
from skyband.study.sizes import PIPELINE_LINES, SparkSizes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RATE, FIRST = PIPELINE_LINES

_COLUMNS: Final = "ts TIMESTAMP, id BIGINT, score DOUBLE, name STRING"
_FILE: Final = """
trigger = "available now"

[sources.rows]
format = "parquet"
path = "{rows}"
schema = "{columns}"
options = {{ maxFilesPerTrigger = {files} }}

[queries.top]
sql = "SELECT * FROM rows [WINDOW 60 SECONDS EVERY 1 SECOND] ORDER BY score DESC LIMIT 10"
to = "files"

[sinks.files]
format = "parquet"
path = "answers"
"""
# What a user would write without pipelines.
_BY_HAND: Final = """
import sys
from pathlib import Path
import skyband as sb
from skyband.engines.spark import local_session

rows, folder, columns, files = sys.argv[1:]
spark = local_session("by hand", log_file=Path(folder, "spark.log"))
stream = spark.readStream.schema(columns).option("maxFilesPerTrigger", files).parquet(rows)
top = sb.top_k(stream, k=10, by="score", window=sb.sliding("60 seconds", every="1 second", on="ts"))
writer = top.writeStream.format("parquet").option("checkpointLocation", f"{folder}/checkpoint")
writer.trigger(availableNow=True).start(f"{folder}/answers").awaitTermination()
"""


def measure(wanted: Collection[str], sizes: SparkSizes, say: Callable[[str], None]) -> Iterator[Result]:
    """The lines of the table that are about pipelines."""
    if set(wanted).isdisjoint(PIPELINE_LINES):
        return
    from skyband.study.spark import write_rows

    with tempfile.TemporaryDirectory(prefix="skyband-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        say("pipelines: writing rows")
        write_rows(folder / "rows", sizes.pipeline_rows, sizes.files)
        if RATE in wanted:
            yield _rate(folder, sizes, say)
        if FIRST in wanted:
            yield _first(folder, sizes, say)


def _rate(folder: Path, sizes: SparkSizes, say: Callable[[str], None]) -> Result:
    """Both in one session, taking turns, each first as often as the other: Spark gets faster for minutes."""
    from skyband.engines.spark.session import local_session

    spark = local_session("skyband bench", log_file=folder / "spark.log")
    contenders = [_rates_by_hand, _rates_of_pipeline]
    rates: dict[Any, list[float]] = {_rates_by_hand: [], _rates_of_pipeline: []}
    warm = sizes.rounds
    try:
        for turn in range(turns := 4 * sizes.rounds):
            say(f"pipelines: turn {turn + 1} of {turns}")
            for contender in contenders:
                seen = contender(spark, folder, sizes)
                rates[contender] += seen if turn >= warm else []
            contenders.reverse()
    finally:
        spark.stop()
    by_hand, ours = median(rates[_rates_by_hand]), median(rates[_rates_of_pipeline])
    return Result(
        RATE,
        "a pipeline: top 10, window 60 s, slide 1 s, to Parquet",
        "the same in PySpark, by hand",
        ours / by_hand,
        0.97,
        rows_per_second=ours,
        reference_rows_per_second=by_hand,
        how=f"the median of {len(rates[_rates_by_hand])} micro-batches of each: numInputRows / triggerExecution",
    )


def _rates_by_hand(spark: SparkSession, folder: Path, sizes: SparkSizes) -> list[float]:
    from skyband.api import top_k
    from skyband.windows import sliding

    with tempfile.TemporaryDirectory(dir=folder) as name:
        stream = spark.readStream.schema(_COLUMNS).option("maxFilesPerTrigger", sizes.files_per_batch)
        window = sliding("60 seconds", every="1 second", on="ts")
        top = top_k(stream.parquet(str(folder / "rows")), k=10, by="score", window=window)
        writer = top.writeStream.format("parquet").option("checkpointLocation", f"{name}/checkpoint")
        query = writer.trigger(availableNow=True).start(f"{name}/answers")
        query.awaitTermination()
        return _rates(query.recentProgress)


def _rates_of_pipeline(spark: SparkSession, folder: Path, sizes: SparkSizes) -> list[float]:
    from skyband.pipelines.file import load
    from skyband.pipelines.running import Running

    with tempfile.TemporaryDirectory(dir=folder) as name:
        running = Running(spark, load(_write_file(Path(name), folder, sizes)), print)
        running.start()
        for _ in running.follow():
            pass
        return _rates(running.reports()["rows_1"])


def _rates(reports: Collection[Any]) -> list[float]:
    return [
        1000 * report["numInputRows"] / report["durationMs"]["triggerExecution"]
        for report in reports
        if report["batchId"] > 0 and report["numInputRows"]  # the first one begins, the last one only closes windows
    ]


def _first(folder: Path, sizes: SparkSizes, say: Callable[[str], None]) -> Result:
    ours, by_hand = [], []
    for turn in range(sizes.rounds):
        say(f"pipelines: the first answer, turn {turn + 1} of {sizes.rounds}")
        # What is stopped may still write for a moment.
        with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as name:
            arguments = [str(folder / "rows"), name, _COLUMNS, str(sizes.files_per_batch)]
            by_hand.append(_seconds([sys.executable, "-c", _BY_HAND, *arguments], Path(name)))
        with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as name:
            file = _write_file(Path(name), folder, sizes)
            ours.append(_seconds([sys.executable, "-m", "skyband.cli", "run", str(file)], Path(name)))
    return Result(
        FIRST,
        "a pipeline: from its start to its first answer",
        "the same in PySpark, by hand",
        min(ours) / min(by_hand),
        1.3,
        at_most=True,
        how=f"new processes, best of {sizes.rounds}: {min(ours):.1f} s against {min(by_hand):.1f} s",
    )


def _seconds(command: list[str], folder: Path) -> float:
    """From the start of a process until there is a file with answers."""
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not _answered(folder / "answers"):
            assert process.poll() is None or _answered(folder / "answers"), "it ended without an answer"
            time.sleep(0.01)
        return time.monotonic() - started
    finally:
        process.terminate()
        process.wait()


def _answered(folder: Path) -> bool:
    """Is a micro-batch of answers there: written by Spark's own sink, or by ours?"""
    return any(folder.glob("_spark_metadata/[1-9]")) or any(folder.glob("batch=*/_SUCCESS"))


def _write_file(target: Path, folder: Path, sizes: SparkSizes) -> Path:
    file = target / "bench.toml"
    file.write_text(_FILE.format(rows=folder / "rows", columns=_COLUMNS, files=sizes.files_per_batch))
    return file
