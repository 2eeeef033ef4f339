"""Recompute: join all live rows and group them, from the start, whenever an answer is due.

Paper:      none: the definition.
Invariant:  every row that a window may still hold is held.
Cost:       all combinations of live rows at every answer; state is the live rows.
Choose it:  never: the tests compare the plans with it.
"""

from __future__ import annotations

from skyband.problems.joins.algorithms.recompute.state import Recompute
from skyband.problems.joins.operator import JoinAlgorithm, Spec

NAME = "recompute"


def open(spec: Spec) -> Recompute:
    return Recompute(spec)


ALGORITHMS: tuple[JoinAlgorithm, ...] = (JoinAlgorithm(NAME, open, for_comparing=True),)
