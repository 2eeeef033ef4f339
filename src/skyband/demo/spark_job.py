"""The demo's question as a Spark Structured Streaming query: file stream in, exactly-once Parquet sink out."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq

from skyband.api import top_k
from skyband.demo.job import QUERY, Job, Step
from skyband.engines.spark.session import local_session
from skyband.errors import EnvironmentProblem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_POLL_SECONDS: Final = 0.1
_COLUMNS: Final = "ts TIMESTAMP, symbol STRING, price DOUBLE, volume BIGINT"


def start_spark(job: Job) -> SparkSession:
    spark = local_session("skyband demo", log_file=job.log)
    # The default, INT96, is a type that only Spark's relatives know.
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    return spark


def ranking(spark: SparkSession, job: Job) -> DataFrame:
    """The question itself: all that a user would write."""
    stream = spark.readStream.schema(_COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(job.trades))
    return top_k(stream, k=QUERY.k, by="price * volume", window=QUERY.window, lateness=QUERY.lateness)


def steps(spark: SparkSession, job: Job) -> Iterator[Step]:
    """Run the query to the end of the files; tell after each micro-batch how far it is."""
    query = (
        ranking(spark, job)
        .writeStream.format("parquet")
        .option("path", str(job.answers))
        .option("checkpointLocation", str(job.checkpoint))
        .outputMode("append")
        .trigger(availableNow=True)
        .start()
    )
    committed = Committed(job.answers)
    rows_of_batch: dict[int, int] = {}
    try:
        running = True
        while running:
            running = query.isActive  # asked first, so that the last look comes after the end
            rows_of_batch |= {progress["batchId"]: progress["numInputRows"] for progress in query.recentProgress}
            yield Step(sum(rows_of_batch.values()), committed.new_rows())
            time.sleep(_POLL_SECONDS if running else 0)
        _raise_if_failed(query, job)
    finally:
        query.stop()


class Committed:
    """What Spark's file sink has committed: its log names the files of each micro-batch, once and for all."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "_spark_metadata"
        self._batch = 0
        self._seen: set[str] = set()

    def new_rows(self) -> pa.Table:
        """The rows committed since the last call."""
        tables = [pq.read_table(path) for path in self._new_files()]
        return pa.concat_tables(tables) if tables else pa.table({})

    def _new_files(self) -> Iterator[str]:
        while (entries := self._entries()) is not None:
            # Every tenth log file repeats all before it.
            new = [entry for entry in entries if entry not in self._seen]
            self._seen.update(new)
            self._batch += 1
            yield from new

    def _entries(self) -> list[str] | None:
        for name in (str(self._batch), f"{self._batch}.compact"):
            path = self._log / name
            if path.exists():
                _version, *lines = path.read_text().splitlines()
                return [unquote(urlparse(json.loads(line)["path"]).path) for line in lines]
        return None


def _raise_if_failed(query: StreamingQuery, job: Job) -> None:
    failure = query.exception()
    if failure is not None:
        what, _plan, _details = str(failure).partition("=== Streaming Query ===")
        raise EnvironmentProblem(f"The Spark query failed; more is in {job.log}.\n{what.strip()}")
