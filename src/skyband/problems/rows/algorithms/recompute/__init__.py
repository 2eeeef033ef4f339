"""Recomputation from scratch: keep the whole window, sort it for every answer.

Paper:      none; this is the definition, and the oracle of all the others. It shares no code with them.
Invariant:  every ranked row of every open window is held, in arrival order.
Cost:       push O(n log n) for each answer, state n.
Choose it:  to check another algorithm.
"""

from __future__ import annotations

from skyband.problems.rows.algorithms.recompute.state import Recompute
from skyband.problems.rows.operator import RowAlgorithm, Spec, opener

NAME = "recompute"


def open(spec: Spec) -> Recompute:
    return Recompute(spec)


ALGORITHMS = (RowAlgorithm(NAME, opener(open), for_comparing=True),)
