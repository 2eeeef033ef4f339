"""Where rows and many queries meet: each row goes to the buckets that have queries it can matter to.

A condition may say that a value of the row is one of the query: symbol = q.symbol. Then a query is in the bucket of a
hash of its value, and a row goes to the bucket of the hash of its own, and to no other. Values that are equal to the
embedded engine must have equal hashes here, so numbers are compared as it does, as float64, and what is not known to be
cast alike (decimals) routes no row.

This is for windows by value that slide and end. In a window of arrivals a row that no query wants takes a place all the
same, without a slide every row moves the clock, and a window from the start on is shown as long as any row comes.
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
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from skyband.engines.spark.copies import CopyGatherer
from skyband.engines.spark.pages import Ints, Tally
from skyband.engines.spark.recipe import BUCKET, PREFIX, TIE, bucket_of, quoted, tie
from skyband.expressions import as_floats, is_number
from skyband.expressions.many import is_compared
from skyband.planner.distribution import meeting_columns
from skyband.queries import TopKForEach
from skyband.windows import Ticks

if TYPE_CHECKING:
    from skyband.engines.spark.many import ManyRecipe

# Of which Spark's hash tells nothing apart that Arrow takes for equal.
_HASHED = (StringType, BinaryType, BooleanType, DateType, TimestampType, TimestampNTZType)


class Meeting(NamedTuple):
    """A column of the row and one of the query that must be equal for the one to matter to the other."""

    row: str
    query: str
    type: DataType  # in which they are hashed


def meetings(df: DataFrame, rows: pa.Schema, query: TopKForEach, ticks: Ticks) -> tuple[Meeting, ...]:
    """By what the rows of `df` find their queries; none: every row goes to each bucket."""
    if query.emit == "changes" and not df.isStreaming:
        return ()  # At the end of the input, windows close up to the last row of all, whose leaving rows are told.
    found = []
    for row, asked in meeting_columns(query, ticks):
        types = rows.field(row).type, query.queries.schema.field(asked).type
        spark_type = df.schema[row].dataType
        if all(is_number(each) and not pa.types.is_decimal(each) for each in types):
            found.append(Meeting(row, asked, DoubleType()))
        elif is_compared(*types) and isinstance(spark_type, _HASHED):
            found.append(Meeting(row, asked, BinaryType() if isinstance(spark_type, StringType) else spark_type))
    return tuple(found)


def bucket_of_row(df: DataFrame, by: tuple[Meeting, ...], buckets: int) -> Column:
    """Where a row of `df` goes. One with a null matters to nobody, and is only counted: its bucket is below 0."""
    values = [quoted(each.row) for each in by]
    complete = reduce(Column.__and__, [value.isNotNull() for value in values])
    nowhere = sf.lit(-1) - bucket_of([tie(df)], buckets)  # not all in one place: there may be many
    return sf.when(complete, _bucket(values, by, buckets)).otherwise(nowhere).alias(BUCKET)


def bucket_of_query(by: tuple[Meeting, ...], buckets: int) -> Column:
    """Where a query is, of a table that has its columns."""
    return _bucket([quoted(each.query) for each in by], by, buckets).alias(BUCKET)


def buckets_of_table(df: DataFrame, queries: pa.Table, by: tuple[Meeting, ...], buckets: int) -> Ints:
    """The same for each query of a table. Spark computes it, so that it is what it computes for rows."""
    columns = [queries.column(each.query).combine_chunks() for each in by]
    for i, each in enumerate(by):
        if isinstance(each.type, DoubleType):
            columns[i] = pa.array(as_floats(columns[i], len(queries), each.query))
        elif isinstance(each.type, BinaryType):
            columns[i] = columns[i].cast(pa.binary())
    names = [f"{PREFIX}{i}" for i in range(len(by))]
    number = f"{PREFIX}number"
    fields = [StructField(name, each.type) for name, each in zip(names, by, strict=True)]
    # Collected in any order, whatever Spark does to a small table.
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


class QueriesGatherer(CopyGatherer):
    """Rows on their way to the queries they can matter to."""

    _recipe: ManyRecipe

    def __init__(self, recipe: ManyRecipe) -> None:
        super().__init__(recipe)
        self._used = np.arange(recipe.buckets) if recipe.homes is None else np.unique(recipe.homes)

    def prepare(self, table: pa.Table) -> tuple[pa.Table, Tally]:
        rows, tally = super().prepare(table)
        if BUCKET in rows.column_names:
            rows = rows.filter(pa.array(np.isin(rows.column(BUCKET).to_numpy(), self._used)))
        return rows, tally

    def pages(self, rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """Rows of which it is not said where they go are in a page for each bucket."""
        if BUCKET in rows.column_names or not rows.num_rows:
            return super().pages(rows)
        page = rows.select([*self._recipe.schema.names, TIE])
        return ((number, page) for number in range(self._recipe.buckets))
