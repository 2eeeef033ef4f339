"""The sieve in the JVM: it drops most rows where Spark reads them, so that few move to Python.

It is two functions of a small jar (`jvm/`), which Spark calls by name: `skyband_sieve` for every row, and
`skyband_sieve_counts` for every page that Python packs of the rows that passed. The second one returns, in the same
task, the counts of dropped rows and the latest time, from which Spark takes the watermark.

Both take the number of the partition as an argument, which they do not read: it makes the call nondeterministic for
Spark, which therefore neither evaluates it twice nor moves it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import count
from typing import Final

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    DataType,
    DecimalType,
    IntegerType,
    LongType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from skyband.engines.spark.bucket_job import PREFIX
from skyband.engines.spark.clock import wall_clock_us
from skyband.engines.spark.declarative import is_no_change
from skyband.windows import NEVER, Ticks

LATEST: Final = PREFIX + "latest"

_SIEVE, _SIEVE_COUNTS = "skyband_sieve", "skyband_sieve_counts"
_CLASSES: Final = "skyband.spark."
_ARRAYS, _SUMS = ("ends", "rows"), ("rows_in", "rows_null_time", "rows_unranked")  # columns of pages
_COUNTS: Final = ", ".join([*(f"{name} binary" for name in _ARRAYS), *(f"{name} long" for name in (*_SUMS, "latest"))])
_COUNTED: Final = PREFIX + "counted"
# Rows, and panes, that a task remembers at most: some 50 MB. Beyond, it forgets, and rules out less.
CAPACITY: Final = 1 << 20
_LONGEST: Final = 1 << 60  # windows beyond are left to Python: no sum in the sieve may overflow

_numbers = count(1)


def is_attached(spark: SparkSession) -> bool:
    """Does this session have the jar? Then its functions are registered."""
    try:
        spark.udf.registerJavaFunction(_SIEVE, f"{_CLASSES}Sieve", IntegerType())
        spark.udf.registerJavaFunction(_SIEVE_COUNTS, f"{_CLASSES}SieveCounts", StructType.fromDDL(_COUNTS))
    except AnalysisException:  # it cannot load the class
        return False
    except PySparkException as error:
        if not is_no_change(error):
            raise
        return False
    return True


@dataclass(frozen=True)
class JvmSieve:
    """The sieve of one query: the k best of each group and pane pass, and those that are not known to be others."""

    plan: bytes  # see Plan.java
    time_type: DataType
    score_type: DataType

    def weight(self, time: Column, score: Column, group: Column | None) -> Column:
        """Null for a row that is ruled out, 0 for one that passes and is counted in the JVM, 1 for one that is not.

        The sieve compares whole numbers of 64 bits as they are, others as doubles. A decimal may lose digits so, but
        never its place: of two that differ, the smaller one has not the larger double.
        """
        group = sf.lit(0) if group is None else group
        compared = score if isinstance(self.score_type, LongType) else score.cast("double")
        ticks = _ticks(time, self.time_type)
        return sf.call_function(_SIEVE, *self._first, ticks, compared, group.cast("long"))

    def counts(self) -> Column:
        """In the row of a page: what the sieve has counted in this task since it was last asked."""
        return sf.call_function(_SIEVE_COUNTS, *self._first)

    @property
    def _first(self) -> tuple[Column, Column]:
        return sf.spark_partition_id(), sf.lit(self.plan)


def counted(pages: DataFrame, counts: Column, time_type: DataType) -> DataFrame:
    """Pages with what sieves have counted added to what was counted in Python, and LATEST. `counts` may be null."""
    pages = pages.withColumn(_COUNTED, counts)
    found = sf.col(_COUNTED)
    added = {name: sf.concat(_or(sf.col(name), b""), _or(found[name], b"")) for name in _ARRAYS}
    added |= {name: sf.col(name) + _or(found[name], 0) for name in _SUMS}
    latest = found["latest"]
    if isinstance(time_type, TimestampType):
        latest = sf.timestamp_micros(latest)
    return pages.withColumns({**added, LATEST: latest}).drop(_COUNTED)


def sieve_of(
    ticks: Ticks,
    time_type: DataType,
    score_type: DataType,
    k: int,
    *,
    ascending: bool,
    capacity: int = CAPACITY,
) -> JvmSieve | None:
    """The sieve for such windows and scores; None if they are too long for it."""
    if k >= capacity or ticks.every >= _LONGEST or (ticks.size != NEVER and ticks.size >= _LONGEST):
        return None
    whole, rest = (-1, 0) if ticks.size == NEVER else divmod(ticks.size, ticks.every)
    exact = not isinstance(score_type, DecimalType)
    plan = (next(_numbers), k, ticks.every, whole, rest, ascending, exact, capacity)
    return JvmSieve(struct.pack("<8q", *plan), time_type, score_type)


def _ticks(time: Column, time_type: DataType) -> Column:
    if isinstance(time_type, TimestampType):
        return sf.unix_micros(time)
    return wall_clock_us(time) if isinstance(time_type, TimestampNTZType) else time.cast("long")


def _or(column: Column, nothing: bytes | int) -> Column:
    return sf.coalesce(column, sf.lit(nothing))
