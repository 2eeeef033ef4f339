"""Rows whose time lies so far ahead that it is likely wrong, left out of a batch DataFrame."""

from __future__ import annotations

from datetime import timedelta
from typing import Final, Protocol

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf
from pyspark.sql.types import TimestampNTZType, TimestampType

from skyband.engines.spark.bucket_job import PREFIX, arrow_schema, quoted, tie
from skyband.engines.spark.clock import wall_clock_us
from skyband.windows import Window as RowsWindow
from skyband.windows import span_ticks

_GAP: Final = PREFIX + "gap"


class DoubtsTimes(Protocol):
    """A query that may drop rows by their time."""

    @property
    def window(self) -> RowsWindow: ...

    @property
    def max_jump(self) -> int | timedelta | None: ...


def without_jumps(df: DataFrame, query: DoubtsTimes) -> DataFrame:
    """The rows of a batch that `max_jump` believes: in the order of their times, those at most so much later than the
    row before them. For that, the times of all rows come to one place. (On a stream, `max_jump` is refused.)"""
    on = query.window.on
    if query.max_jump is None or df.isStreaming or on is None:
        return df
    schema = arrow_schema(df.schema)
    query.window.check_columns(schema.names)
    most = span_ticks(query.max_jump, on, schema.field(on).type, "max_jump")
    match df.schema[on].dataType:
        case TimestampType():
            time = sf.unix_micros(quoted(on))
        case TimestampNTZType():
            time = wall_clock_us(quoted(on))
        case _:
            time = quoted(on).cast("long")
    names = [name for name in (on, query.window.order) if name is not None]
    in_order = Window.orderBy(*(quoted(name).asc_nulls_last() for name in names), tie(df))
    marked = df.withColumn(_GAP, time - sf.lag(time).over(in_order))
    return marked.where(sf.col(_GAP).isNull() | (sf.col(_GAP) <= most)).drop(_GAP)
