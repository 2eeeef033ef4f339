"""Functions of one value, and CAST: what each takes, what it gives, in polars and in Spark SQL. One table for both.

Parameters other than the value are written out: LEFT(name, 3), EXTRACT(HOUR FROM ts). What does not fit is null, as of
TRY_CAST. A time that has a zone is taken in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import polars as pl
import pyarrow as pa
from sqlglot import exp

from skyband.errors import InvalidExpression
from skyband.expressions.times import time_of

Polars = Callable[[pl.Expr], pl.Expr]
Spark = Callable[[str], str]

_BITS: Final = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}
_WHOLE: Final = r"^\s*[+-]?[0-9]{1,18}\s*$"
_NUMBER: Final = r"^\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"
_DATE: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_MOMENT: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?$"
_PARTS: Final[dict[str, tuple[Polars, str]]] = {  # of a time: in polars, in Spark
    "YEAR": (lambda x: x.dt.year(), "YEAR"),
    "QUARTER": (lambda x: x.dt.quarter(), "QUARTER"),
    "MONTH": (lambda x: x.dt.month(), "MONTH"),
    "WEEK": (lambda x: x.dt.week(), "WEEKOFYEAR"),
    "DAY": (lambda x: x.dt.day(), "DAY"),
    "DOY": (lambda x: x.dt.ordinal_day(), "DAYOFYEAR"),
    "HOUR": (lambda x: x.dt.hour(), "HOUR"),
    "MINUTE": (lambda x: x.dt.minute(), "MINUTE"),
    "SECOND": (lambda x: x.dt.second(), "SECOND"),
}
_OF_DATES: Final = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DOY")
_AS_PARTS: Final[dict[type[exp.Expr], str]] = {
    exp.Year: "YEAR",
    exp.Quarter: "QUARTER",
    exp.Month: "MONTH",
    exp.WeekOfYear: "WEEK",
    exp.Day: "DAY",
    exp.DayOfMonth: "DAY",
    exp.DayOfYear: "DOY",
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
_FORMATS: Final = {"%Y": "yyyy", "%m": "MM", "%d": "dd", "%H": "HH", "%M": "mm", "%S": "ss"}
_SAFE_PATTERN: Final = re.compile(r"(?:[^\\$]|\\[^\w\s])*")
_MONDAY_US: Final = 4 * 86_400_000_000  # the first Monday of all, behind the first of January 1970


class RowFunction(NamedTuple):
    """A function, with all but the value that it is of."""

    gives: str  # "text", "whole", "float", "truth" or "time"
    polars: Polars
    spark: Spark
    bits: int = 0  # of a whole number


READ: Final[dict[type[exp.Expr], frozenset[str]]] = {
    **dict.fromkeys((*_AS_PARTS, exp.TsOrDsToDate, exp.TimeStrToTime, exp.Reverse), frozenset({"this", "safe"})),
    exp.Extract: frozenset({"this", "expression"}),
    exp.TimestampTrunc: frozenset({"this", "unit"}),
    exp.TimeToStr: frozenset({"this", "format"}),
    exp.Replace: frozenset({"this", "expression", "replacement"}),
    **dict.fromkeys((exp.Left, exp.Right, exp.Contains, exp.EndsWith), frozenset({"this", "expression"})),
    exp.SplitPart: frozenset({"this", "delimiter", "part_index"}),
    exp.RegexpExtract: frozenset({"this", "expression", "group", "null_if_pos_overflow"}),
    exp.Trim: frozenset({"this", "position"}),
    exp.ILike: frozenset({"this", "expression", "negate"}),
    exp.Concat: frozenset({"expressions", "safe", "coalesce"}),
    exp.Round: frozenset({"this", "decimals"}),
}


def plain_function(node: exp.Expr) -> exp.Expr:
    """The same in other words, where there are: x ILIKE y, CONCAT(x, y), ROUND(x, 2)."""
    match node:
        case exp.ILike():
            pattern = node.expression
            if not isinstance(pattern, exp.Literal) or not pattern.is_string:
                raise InvalidExpression(f"{node.sql('spark')!r}: the pattern of ILIKE is written out.")
            lower = exp.Literal.string(pattern.this.lower())
            return exp.Like(this=exp.Lower(this=node.this.copy()), expression=lower, negate=node.args.get("negate"))
        case exp.Concat() if node.expressions:
            whole = node.expressions[0].copy()
            for part in node.expressions[1:]:
                whole = exp.DPipe(this=whole, expression=exp.Paren(this=part.copy()))
            return exp.Paren(this=whole)
        case exp.Round():
            return _rounded(node)
        case exp.TsOrDsToDate() if isinstance(node.parent, tuple(_AS_PARTS)):
            return node.this
        case exp.TsOrDsToDate():
            return exp.Cast(this=node.this.copy(), to=exp.DataType.build("DATE"))
        case exp.TimeStrToTime():
            return node.this
    return node


def _rounded(node: exp.Round) -> exp.Expr:
    """Half away from zero; of so many digits, by the power of ten, here as on Spark."""
    decimals = node.args.get("decimals")
    if decimals is not None and not (
        isinstance(decimals, exp.Literal) and decimals.is_int and int(decimals.name) <= 15
    ):
        raise InvalidExpression(f"{node.sql('spark')!r}: how many digits ROUND keeps is a whole number from 0 to 15.")
    digits = 0 if decimals is None else int(decimals.name)
    value: exp.Expr = exp.Paren(this=node.this.copy())
    if digits:
        value = exp.Paren(this=exp.Mul(this=value, expression=exp.Literal.number(f"{10**digits}.0")))
    size = exp.Abs(this=value)
    rest = exp.Sub(this=size.copy(), expression=exp.Floor(this=size.copy()))
    more = exp.Case(
        ifs=[exp.If(this=exp.GTE(this=exp.Paren(this=rest), expression=exp.Literal.number("0.5")), true=_one(1))],
        default=_one(0),
    )
    away = exp.Paren(this=exp.Add(this=exp.Floor(this=size.copy()), expression=more))
    rounded: exp.Expr = exp.Mul(this=exp.Sign(this=value.copy()), expression=away)
    if digits:
        rounded = exp.Div(this=exp.Paren(this=rounded), expression=exp.Literal.number(f"{10**digits}.0"))
    return exp.Paren(this=rounded)


def _one(number: int) -> exp.Expr:
    return exp.Literal.number(number)


_FUNCTION: Final = "row function"  # of a node, in its meta


def mark_function(node: exp.Expr, category: str) -> RowFunction | None:
    """Say of a node which of these functions it is, if it is one; `category` says what its value is."""
    for read in (_cast, _of_time, _of_text):
        if (found := read(node, category)) is not None:
            if isinstance(found, str):
                raise InvalidExpression(f"{node.sql('spark')!r}: {found}.")
            node.meta[_FUNCTION] = found
            return found
    return None


def function_of(node: exp.Expr) -> RowFunction | None:
    """Which of these functions a node of a typed tree is."""
    return node.meta.get(_FUNCTION)


GIVES_TEXT: Final = (*(exp.Replace, exp.Left, exp.Right, exp.SplitPart, exp.RegexpExtract, exp.Reverse, exp.TimeToStr),)


def operand_of(node: exp.Expr) -> Any:
    """The value that a function is of."""
    return node.expression if isinstance(node, exp.Extract) else node.args.get("this")


def _cast(node: exp.Expr, category: str) -> RowFunction | str | None:
    if not isinstance(node, exp.Cast) or node.this is None:
        return None
    target = node.to.this.value
    if target in ("TEXT", "VARCHAR", "CHAR"):
        return _to_text(node, category)
    if target in _BITS and not (target == "BIGINT" and category == "whole"):
        return _to_whole(target, category)
    if target in ("DOUBLE", "FLOAT") and category in ("text", "truth"):
        if category == "truth":
            return RowFunction("float", lambda x: x.cast(pl.Float64), lambda x: f"CAST({x} AS DOUBLE)")
        return RowFunction(
            "float",
            lambda x: pl.when(x.str.contains(_NUMBER)).then(x).str.strip_chars().cast(pl.Float64, strict=False),
            lambda x: f"TRY_CAST(CASE WHEN {x} RLIKE {_quoted(_NUMBER)} THEN {x} END AS DOUBLE)",
        )
    if target == "DATE":
        return _to_date(node, category)
    if target in ("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPNTZ", "TIMESTAMPLTZ"):
        return _to_moment(node, category)
    if target in ("DOUBLE", "FLOAT", "BIGINT"):
        return None
    return "CAST is to STRING, BIGINT, INT, SMALLINT, TINYINT, DOUBLE, DATE or TIMESTAMP"


def _to_text(node: exp.Expr, category: str) -> RowFunction | str:
    kind = time_of(node.this.unnest())
    match category:
        case "float" | "decimal":
            return "engines write such numbers in different ways; CAST(… AS BIGINT) first has one"
        case "timestamp":
            return RowFunction(
                "text",
                lambda x: _moment_text(_in_utc(x, kind)),
                lambda x: f"CAST({_without_zone(x, kind)} AS STRING)",
            )
        case "date":
            return RowFunction("text", lambda x: x.dt.strftime("%Y-%m-%d"), lambda x: f"CAST({x} AS STRING)")
        case "span":
            return "a span of time has no text"
    return RowFunction("text", lambda x: x.cast(pl.String), lambda x: f"CAST({x} AS STRING)")


def _moment_text(x: pl.Expr) -> pl.Expr:
    """Without the zeros at its end, and without a point before nothing."""
    whole, rest = x.dt.strftime("%Y-%m-%d %H:%M:%S"), x.dt.strftime("%6f").str.strip_chars_end("0")
    return pl.when(rest == "").then(whole).otherwise(pl.concat_str(whole, rest, separator="."))


def _to_whole(target: str, category: str) -> RowFunction | str:
    bits = _BITS[target]
    low, high = -(2**bits), 2**bits - 1

    def fit(x: pl.Expr) -> pl.Expr:
        return pl.when(x.is_between(low, high)).then(x)

    match category:
        case "whole":
            return RowFunction("whole", fit, lambda x: f"TRY_CAST({x} AS {target})", bits)
        case "truth":
            return RowFunction("whole", lambda x: x.cast(pl.Int128), lambda x: f"CAST({x} AS {target})", bits)
        case "float":
            # The largest that fits as a float lies below 2**63.
            top = float(2**bits)
            return RowFunction(
                "whole",
                lambda x: pl.when((x > -top - 1) & (x < top)).then(x).cast(pl.Int64, strict=False).cast(pl.Int128),
                lambda x: f"CASE WHEN {x} > {-top - 1!r}D AND {x} < {top!r}D THEN TRY_CAST({x} AS {target}) END",
                bits,
            )
        case "text":
            return RowFunction(
                "whole",
                lambda x: fit(
                    pl.when(x.str.contains(_WHOLE))
                    .then(x)
                    .str.strip_chars()
                    .str.strip_prefix("+")
                    .cast(pl.Int128, strict=False)
                ),
                lambda x: f"TRY_CAST(CASE WHEN {x} RLIKE {_quoted(_WHOLE)} THEN TRIM({x}) END AS {target})",
                bits,
            )
    return "FLOOR, CEIL and ROUND make whole numbers of decimals, EXTRACT of times"


def _to_date(node: exp.Expr, category: str) -> RowFunction | str | None:
    kind = time_of(node.this.unnest())
    match category:
        case "timestamp":
            return RowFunction(
                "time", lambda x: _in_utc(x, kind).dt.date(), lambda x: f"CAST({_without_zone(x, kind)} AS DATE)"
            )
        case "date":
            return RowFunction("time", lambda x: x, lambda x: x)
        case "text":
            return RowFunction(
                "time",
                lambda x: pl.when(x.str.contains(_DATE)).then(x).str.to_date("%Y-%m-%d", strict=False),
                lambda x: f"TRY_CAST(CASE WHEN {x} RLIKE {_quoted(_DATE)} THEN {x} END AS DATE)",
            )
    return "a date is made of a time, or of a text such as '2024-01-31'"


def _to_moment(node: exp.Expr, category: str) -> RowFunction | str | None:
    target = time_of(node)
    zone = target.tz if target is not None else None
    name = "TIMESTAMP_NTZ" if zone is None else "TIMESTAMP"
    match category:
        case "timestamp" if time_of(node.this.unnest()) == target:
            return RowFunction("time", lambda x: x, lambda x: x)
        case "text":
            suffix = "" if zone is None else "Z"

            def read(x: pl.Expr) -> pl.Expr:
                plain = pl.when(x.str.contains(_MOMENT)).then(x.str.replace("T", " "))
                moment = plain.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", strict=False, time_unit="us")
                return moment if zone is None else moment.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)

            return RowFunction(
                "time",
                read,
                lambda x: (
                    f"TRY_CAST(CASE WHEN {x} RLIKE {_quoted(_MOMENT)} THEN CONCAT({x}, '{suffix}') END AS {name})"
                ),
            )
        case "date":
            if zone is None:
                return RowFunction("time", lambda x: x.cast(pl.Datetime("us")), lambda x: f"CAST({x} AS TIMESTAMP_NTZ)")
            return RowFunction(
                "time",
                lambda x: x.cast(pl.Datetime("us")).dt.replace_time_zone("UTC").dt.convert_time_zone(zone),
                lambda x: f"TIMESTAMP_MICROS(UNIX_DATE({x}) * {_UNITS['DAY'][1]})",
            )
    return "a time is made of a date, or of a text such as '2024-01-31 12:00:00'"


def _of_time(node: exp.Expr, category: str) -> RowFunction | str | None:
    part: str | None = _AS_PARTS.get(type(node)) or (node.this.name.upper() if isinstance(node, exp.Extract) else None)
    if part is None and not isinstance(node, (exp.TimestampTrunc, exp.TimeToStr)):
        return None
    kind = time_of(operand_of(node).unnest())
    if category not in ("timestamp", "date") or kind is None:
        return "this is of a time"
    if part is not None:
        if part not in _PARTS or (category == "date" and part not in _OF_DATES):
            return f"possible parts: {', '.join(_PARTS if category == 'timestamp' else _OF_DATES)}"
        read, name = _PARTS[part]
        return RowFunction(
            "whole",
            lambda x: read(_in_utc(x, kind)).cast(pl.Int128),
            lambda x: f"CAST({name}({_without_zone(x, kind)}) AS BIGINT)",
            31,
        )
    if isinstance(node, exp.TimestampTrunc):
        return _truncated(node, category, kind)
    return _formatted(node, category, kind)


def _truncated(node: exp.TimestampTrunc, category: str, kind: pa.DataType) -> RowFunction | str:
    unit = node.args["unit"].name.upper()
    if category != "timestamp" or unit not in _UNITS:
        return f"DATE_TRUNC is of a timestamp, to one of {', '.join(_UNITS)}"
    step, micros = _UNITS[unit]

    def truncate(x: pl.Expr) -> pl.Expr:
        moment = _in_utc(x, kind).dt.truncate(step)
        return moment if kind.tz is None else moment.dt.convert_time_zone(kind.tz)

    def in_spark(x: str) -> str:
        if kind.tz is None:
            return f"CAST(DATE_TRUNC('{unit}', {x}) AS TIMESTAMP_NTZ)"
        if micros is None:
            first = f"TRUNC(CAST({_without_zone(x, kind)} AS DATE), '{unit}')"
            return f"TIMESTAMP_MICROS(UNIX_DATE({first}) * {_UNITS['DAY'][1]})"
        shift = _MONDAY_US if unit == "WEEK" else 0
        return f"TIMESTAMP_MICROS(UNIX_MICROS({x}) - PMOD(UNIX_MICROS({x}) - {shift}, {micros}))"

    return RowFunction("time", truncate, in_spark)


def _formatted(node: exp.Expr, category: str, kind: pa.DataType) -> RowFunction | str:
    written = node.args["format"].name.replace("strict", "")  # as sqlglot calls two digits
    codes = list(_codes(written))
    if any(code is None for code in codes) or (category == "date" and re.search("%[HMS]", written)):
        return "a format has yyyy, MM, dd, HH, mm, ss, and - / : . between them"
    java = "".join(_FORMATS.get(str(code), str(code)) for code in codes)
    return RowFunction(
        "text",
        lambda x: _in_utc(x, kind).dt.strftime(written),
        lambda x: f"DATE_FORMAT({_without_zone(x, kind)}, '{java}')",
    )


def _codes(written: str) -> Iterator[str | None]:
    for part in re.findall(r"%.|.", written):
        yield part if part in _FORMATS or part in "-/:. _" else None


def _of_text(node: exp.Expr, category: str) -> RowFunction | str | None:
    make = _TEXTS.get(type(node))
    if make is None or (isinstance(node, exp.Trim) and not node.args.get("position")):
        return None
    if category != "text":
        return "this is of a text; CAST(x AS STRING) makes one"
    return make(node)


def _word(node: exp.Expr | None) -> str | None:
    return str(node.this) if isinstance(node, exp.Literal) and node.is_string and node.this else None


def _count(node: exp.Expr | None) -> int | None:
    return int(node.name) if isinstance(node, exp.Literal) and node.is_int and int(node.name) > 0 else None


def _ends(node: exp.Expr) -> RowFunction | str:
    count, at_left = _count(node.expression), isinstance(node, exp.Left)
    if count is None:
        return "how many characters is a whole number, at least 1"
    if at_left:
        return RowFunction("text", lambda x: x.str.head(count), lambda x: f"LEFT({x}, {count})")
    return RowFunction("text", lambda x: x.str.tail(count), lambda x: f"RIGHT({x}, {count})")


def _found(node: exp.Expr) -> RowFunction | str:
    word = _word(node.expression)
    if word is None:
        return "what is looked for is written out"
    if isinstance(node, exp.Contains):
        return RowFunction(
            "truth", lambda x: x.str.contains(word, literal=True), lambda x: f"CONTAINS({x}, {_quoted(word)})"
        )
    return RowFunction("truth", lambda x: x.str.ends_with(word), lambda x: f"ENDSWITH({x}, {_quoted(word)})")


def _replaced(node: exp.Expr) -> RowFunction | str:
    word, other = _word(node.expression), node.args.get("replacement")
    if word is None or not isinstance(other, exp.Literal) or not other.is_string:
        return "what is replaced, and by what, is written out"
    by = str(other.this)
    return RowFunction(
        "text",
        lambda x: x.str.replace_all(word, by, literal=True),
        lambda x: f"REPLACE({x}, {_quoted(word)}, {_quoted(by)})",
    )


def _split(node: exp.Expr) -> RowFunction | str:
    word, place = _word(node.args["delimiter"]), _count(node.args["part_index"])
    if word is None or place is None:
        return "SPLIT_PART takes a text, what separates its parts, and which part, from 1 on"

    def part(x: pl.Expr) -> pl.Expr:
        found = x.str.split(word).list.get(place - 1, null_on_oob=True)
        return pl.when(x.is_not_null()).then(found.fill_null(""))

    return RowFunction("text", part, lambda x: f"SPLIT_PART({x}, {_quoted(word)}, {place})")


def _matched(node: exp.Expr) -> RowFunction | str:
    pattern, group = _word(node.expression), node.args.get("group")
    number = 1 if group is None else int(group.name) if isinstance(group, exp.Literal) and group.is_int else -1
    is_safe = pattern is not None and _SAFE_PATTERN.fullmatch(pattern) and not re.search(r"\(\?|[+*?}]\+", pattern)
    if pattern is None or number < 0 or not is_safe:
        return "the pattern is written out, without $, (?…), x++ and classes such as \\d, which differ between engines"
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        return f"the pattern is wrong: {error}"
    if number > groups:
        return f"the pattern has {groups} groups"

    def extract(x: pl.Expr) -> pl.Expr:
        return pl.when(x.is_not_null()).then(x.str.extract(pattern, number).fill_null(""))

    return RowFunction("text", extract, lambda x: f"REGEXP_EXTRACT({x}, {_quoted(pattern)}, {number})")


def _trimmed(node: exp.Expr) -> RowFunction | str:
    if str(node.args.get("position")).upper() == "LEADING":
        return RowFunction("text", lambda x: x.str.strip_chars_start(" "), lambda x: f"LTRIM({x})")
    return RowFunction("text", lambda x: x.str.strip_chars_end(" "), lambda x: f"RTRIM({x})")


def _reversed(node: exp.Expr) -> RowFunction | str:
    return RowFunction("text", lambda x: x.str.reverse(), lambda x: f"REVERSE({x})")


_TEXTS: Final[dict[type[exp.Expr], Callable[[exp.Expr], RowFunction | str]]] = {
    exp.Left: _ends,
    exp.Right: _ends,
    exp.Contains: _found,
    exp.EndsWith: _found,
    exp.Replace: _replaced,
    exp.SplitPart: _split,
    exp.RegexpExtract: _matched,
    exp.Trim: _trimmed,
    exp.Reverse: _reversed,
}


def _in_utc(x: pl.Expr, kind: pa.DataType | None) -> pl.Expr:
    has_zone = kind is not None and pa.types.is_timestamp(kind) and kind.tz is not None
    return x.dt.convert_time_zone("UTC") if has_zone else x


def _without_zone(x: str, kind: pa.DataType | None) -> str:
    """A time in UTC, without a zone, whatever that of the session is."""
    if kind is None or not pa.types.is_timestamp(kind) or kind.tz is None:
        return x
    return f"(TIMESTAMP_NTZ '1970-01-01 00:00:00' + INTERVAL '0.000001' SECOND * UNIX_MICROS({x}))"


def _quoted(text: str) -> str:
    """A text in Spark SQL, backslashes and all."""
    return exp.Literal.string(text).sql(dialect="spark")
