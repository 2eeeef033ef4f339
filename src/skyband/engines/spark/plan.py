"""The plan of every query on Spark: DataFrame in, DataFrame out, streaming or batch.

    rows ─ what the problem does to them ─ pack by bucket ─ one session per bucket ─ count ─ unpack

A problem says what it needs of a row and to which bucket it goes (`RowsOf`), and what a session is (its job).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructField, StructType

from skyband.engines.spark.arrow_types import type_as_spark
from skyband.engines.spark.bucket import BucketRunner
from skyband.engines.spark.bucket_job import BUCKET, CLOCK, BucketJob
from skyband.engines.spark.checks import check_session
from skyband.engines.spark.clock import Clock, watermarked, with_clock
from skyband.engines.spark.gathering import by_bucket, packer
from skyband.engines.spark.pages import ANSWER_COLUMNS, COUNTS, PAGE_COLUMNS, BatchFunction, answer_batches, unpacker
from skyband.engines.spark.processor import processor_of
from skyband.engines.spark.settings import COLUMNAR_INPUT
from skyband.engines.spark.sieving import LATEST, JvmSieve, counted
from skyband.errors import InvalidQuery

# From the input and the number of buckets to rows to gather: the job's columns under their plain names, TIE, and
# BUCKET if the job is spread.
RowsOf = Callable[[DataFrame, int], DataFrame]

BUCKETS_SETTING: Final = "spark.skyband.buckets"
DEFAULT_BUCKETS: Final = 16
_metrics_numbers = count(1)


def run(
    df: DataFrame,
    job: BucketJob,
    rows_of: RowsOf,
    beside: DataFrame | None = None,
    sieve: JvmSieve | None = None,
) -> DataFrame:
    """The answers over `df`, batch or streaming; of a streaming one in the buckets' order, if there are several.

    `beside` has pages of something else than rows, which a stream brings to the same buckets. `sieve` is what rules
    out rows of a stream in `rows_of`, if that is done in the JVM.
    """
    check_session(df)
    packed = _streaming(df, job, rows_of, beside, sieve) if df.isStreaming else _batch(df, job, rows_of)
    observed = packed.observe(f"skyband_{next(_metrics_numbers)}", *counts())
    return observed.mapInArrow(unpacker(job.output.names), output_type(df.schema, job))


def counts(of: Column | None = None) -> list[Column]:
    """The counts of a micro-batch; of those rows of ANSWER_COLUMNS that meet a condition."""
    return [
        sf.coalesce(sf.sum(name if of is None else sf.when(of, sf.col(name))), sf.lit(0)).alias(name) for name in COUNTS
    ]


def _streaming(
    df: DataFrame, job: BucketJob, rows_of: RowsOf, beside: DataFrame | None, sieve: JvmSieve | None
) -> DataFrame:
    """Rows of ANSWER_COLUMNS, from one session a bucket whose state Spark keeps."""
    buckets = buckets_of(df)
    pages, clock = _pages(df, job, rows_of, buckets, sieve)
    if beside is not None:
        pages = pages.union(beside)
    return pages.groupBy("bucket").transformWithState(
        processor_of(BucketRunner(job, clock, buckets)),
        outputStructType=ANSWER_COLUMNS,
        outputMode="Update" if job.changes else "Append",
        timeMode="EventTime" if clock else "None",
    )


def _pages(
    df: DataFrame, job: BucketJob, rows_of: RowsOf, buckets: int, sieve: JvmSieve | None
) -> tuple[DataFrame, Clock | None]:
    """Rows of PAGE_COLUMNS, and what the watermark means.

    Spark looks at the time of every row that passes a watermark, so it is set where few are left: on the pages, if the
    sieve in the JVM says the latest time; else on the rows that were not ruled out, if the latest of them is kept.
    """
    lateness, pack = job.ticks.lateness, packer(job)
    if sieve is not None:
        clock = None
        if watermarked(df):
            df, clock = with_clock(df, job, lateness)
        packed = rows_of(df, buckets).mapInArrow(pack, PAGE_COLUMNS)
        pages = counted(packed, sieve.counts(), sieve.time_type)
        if clock is None:
            pages, clock = with_clock(pages, job, lateness, LATEST)
        return pages.drop(LATEST, CLOCK), clock
    if not job.by_pane:
        return rows_of(df, buckets).mapInArrow(pack, PAGE_COLUMNS), None
    if _is_marked_late(df, job):
        rows, clock = with_clock(rows_of(df, buckets), job, lateness, job.plain_names[str(job.window.on)])
    else:
        df, clock = with_clock(df, job, lateness)
        rows = rows_of(df, buckets)
    return rows.mapInArrow(pack, PAGE_COLUMNS), clock


def _is_marked_late(df: DataFrame, job: BucketJob) -> bool:
    """Is the watermark set where few rows are left?

    With columnar input it is better set first, where it makes rows of the columns of a file: see settings.py.
    """
    columnar = df.sparkSession.conf.get(COLUMNAR_INPUT, "true") != "false"
    return job.keeps_the_latest and not watermarked(df) and not columnar


def _batch(df: DataFrame, job: BucketJob, rows_of: RowsOf) -> DataFrame:
    """The same from all the rows there are: no state and no watermark, since rows can be put in order first."""
    rows = rows_of(df, buckets_of(df))
    names = job.plain_names
    order = [sf.col(names.get(name, name)).asc_nulls_last() for name in job.arrival_order]
    if job.is_spread:
        in_order = rows.repartition(BUCKET).sortWithinPartitions(sf.col(BUCKET), *order)
    else:
        in_order = rows.repartition(1).sortWithinPartitions(*order)
    return in_order.mapInArrow(_runner(job), ANSWER_COLUMNS)


def _runner(job: BucketJob) -> BatchFunction:
    """For mapInArrow: the answers over the rows of a partition, bucket after bucket, each in order of arrival."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        session, open_bucket = None, None
        for rows, tally in job.gatherer().gather(batches):
            counts = tally.counts()
            if not rows.num_rows:
                yield from answer_batches(job.output.empty_table(), counts)
                continue
            for number, part in by_bucket(rows, job):
                if session is None or number != open_bucket:
                    if session is not None:
                        yield from answer_batches(session.finish(), {})
                    session, open_bucket = job.open(number), number
                yield from answer_batches(session.push(part.select(job.schema.names)), counts)
                counts = {}
        if session is not None:
            yield from answer_batches(session.finish(), {})

    return run


def buckets_of(df: DataFrame) -> int:
    text = df.sparkSession.conf.get(BUCKETS_SETTING, str(DEFAULT_BUCKETS))
    if not str(text).isdigit() or not 1 <= int(str(text)) < 2**31:
        raise InvalidQuery(f"{BUCKETS_SETTING} must be a whole number, at least 1, got {text!r}.")
    return int(str(text))


def output_type(schema: StructType, job: BucketJob) -> StructType:
    """The columns of the answer; those that come from the input keep its Spark types."""
    types = [
        type_as_spark(field.type) if source is None else schema[source].dataType
        for field, source in zip(job.output, job.sources, strict=True)
    ]
    return StructType([StructField(name, type_) for name, type_ in zip(job.output.names, types, strict=True)])
