"""Which algorithm answers many queries, why, and what it will hold and cost."""

from __future__ import annotations

import math
from dataclasses import replace

import pyarrow as pa

from skyband.errors import InvalidQuery
from skyband.operators.many.protocol import Spec
from skyband.operators.many.scoring import Scoring
from skyband.operators.protocol import EMIT_CODES
from skyband.operators.registry import MANY, find
from skyband.planner.choices import Choice, Plan
from skyband.queries import TopKForEach
from skyband.windows import FOREVER

MANY_QUERIES = 100  # from here on it pays to put rows into boxes,
FEW_COLUMNS = 4  # if there are no more columns than these


def specify(query: TopKForEach, schema: pa.Schema, scoring: Scoring, *, external_clock: bool = False) -> Spec:
    """`query` over rows of `schema`, in numbers."""
    ticks = query.window.ticks(schema, query.lateness)
    if external_clock:
        ticks = replace(ticks, lateness=FOREVER)
    return Spec(ticks, scoring, EMIT_CODES[str(query.emit)])


def plan(spec: Spec, queries: int, asked_for: str | None = None) -> Plan:
    """The algorithm asked for by name, or else the one whose rows cost least."""
    choices = tuple(
        Choice(name, algorithm.refuses(spec), for_comparing=algorithm.for_comparing) for name, algorithm in MANY.items()
    )
    if asked_for is not None:
        if refused := find(asked_for, MANY).refuses(spec):
            possible = ", ".join(choice.algorithm for choice in choices if not choice.refused)
            raise InvalidQuery(f"{asked_for!r} cannot answer this: {refused}. Possible here: {possible}.")
        return _plan(asked_for, "asked for by name", choices)
    if (
        queries >= MANY_QUERIES
        and MANY["boxes"].refuses(spec) is None
        and len(spec.scoring.score.columns) <= FEW_COLUMNS
    ):
        return _plan("boxes", "what a score can be is known from few columns", choices)
    return _plan("scan", "each row is scored for each query", choices)


def _plan(algorithm: str, why: str, choices: tuple[Choice, ...]) -> Plan:
    """What it holds and costs has not been measured."""
    return Plan(algorithm, why, math.nan, math.nan, math.nan, assumed=False, considered=choices)
