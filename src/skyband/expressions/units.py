"""Times of different units together: they are computed with in the finest of their units, so that no digit is lost.

Spark counts all times in microseconds, so there nothing is converted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import polars as pl
import pyarrow as pa
from sqlglot import exp

from skyband.expressions.function_spec import FUNCTION, RowFunction, Spark

UNITS: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}  # how many make a second
OVERFLOWS: Final = (
    "a time does not fit in 64 bits, in the finest unit of this expression. Skyband rejected the batch. Nanoseconds "
    "reach from 1677 to 2262; convert the column of nanoseconds to microseconds"
)
_DAY: Final = 86_400


def unit_of(kind: pa.DataType) -> str:
    """The unit in which a type counts; a date has no part that is finer than a second."""
    return "s" if pa.types.is_date(kind) else str(kind.unit)


def finest(units: Iterable[str]) -> str:
    """
    >>> finest(["ms", "ns", "s"])
    'ns'
    """
    return max(units, key=lambda unit: UNITS[unit])


def coarsest(micros: int) -> str:
    """The coarsest unit that this many microseconds are a whole number of.

    >>> coarsest(2_000_000), coarsest(1_500_000), coarsest(7)
    ('s', 'ms', 'us')
    """
    return next(unit for unit in UNITS if micros % (UNITS["us"] // UNITS[unit]) == 0)


def with_unit(kind: pa.DataType, unit: str) -> pa.DataType:
    """The same type of time, counted in another unit."""
    return pa.duration(unit) if pa.types.is_duration(kind) else pa.timestamp(unit, getattr(kind, "tz", None))


def in_polars(kind: pa.DataType) -> pl.DataType:
    """What polars calls it: it has no seconds, and counts milliseconds instead."""
    unit: Any = _counted(kind)
    return pl.Duration(unit) if pa.types.is_duration(kind) else pl.Datetime(unit, kind.tz)


def converted(part: exp.Expr, given: pa.DataType, wanted: pa.DataType) -> exp.Expr:
    """A part of an expression, of one type of time, as another that counts more finely."""
    made = in_polars(wanted)
    per_second = UNITS[made.time_unit]  # type: ignore[attr-defined]
    factor = per_second * _DAY if pa.types.is_date(given) else per_second // UNITS[_counted(given)]

    def convert(x: pl.Expr) -> pl.Expr:
        ticks = x.to_physical().cast(pl.Int128) * pl.lit(factor, pl.Int128)
        return ticks.cast(pl.Int64).cast(made)

    around = exp.Paren(this=part.copy())
    in_spark = date_in_spark(wanted) if pa.types.is_date(given) else lambda x: x
    around.meta[FUNCTION] = RowFunction("time", convert if factor != 1 else lambda x: x, in_spark)
    return around


def date_in_spark(wanted: pa.DataType) -> Spark:
    """Midnight of a date in Spark SQL: with a zone in UTC, whatever the zone of the session is."""
    if wanted.tz is None:
        return lambda x: f"CAST({x} AS TIMESTAMP_NTZ)"
    return lambda x: f"TIMESTAMP_MICROS(UNIX_DATE({x}) * {_DAY * UNITS['us']})"


def _counted(kind: pa.DataType) -> str:
    return "ms" if kind.unit == "s" else str(kind.unit)


def moved(x: pl.Expr, y: pl.Expr, way: int, wanted: pa.DataType) -> pl.Expr:
    """The sum (1) or the difference (-1) of two times in one unit."""
    ticks = x.to_physical().cast(pl.Int128) + pl.lit(way, pl.Int128) * y.to_physical().cast(pl.Int128)
    return ticks.cast(pl.Int64).cast(in_polars(wanted))
