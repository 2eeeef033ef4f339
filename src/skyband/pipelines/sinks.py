"""Sinks: they write the answers of one micro-batch at a time. Writing one twice, as a restart may, has the effect of
one write.

Files: a folder for each micro-batch, which is replaced as a whole. Tables of Delta Lake and Iceberg (in their own
modules) know the last micro-batch that was written. Kafka: a repeated row has the same key, so a reader that keeps the
last value of a key, or a compacted topic, has every row once. Databases and leaderboards (in their own modules) change
rows by key. The console and memory are for people and tests.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from rich.table import Table

from skyband.errors import PipelineChanged
from skyband.pipelines.answers import Answers
from skyband.pipelines.checkpoints import Checkpoint
from skyband.pipelines.model import Pipeline, Sink
from skyband.pipelines.secrets import resolve

BATCH: Final = "batch="  # how the folder of a micro-batch begins: Spark and others read it as a column
_SHOWN_ROWS: Final = 20

Show = Callable[[Any], None]


class Target(Protocol):
    """A sink as one query uses it."""

    def write(self, answers: Answers, batch: int) -> None:
        """Write the answers of a micro-batch; a second time, leave what the first left."""
        ...


class FileTarget:
    """Files of any format that Spark writes: `path/batch=12/part-….parquet`."""

    def __init__(self, path: str, sink: Sink, *, is_here: bool = True) -> None:
        """`is_here`: a path without an address may be of this machine's disk."""
        self._path, self._sink, self._is_here = path, sink, is_here
        self._options = {name: resolve(value) for name, value in sink.options.items()}

    def refuse_leftovers(self, checkpoint: Checkpoint) -> None:
        """Micro-batches are numbered from 0 on with each new checkpoint: old ones would be mixed with new ones."""
        if checkpoint.exists_in(self._path, BATCH):
            raise PipelineChanged(
                f"{self._path} has answers already, but there is no checkpoint at {checkpoint.location}. "
                "Delete those answers, name another path, or restore the checkpoint."
            )

    def write(self, answers: Answers, batch: int) -> None:
        folder = f"{self._path.rstrip('/')}/{BATCH}{batch}"
        is_plain = self._sink.format == "parquet" and not self._options
        if answers.in_hand and is_plain and self._is_here and "://" not in folder:
            _write_parquet(answers.table, Path(folder))  # sooner than Spark could
            return
        # Answers are few: one file each time, not one for every partition.
        writer = answers.frame.coalesce(1).write.format(self._sink.format).mode("overwrite").options(**self._options)
        writer.save(folder)


class ConsoleTarget:
    """A table for each micro-batch that says something."""

    def __init__(self, query: str, sink: Sink, show: Show) -> None:
        self._query, self._show = query, show
        self._rows = int(sink.options.get("numRows", _SHOWN_ROWS))

    def write(self, answers: Answers, batch: int) -> None:
        rows = in_order(answers.table)
        shown = Table(title=f"{self._query}, batch {batch}", title_justify="left", box=None, title_style="bold")
        for name in rows.column_names:
            shown.add_column(name, overflow="fold")
        for row in rows.slice(0, self._rows).to_pylist():
            shown.add_row(*map(_shown, row.values()))
        if rows.num_rows > self._rows:
            shown.caption = f"and more: the sink's option numRows is {self._rows}"
        self._show(shown)


class MemoryTarget:
    """All answers of this run, as a temporary view with the name of the query."""

    def __init__(self, spark: SparkSession, query: str) -> None:
        self._spark, self._query = spark, query  # micro-batches have a session of their own, and views nobody sees
        self._tables: list[pa.Table] = []

    def write(self, answers: Answers, batch: int) -> None:
        self._tables.append(answers.table)
        self._spark.createDataFrame(pa.concat_tables(self._tables)).createOrReplaceTempView(self._query)


class KafkaTarget:
    """JSON, with a key of the query's name and the columns that tell its rows apart."""

    def __init__(self, query: str, sink: Sink, key: tuple[str, ...] | None) -> None:
        self._query, self._key = query, sink.key or key
        self._options = {name: resolve(value) for name, value in sink.options.items()}
        self._options |= {
            "kafka.bootstrap.servers": resolve(str(sink.servers)),
            "topic": resolve(str(sink.topic)).replace("{query}", query),
        }

    def write(self, answers: Answers, batch: int) -> None:
        frame = answers.frame
        key = [frame[f"`{name}`"] for name in self._key or answers.columns]
        records = frame.select(
            sf.to_json(sf.struct(sf.lit(self._query).alias("query"), *key)).alias("key"),
            sf.to_json(sf.struct("*"), {"ignoreNullFields": "false"}).alias("value"),
        )
        records.write.format("kafka").options(**self._options).save()


def open_target(
    spark: SparkSession,
    pipeline: Pipeline,
    sink: Sink,
    query: str,
    key: tuple[str, ...] | None,
    show: Show,
    *,
    is_stream: bool,
) -> Target:
    """The sink as `query` uses it; `key`: the columns that tell the rows of its answers apart."""
    match sink.format:
        case "console":
            return ConsoleTarget(query, sink, show)
        case "memory":
            return MemoryTarget(spark, query)
        case "kafka":
            return KafkaTarget(query, sink, key)
        case "jdbc":
            from skyband.pipelines.databases import PostgresqlTarget

            return PostgresqlTarget(pipeline, query, sink, key)
        case "delta" | "iceberg":
            from skyband.pipelines.tables import open_table

            return open_table(pipeline, sink, query, is_stream=is_stream)
        case "leaderboard":
            from skyband.pipelines.leaderboards import LeaderboardTarget

            return LeaderboardTarget(pipeline, query, sink)
        case _:
            path = pipeline.located(resolve(str(sink.path)).replace("{query}", query))
            return FileTarget(path, sink, is_here=pipeline.remote is None)


def _write_parquet(table: pa.Table, folder: Path) -> None:
    """Whole or not at all: the folder gets its name when what is in it is done, as Spark's would be."""
    new = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    pq.write_table(table, new / "part-00000.parquet")
    (new / "_SUCCESS").touch()
    shutil.rmtree(folder, ignore_errors=True)
    new.rename(folder)


def in_order(answers: pa.Table) -> pa.Table:
    """As a person reads them: by window or time, and by rank."""
    order = [(name, "ascending") for name in ("window_end", "at", "rank") if name in answers.column_names]
    return answers.sort_by(order) if order else answers


def _shown(value: Any) -> str:
    return "" if value is None else f"{value:,.6g}" if isinstance(value, float) else str(value)
