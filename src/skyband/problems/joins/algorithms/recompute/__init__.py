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


def refuses(spec: Spec) -> str | None:
    return None


def expected_rows(spec: Spec, window_rows: float) -> float:
    return window_rows


def open(spec: Spec) -> Recompute:
    return Recompute(spec)


ALGORITHMS: tuple[JoinAlgorithm, ...] = (JoinAlgorithm(NAME, open, refuses, expected_rows, for_comparing=True),)
