"""Intervals that are written out: so many microseconds, or so many months, which have no fixed length."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from sqlglot import exp

from skyband.errors import InvalidExpression

SPANS: Final = {  # in microseconds
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 7 * 86_400_000_000,
}
MONTHS: Final = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def is_months(node: exp.Interval) -> bool:
    """Is this a number of months, quarters or years?"""
    unit = node.args.get("unit")
    return isinstance(unit, exp.Var) and unit.name.upper().removesuffix("S") in MONTHS


def months_of(node: exp.Interval) -> int | None:
    """How many months these are; None: it is no whole number."""
    number, sign = (node.this.this, -1) if isinstance(node.this, exp.Neg) else (node.this, 1)
    if not isinstance(number, exp.Literal) or not str(number.this).lstrip("+-").isdigit():
        return None
    return sign * int(number.this) * MONTHS[node.args["unit"].name.upper().removesuffix("S")]


def micros_of(node: exp.Interval, text: str) -> int:
    """How many microseconds an interval has."""
    unit, number = node.args.get("unit"), node.this
    name = "" if unit is None else unit.name.upper().removesuffix("S")
    if name in SPANS and isinstance(number, exp.Literal):
        try:
            micros = Fraction(number.this) * SPANS[name]
        except ValueError:
            micros = Fraction(1, 2)
        if micros.denominator == 1 and abs(micros) < 2**63:
            return int(micros)
    raise InvalidExpression(
        f"{node.sql('spark')!r} in {text!r} is not a span of time. Write INTERVAL 10 MINUTES, a whole number of "
        f"microseconds; units: {', '.join(SPANS)}. A month has no fixed length; it moves a date or a timestamp, as in "
        "ts + INTERVAL 1 MONTH."
    )
