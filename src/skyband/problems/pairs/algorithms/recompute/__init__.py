"""Recomputation from scratch: keep the whole window, score and sort all its pairs for every answer.

Paper:      none; this is the definition, and the oracle of all the others. It shares no code with them.
Invariant:  every row of every open window is held, in arrival order.
Cost:       push O(n^2 log n) for each answer, state n.
Choose it:  to check another algorithm.
"""

from __future__ import annotations

from skyband.core.registry import Algorithm
from skyband.problems.pairs.algorithms.recompute.state import Recompute
from skyband.problems.pairs.operator import Spec

NAME = "recompute"


def refuses(spec: Spec) -> str | None:
    return "it answers one query" if spec.views else None


def open(spec: Spec) -> Recompute:
    return Recompute(spec)


ALGORITHMS = (Algorithm(NAME, open, refuses, for_comparing=True),)
