"""Streams for tests: Parquet files, two a micro-batch, read until there are no more."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

INSTANTS = pa.timestamp("us", tz="UTC")
START_US = 1_700_000_040_000_000  # a whole minute
Question = Callable[[DataFrame], DataFrame]
Line = tuple[Any, ...]


@dataclass(frozen=True)
class Outcome:
    """What a streaming query wrote, and what it said of each micro-batch."""

    lines: list[Line]
    progress: list[Any]

    def observed(self, name: str) -> int:
        """One of our counts, over all micro-batches."""
        entries = [entry for batch in self.progress for entry in (batch["observedMetrics"] or {}).values()]
        return sum(entry[name] for entry in entries)

    def state_rows(self) -> int:
        return self.progress[-1]["stateOperators"][0]["numRowsTotal"]


def trades(rows: int, *, symbols: int = 5, seed: int = 1) -> pa.Table:
    """A trade every quarter of a second; few prices, so that many rows have the same."""
    rng = np.random.default_rng(seed)
    number = np.arange(rows)
    return pa.table(
        {
            "ts": pa.array(START_US + number * 250_000, INSTANTS),
            "seq": pa.array(number),
            "symbol": pa.array([f"S{code}" for code in rng.integers(0, symbols, rows)]),
            "buys": pa.array(rng.integers(0, 2, rows).astype(bool)),
            "price": pa.array(rng.integers(1, 40, rows).astype(np.float64)),
        }
    )


def shuffled(table: pa.Table) -> pa.Table:
    """The same rows in another order."""
    return table.take(pa.array(np.random.default_rng(5).permutation(table.num_rows)))


def split(table: pa.Table, batches: int) -> list[pa.Table]:
    ends = np.linspace(0, table.num_rows, batches + 1).astype(int)
    return [table.slice(start, end - start) for start, end in pairwise(ends)]


def write_batches(folder: Path, tables: Sequence[pa.Table], *, first: int = 0) -> Path:
    """Two files a micro-batch, with every second row each: two partitions whose rows interleave.

    `first`: how many micro-batches are there already.
    """
    folder.mkdir(parents=True, exist_ok=first > 0)
    for number, table in enumerate(tables, first):
        for half in range(2):
            path = folder / f"{number:04d}-{half}.parquet"
            pq.write_table(table.take(pa.array(np.arange(half, table.num_rows, 2))), path)
            # Spark takes files in the order of their times.
            os.utime(path, (1_000_000_000 + 2 * number + half,) * 2)
    return folder


def read_batches(spark: SparkSession, folder: Path) -> DataFrame:
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 2).parquet(str(folder))


def run_stream(spark: SparkSession, folder: Path, question: Question, *, mode: str = "append") -> Outcome:
    """All answers over the files in `folder`, in the order in which they were written."""
    return run_answer(spark, question(read_batches(spark, folder)), mode=mode)


def run_answer(spark: SparkSession, answer: DataFrame, *, mode: str = "append") -> Outcome:
    """All that a stream of answers says until all input is read."""
    name = f"answers_{uuid4().hex}"
    writer = answer.writeStream.format("memory").queryName(name).outputMode(mode)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return Outcome(lines(spark.table(name).toArrow()), query.recentProgress)


def run_to_files(answer: DataFrame, folder: Path, mode: str = "append") -> None:
    """Run until all input is read; a second time, go on where the first stopped."""
    writer = answer.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    writer.outputMode(mode).trigger(availableNow=True).start(str(folder / "answers")).awaitTermination()


def lines(table: pa.Table) -> list[Line]:
    """Rows as tuples; instants as microseconds, whatever time zone they are shown in."""
    columns = []
    for column in table.columns:
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
        columns.append(column.to_pylist())
    return list(zip(*columns, strict=True))
