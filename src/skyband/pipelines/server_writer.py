"""Writes micro-batches where Spark Connect runs `foreachBatch`: in a Python process beside the server.

The writer is pickled and sent there, with the sinks of its stream and what these take from the environment. Answers
that this process shows or serves come back as letters: each of the last micro-batches is a temporary view of the
session, which nobody else sees. A letter may be lost; what sinks have written is not.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from skyband.engines.spark.failures import readable
from skyband.engines.spark.pages import read_table, write_table
from skyband.errors import PipelineFailed
from skyband.pipelines.answers import Answers
from skyband.pipelines.checkpoints import Checkpoint
from skyband.pipelines.model import REMOTE, Pipeline
from skyband.pipelines.secrets import hide
from skyband.pipelines.sinks import Target, open_target
from skyband.pipelines.streams import Output, Stream, write_batch
from skyband.pipelines.tables import TableTarget

SHOWN_HERE: Final = "console"  # the format of sinks that are not the server's
MOST_ROWS: Final = 100_000  # of a micro-batch's answers that come back
_KEPT: Final = 64  # micro-batches; this process looks far more often


class ServerWriter:
    """For foreachBatch; Python unpickles it on the server, once for each start of a stream."""

    def __init__(
        self, spark: SparkSession, pipeline: Pipeline, stream: Stream, wanted: frozenset[str], *, is_new: bool
    ) -> None:
        """`wanted`: the queries whose answers come back. `is_new`: the checkpoint begins with this start."""
        used = {to for output in stream.outputs.values() for to in output.to}
        sinks = {name: sink for name, sink in pipeline.sinks.items() if name in used}
        # What sinks look at, and no more.
        self._pipeline = replace(
            pipeline, file=pipeline.file.resolve(), sources={}, queries={}, sinks=sinks, spark={REMOTE: "sc://"}
        )
        self._environment = {name: os.environ[name] for name in self._pipeline.secret_names() if name in os.environ}
        self._spark, self._stream, self._wanted = spark, stream.name, wanted
        self._outputs: Mapping[str, Output] = {
            name: replace(output, spec=None) for name, output in stream.outputs.items()
        }
        self._begun: Checkpoint | None = stream.checkpoint if is_new else None
        self._targets: dict[str, list[Target]] | None = None

    def __call__(self, rows: DataFrame, batch: int) -> None:
        letters: list[Letter] = []

        def said(name: str, answers: Answers, _: int) -> None:
            letters.append(letter(name, answers, with_rows=name in self._wanted))

        try:
            if self._targets is None:
                self._targets = self._opened()
            # The answers are made in the session of the micro-batch, which is a copy of ours.
            write_batch(rows.sparkSession, self._outputs, self._targets, rows, batch, said)
            post(self._spark, self._stream, batch, letters)
        except Exception as error:
            raise PipelineFailed(hide(str(readable(error)), self._pipeline.secret_names())) from None

    def _opened(self) -> dict[str, list[Target]]:
        os.environ.update(self._environment)  # this process is for this stream alone
        targets = {
            name: [
                open_target(
                    *(self._spark, self._pipeline, self._pipeline.sinks[to], name, output.key, print), is_stream=True
                )
                for to in output.to
                if self._pipeline.sinks[to].format != SHOWN_HERE
            ]
            for name, output in self._outputs.items()
        }
        for target in (target for several in targets.values() for target in several):
            if isinstance(target, TableTarget) and self._begun is not None:
                target.refuse_leftovers(self._begun)
        return targets


class Letter(NamedTuple):
    """What a micro-batch said to a query."""

    query: str
    changes: Counter[str]
    rows: pa.Table | None


def letter(query: str, answers: Answers, *, with_rows: bool) -> Letter:
    rows = None
    if with_rows:
        rows = answers.table if answers.in_hand else answers.frame.limit(MOST_ROWS).toArrow()
    return Letter(query, Counter(answers.by_change()), rows)


def post(spark: SparkSession, stream: str, batch: int, letters: list[Letter]) -> None:
    """On the server: put the letters of a micro-batch where `letters_of` looks for them."""
    if not letters:
        return
    table = pa.table(
        {
            "batch": pa.array([batch] * len(letters), pa.int64()),
            "query": pa.array([one.query for one in letters], pa.string()),
            "changes": pa.array([json.dumps(one.changes) for one in letters], pa.string()),
            "answers": pa.array([None if one.rows is None else write_table(one.rows) for one in letters], pa.binary()),
        }
    )
    spark.createDataFrame(table).createOrReplaceTempView(_view(stream, batch))


def letters_of(spark: SparkSession, stream: str, batch: int) -> Iterator[Letter]:
    """Here: the letters of a micro-batch."""
    try:
        table = spark.table(_view(stream, batch)).toArrow()
    except AnalysisException:  # nothing was said; or a writer was lost, and its letters
        return
    for row in table.to_pylist():
        if row["batch"] == batch:
            rows = None if row["answers"] is None else read_table(row["answers"])
            yield Letter(row["query"], Counter(json.loads(row["changes"])), rows)


def _view(stream: str, batch: int) -> str:
    return f"skyband_letters_{stream}_{batch % _KEPT}"
