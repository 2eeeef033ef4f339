"""Recomputation for each query: keep the whole window, and score and sort it for every answer.

Paper:      none; this is the definition, and the oracle of all the others.
Invariant:  that of `recompute` for rows, for each query by itself.
Cost:       push O(n log n) for each query and answer, state n.
Choose it:  to check another algorithm.
"""

from __future__ import annotations

from skyband.core.registry import Algorithm
from skyband.problems.rows.algorithms import recompute
from skyband.problems.subscriptions.algorithms.recompute.state import PerQuery
from skyband.problems.subscriptions.operator import Spec

NAME = "recompute"


def refuses(spec: Spec) -> str | None:
    """Say what an algorithm with one operator per query cannot do, if the spec asks for it."""
    if spec.backfill:
        return "it lets a query see only rows that arrive after the query"
    if spec.own_slides:
        return "it closes windows for all queries at once"
    return None


def open(spec: Spec) -> PerQuery:
    return PerQuery(spec, recompute.open)


ALGORITHMS = (Algorithm(NAME, open, refuses, for_comparing=True),)
