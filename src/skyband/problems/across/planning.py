"""Chooses the algorithm of a top-k query across streams, and says why."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from skyband.core.chooser import Chooser, WindowRows
from skyband.core.emit import code_of
from skyband.core.plan import Choice, Plan
from skyband.core.registry import algorithms_of, candidates_of, find
from skyband.problems.across.operator import ONCE, REPEAT_CODES, AcrossSpec
from skyband.problems.across.query import TopKAcross
from skyband.windows import Ticks, span_ticks

ASSUMED_WINDOW_ROWS: Final = 1_000_000  # in a window by value, if nobody says how many rows it holds


def specify(query: TopKAcross, schema: pa.Schema, *, external_clock: bool = False) -> AcrossSpec:
    """Convert a query over rows of `schema` to numbers."""
    ticks, idle_after = query.window.ticks(schema, query.lateness), idle_ticks(query, schema)
    return in_numbers(query, ticks.with_outside_watermark() if external_clock else ticks, idle_after)


def idle_ticks(query: TopKAcross, schema: pa.Schema) -> int:
    """How far a stream may be behind the first before windows stop waiting for it, in ticks; 0: no limit was set."""
    if query.idle_after is None:
        return 0
    on = str(query.window.on)
    return span_ticks(query.idle_after, on, schema.field(on).type, "idle_after")


def in_numbers(query: TopKAcross, ticks: Ticks, idle_after: int = 0) -> AcrossSpec:
    low, high = zip(*query.bounds, strict=True)
    return AcrossSpec(
        query.k,
        ticks,
        code_of(query.emit),
        query.combined(),
        low,
        high,
        REPEAT_CODES[query.repeat],
        query.recall or 0.0,
        query.max_repeats or 0,
        idle_after,
    )


def plan(spec: AcrossSpec, named: str | None = None, *, window_rows: float | None = None) -> Plan:
    """Take the algorithm that the query names; otherwise, of those that can answer, the one that holds fewest rows."""
    chooser = Chooser(
        spec=spec,
        window=WindowRows.of(spec.window, window_rows, ASSUMED_WINDOW_ROWS),
        candidates=candidates_of("across"),
        reason=lambda chosen, able: _reason(spec, chosen),
    )
    return chooser.cheapest() if named is None else chooser.named(find(named, "across"))


def _reason(spec: AcrossSpec, chosen: Choice) -> str:
    if not algorithms_of("across")[chosen.algorithm].exact:
        return (
            f"{spec.recall:g} of the objects are enough, so it keeps only short records of most; it takes about twice "
            "as long as an exact answer, and pays only if memory is short"
        )
    if spec.repeat == ONCE:
        return "objects come once in a stream, so it drops rows that cannot matter"
    return "an object may come again, so every row of its window may matter"
