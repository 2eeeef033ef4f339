"""Which algorithm answers a top-k pairs query, why, and what it will hold and cost."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import pyarrow as pa

from skyband.core.chooser import Choice, Plan
from skyband.core.operator import EMIT_CODES
from skyband.core.registry import algorithms_of, find
from skyband.errors import InvalidQuery
from skyband.problems.pairs.algorithms import staircase, threshold
from skyband.problems.pairs.algorithms.naive import supreme
from skyband.problems.pairs.algorithms.staircase import expected_pairs
from skyband.problems.pairs.costs import PairCosts, kind_of, known_pair_costs
from skyband.problems.pairs.drivers.scoring import Scoring
from skyband.problems.pairs.operator import Spec
from skyband.problems.pairs.query import TopKPairs
from skyband.windows import FOREVER

ASSUMED_WINDOW_ROWS = 10_000  # of a window by value, when nobody says how many rows it holds


def specify(query: TopKPairs, schema: pa.Schema, scoring: Scoring, *, external_clock: bool = False) -> Spec:
    """`query` over rows of `schema`, in numbers."""
    ticks = query.window.ticks(schema, query.lateness)
    if external_clock:
        ticks = replace(ticks, lateness=FOREVER)
    return Spec(query.k, ticks, scoring, EMIT_CODES[str(query.emit)])


def plan(
    spec: Spec, asked_for: str | None = None, *, window_rows: float | None = None, costs: PairCosts | None = None
) -> Plan:
    """The algorithm asked for by name, or else the one whose rows cost least."""
    assumed = window_rows is None and (not spec.window.by_count or spec.window.size == FOREVER)
    rows = float(window_rows or (ASSUMED_WINDOW_ROWS if assumed else spec.window.size))
    figures = costs or known_pair_costs()
    choices = tuple(
        Choice(
            name,
            refused := algorithm.refuses(spec),
            ns=math.nan if refused or algorithm.for_comparing else _cost(name, spec, rows, figures),
            for_comparing=algorithm.for_comparing,
        )
        for name, algorithm in algorithms_of("pairs").items()
    )
    if asked_for is not None:
        name, why = _asked(asked_for, spec, choices), "asked for by name"
    else:
        able = [
            choice
            for choice in choices
            if not choice.refused and not algorithms_of("pairs")[choice.algorithm].for_comparing
        ]
        name = min(able, key=lambda choice: math.inf if math.isnan(choice.ns) else choice.ns).algorithm
        why = _reason(spec, len(able), name)
    ns = next((choice.ns for choice in choices if choice.algorithm == name.partition("(")[0]), math.nan)
    return Plan(name, why, rows, ns, rows, assumed, choices, expected_pairs(spec.k, rows))


FEW_DISTANCES: Final = 8  # beyond so many no row is near by all of them, and every list is walked to its end


def _cost(algorithm: str, spec: Spec, rows: float, costs: PairCosts) -> float:
    score = spec.scoring.score
    if score.distances is None:
        return costs.ns_per_row(algorithm, "nearest", max(1, len(score.columns)), rows, spec.k)
    kind, distances = kind_of(score.distances.nearest), len(score.distances.columns)
    ns = costs.ns_per_row(algorithm, kind, distances, rows, spec.k)
    if algorithm != threshold.NAME:
        return ns
    swept = costs.ns_per_row(staircase.NAME, kind, distances, rows, spec.k)
    if distances > FEW_DISTANCES:
        return max(ns, 1.01 * swept)
    # How values lie, and how many pairs are ruled out, is known only to the rows. It measures whether looking them up
    # pays, and sweeps all of them as the other does where it does not.
    return min(ns, 0.99 * swept)


def _is_restricted(spec: Spec) -> bool:
    return spec.scoring.same or spec.scoring.different or spec.scoring.score.has_where


def _asked(asked_for: str, spec: Spec, choices: tuple[Choice, ...]) -> str:
    possible = ", ".join(choice.algorithm for choice in choices if not choice.refused)
    if asked_for.partition("(")[0].strip() == supreme.NAME:
        raise InvalidQuery(f"'supreme' cannot answer this: {supreme.WHY_NOT}. Possible here: {possible}.")
    if refused := find(asked_for, "pairs").refuses(spec):
        raise InvalidQuery(f"{asked_for!r} cannot answer this: {refused}. Possible here: {possible}.")
    return asked_for


def _reason(spec: Spec, able: int, name: str) -> str:
    distances = spec.scoring.score.distances
    if distances is None or able == 1:
        return "the score is not known from distances such as abs(a.x - b.x), so every pair has to be scored"
    count = len(distances.columns)
    if name == threshold.NAME and _is_restricted(spec):
        return (
            f"the score is known from {count} distance{'s' * (count > 1)}; rows are looked up by value or by colour, "
            "or all are swept, whichever pairs that are ruled out make cheaper"
        )
    return f"the score is known from {count} distance{'s' * (count > 1)}; a row costs least"
