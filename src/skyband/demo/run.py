"""The demo from end to end: make a stream of trades, answer from it, check every answer."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow.parquet as pq
from rich.console import Console

from skyband.demo import embedded_job
from skyband.demo.check import Verdict, check
from skyband.demo.job import Job, Step
from skyband.demo.view import View, open_view

Engine = Literal["spark", "embedded"]


@dataclass(frozen=True, slots=True)
class Outcome:
    verdict: Verdict
    answers: Path


def run(console: Console, *, engine: Engine, rows: int, seed: int, output: Path | None, pause: float | None) -> Outcome:
    """Run the demo in `output`, or in a new temporary folder of which only the answers stay."""
    job = Job(rows, seed, output or Path(tempfile.mkdtemp(prefix="skyband-demo-")))
    job.prepare()
    try:
        with open_view(console, pause) as view:
            return _run(job, engine, view)
    finally:
        if output is None:
            shutil.rmtree(job.trades)
            shutil.rmtree(job.checkpoint, ignore_errors=True)


def _run(job: Job, engine: Engine, view: View) -> Outcome:
    view.phase("Making trades", job.rows)
    for written in job.generate():
        view.rows(written)
    for step in _spark_steps(job, view) if engine == "spark" else _embedded_steps(job, view):
        view.rows(step.rows_read)
        view.answers(step.answers)
    view.phase("Checking against recomputation from scratch")
    return Outcome(check(pq.read_table(job.trades), pq.read_table(job.answers)), job.answers)


def _embedded_steps(job: Job, view: View) -> Iterator[Step]:
    view.phase("Ranking, in this process", job.rows)
    return embedded_job.steps(job)


def _spark_steps(job: Job, view: View) -> Iterator[Step]:
    from skyband.demo import spark_job  # imports pyspark

    view.phase("Starting Spark")
    spark = spark_job.start_spark(job)
    try:
        view.phase("Ranking, on Spark", job.rows)
        yield from spark_job.steps(spark, job)
    finally:
        spark.stop()
