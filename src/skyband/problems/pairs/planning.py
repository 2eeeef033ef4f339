"""Chooses the algorithm of a top-k pairs query, with its reason, the expected rows held and the cost."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from skyband.core.chooser import Chooser, WindowRows
from skyband.core.emit import code_of
from skyband.core.plan import Plan
from skyband.core.registry import candidates_of, find
from skyband.problems.pairs.algorithms import staircase, threshold
from skyband.problems.pairs.costs import PairCosts, kind_of, known_pair_costs
from skyband.problems.pairs.drivers.scoring import Scoring
from skyband.problems.pairs.operator import Spec
from skyband.problems.pairs.query import TopKPairs

ASSUMED_WINDOW_ROWS = 10_000  # of a window by value, when nobody says how many rows it holds


def specify(query: TopKPairs, schema: pa.Schema, scoring: Scoring, *, external_clock: bool = False) -> Spec:
    """`query` over rows of `schema`, in numbers."""
    ticks = query.window.ticks(schema, query.lateness)
    return Spec(query.k, ticks.with_outside_watermark() if external_clock else ticks, scoring, code_of(query.emit))


def plan(
    spec: Spec, named: str | None = None, *, window_rows: float | None = None, costs: PairCosts | None = None
) -> Plan:
    """The algorithm asked for by name, or else the one whose rows cost least."""
    window = WindowRows.of(spec.window, window_rows, ASSUMED_WINDOW_ROWS)
    figures = costs or known_pair_costs()
    chooser = Chooser(
        spec=spec,
        window=window,
        candidates=candidates_of("pairs"),
        reason=lambda chosen, able: _reason(spec, len(able), chosen.algorithm),
        measured_ns=lambda name: _cost(name, spec, window.rows, figures),
        shows_rows=False,  # each holds all rows of the window
    )
    return chooser.cheapest() if named is None else chooser.named(find(named, "pairs"))


FEW_DISTANCES: Final = 8  # beyond so many no row is near by all of them, and every list is walked to its end
FEW_ROWS: Final = (
    5_000  # of so few, a sweep is short, and finding out whether looking rows up pays costs more than it saves
)


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
    return ns if rows < FEW_ROWS else min(ns, 0.99 * swept)


def _reason(spec: Spec, able: int, name: str) -> str:
    distances = spec.scoring.score.distances
    if distances is None or able == 1:
        return "the score is not a function of distances such as abs(a.x - b.x), so every pair has to be scored"
    count = len(distances.columns)
    if name == threshold.NAME and (spec.scoring.same or spec.scoring.different or spec.scoring.score.has_where):
        return (
            f"the score is a function of {count} distance{'s' * (count > 1)}; it looks rows up by value or by their "
            "`same` columns, or sweeps all, whichever is cheaper"
        )
    return f"the score is a function of {count} distance{'s' * (count > 1)}; lowest cost per row"
