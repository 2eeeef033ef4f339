"""A driver process for restart tests: one streaming query from Parquet files to Parquet files.

python -m spark.driver QUESTION INPUT OUTPUT CHECKPOINT
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery
from spark.streams import read_batches

import skyband as sb
from skyband.engines.spark import local_session

PATIENCE_S = 120

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


def start(spark: SparkSession, question: str, source: Path, target: Path, checkpoint: Path) -> StreamingQuery:
    answer = QUESTIONS[question](lambda name: read_batches(spark, source / name))
    writer = answer.writeStream.format("parquet").option("checkpointLocation", str(checkpoint))
    return writer.trigger(availableNow=True).start(str(target))


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
        self._command = [sys.executable, "-m", "spark.driver", *map(str, arguments)]
        places = str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")
        self._environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, places))}

    def kill_in(self, batch: int, delay_s: float) -> None:
        """Start it, and kill it so long after it has begun this micro-batch."""
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                self._command, stderr=log, stdout=log, env=self._environment, start_new_session=True
            )
            try:
                wait_for(batch, self.checkpoint, process)
                time.sleep(delay_s)
            finally:
                os.killpg(process.pid, signal.SIGKILL)  # the driver, its JVM and their workers
                process.wait()
        assert process.returncode == -signal.SIGKILL

    def run(self) -> None:
        """Start it, and wait until it is done."""
        with self._log.open("ab") as log:
            subprocess.run(self._command, stderr=log, stdout=log, env=self._environment, timeout=PATIENCE_S, check=True)

    def written(self) -> pa.Table:
        """What readers of the sink see without Spark: the files that its log has."""
        log = [path.read_text().splitlines()[1:] for path in (self.target / "_spark_metadata").glob("[0-9]*")]
        files = [unquote(urlparse(json.loads(entry)["path"]).path) for entries in log for entry in entries]
        return pa.concat_tables([pq.read_table(file, partitioning=None) for file in files])


def wait_for(batch: int, checkpoint: Path, process: subprocess.Popen[bytes]) -> None:
    """Until this micro-batch is begun and not done: its offsets are written, its commit is not."""
    deadline = time.monotonic() + PATIENCE_S
    while max(numbers(checkpoint / "offsets") - numbers(checkpoint / "commits"), default=None) != batch:
        assert process.poll() is None, f"the driver ended before batch {batch}"
        assert time.monotonic() < deadline, f"no batch {batch} within {PATIENCE_S} s"
        time.sleep(0.002)


def numbers(folder: Path) -> set[int]:
    return {int(path.name) for path in folder.glob("[0-9]*")} if folder.exists() else set()


if __name__ == "__main__":
    main(*sys.argv[1:])
