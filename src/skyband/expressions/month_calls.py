"""What functions of dates and times with several arguments give, in polars and in Spark SQL: see `calls`.

A month is counted as Spark counts it: the last day of a month is the last day of a shorter one, so January 31 and one
month is February 28 or 29. Times that have a zone are taken in UTC.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import polars as pl
import pyarrow as pa

from skyband.expressions.calls import Given
from skyband.expressions.function_spec import RowFunction
from skyband.expressions.intervals import MONTHS, SPANS
from skyband.expressions.time_functions import in_utc, micros_in_spark, without_zone
from skyband.expressions.units import UNITS, in_polars

DAY_US: Final = 86_400_000_000
MOST_MONTHS: Final = 120_000  # of 10,000 years
_FARTHEST: Final = 2**62  # microseconds
_WEEKDAYS: Final = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
_WHOLE: Final = "the number must be a whole number"
_DATES: Final = "it takes dates and timestamps; write CAST(x AS DATE) or CAST(x AS TIMESTAMP)"


def day_of(x: pl.Expr, kind: pa.DataType | None) -> pl.Expr:
    return x if kind is None or pa.types.is_date(kind) else in_utc(x, kind).dt.date()


def day_in_spark(x: str, kind: pa.DataType | None) -> str:
    return x if kind is None or pa.types.is_date(kind) else f"CAST({without_zone(x, kind)} AS DATE)"


def _is_day(given: Given) -> bool:
    return given.category in ("date", "timestamp") and given.time is not None


def months_after(day: pl.Expr, count: pl.Expr) -> pl.Expr:
    """The date so many months after a day."""
    months = day.dt.year().cast(pl.Int64) * 12 + day.dt.month().cast(pl.Int64) - 1
    months = months + pl.when(count.abs() < MOST_MONTHS).then(count).cast(pl.Int64)
    first = pl.date(months // 12, months % 12 + 1, 1)
    behind = pl.min_horizontal(day.dt.day().cast(pl.Int32), first.dt.month_end().dt.day().cast(pl.Int32)) - 1
    made = (first.to_physical() + behind).cast(pl.Date)
    return pl.when(months.is_not_null()).then(made)


def months_after_in_spark(day: str, count: str) -> str:
    return f"CASE WHEN ABS({count}) < {MOST_MONTHS} THEN ADD_MONTHS({day}, CAST({count} AS INT)) END"


def _in_months(given: list[Given]) -> RowFunction | str:
    if len(given) != 2 or not _is_day(given[0]):
        return _DATES
    if given[1].category != "whole":
        return _WHOLE
    kind = given[0].time
    return RowFunction(
        "time",
        lambda x, n: months_after(day_of(x, kind), n),
        lambda x, n: months_after_in_spark(day_in_spark(x, kind), n),
    )


def _last_day(given: list[Given]) -> RowFunction | str:
    if len(given) != 1 or not _is_day(given[0]):
        return _DATES
    kind = given[0].time
    return RowFunction(
        "time",
        lambda x: day_of(x, kind).dt.month_end(),
        lambda x: f"LAST_DAY({day_in_spark(x, kind)})",
    )


def _next_day(given: list[Given]) -> RowFunction | str:
    if len(given) != 2 or not _is_day(given[0]):
        return _DATES
    said = (given[1].text or "").strip().upper()
    place = next((i for i, name in enumerate(_WEEKDAYS) if said in (name, name[:3], name[:2])), None)
    if place is None:
        return "the day must be a literal such as 'MO', 'MON' or 'MONDAY'"
    kind = given[0].time

    def following(x: pl.Expr, _: pl.Expr) -> pl.Expr:
        day = day_of(x, kind)
        more = (place - (day.dt.weekday().cast(pl.Int32) - 1) + 6) % 7 + 1
        return (day.to_physical() + more).cast(pl.Date)

    return RowFunction("time", following, lambda x, _: f"NEXT_DAY({day_in_spark(x, kind)}, '{said}')")


def _from_parts(given: list[Given]) -> RowFunction | str:
    if [one.category for one in given] != ["whole"] * 3:
        return "it takes a year, a month and a day, which are whole numbers"

    def make(y: pl.Expr, m: pl.Expr, d: pl.Expr) -> pl.Expr:
        fits = y.is_between(1, 9999) & m.is_between(1, 12) & d.is_between(1, 31)
        first = pl.date(pl.when(fits).then(y).cast(pl.Int32), pl.when(fits).then(m).cast(pl.Int32), 1)
        last = first.dt.month_end().dt.day().cast(pl.Int128)
        return pl.when(fits & (d <= last)).then(
            (first.to_physical() + d.cast(pl.Int32, strict=False) - 1).cast(pl.Date)
        )

    def in_spark(y: str, m: str, d: str) -> str:
        fits = f"{y} BETWEEN 1 AND 9999 AND {m} BETWEEN 1 AND 12 AND {d} BETWEEN 1 AND 31"
        text = f"CONCAT(LPAD(CAST({y} AS STRING), 4, '0'), '-', CAST({m} AS STRING), '-', CAST({d} AS STRING))"
        return f"TRY_CAST(CASE WHEN {fits} THEN {text} END AS DATE)"

    return RowFunction("time", make, in_spark)


def moved(unit: str, given: list[Given]) -> RowFunction | str:
    """TIMESTAMPADD(unit, n, ts)."""
    if len(given) != 2 or given[1].category != "timestamp" or given[1].time is None:
        return _DATES
    if given[0].category != "whole":
        return _WHOLE
    kind = given[1].time
    counted = in_polars(kind)
    per_second = UNITS[counted.time_unit]  # type: ignore[attr-defined]
    if unit in MONTHS:
        factor, day_ticks = MONTHS[unit], 86_400 * per_second

        def by_months(n: pl.Expr, x: pl.Expr) -> pl.Expr:
            day = day_of(x, kind)
            days = months_after(day, _within(n, MOST_MONTHS) * factor).to_physical() - day.to_physical()
            return (x.to_physical().cast(pl.Int128) + days.cast(pl.Int128) * day_ticks).cast(pl.Int64).cast(counted)

        def in_spark(n: str, x: str) -> str:
            day = day_in_spark(x, kind)
            days = f"(UNIX_DATE({months_after_in_spark(day, f'({n} * {factor})')}) - UNIX_DATE({day}))"
            return _later(x, f"CAST({days} AS BIGINT) * {DAY_US}", kind)

        return RowFunction("time", by_months, in_spark)
    if unit not in SPANS:
        return f"the unit must be one of {', '.join((*SPANS, *MONTHS))}"
    micros = SPANS[unit]
    most = _FARTHEST // micros
    return RowFunction(
        "time",
        lambda n, x: (
            (x.to_physical().cast(pl.Int128) + _within(n, most) * (micros * per_second // 10**6))
            .cast(pl.Int64)
            .cast(counted)
        ),
        lambda n, x: _later(x, f"CASE WHEN ABS({n}) < {most} THEN CAST({n} AS BIGINT) * {micros} END", kind),
    )


def _within(n: pl.Expr, most: int) -> pl.Expr:
    return pl.when(n.abs() < most).then(n)


def _later(x: str, micros: str, kind: pa.DataType) -> str:
    """The time so many microseconds later, in Spark SQL."""
    if kind.tz is None:
        return f"({x} + INTERVAL '0.000001' SECOND * ({micros}))"
    return f"TIMESTAMP_MICROS(UNIX_MICROS({x}) + ({micros}))"


def _ticks(x: pl.Expr, kind: pa.DataType) -> pl.Expr:
    """The nanoseconds since 1970."""
    per_second = 1 if pa.types.is_date(kind) else UNITS[in_polars(kind).time_unit]  # type: ignore[attr-defined]
    factor = 86_400 * 10**9 if pa.types.is_date(kind) else 10**9 // per_second
    return x.to_physical().cast(pl.Int128) * pl.lit(factor, pl.Int128)


def _micros(x: str, kind: pa.DataType) -> str:
    return f"CAST(UNIX_DATE({x}) AS BIGINT) * {DAY_US}" if pa.types.is_date(kind) else micros_in_spark(x, kind)


def between(unit: str, given: list[Given]) -> RowFunction | str:
    """TIMESTAMPDIFF(unit, a, b): how many whole units lie between a and b."""
    if len(given) != 2 or not all(map(_is_day, given)):
        return _DATES
    a_kind, b_kind = given[0].time, given[1].time
    assert a_kind is not None
    assert b_kind is not None
    zones = {kind.tz is None for kind in (a_kind, b_kind) if not pa.types.is_date(kind)}
    if len(zones) > 1:
        return "it mixes a time with a zone and a time without; CAST(x AS TIMESTAMP_NTZ) drops the zone"
    if unit in MONTHS:
        factor = MONTHS[unit]
        return RowFunction(
            "whole",
            lambda a, b: _whole_part(_months_between(a, b, a_kind, b_kind), factor),
            lambda a, b: f"CAST({_months_between_in_spark(a, b, a_kind, b_kind)} DIV {factor} AS BIGINT)",
            40,
        )
    if unit not in SPANS:
        return f"the unit must be one of {', '.join((*SPANS, *MONTHS))}"
    micros = SPANS[unit]
    return RowFunction(
        "whole",
        lambda a, b: _whole_part(_ticks(b, b_kind) - _ticks(a, a_kind), micros * 1000),
        lambda a, b: f"CAST((({_micros(b, b_kind)}) - ({_micros(a, a_kind)})) DIV {micros} AS BIGINT)",
        63,
    )


def _whole_part(x: pl.Expr, divisor: int) -> pl.Expr:
    """A whole number divided, without the rest: towards zero."""
    return (x.abs() // pl.lit(divisor, pl.Int128)) * x.sign()


def _months_between(a: pl.Expr, b: pl.Expr, a_kind: pa.DataType, b_kind: pa.DataType) -> pl.Expr:
    """Whole months, as java.time counts them: a day is over when its time of day is reached again."""
    day_ns = pl.lit(DAY_US * 1000, pl.Int128)
    ns = [_ticks(x, kind) for x, kind in ((a, a_kind), (b, b_kind))]
    days = [day_of(x, kind).to_physical().cast(pl.Int64) for x, kind in ((a, a_kind), (b, b_kind))]
    times = [one - day.cast(pl.Int128) * day_ns for one, day in zip(ns, days, strict=True)]
    end = (
        pl.when((days[1] > days[0]) & (times[1] < times[0]))
        .then(days[1] - 1)
        .when((days[1] < days[0]) & (times[1] > times[0]))
        .then(days[1] + 1)
        .otherwise(days[1])
    )
    packed = [_packed(day.cast(pl.Int32).cast(pl.Date)) for day in (days[0], end)]
    return _whole_part(packed[1] - packed[0], 32)


def _packed(day: pl.Expr) -> pl.Expr:
    year, month, of_month = (part.cast(pl.Int128) for part in (day.dt.year(), day.dt.month(), day.dt.day()))
    return (year * 12 + month) * 32 + of_month


def _months_between_in_spark(a: str, b: str, a_kind: pa.DataType, b_kind: pa.DataType) -> str:
    a_day, b_day = day_in_spark(a, a_kind), day_in_spark(b, b_kind)
    a_time, b_time = (f"PMOD({_micros(x, kind)}, {DAY_US})" for x, kind in ((a, a_kind), (b, b_kind)))
    before = f"{b_day} > {a_day} AND {b_time} < {a_time}"
    behind = f"{b_day} < {a_day} AND {b_time} > {a_time}"
    end = f"DATE_ADD({b_day}, CASE WHEN {before} THEN -1 WHEN {behind} THEN 1 ELSE 0 END)"
    packed = [f"((YEAR({day}) * 12 + MONTH({day})) * 32 + DAY({day}))" for day in (a_day, end)]
    return f"(({packed[1]} - {packed[0]}) DIV 32)"


def _as_fraction(given: list[Given]) -> RowFunction | str:
    """MONTHS_BETWEEN(a, b): months from b to a, of 31 days where they are not whole; to 8 digits."""
    if len(given) != 2 or not all(map(_is_day, given)):
        return _DATES
    kinds = [one.time for one in given]

    def months(*x: pl.Expr) -> pl.Expr:
        day = [day_of(one, kind) for one, kind in zip(x, kinds, strict=True)]
        seconds = [
            _ticks(one, kind) // pl.lit(10**9, pl.Int128) - of_day.to_physical().cast(pl.Int128) * 86_400
            for one, kind, of_day in zip(x, kinds, day, strict=True)
        ]
        number = [one.dt.year().cast(pl.Int64) * 12 + one.dt.month().cast(pl.Int64) for one in day]
        of_month = [one.dt.day().cast(pl.Int64) for one in day]
        is_last = [one == one.dt.month_end() for one in day]
        whole = (number[0] - number[1]).cast(pl.Float64)
        apart = (of_month[0] - of_month[1]) * 86_400 + (seconds[0] - seconds[1]).cast(pl.Int64)
        # Instead of dividing by a constant, polars multiplies by its reciprocal, which differs in the last bit.
        one = whole * 0.0 + 1.0
        part = whole + apart.cast(pl.Float64) / (one * 2_678_400.0)
        return (
            pl.when((of_month[0] == of_month[1]) | (is_last[0] & is_last[1]))
            .then(whole)
            .otherwise((part * 1e8 + 0.5).floor() / (one * 1e8))
        )

    def in_spark(*x: str) -> str:
        day = [day_in_spark(one, kind) for one, kind in zip(x, kinds, strict=True)]
        seconds = [f"(PMOD({_micros(one, kind)}, {DAY_US}) DIV 1000000)" for one, kind in zip(x, kinds, strict=True)]
        whole = f"CAST((YEAR({day[0]}) - YEAR({day[1]})) * 12 + MONTH({day[0]}) - MONTH({day[1]}) AS DOUBLE)"
        apart = f"CAST((DAY({day[0]}) - DAY({day[1]})) * 86400 + {seconds[0]} - {seconds[1]} AS DOUBLE)"
        is_whole = f"DAY({day[0]}) = DAY({day[1]}) OR ({day[0]} = LAST_DAY({day[0]}) AND {day[1]} = LAST_DAY({day[1]}))"
        rounded = f"CAST(FLOOR(({whole} + {apart} / 2678400D) * 1e8D + 0.5D) AS DOUBLE) / 1e8D"
        return f"CASE WHEN {is_whole} THEN {whole} ELSE {rounded} END"

    return RowFunction("float", months, in_spark)


def _named(code: str, name: str) -> Callable[[list[Given]], RowFunction | str]:
    def make(given: list[Given]) -> RowFunction | str:
        if len(given) != 1 or not _is_day(given[0]):
            return _DATES
        kind = given[0].time
        return RowFunction(
            "text", lambda x: day_of(x, kind).dt.strftime(code), lambda x: f"{name}({day_in_spark(x, kind)})"
        )

    return make


def _since_1970(micros: int, *, towards_zero: bool = False) -> Callable[[list[Given]], RowFunction | str]:
    def make(given: list[Given]) -> RowFunction | str:
        if len(given) != 1 or not _is_day(given[0]):
            return _DATES
        kind = given[0].time
        assert kind is not None
        unit = pl.lit(micros * 1000, pl.Int128)

        def count(x: pl.Expr) -> pl.Expr:
            # What is finer than a microsecond is not there on Spark.
            ns = _ticks(x, kind)
            return _whole_part(ns // 1000, micros) if towards_zero else ns // unit

        def in_spark(x: str) -> str:
            ticks = _micros(x, kind)
            if not towards_zero:
                return f"CAST((({ticks}) - PMOD({ticks}, {micros})) DIV {micros} AS BIGINT)"
            return f"CAST(({ticks}) DIV {micros} AS BIGINT)"

        return RowFunction("whole", count, in_spark, 63)

    return make


def _from_1970(per_second: int) -> Callable[[list[Given]], RowFunction | str]:
    micros = 10**6 // per_second
    most = 2**63 // micros

    def make(given: list[Given]) -> RowFunction | str:
        if [one.category for one in given] != ["whole"]:
            return "it takes a whole number"
        return RowFunction(
            "time",
            lambda n: (_within(n, most) * micros).cast(pl.Int64).cast(pl.Datetime("us")).dt.replace_time_zone("UTC"),
            lambda n: f"TIMESTAMP_MICROS(CASE WHEN ABS({n}) < {most} THEN CAST({n} AS BIGINT) * {micros} END)",
        )

    return make


MONTH_CALLS: Final[dict[str, Callable[[list[Given]], RowFunction | str]]] = {
    "ADD_MONTHS": _in_months,
    "LAST_DAY": _last_day,
    "NEXT_DAY": _next_day,
    "MAKE_DATE": _from_parts,
    "MONTHS_BETWEEN": _as_fraction,
    "DAYNAME": _named("%a", "DAYNAME"),
    "MONTHNAME": _named("%b", "MONTHNAME"),
    "UNIX_TIMESTAMP": _since_1970(10**6, towards_zero=True),
    "UNIX_SECONDS": _since_1970(10**6),
    "UNIX_MILLIS": _since_1970(10**3),
    "UNIX_MICROS": _since_1970(1),
    "TIMESTAMP_SECONDS": _from_1970(1),
    "TIMESTAMP_MILLIS": _from_1970(10**3),
    "TIMESTAMP_MICROS": _from_1970(10**6),
}
UNIT_CALLS: Final = {
    **dict.fromkeys(("TIMESTAMPADD", "DATEADD", "DATE_ADD"), moved),
    **dict.fromkeys(("TIMESTAMPDIFF", "DATEDIFF", "DATE_DIFF"), between),
}
