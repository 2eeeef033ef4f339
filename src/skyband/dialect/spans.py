"""The spans of a window: errors about their numbers and units, in the statement's own words."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import pyarrow as pa
from sqlglot import exp

from skyband.dialect.grammar import SkybandSql
from skyband.dialect.nodes import Span, StreamWindow
from skyband.dialect.statement import Statement
from skyband.errors import InvalidQuery
from skyband.windows import Window, parse_span

ROWS: Final = ("ROW", "ROWS")
_UNITS: Final = ("MICROSECONDS", "MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS", "WEEKS")
MOST: Final = 2**61
_NAMES: Final = {"this": "The window", "every": "EVERY", "lateness": "LATENESS", "forget": "FORGET AFTER"}


def check_units(statement: Statement, said: StreamWindow) -> None:
    """Raise at the first unit that there is not, and at a number that is not whole or too large."""
    for span in _spans(said).values():
        if not span.this.name.isdigit():
            statement.refuse(f"{span.this.name} is not a whole number", span, "Possible: 500 MILLISECONDS.")
        if int(span.this.name) >= MOST:
            statement.refuse(f"{span.this.name} is too large", span, "[WINDOW UNTIL NOW] has no end.")
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
            statement.refuse("The window and EVERY must both be durations or both be numbers", every)
        if given[1] > given[0]:  # type: ignore[operator]
            statement.refuse(
                "EVERY is longer than the window, so some rows would be in no window",
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
        _check_measures(statement, span, on, kind, "ON")


def _check_measures(statement: Statement, span: Span, column: str, kind: pa.DataType, word: str) -> None:
    """Raise where a span does not measure a column of this type, which stands behind the word."""
    unit = span.args.get("unit")
    if pa.types.is_timestamp(kind) and unit is None:
        said_text = f"{span.this.name} SECONDS"
        statement.refuse(f"{span.this.name} has no unit, but {column!r} is {kind}", span, f"Write {said_text}.")
    if pa.types.is_integer(kind) and unit is not None and unit.name not in ROWS:
        statement.refuse(
            f"{span.this.name} {unit.name} is a time, but {column!r} is {kind}",
            span,
            f"Write {span.this.name}, in the unit of the column, or {word} a timestamp.",
        )


def check_forget(statement: Statement, span: Span, window: Window, per: Sequence[object], schema: pa.Schema) -> None:
    """Raise where FORGET AFTER has no meaning, or does not measure the order of the window."""
    unit = span.args["unit"].name if span.args.get("unit") else None
    if not window.by_count:
        statement.refuse(
            "A window that measures a column forgets a group with its last row", span, "Leave FORGET AFTER out."
        )
    if not per:
        statement.refuse(
            "FORGET AFTER forgets groups, but this statement has none", span, "Rank in groups: LIMIT 10 BY symbol."
        )
    if window.order is None:
        if unit is not None and unit not in ROWS:
            statement.refuse(
                f"{span.this.name} {unit} is a time, but this window counts rows in the order of their arrival",
                span,
                "Write FORGET AFTER 1000 ROWS, or name a timestamp: ORDER BY ts FORGET AFTER 1 HOUR.",
            )
        return
    kind = schema.field(window.order).type
    if not (pa.types.is_timestamp(kind) or pa.types.is_integer(kind)) or kind == pa.uint64():
        statement.refuse(
            f"FORGET AFTER measures a timestamp or a whole number, but {window.order!r} is {kind}",
            span,
            "uint64 is not possible. Cast it in a subquery in FROM: CAST(x AS BIGINT)." if kind == pa.uint64() else "",
        )
    if unit in ROWS:
        statement.refuse(
            f"FORGET AFTER measures {window.order!r}, which orders the rows of this window",
            span,
            f"Write FORGET AFTER {span.this.name}{' SECONDS' if pa.types.is_timestamp(kind) else ''}.",
        )
    _check_measures(statement, span, window.order, kind, "ORDER BY")


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
