"""The demo's question as a pipeline on Spark: a file stream in, Parquet out, run by the code behind `skyband run`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from skyband.demo.job import Job, Step
from skyband.pipelines.file import load
from skyband.pipelines.running import Running
from skyband.pipelines.session import start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PIPELINE = Path(__file__).with_name("pipeline.toml")


def start_spark(job: Job) -> SparkSession:
    shutil.copyfile(PIPELINE, job.folder / PIPELINE.name)
    return start_session(load(job.folder / PIPELINE.name), log_file=job.log)


def steps(spark: SparkSession, job: Job) -> Iterator[Step]:
    """Run the pipeline to the end of the files; tell after each micro-batch how far it is."""
    running = Running(spark, load(job.folder / PIPELINE.name), print)
    answers = Answers(job.answers)
    running.start()
    try:
        for figures in running.follow():
            yield Step(figures.rows_in, answers.new_rows())
    finally:
        running.stop()


class Answers:
    """What the pipeline has written: a folder for each micro-batch, whole when Spark says so in it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: set[Path] = set()

    def new_rows(self) -> pa.Table:
        """The rows written since the last call."""
        new = [done.parent for done in self._folder.glob("batch=*/_SUCCESS") if done.parent not in self._seen]
        self._seen.update(new)
        tables = [pq.read_table(path, partitioning=None) for path in new]
        return pa.concat_tables(tables) if tables else pa.table({})
