"""The planner: which algorithm answers a query, why, and what it will hold."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import pyarrow as pa

from skyband.errors import InvalidQuery
from skyband.operators.objects import mintopk, relaxed
from skyband.operators.protocol import EMIT_CODES, Spec
from skyband.operators.registry import OBJECTS, Algorithm, find
from skyband.queries import TopK
from skyband.windows import FOREVER

# Where there are panes they are the cheaper way. The oracle is only for comparing with, however small the window.
PREFERRED = (mintopk.NAME, relaxed.NAME)

ASSUMED_WINDOW_ROWS = 1_000_000  # of a window by value, when nobody says how many rows it holds


@dataclass(frozen=True, slots=True)
class Choice:
    """One algorithm, considered."""

    algorithm: str
    refused: str | None  # why it cannot answer the query
    rows: float  # expected to be held per group, on random order; NaN if it cannot


@dataclass(frozen=True, slots=True)
class Plan:
    """What will run, and what else was considered."""

    algorithm: str
    why: str
    rows: float
    window_rows: float
    assumed: bool  # nobody said how many rows a window holds
    considered: tuple[Choice, ...]


def specify(query: TopK, schema: pa.Schema, *, external_clock: bool = False) -> Spec:
    """`query` over rows of `schema`, in numbers."""
    ticks = query.window.ticks(schema, query.lateness)
    if external_clock:
        ticks = replace(ticks, lateness=FOREVER)
    return Spec(query.k, ticks, EMIT_CODES[str(query.emit)], bool(query.per), query.ad_hoc)


def plan(spec: Spec, asked_for: str | None = None, *, window_rows: float | None = None) -> Plan:
    """The algorithm asked for by name, or else the first of those preferred that can answer."""
    assumed = window_rows is None and (not spec.window.by_count or spec.window.size == FOREVER)
    rows = float(window_rows or (ASSUMED_WINDOW_ROWS if assumed else spec.window.size))
    choices = tuple(_consider(algorithm, spec, rows) for algorithm in OBJECTS.values())
    if asked_for is not None:
        refused = find(asked_for).refuses(spec)
        if refused:
            possible = ", ".join(choice.algorithm for choice in choices if not choice.refused)
            raise InvalidQuery(f"{asked_for!r} cannot answer this: {refused}. Possible here: {possible}.")
        chosen, why = next(choice for choice in choices if choice.algorithm == asked_for), "asked for by name"
    else:
        able = {choice.algorithm: choice for choice in choices if not choice.refused}
        chosen = next(able[name] for name in PREFERRED if name in able)
        why = _reason(spec)
    return Plan(chosen.algorithm, why, chosen.rows, rows, assumed, choices)


def _consider(algorithm: Algorithm, spec: Spec, window_rows: float) -> Choice:
    refused = algorithm.refuses(spec)
    return Choice(algorithm.name, refused, math.nan if refused else algorithm.expected_rows(spec, window_rows))


def _reason(spec: Spec) -> str:
    if spec.slides_with_each_arrival:
        return "the answer may change with each arrival, so every row that may still enter it is kept: the k-skyband"
    if spec.ad_hoc:
        return "ad-hoc questions may start anywhere in the window, so the whole k-skyband is kept"
    return "the window slides by panes, and of each pane only the k best rows can be shown"
