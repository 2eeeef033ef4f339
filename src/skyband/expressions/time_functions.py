"""Functions and casts of times. One that has a zone is taken in UTC, whatever the zone of a Spark session is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import polars as pl
import pyarrow as pa
from sqlglot import exp

from skyband.expressions.function_spec import Polars, RowFunction, operand_of, quoted
from skyband.expressions.times import time_of
from skyband.expressions.units import UNITS, date_in_spark, in_polars

_DATE: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_MOMENT: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?$"
_MIDNIGHT: Final = " 00:00:00"  # of a date that stands for a moment
_PARTS: Final[dict[str, tuple[Polars, str]]] = {  # of a time: in polars, in Spark
    "YEAR": (lambda x: x.dt.year(), "YEAR({})"),
    "YEAROFWEEK": (lambda x: x.dt.iso_year(), "EXTRACT(YEAROFWEEK FROM {})"),
    "QUARTER": (lambda x: x.dt.quarter(), "QUARTER({})"),
    "MONTH": (lambda x: x.dt.month(), "MONTH({})"),
    "WEEK": (lambda x: x.dt.week(), "WEEKOFYEAR({})"),
    "DAY": (lambda x: x.dt.day(), "DAY({})"),
    "DOW": (lambda x: x.dt.weekday().cast(pl.Int32) % 7 + 1, "DAYOFWEEK({})"),  # Sunday is 1
    "DOW_ISO": (lambda x: x.dt.weekday(), "(WEEKDAY({}) + 1)"),  # Monday is 1
    "WEEKDAY": (lambda x: x.dt.weekday() - 1, "WEEKDAY({})"),  # Monday is 0
    "DOY": (lambda x: x.dt.ordinal_day(), "DAYOFYEAR({})"),
    "HOUR": (lambda x: x.dt.hour(), "HOUR({})"),
    "MINUTE": (lambda x: x.dt.minute(), "MINUTE({})"),
    "SECOND": (lambda x: x.dt.second(), "SECOND({})"),
}
_OTHER_PARTS: Final = {"DAYOFWEEK": "DOW", "DAYOFWEEK_ISO": "DOW_ISO", "DAYS": "DAY", "WEEKS": "WEEK"} | {
    f"{unit}S": unit for unit in ("YEAR", "MONTH", "HOUR", "MINUTE", "SECOND")
}
_OF_DATES: Final = ("YEAR", "YEAROFWEEK", "QUARTER", "MONTH", "WEEK", "DAY", "DOW", "DOW_ISO", "DOY")
_DAY_DIGITS: Final = 7  # of the number of a day: 27,000 years before and behind 1970
AS_PARTS: Final[dict[type[exp.Expr], str]] = {
    exp.Year: "YEAR",
    exp.Quarter: "QUARTER",
    exp.Month: "MONTH",
    exp.WeekOfYear: "WEEK",
    exp.Day: "DAY",
    exp.DayOfMonth: "DAY",
    exp.DayOfYear: "DOY",
    exp.DayOfWeek: "DOW",
    exp.Hour: "HOUR",
    exp.Minute: "MINUTE",
    exp.Second: "SECOND",
}
_UNITS: Final = {  # of DATE_TRUNC: in polars, and how many microseconds it has, or None
    "SECOND": ("1s", 1_000_000),
    "MINUTE": ("1m", 60_000_000),
    "HOUR": ("1h", 3_600_000_000),
    "DAY": ("1d", 86_400_000_000),
    "WEEK": ("1w", 7 * 86_400_000_000),
    "MONTH": ("1mo", None),
    "QUARTER": ("1q", None),
    "YEAR": ("1y", None),
}
_BINS: Final = re.compile(r"(\d+) ([A-Z]+)")
_BIN_UNITS: Final = {"MICROSECOND": 1, "MILLISECOND": 1_000} | {
    unit: micros for unit, (_, micros) in _UNITS.items() if micros is not None
}
_FORMATS: Final = {"%Y": "yyyy", "%m": "MM", "%d": "dd", "%H": "HH", "%M": "mm", "%S": "ss"}
_MONDAY_US: Final = 4 * 86_400_000_000  # the first Monday of all, behind the first of January 1970


def moment_text(x: pl.Expr) -> pl.Expr:
    """Without the zeros at its end, and without a point before nothing."""
    whole, rest = x.dt.strftime("%Y-%m-%d %H:%M:%S"), x.dt.strftime("%6f").str.strip_chars_end("0")
    return pl.when(rest == "").then(whole).otherwise(pl.concat_str(whole, rest, separator="."))


def to_date(node: exp.Expr, category: str) -> RowFunction | str | None:
    kind = time_of(node.this.unnest())
    match category:
        case "timestamp":
            return RowFunction(
                "time", lambda x: in_utc(x, kind).dt.date(), lambda x: f"CAST({without_zone(x, kind)} AS DATE)"
            )
        case "date":
            return RowFunction("time", lambda x: x, lambda x: x)
        case "text":
            return RowFunction(
                "time",
                lambda x: pl.when(x.str.contains(_DATE)).then(x).str.to_date("%Y-%m-%d", strict=False),
                lambda x: f"TRY_CAST(CASE WHEN {x} RLIKE {quoted(_DATE)} THEN {x} END AS DATE)",
            )
    return "a date comes from a time, or from a string such as '2024-01-31'"


def to_moment(node: exp.Expr, category: str) -> RowFunction | str | None:
    target = time_of(node)
    zone = target.tz if target is not None else None
    name = "TIMESTAMP_NTZ" if zone is None else "TIMESTAMP"
    given = time_of(node.this.unnest())
    match category:
        case "timestamp" if given == target:
            return RowFunction("time", lambda x: x, lambda x: x)
        case "timestamp" if zone is None:
            return RowFunction(
                "time",
                lambda x: in_utc(x, given).dt.replace_time_zone(None).dt.cast_time_unit("us"),
                lambda x: without_zone(x, given),
            )
        case "text":
            suffix = "" if zone is None else "Z"

            def read(x: pl.Expr) -> pl.Expr:
                whole = pl.when(x.str.contains(_DATE)).then(pl.concat_str(x, pl.lit(_MIDNIGHT))).otherwise(x)
                plain = pl.when(whole.str.contains(_MOMENT)).then(whole.str.replace("T", " "))
                moment = plain.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", strict=False, time_unit="us")
                return moment if zone is None else moment.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)

            return RowFunction(
                "time",
                read,
                lambda x: (
                    f"TRY_CAST(CASE WHEN {x} RLIKE {quoted(_MOMENT)} THEN CONCAT({x}, '{suffix}') "
                    f"WHEN {x} RLIKE {quoted(_DATE)} THEN CONCAT({x}, '{_MIDNIGHT}{suffix}') END AS {name})"
                ),
            )
        case "date":
            if zone is None:
                return RowFunction("time", lambda x: x.cast(pl.Datetime("us")), date_in_spark(pa.timestamp("us")))
            return RowFunction(
                "time",
                lambda x: x.cast(pl.Datetime("us")).dt.replace_time_zone("UTC").dt.convert_time_zone(zone),
                date_in_spark(pa.timestamp("us", zone)),
            )
    return "a time comes from a date, or from a string such as '2024-01-31 12:00:00'"


def of_days(node: exp.Expr, category: str) -> RowFunction | str | None:
    if isinstance(node, exp.DateFromUnixDate):
        if category != "whole":
            return "the number of days must be a whole number"
        beyond = 10**_DAY_DIGITS
        return RowFunction(
            "time",
            lambda x: pl.when(x.is_between(-beyond, beyond, closed="none")).then(x).cast(pl.Int32).cast(pl.Date),
            lambda x: f"DATE_FROM_UNIX_DATE(CAST(TRY_CAST({x} AS DECIMAL({_DAY_DIGITS}, 0)) AS INT))",
        )
    if not isinstance(node, exp.DateDiff):
        return None
    day = to_date(node, category)
    if not isinstance(day, RowFunction):
        return "this is of dates and timestamps, or of strings such as '2024-01-31'"
    return RowFunction(
        "whole",
        lambda x: day.polars(x).to_physical().cast(pl.Int128),
        lambda x: f"CAST(UNIX_DATE({day.spark(x)}) AS BIGINT)",
        31,
    )


def of_time(node: exp.Expr, category: str) -> RowFunction | str | None:
    part: str | None = AS_PARTS.get(type(node)) or (node.this.name.upper() if isinstance(node, exp.Extract) else None)
    if part is None and not isinstance(node, (exp.TimestampTrunc, exp.TimeToStr)):
        return None
    part = _OTHER_PARTS.get(part, part) if part is not None else None
    kind = time_of(operand_of(node).unnest())
    if category not in ("timestamp", "date") or kind is None:
        return "this is of a time"
    if part is not None:
        possible = _OF_DATES if category == "date" else tuple(_PARTS)
        if part not in (*possible, "WEEKDAY"):
            return f"possible parts: {', '.join(one for one in possible if one != 'WEEKDAY')}"
        if part == "SECOND" and isinstance(node, exp.Extract):
            return _seconds(kind)
        read, name = _PARTS[part]
        return RowFunction(
            "whole",
            lambda x: read(in_utc(x, kind)).cast(pl.Int128),
            lambda x: f"CAST({name.format(without_zone(x, kind))} AS BIGINT)",
            31,
        )
    if isinstance(node, exp.TimestampTrunc):
        return _truncated(node, category, kind)
    return _formatted(node, category, kind)


def _seconds(kind: pa.DataType) -> RowFunction:
    """EXTRACT(SECOND FROM ts), which is a decimal with six digits behind the point, unlike SECOND(ts)."""
    return RowFunction(
        "whole",
        lambda x: x.dt.second().cast(pl.Int128) * 10**6 + x.dt.microsecond().cast(pl.Int128),
        lambda x: f"CAST(EXTRACT(SECOND FROM {without_zone(x, kind)}) * 1000000 AS BIGINT)",
        26,
        6,
        8,
    )


def _truncated(node: exp.TimestampTrunc, category: str, kind: pa.DataType) -> RowFunction | str:
    unit = node.args["unit"].name.upper()
    if (found := _BINS.fullmatch(unit)) is not None:
        return _binned(found, category, kind)
    if category != "timestamp" or unit not in _UNITS:
        return f"DATE_TRUNC takes a time and one of {', '.join(_UNITS)}"
    step, micros = _UNITS[unit]

    def truncate(x: pl.Expr) -> pl.Expr:
        moment = in_utc(x, kind).dt.truncate(step)
        return moment if kind.tz is None else moment.dt.convert_time_zone(kind.tz)

    def in_spark(x: str) -> str:
        if kind.tz is None:
            return f"CAST(DATE_TRUNC('{unit}', {x}) AS TIMESTAMP_NTZ)"
        if micros is None:
            first = f"TRUNC(CAST({without_zone(x, kind)} AS DATE), '{unit}')"
            return f"TIMESTAMP_MICROS(UNIX_DATE({first}) * {_UNITS['DAY'][1]})"
        shift = _MONDAY_US if unit == "WEEK" else 0
        return f"TIMESTAMP_MICROS(UNIX_MICROS({x}) - PMOD(UNIX_MICROS({x}) - {shift}, {micros}))"

    return RowFunction("time", truncate, in_spark)


def _binned(found: re.Match[str], category: str, kind: pa.DataType) -> RowFunction | str:
    """The last multiple of a span, counted from 1970 on, that is not later."""
    micros = int(found[1]) * _BIN_UNITS.get(found[2].removesuffix("S"), 0)
    if category != "timestamp" or not 0 < micros < 2**62:
        return f"DATE_BIN is of a timestamp; its interval has a whole number of {', '.join(_BIN_UNITS)}"
    counted = in_polars(kind)
    ticks, rest = divmod(micros * UNITS[counted.time_unit], 1_000_000)  # type: ignore[attr-defined]
    if rest:
        return f"the interval is finer than the unit of {kind}"

    def start(x: pl.Expr) -> pl.Expr:
        moment = x.to_physical()
        return (moment - (moment % ticks + ticks) % ticks).cast(counted)

    return RowFunction(
        "time", start, lambda x: f"({x} - INTERVAL '0.000001' SECOND * PMOD({micros_in_spark(x, kind)}, {micros}))"
    )


def micros_in_spark(x: str, kind: pa.DataType) -> str:
    """The microseconds from 1970 until a time, which has a zone or none, in Spark SQL."""
    if kind.tz is not None:
        return f"UNIX_MICROS({x})"
    days = f"CAST(DATEDIFF(CAST({x} AS DATE), DATE '1970-01-01') AS BIGINT)"
    seconds = f"CAST(HOUR({x}) * 3600 + MINUTE({x}) * 60 AS BIGINT)"
    return f"({days} * {_UNITS['DAY'][1]} + {seconds} * 1000000 + CAST(EXTRACT(SECOND FROM {x}) * 1000000 AS BIGINT))"


def _formatted(node: exp.Expr, category: str, kind: pa.DataType) -> RowFunction | str:
    written = node.args["format"].name.replace("strict", "")  # as sqlglot calls two digits
    codes = list(_codes(written))
    if any(code is None for code in codes) or (category == "date" and re.search("%[HMS]", written)):
        return "a format may contain yyyy, MM, dd, HH, mm, ss, and - / : . between them"
    java = "".join(_FORMATS.get(str(code), str(code)) for code in codes)
    return RowFunction(
        "text",
        lambda x: in_utc(x, kind).dt.strftime(written),
        lambda x: f"DATE_FORMAT({without_zone(x, kind)}, '{java}')",
    )


def _codes(written: str) -> Iterator[str | None]:
    for part in re.findall(r"%.|.", written):
        yield part if part in _FORMATS or part in "-/:. _" else None


def in_utc(x: pl.Expr, kind: pa.DataType | None) -> pl.Expr:
    has_zone = kind is not None and pa.types.is_timestamp(kind) and kind.tz is not None
    return x.dt.convert_time_zone("UTC") if has_zone else x


def without_zone(x: str, kind: pa.DataType | None) -> str:
    """A time in UTC, without a zone, whatever that of the session is."""
    if kind is None or not pa.types.is_timestamp(kind) or kind.tz is None:
        return x
    return f"(TIMESTAMP_NTZ '1970-01-01 00:00:00' + INTERVAL '0.000001' SECOND * UNIX_MICROS({x}))"
