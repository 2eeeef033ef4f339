"""Which algorithm answers a top-k query across streams, why, and what it will hold."""

from __future__ import annotations

import math
from dataclasses import replace

import pyarrow as pa

from skyband.core.chooser import Choice, Plan
from skyband.core.operator import EMIT_CODES
from skyband.core.registry import algorithms_of, find
from skyband.errors import InvalidQuery
from skyband.problems.across.operator import ONCE, REPEAT_CODES, AcrossAlgorithm, AcrossSpec
from skyband.problems.across.query import TopKAcross
from skyband.problems.rows.planning import ASSUMED_WINDOW_ROWS
from skyband.windows import FOREVER, Ticks, span_ticks


def specify(query: TopKAcross, schema: pa.Schema, *, external_clock: bool = False) -> AcrossSpec:
    """`query` over rows of `schema`, in numbers."""
    ticks, idle_after = query.window.ticks(schema, query.lateness), idle_ticks(query, schema)
    return in_numbers(query, replace(ticks, lateness=FOREVER) if external_clock else ticks, idle_after)


def idle_ticks(query: TopKAcross, schema: pa.Schema) -> int:
    """How far behind the first a stream may be and still be waited for, in the unit of the window's column."""
    if query.idle_after is None:
        return 0
    on = str(query.window.on)
    return span_ticks(query.idle_after, on, schema.field(on).type, "idle_after")


def in_numbers(query: TopKAcross, ticks: Ticks, idle_after: int = 0) -> AcrossSpec:
    low, high = zip(*query.bounds, strict=True)
    return AcrossSpec(
        query.k,
        ticks,
        EMIT_CODES[str(query.emit)],
        query.combined(),
        low,
        high,
        REPEAT_CODES[query.repeat],
        query.recall or 0.0,
        query.max_repeats or 0,
        idle_after,
    )


def plan(spec: AcrossSpec, asked_for: str | None = None, *, window_rows: float | None = None) -> Plan:
    """The algorithm asked for by name, or else the one that holds fewest rows of those that can."""
    assumed = window_rows is None and (not spec.window.by_count or spec.window.size == FOREVER)
    rows = float(window_rows or (ASSUMED_WINDOW_ROWS if assumed else spec.window.size))
    choices = tuple(_consider(algorithm, spec, rows) for algorithm in algorithms_of("across").values())
    if asked_for is not None:
        chosen, why = _asked(asked_for, spec, rows, choices), "asked for by name"
    else:
        able = [
            choice
            for choice in choices
            if not choice.refused and not algorithms_of("across")[choice.algorithm].for_comparing
        ]
        chosen = min(able, key=lambda choice: choice.rows)
        why = _reason(spec, algorithms_of("across")[chosen.algorithm].exact)
    return Plan(chosen.algorithm, why, chosen.rows, chosen.ns, rows, assumed, choices)


def _consider(algorithm: AcrossAlgorithm, spec: AcrossSpec, window_rows: float) -> Choice:
    refused = algorithm.refuses(spec)
    rows = math.nan if refused else algorithm.expected_rows(spec, window_rows)
    return Choice(algorithm.name, refused, rows, for_comparing=algorithm.for_comparing)


def _asked(name: str, spec: AcrossSpec, window_rows: float, choices: tuple[Choice, ...]) -> Choice:
    algorithm = find(name, "across")
    if refused := algorithm.refuses(spec):
        possible = ", ".join(choice.algorithm for choice in choices if not choice.refused)
        raise InvalidQuery(f"{name!r} cannot answer this: {refused}. Possible here: {possible}.")
    return Choice(name, None, algorithm.expected_rows(spec, window_rows))


def _reason(spec: AcrossSpec, exact: bool) -> str:
    if not exact:
        return (
            f"{spec.recall:g} of the objects are enough, so what is not worth its place is forgotten; it takes 4 to 8 "
            "times as long as an exact answer, so it pays only where memory is short"
        )
    if spec.repeat == ONCE:
        return "objects come once in a stream, so rows that cannot matter are forgotten"
    return "an object may come again, so every row of its window may matter"
