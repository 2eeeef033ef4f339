"""Recomputation from scratch: keep every row of the window, score every object for every answer.

Paper:      none; this is the definition, and the oracle of all the others. It shares no code with them.
Invariant:  every row with a value, of every open window, is held in arrival order.
Cost:       push O(n) for each answer, state n.
Choose it:  to check another algorithm.
"""

from __future__ import annotations

from skyband.problems.across.algorithms.recompute.state import Recompute
from skyband.problems.across.operator import AcrossAlgorithm, AcrossSpec

NAME = "recompute"


def open(spec: AcrossSpec) -> Recompute:
    return Recompute(spec)


ALGORITHMS = (AcrossAlgorithm(NAME, open, for_comparing=True),)
