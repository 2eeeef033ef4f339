"""Sends a row to the buckets whose queries it can matter to.

A condition may equate a value of the row with one of the query: symbol = q.symbol. Then the hash of the query's value
says in which bucket the query lives, and the hash of the row's value says where the row goes. Values that are equal in
the embedded engine must have equal hashes here, so numbers are hashed as float64: numbers that float64 rounds to one
value share a bucket, and are compared exactly there. Decimals route no row, since Spark and Arrow may cast them
differently.

If the queries are a table, a row does not go to a bucket where no query can show it (`spark_sifting.py`).

All this applies to windows by value that slide and end. In a window of arrivals, a row that no query wants still takes
a place; without a slide every row moves the clock; and a window from the start on emits as long as any row comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from skyband.core.distribution import by_its_rows
from skyband.core.emit import gives_changes
from skyband.engines.spark.bucket_job import BUCKET, PREFIX, bucket_of, quoted, tie
from skyband.engines.spark.gathering import Gatherer, Weights
from skyband.engines.spark.pages import BatchFunction, Ints, Tally
from skyband.engines.spark.projection import WEIGHT
from skyband.engines.spark.workers import spare_the_collector
from skyband.expressions import as_floats, is_number
from skyband.expressions.subscriptions import equalities, is_compared
from skyband.problems.subscriptions.query import TopKForEach
from skyband.problems.subscriptions.spark_sifting import QuerySieve, Sifted
from skyband.windows import Ticks

if TYPE_CHECKING:
    from skyband.problems.subscriptions.spark import SubscriptionJob

# If Arrow finds two values of one of these types equal, Spark gives them equal hashes.
_HASHED = (StringType, BinaryType, BooleanType, DateType, TimestampType, TimestampNTZType)


class Meeting(NamedTuple):
    """A row column and a query column that must be equal if the row is to matter to the query."""

    row: str
    query: str
    type: DataType  # both are cast to it before they are hashed


def needs_only_what_it_shows(df: DataFrame, query: TopKForEach, ticks: Ticks) -> bool:
    """Does a query give the same answers if it gets only the rows that it can show?

    In a batch that emits changes it does not: at the end of the input, all windows up to the last row close, and they
    emit the rows that leave.
    """
    return by_its_rows(ticks) and (df.isStreaming or not gives_changes(query.emit))


def meetings(df: DataFrame, rows: pa.Schema, query: TopKForEach) -> tuple[Meeting, ...]:
    """The equalities by which rows of `df` find their queries; if there is none, every row goes to every bucket."""
    found = []
    for row, asked in equalities(query.where):
        types = rows.field(row).type, query.queries.schema.field(asked).type
        spark_type = df.schema[row].dataType
        if all(is_number(each) and not pa.types.is_decimal(each) for each in types):
            found.append(Meeting(row, asked, DoubleType()))
        elif is_compared(*types) and isinstance(spark_type, _HASHED):
            found.append(Meeting(row, asked, BinaryType() if isinstance(spark_type, StringType) else spark_type))
    return tuple(found)


def bucket_of_row(df: DataFrame, by: tuple[Meeting, ...], buckets: int) -> Column:
    """The bucket of a row of `df`. A row with a null matters to no query; its negative bucket only counts it."""
    values = [quoted(each.row) for each in by]
    complete = reduce(Column.__and__, [value.isNotNull() for value in values])
    nowhere = sf.lit(-1) - bucket_of([tie(df)], buckets)  # such rows may be many, so they are spread over buckets
    return sf.when(complete, _bucket(values, by, buckets)).otherwise(nowhere).alias(BUCKET)


def bucket_of_query(by: tuple[Meeting, ...], buckets: int) -> Column:
    """The bucket of a query, as an expression over a DataFrame with the queries' columns."""
    return _bucket([quoted(each.query) for each in by], by, buckets).alias(BUCKET)


def buckets_of_table(df: DataFrame, queries: pa.Table, by: tuple[Meeting, ...], buckets: int) -> Ints:
    """The bucket of each query of a table. Spark computes it, so that the hashes are those of rows."""
    columns = [queries.column(each.query).combine_chunks() for each in by]
    for i, each in enumerate(by):
        if isinstance(each.type, DoubleType):
            columns[i] = pa.array(as_floats(columns[i], len(queries), each.query))
        elif isinstance(each.type, BinaryType):
            columns[i] = columns[i].cast(pa.binary())
    names = [f"{PREFIX}{i}" for i in range(len(by))]
    number = f"{PREFIX}number"
    fields = [StructField(name, each.type) for name, each in zip(names, by, strict=True)]
    # Spark may return the rows in any order, so they are numbered.
    table = pa.table([*columns, np.arange(len(queries))], [*names, number])
    schema = StructType([*fields, StructField(number, LongType())])
    values = df.sparkSession.createDataFrame(table, schema)
    found = values.select(number, _bucket(list(map(sf.col, names)), by, buckets).alias(BUCKET)).toArrow()
    return found.sort_by(number).column(BUCKET).to_numpy().astype(np.int64)


