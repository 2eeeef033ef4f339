"""Functions of one value, and CAST: what each takes, what it gives, in polars and in Spark SQL. One table for both.

Parameters other than the value are written out: LEFT(name, 3), EXTRACT(HOUR FROM ts). What does not fit is null, as of
TRY_CAST. A time that has a zone is taken in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final

import polars as pl
from sqlglot import exp

from skyband.errors import InvalidExpression
from skyband.expressions import synonyms
from skyband.expressions.days import in_days
from skyband.expressions.function_spec import FUNCTION, RowFunction, quoted, said
from skyband.expressions.grammar import DateSub, is_to_decimal
from skyband.expressions.string_calls import as_in_java, wrong_pattern
from skyband.expressions.synonyms import other_words
from skyband.expressions.time_functions import (
    AS_PARTS,
    in_utc,
    moment_text,
    of_days,
    of_time,
    to_date,
    to_moment,
    without_zone,
)
from skyband.expressions.times import time_of

MOST_DECIMAL_DIGITS: Final = 28  # that are computed with: Spark multiplies no more of them by a power of ten
_BITS: Final = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}
_WHOLE: Final = r"^\s*[+-]?[0-9]{1,18}\s*$"
_NUMBER: Final = r"^\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"
_TRUE: Final = ("t", "true", "y", "yes", "1")
_FALSE: Final = ("f", "false", "n", "no", "0")
_BLANKS: Final = "".join(map(chr, (*range(33), 127)))  # which Spark takes off a string before it reads it


READ: Final[dict[type[exp.Expr], frozenset[str]]] = {
    **synonyms.READ,
    **dict.fromkeys((*AS_PARTS, exp.TsOrDsToDate, exp.TimeStrToTime, exp.Reverse), frozenset({"this", "safe"})),
    exp.Extract: frozenset({"this", "expression"}),
    exp.TimestampTrunc: frozenset({"this", "unit"}),
    **dict.fromkeys((exp.TsOrDsAdd, DateSub, exp.DateDiff), frozenset({"this", "expression"})),
    exp.DateFromUnixDate: frozenset({"this"}),
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
    """The same in other words, where there are: x ILIKE y, CONCAT(x, y), TRY_CAST(x AS INT)."""
    match node:
        case exp.TryCast():
            return exp.Cast(this=node.this, to=node.to)  # what does not fit is null in both
        case exp.ILike():
            pattern = node.expression
            if not isinstance(pattern, exp.Literal) or not pattern.is_string:
                raise InvalidExpression(f"{node.sql('spark')!r}: the pattern of ILIKE must be a literal.")
            lower = exp.Literal.string(pattern.this.lower())
            return exp.Like(this=exp.Lower(this=node.this.copy()), expression=lower, negate=node.args.get("negate"))
        case exp.Concat() if node.expressions and not isinstance(node, exp.ConcatWs):
            whole = node.expressions[0].copy()
            for part in node.expressions[1:]:
                whole = exp.DPipe(this=whole, expression=exp.Paren(this=part.copy()))
            return exp.Paren(this=whole)
        case exp.TsOrDsToDate() if isinstance(node.parent, tuple(AS_PARTS)):
            return node.this
        case exp.TsOrDsToDate():
            return exp.Cast(this=node.this.copy(), to=exp.DataType.build("DATE"))
        case exp.TimeStrToTime():
            return node.this
    return in_days(other_words(node))


def mark_function(node: exp.Expr, category: str, scale: int) -> RowFunction | None:
    """Say of a node which of these functions it is, if it is one; `category` says what its value is, and `scale` how
    many digits it has behind the point, if it is a decimal."""
    if (known := function_of(node)) is not None:
        return known
    for read in (partial(_to_decimal, scale=scale), partial(_cast, scale=scale), of_time, of_days, _of_text):
        if (found := read(node, category)) is not None:
            if isinstance(found, str):
                raise InvalidExpression(f"{said(node)!r}: {found}.")
            node.meta[FUNCTION] = found
            return found
    return None


def function_of(node: exp.Expr) -> RowFunction | None:
    """Which of these functions a node of a typed tree is."""
    return node.meta.get(FUNCTION)


GIVES_TEXT: Final = (*(exp.Replace, exp.Left, exp.Right, exp.SplitPart, exp.RegexpExtract, exp.Reverse, exp.TimeToStr),)


def _cast(node: exp.Expr, category: str, scale: int) -> RowFunction | str | None:
    if not isinstance(node, exp.Cast) or node.this is None:
        return None
    target = node.to.this.value
    if target in ("TEXT", "VARCHAR", "CHAR"):
        return _to_text(node, category)
    if target in _BITS:
        return _to_whole(target, category, scale)
    if target == "DOUBLE" and category in ("text", "truth"):
        if category == "truth":
            return RowFunction("float", lambda x: x.cast(pl.Float64), lambda x: f"CAST({x} AS DOUBLE)")
        return RowFunction(
            "float",
            lambda x: pl.when(x.str.contains(_NUMBER)).then(x).str.strip_chars().cast(pl.Float64, strict=False),
            lambda x: f"TRY_CAST(CASE WHEN {x} RLIKE {quoted(_NUMBER)} THEN {x} END AS DOUBLE)",
        )
    if target == "DATE":
        return to_date(node, category)
    if target in ("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPNTZ", "TIMESTAMPLTZ"):
        return to_moment(node, category)
    if target == "BOOLEAN":
        return _to_truth(category)
    if target == "DOUBLE":
        return (
            "a time is not a number; EXTRACT returns its parts" if category in ("timestamp", "date", "span") else None
        )
    return "CAST is to STRING, BIGINT, INT, SMALLINT, TINYINT, DOUBLE, DECIMAL(p, s), BOOLEAN, DATE or TIMESTAMP"


def _to_truth(category: str) -> RowFunction | str:
    """As Spark has it: a number other than 0 is true, and of strings those of `_TRUE`, in any case."""

    def read(x: pl.Expr) -> pl.Expr:
        word = x.str.strip_chars(_BLANKS).str.to_lowercase()
        return pl.when(word.is_in(_TRUE)).then(True).when(word.is_in(_FALSE)).then(False)

    match category:
        case "whole" | "decimal" | "float":
            return RowFunction("truth", lambda x: x != 0, lambda x: f"({x} <> 0)")
        case "truth":
            return RowFunction("truth", lambda x: x, lambda x: x)
        case "text":
            return RowFunction("truth", read, lambda x: f"TRY_CAST({x} AS BOOLEAN)")
    return "a time is neither true nor false; compare it with another one"


def _to_decimal(node: exp.Expr, category: str, scale: int) -> RowFunction | str | None:
    """Half away from zero; what has more digits is null."""
    if not is_to_decimal(node) or not isinstance(node, exp.Cast):
        return None
    digits, behind, *_ = (*(int(one.name) for one in node.to.expressions), *((10, 0)[len(node.to.expressions) :]))
    if not 0 <= behind <= digits <= MOST_DECIMAL_DIGITS or digits == 0:
        return f"DECIMAL has up to {MOST_DECIMAL_DIGITS} digits, and no more of them after the point"
    if category not in ("whole", "decimal"):
        return "DECIMAL takes whole numbers and decimals; use ROUND(x, 2) for floats, which engines round differently"
    more = behind - scale

    def in_digits(x: pl.Expr) -> pl.Expr:
        power = pl.lit(10 ** abs(more), pl.Int128)
        if more < 0:
            size = (x.abs() + pl.lit(10**-more // 2, pl.Int128)) // power
        else:  # what does not fit is not multiplied
            size = pl.when(x.abs() < pl.lit(10 ** max(digits - more, 0), pl.Int128)).then(x.abs()) * power
        return pl.when(size < pl.lit(10**digits, pl.Int128)).then(size * x.sign())

    return RowFunction(
        "whole",
        in_digits,
        lambda x: f"TRY_CAST(CONCAT(CAST({x} AS STRING), 'E{more}') AS DECIMAL({digits}, 0))",
        (10**digits).bit_length(),
        behind,
        digits,
    )


def _to_text(node: exp.Expr, category: str) -> RowFunction | str:
    kind = time_of(node.this.unnest())
    match category:
        case "float" | "decimal":
            return "engines print such numbers differently; use CAST(… AS BIGINT) first"
        case "timestamp":
            return RowFunction(
                "text",
                lambda x: moment_text(in_utc(x, kind)),
                lambda x: f"CAST({without_zone(x, kind)} AS STRING)",
            )
        case "date":
            return RowFunction("text", lambda x: x.dt.strftime("%Y-%m-%d"), lambda x: f"CAST({x} AS STRING)")
        case "span":
            return "a duration cannot be cast to a string"
    return RowFunction("text", lambda x: x.cast(pl.String), lambda x: f"CAST({x} AS STRING)")


def _to_whole(target: str, category: str, scale: int) -> RowFunction | str:
    bits = _BITS[target]
    low, high = -(2**bits), 2**bits - 1

    def fit(x: pl.Expr) -> pl.Expr:
        return pl.when(x.is_between(low, high)).then(x)

    match category:
        case "whole":
            return RowFunction("whole", fit, lambda x: f"TRY_CAST({x} AS {target})", bits)
        case "decimal":  # a whole number of its last digit, of which the part before the point is left
            one = pl.lit(10**scale, pl.Int128)
            number = f"DECIMAL(38, {scale})"
            return RowFunction(
                "whole",
                lambda x: fit(x.abs() // one * x.sign()),
                lambda x: f"TRY_CAST(TRY_CAST(CONCAT(CAST({x} AS STRING), 'E-{scale}') AS {number}) AS {target})",
                bits,
            )
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
                lambda x: f"TRY_CAST(CASE WHEN {x} RLIKE {quoted(_WHOLE)} THEN TRIM({x}) END AS {target})",
                bits,
            )
    return "a time is not a whole number; EXTRACT returns its parts"


def _of_text(node: exp.Expr, category: str) -> RowFunction | str | None:
    make = _TEXTS.get(type(node))
    if make is None or (isinstance(node, exp.Trim) and not node.args.get("position")):
        return None
    if category != "text":
        return "this function takes a string; write CAST(x AS STRING)"
    return make(node)


def _word(node: exp.Expr | None) -> str | None:
    return str(node.this) if isinstance(node, exp.Literal) and node.is_string and node.this else None


def _count(node: exp.Expr | None) -> int | None:
    return int(node.name) if isinstance(node, exp.Literal) and node.is_int and int(node.name) > 0 else None


def _ends(node: exp.Expr) -> RowFunction | str:
    count, at_left = _count(node.expression), isinstance(node, exp.Left)
    if count is None:
        return "the number of characters must be a whole number, at least 1"
    if at_left:
        return RowFunction("text", lambda x: x.str.head(count), lambda x: f"LEFT({x}, {count})")
    return RowFunction("text", lambda x: x.str.tail(count), lambda x: f"RIGHT({x}, {count})")


def _found(node: exp.Expr) -> RowFunction | str:
    word = _word(node.expression)
    if word is None:
        return "the string to look for must be a literal"
    if isinstance(node, exp.Contains):
        return RowFunction(
            "truth", lambda x: x.str.contains(word, literal=True), lambda x: f"CONTAINS({x}, {quoted(word)})"
        )
    return RowFunction("truth", lambda x: x.str.ends_with(word), lambda x: f"ENDSWITH({x}, {quoted(word)})")


def _like(node: exp.Expr) -> RowFunction | str | None:
    """A pattern with escaped characters, which polars has not; it knows the others itself."""
    pattern = _word(node.expression)
    if pattern is None or "\\" not in pattern:
        return None
    parts = re.findall(r"\\[%_\\]|[^\\]", pattern, re.DOTALL)
    if "".join(parts) != pattern:
        return "in a pattern, \\ stands before %, _ or another \\"
    regex = "".join({"%": ".*", "_": "."}.get(part, re.escape(part[-1])) for part in parts)
    negated = bool(node.args.get("negate"))
    return RowFunction(
        "truth",
        lambda x: x.str.contains(f"(?s)^{regex}$") ^ negated,
        lambda x: f"({x} {'NOT ' * negated}LIKE {quoted(pattern)})",
    )


def _replaced(node: exp.Expr) -> RowFunction | str:
    word, other = _word(node.expression), node.args.get("replacement")
    if isinstance(node.expression, exp.Literal) and node.expression.name == "":  # which nothing is replaced for
        return RowFunction("text", lambda x: x, lambda x: x)
    if word is None or not isinstance(other, exp.Literal) or not other.is_string:
        return "the string to replace and its replacement must be literals"
    by = str(other.this)
    return RowFunction(
        "text",
        lambda x: x.str.replace_all(word, by, literal=True),
        lambda x: f"REPLACE({x}, {quoted(word)}, {quoted(by)})",
    )


def _split(node: exp.Expr) -> RowFunction | str:
    word, place = _word(node.args["delimiter"]), _count(node.args["part_index"])
    if word is None or place is None:
        return "SPLIT_PART takes a string, a separator, and the number of the part, counted from 1"

    def part(x: pl.Expr) -> pl.Expr:
        found = x.str.split(word).list.get(place - 1, null_on_oob=True)
        return pl.when(x.is_not_null()).then(found.fill_null(""))

    return RowFunction("text", part, lambda x: f"SPLIT_PART({x}, {quoted(word)}, {place})")


def _matched(node: exp.Expr) -> RowFunction | str:
    pattern, group = _word(node.expression), node.args.get("group")
    number = 1 if group is None else int(group.name) if isinstance(group, exp.Literal) and group.is_int else -1
    if (wrong := wrong_pattern(pattern)) is not None:
        return wrong
    assert pattern is not None
    groups, rust = re.compile(pattern).groups, as_in_java(pattern)
    if not 0 <= number <= groups:
        return f"the pattern has {groups} groups"

    def extract(x: pl.Expr) -> pl.Expr:
        return pl.when(x.is_not_null()).then(x.str.extract(rust, number).fill_null(""))

    return RowFunction("text", extract, lambda x: f"REGEXP_EXTRACT({x}, {quoted(pattern)}, {number})")


def _trimmed(node: exp.Expr) -> RowFunction | str:
    if str(node.args.get("position")).upper() == "LEADING":
        return RowFunction("text", lambda x: x.str.strip_chars_start(" "), lambda x: f"LTRIM({x})")
    return RowFunction("text", lambda x: x.str.strip_chars_end(" "), lambda x: f"RTRIM({x})")


def _reversed(node: exp.Expr) -> RowFunction | str:
    return RowFunction("text", lambda x: x.str.reverse(), lambda x: f"REVERSE({x})")


_TEXTS: Final[dict[type[exp.Expr], Callable[[exp.Expr], RowFunction | str | None]]] = {
    exp.Left: _ends,
    exp.Right: _ends,
    exp.Contains: _found,
    exp.EndsWith: _found,
    exp.Like: _like,
    exp.Replace: _replaced,
    exp.SplitPart: _split,
    exp.RegexpExtract: _matched,
    exp.Trim: _trimmed,
    exp.Reverse: _reversed,
}
