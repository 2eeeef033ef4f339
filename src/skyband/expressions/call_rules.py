"""Which function a call is: see `calls`."""

from __future__ import annotations

import re

import polars as pl
from sqlglot import exp

from skyband.errors import InvalidExpression
from skyband.expressions.calls import WITH_UNITS, Given, RowCall, name_of
from skyband.expressions.function_spec import FUNCTION, RowFunction, quoted, said
from skyband.expressions.month_calls import MONTH_CALLS, UNIT_CALLS
from skyband.expressions.string_calls import STRING_CALLS
from skyband.expressions.times import time_of

_CODES = {"yyyy": 4, "MM": 2, "dd": 2, "HH": 2, "mm": 2, "ss": 2}  # of a format, and their digits
_MISSING = {"yyyy": "1970", "MM": "01", "dd": "01", "HH": "00", "mm": "00", "ss": "00"}


def mark_call(node: RowCall, given: list[Given]) -> RowFunction:
    """Say of a call which function it is."""
    known: RowFunction | None = node.meta.get(FUNCTION)
    if known is not None:
        return known
    name = name_of(node)
    found: RowFunction | str
    if name in WITH_UNITS:
        found = UNIT_CALLS[name](node.expressions[0].name, given)
    elif name in ("TO_DATE", "TO_TIMESTAMP"):
        found = _arranged(given, is_date=name == "TO_DATE")
    else:
        found = (STRING_CALLS.get(name) or MONTH_CALLS[name])(given)
    if isinstance(found, str):
        raise InvalidExpression(f"{said(node)!r}: {found}.")
    node.meta[FUNCTION] = found
    return found


def given_as(part: exp.Expr, category: str, bits: int) -> Given:
    """An argument of a call; a number may be written with a sign."""
    inner, sign = part.unnest(), 1
    if isinstance(inner, exp.Neg):
        inner, sign = inner.this.unnest(), -1
    is_literal = isinstance(inner, exp.Literal)
    text = str(inner.this) if is_literal and inner.is_string else None
    number = sign * int(inner.name) if is_literal and inner.is_int else None
    return Given(category, time_of(part.unnest()), text, number, bits)


def _arranged(given: list[Given], *, is_date: bool) -> RowFunction | str:
    """A date or time in a format, as CAST reads it: '31/01/2024' as '2024-01-31'."""
    written = given[1].text if len(given) == 2 else None
    if written is None or given[0].category != "text":
        return "it takes a string, and a format as a literal"
    parts = re.findall(r"yyyy|MM|dd|HH|mm|ss|[-/:. _,]|'T'|.", written)
    codes = [part for part in parts if part in _CODES]
    wrong = [part for part in parts if part not in _CODES and part not in ("'T'", *"-/:. _,")]
    if wrong or len(set(codes)) < len(codes) or "yyyy" not in codes:
        return "a format has yyyy, and may have MM, dd, HH, mm and ss, once each, and - / : . , between them"
    if is_date and {"HH", "mm", "ss"} & set(codes):
        return "a date has no time of day; TO_TIMESTAMP reads it"
    number = {code: place for place, code in enumerate(codes, start=1)}
    pattern = "".join(f"([0-9]{{{_CODES[part]}}})" if part in _CODES else _literal(part) for part in parts)

    def filled(group: str) -> str:
        shown = [group.format(number[code]) if code in number else _MISSING[code] for code in _CODES]
        date, time = "-".join(shown[:3]), ":".join(shown[3:])
        return date if is_date else f"{date} {time}"

    anchored = f"^{pattern}$"
    found, arranged = quoted(anchored), quoted(filled("${}"))
    return RowFunction(
        "text",
        lambda x, _: pl.when(x.str.contains(anchored)).then(x.str.replace(anchored, filled("${{{}}}"))),
        lambda x, _: f"CASE WHEN {x} RLIKE {found} THEN REGEXP_REPLACE({x}, {found}, {arranged}) END",
    )


def _literal(part: str) -> str:
    return "T" if part == "'T'" else re.escape(part)