def _bucket(values: list[Column], by: tuple[Meeting, ...], buckets: int) -> Column:
    typed = [value.cast(each.type) for value, each in zip(values, by, strict=True)]
    for i, each in enumerate(by):
        if isinstance(each.type, DoubleType):
            typed[i] = sf.when(typed[i] == 0.0, sf.lit(0.0)).otherwise(typed[i])  # -0.0 equals 0.0
    return bucket_of(typed, buckets)


class QueriesGatherer(Gatherer):
    """Sends rows to the queries that they can matter to."""

    _job: SubscriptionJob

    def __init__(self, job: SubscriptionJob) -> None:
        super().__init__(job)
        self._used = np.arange(job.buckets) if job.homes is None else np.unique(job.homes)
        self._sieve = None if job.panes is None else QuerySieve(job)

    def prepare(self, table: pa.Table) -> tuple[pa.Table, Tally]:
        """Add the bucket of each row. A row goes to every bucket unless something says where it matters."""
        rows, tally = super().prepare(table)
        if BUCKET not in rows.column_names:
            everywhere = np.full(rows.num_rows, self._job.everywhere, np.int32)
            rows = rows.append_column(BUCKET, pa.array(everywhere))
        else:
            rows = rows.filter(pa.array(np.isin(rows.column(BUCKET).to_numpy(), self._used)))
        is_new = WEIGHT not in table.column_names
        if self._sieve is not None and is_new and rows.num_rows and (sifted := self._sieve.sift(rows)):
            rows = _sent(rows, sifted)
        return rows, tally

    def weights(self, table: pa.Table) -> Weights:
        return table.column(WEIGHT).to_numpy() if WEIGHT in table.column_names else super().weights(table)

    def pages(self, rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """Split rows into pages by bucket. A row that goes everywhere gets into a page for each bucket."""
        for number, page in super().pages(rows):
            for each in range(self._job.buckets) if number == self._job.everywhere else (number,):
                yield each, page


def _sent(rows: pa.Table, sifted: Sifted) -> pa.Table:
    """The rows that the sieve kept, once for each bucket that they go to, and the rows that it did not examine."""
    as_before = rows.column(BUCKET).to_numpy()[sifted.all_else]
    buckets = pa.array(np.concatenate([sifted.buckets, as_before]), pa.int32())
    sent = rows.take(pa.array(np.concatenate([sifted.rows, sifted.all_else])))
    return sent.set_column(sent.schema.get_field_index(BUCKET), BUCKET, buckets)


def sifted(rows: DataFrame, job: SubscriptionJob) -> DataFrame:
    """The rows of a batch that queries may show, once for each bucket that they go to.

    WEIGHT says how many rows a row stands for in the counts. Rows that are kept have the weight 0. Two more rows stand
    for all rows that were dropped: one for those with a time, one for those without. They go to no bucket.
    """
    added = [StructField(name, IntegerType()) for name in (BUCKET, WEIGHT)]
    # Rows that are only counted have nulls, so every column must admit nulls.
    fields = [StructField(field.name, field.dataType) for field in rows.schema]
    found = rows.mapInArrow(_sifter(job, rows.columns), StructType([*fields, *added]))
    everywhere = sf.array(*map(sf.lit, range(job.buckets)))
    here = sf.when(sf.col(BUCKET) == job.everywhere, everywhere).otherwise(sf.array(BUCKET))
    return found.select(*rows.columns, WEIGHT, sf.explode(here).alias(BUCKET))


def _sifter(job: SubscriptionJob, columns: list[str]) -> BatchFunction:
    """For mapInArrow: sift rows; returns these columns of the rows that are kept, with BUCKET and WEIGHT."""

    def sift(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_the_collector()
        for rows, tally in job.gatherer().gather(batches):
            table = rows.rename_columns([job.plain_names.get(name, name) for name in rows.column_names])
            none = pa.array(np.zeros(rows.num_rows, np.int32))
            table = table.select([*columns, BUCKET]).append_column(WEIGHT, none)
            yield from pa.concat_tables([_standing_for(tally, table.schema, job), table]).to_batches()

    return sift


def _standing_for(tally: Tally, schema: pa.Schema, job: SubscriptionJob) -> pa.Table:
    """The rows that stand for dropped rows in the counts."""
    on = job.plain_names[str(job.window.on)]
    counts = [tally.rows_null_time, tally.rows_in - tally.rows_null_time]
    known = {on: [None, 0], BUCKET: [-1, -1], WEIGHT: counts}
    columns = [
        pa.array(known[field.name], pa.int64()).cast(field.type) if field.name in known else pa.nulls(2, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
