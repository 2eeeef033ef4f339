"""What a query needs of the rows of a pass on Spark, and what to do with the output of its buckets.

A problem describes its queries in this form; then a query can have its own pass (`plan.py`) or share one
(`sharing.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from skyband.engines.spark.arrow_types import as_spark
from skyband.engines.spark.bucket_job import PREFIX, BucketJob
from skyband.engines.spark.sieving import JvmSieve

WEIGHT: Final = PREFIX + "weight"  # how many input rows a row stands for in the counts

Merge = Callable[[pa.Table], pa.Table]


@dataclass(frozen=True)
class InputProjection:
    """`columns` and `copies` are told how many buckets there are."""

    job: BucketJob
    columns: Callable[[int], list[Column]]  # the job's, under their plain names; TIE; and BUCKET if it is spread
    copies: Callable[[int], Column] | None = None  # an array of structs with more of these: a copy of the row for each
    where: Column | None = None  # rows that are not meant, whoever asks
    # How many rows a row stands for, null if it cannot be shown; of those rows only that meet a condition.
    weigh: Callable[[Column | None], Column] | None = None
    sieve: JvmSieve | None = None  # what `weigh` asks, if that is in the JVM, which then also counts rows
    merge: Merge | None = None  # from what all buckets say of some windows to the answer
    merged_type: StructType | None = None  # its columns then

    def rows(self, df: DataFrame, buckets: int) -> DataFrame:
        """What is needed of each row of `df` that may be shown."""
        columns = self.columns(buckets)
        if self.where is not None:
            df = df.where(self.where)
        if self.weigh is not None:
            df = df.withColumn(WEIGHT, self.weigh(None)).where(sf.col(WEIGHT).isNotNull())
            columns.append(sf.col(WEIGHT))
        if self.copies is not None:
            columns.append(sf.inline(self.copies(buckets)))
        return df.select(*columns)

    def merged(self, answers: DataFrame) -> DataFrame:
        """The answer, from what each bucket says: all of a window comes to one place."""
        if self.merge is None or self.merged_type is None:
            return answers
        return by_window(answers, "window_end", self.merge, self.merged_type)


def by_window(answers: DataFrame, window: str, merge: Merge, kind: StructType | pa.Schema) -> DataFrame:
    """What `merge` makes of the lines of some windows, of which it gets all; `window`: the column that tells them
    apart, `kind`: the columns then."""
    names = answers.columns

    def merge_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = list(batches)
        if parts:
            yield from merge(pa.Table.from_batches(parts).rename_columns(names)).to_batches()

    # Under plain names: mapInArrow stumbles over dots and backticks.
    plain = answers.toDF(*(f"c{i}" for i in range(len(names))))
    made = as_spark(kind) if isinstance(kind, pa.Schema) else kind
    return plain.repartition(plain[f"c{names.index(window)}"]).mapInArrow(merge_batches, made)
