"""Streams for tests: Parquet files, one a micro-batch, read until there are no more."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

TIMES = pa.timestamp("us", tz="UTC")
START_US = 1_700_000_000_000_000 - 1_700_000_000_000_000 % 60_000_000
Question = Callable[[DataFrame], DataFrame]
Line = tuple[Any, ...]


@dataclass(frozen=True)
class Outcome:
    """What a streaming query wrote, and what it said of each micro-batch."""

    lines: list[Line]
    progress: list[Any]

    def observed(self, name: str) -> int:
        """A count of the query, over all micro-batches."""
        metrics = [entry for p in self.progress for entry in (p.get("observedMetrics") or {}).values()]
        return sum(getattr(entry, name) for entry in metrics)


def trades(rows: int, *, groups: int = 5, seed: int = 1, step_us: int = 250_000) -> pa.Table:
    """A trade every quarter of a second, prices from few values so that ranks tie; no two rows alike."""
    rng = np.random.default_rng(seed)
    number = np.arange(rows)
    return pa.table(
        {
            "ts": pa.array(START_US + number * step_us, TIMES),
            "seq": pa.array(number),
            "symbol": pa.array([f"S{code}" for code in rng.integers(0, groups, rows)]),
            "price": pa.array(rng.integers(0, 40, rows).astype(np.float64)),
        }
    )


def split(table: pa.Table, batches: int) -> list[pa.Table]:
    ends = np.linspace(0, table.num_rows, batches + 1).astype(int)
    return [table.slice(start, end - start) for start, end in zip(ends[:-1], ends[1:], strict=True)]


def write_batches(folder: Path, tables: Sequence[pa.Table], *, first: int = 0) -> Path:
    """One file a micro-batch. Spark takes them in order of their times."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, table in enumerate(tables, start=first):
        hidden, path = folder / f"_{number:04d}", folder / f"{number:04d}.parquet"
        pq.write_table(table, hidden)
        os.utime(hidden, (1_000_000_000 + number,) * 2)
        hidden.rename(path)
    return folder


def read_batches(spark: SparkSession, folder: Path) -> DataFrame:
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def run_stream(spark: SparkSession, folder: Path, question: Question, *, mode: str = "append") -> Outcome:
    """The answers over all files in `folder`, in the order in which they were written."""
    name = f"answers_{uuid4().hex}"
    writer = question(read_batches(spark, folder)).writeStream.format("memory").queryName(name).outputMode(mode)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return Outcome(lines(spark.table(name).toArrow()), query.recentProgress)


def lines(table: pa.Table) -> list[Line]:
    """Rows as tuples; instants as microseconds, whatever time zone they are shown in."""
    columns = []
    for column in table.columns:
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
        columns.append(column.to_pylist())
    return list(zip(*columns, strict=True))
