"""The spans of a window: errors about their numbers and units, in the statement's own words."""

from __future__ import annotations

import difflib
from datetime import timedelta
from typing import Final

import pyarrow as pa
from sqlglot import exp

from skyband.dialect.grammar import SkybandSql
from skyband.dialect.nodes import Span, StreamWindow
from skyband.dialect.statement import Statement
from skyband.errors import InvalidQuery
from skyband.windows import parse_span

ROWS: Final = ("ROW", "ROWS")
_UNITS: Final = ("MICROSECONDS", "MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS", "WEEKS")
_NAMES: Final = {"this": "The window", "every": "EVERY", "lateness": "LATENESS"}


def check_units(statement: Statement, said: StreamWindow) -> None:
    """Raise at the first unit that there is not."""
    for unit in (span.args["unit"] for span in _spans(said).values() if span.args.get("unit")):
        if unit.name in ROWS:
            continue
        try:
            parse_span(f"1 {unit.name.lower()}", "unit")
        except InvalidQuery:
            near = difflib.get_close_matches(unit.name, (*_UNITS, *ROWS), n=1)
            hint = f"Did you mean {near[0]}? " if near else ""
            why = f"There is no unit {unit.name!r}"
            if unit.name.startswith(("MONTH", "YEAR", "QUARTER")):
                why = f"{unit.name} has no fixed length"
            statement.refuse(why, unit, f"{hint}Units: ROWS, {', '.join(_UNITS)}.")


def check_spans(statement: Statement, said: StreamWindow, schema: pa.Schema, on: str | None) -> None:
    """Raise where a span does not measure the column of the window; without a column it counts rows."""
    spans = _spans(said)
    for name, span in spans.items():
        if _number(span) == 0 and name != "lateness":
            statement.refuse(f"{_NAMES[name]} must be more than 0", span)
    size, every = spans.get("this"), spans.get("every")
    if size is not None and every is not None:
        given = _value(size), _value(every)
        if isinstance(given[0], int) != isinstance(given[1], int):
            statement.refuse("The window and EVERY are both times, or both numbers", every)
        if given[1] > given[0]:  # type: ignore[operator]
            statement.refuse(
                "EVERY is longer than the window, so rows between two windows would never be seen",
                every,
                f"Write EVERY {size.sql(dialect=SkybandSql)}.",
            )
    if on is None:
        if "lateness" in spans:
            statement.refuse("A window of rows has no late rows", spans["lateness"], "Leave LATENESS out.")
        return
    kind = schema.field(on).type
    if not (pa.types.is_timestamp(kind) or pa.types.is_integer(kind)):
        statement.refuse(
            f"A window measures a timestamp or a whole number, but {on!r} is {kind}", said.args.get("on") or said
        )
    for span in spans.values():
        unit = span.args.get("unit")
        if pa.types.is_timestamp(kind) and unit is None:
            said_text = f"{span.this.name} SECONDS"
            statement.refuse(f"{span.this.name} has no unit, but {on!r} is {kind}", span, f"Write {said_text}.")
        if pa.types.is_integer(kind) and unit is not None and unit.name not in ROWS:
            statement.refuse(
                f"{span.this.name} {unit.name} is a time, but {on!r} is {kind}",
                span,
                f"Write {span.this.name}, in the unit of the column, or ON a timestamp.",
            )


def _spans(said: StreamWindow) -> dict[str, Span]:
    return {name: said.args[name] for name in _NAMES if said.args.get(name)}


def _value(span: Span) -> int | timedelta:
    unit = span.args.get("unit")
    if unit is None or unit.name in ROWS:
        return parse_span(int(_number(span)), "span")
    return parse_span(f"{span.this.name} {unit.name.lower()}", "span")


def _number(span: Span) -> float:
    text = span.this.name if isinstance(span.this, exp.Literal) else ""
    return float(text) if text.replace(".", "", 1).isdigit() else 1.0
