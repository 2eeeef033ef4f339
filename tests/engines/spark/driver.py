"""A driver process for restart tests: one streaming query from Parquet files to Parquet files.

python -m engines.spark.driver QUESTION INPUT OUTPUT CHECKPOINT
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq
from engines.spark.streams import read_batches
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery
from waiting import PATIENCE_S, wait_until

import skyband as sb
from skyband.engines.spark import local_session

Inputs = Callable[[str], Any]  # from the name of an input, "" for the only one, to a table or DataFrame


def rows(inputs: Inputs) -> Any:
    window = sb.sliding("25 seconds", every="10 seconds", on="ts")
    return sb.top_k(inputs(""), k=2, by="price", window=window, per="symbol", lateness="5 seconds")


def joins(inputs: Inputs) -> Any:
    return sb.join_aggregate(
        {name: inputs(name) for name in "ab"},
        inputs={"a": sb.sliding("25 seconds", on="ts"), "b": sb.sliding("10 seconds", on="ts")},
        on="a.symbol = b.symbol",
        every="5 seconds",
        group_by="a.symbol",
        aggregates={"n": "COUNT(*)", "numbers": "SUM(b.seq)", "mean": "AVG(a.price)"},
        lateness="5 seconds",
    )


QUESTIONS: dict[str, Callable[[Inputs], Any]] = {"rows": rows, "joins": joins}


def start(
    spark: SparkSession, question: str, source: Path, target: Path, checkpoint: Path, *, ends: bool = True
) -> StreamingQuery:
    """Answer what is there; if it `ends` not, also what comes later."""
    answer = QUESTIONS[question](lambda name: read_batches(spark, source / name))
    writer = answer.writeStream.format("parquet").option("checkpointLocation", str(checkpoint))
    return (writer.trigger(availableNow=True) if ends else writer).start(str(target))


def main(question: str, source: str, target: str, checkpoint: str) -> None:
    spark = local_session("restart test", cores=2, fast_start=True)
    start(spark, question, Path(source), Path(target), Path(checkpoint)).awaitTermination()
    spark.stop()


# -- for tests: starting and killing it --------------------------------------------------------------------------------


class Driver:
    """A driver of a question, in the folder of its output and checkpoint."""

    def __init__(self, question: str, source: Path, folder: Path) -> None:
        self.target, self.checkpoint = folder / "output", folder / "checkpoint"
        self._log = folder / "log.txt"
        arguments = question, source, self.target, self.checkpoint
        self._command = [sys.executable, "-m", "engines.spark.driver", *map(str, arguments)]
        places = str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")
        self._environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, places))}

    def kill_in(self, batch: int, *, writing: bool = False) -> None:
        """Start it, and kill it when it has begun this micro-batch, or when it writes the state after it."""
        before = self._state_after(batch)

        def is_time() -> bool:
            if not writing:
                return max(numbers(self.checkpoint / "offsets"), default=-1) >= batch
            return self._state_after(batch) != before or batch in numbers(self.checkpoint / "commits")

        with self._log.open("ab") as log:
            process = subprocess.Popen(
                self._command, stderr=log, stdout=log, env=self._environment, start_new_session=True
            )
            try:
                wait_until(is_time, f"batch {batch}", process)
            finally:
                os.killpg(process.pid, signal.SIGKILL)  # the driver, its JVM and their workers
                process.wait()
        assert process.returncode == -signal.SIGKILL

    def _state_after(self, batch: int) -> set[tuple[Path, int]]:
        """The files of the state that this micro-batch leaves, and when they were written."""
        found = self.checkpoint.glob(f"state/*/*/{batch + 1}*")
        return {(path, path.stat().st_mtime_ns) for path in found if path.exists()}

    def run(self) -> None:
        """Start it, and wait until it is done."""
        with self._log.open("ab") as log:
            subprocess.run(self._command, stderr=log, stdout=log, env=self._environment, timeout=PATIENCE_S, check=True)

    def written(self) -> pa.Table:
        """What readers of the sink see without Spark: the files that its log has."""
        log = [path.read_text().splitlines()[1:] for path in (self.target / "_spark_metadata").glob("[0-9]*")]
        files = [unquote(urlparse(json.loads(entry)["path"]).path) for entries in log for entry in entries]
        return pa.concat_tables([pq.read_table(file, partitioning=None) for file in files])


def numbers(folder: Path) -> set[int]:
    return {int(path.name) for path in folder.glob("[0-9]*")} if folder.exists() else set()


if __name__ == "__main__":
    main(*sys.argv[1:])
