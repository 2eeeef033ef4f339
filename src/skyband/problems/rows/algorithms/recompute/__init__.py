"""Recomputation from scratch: keep the whole window, sort it for every answer.

Paper:      none; this is the definition, and the oracle of all the others. It shares no code with them.
Invariant:  every ranked row of every open window is held, in arrival order.
Cost:       push O(n log n) for each answer, state n.
Choose it:  to check another algorithm.
"""

from __future__ import annotations

from skyband.core.registry import Algorithm
from skyband.problems.rows.algorithms.recompute.state import Recompute
from skyband.problems.rows.drivers import growing
from skyband.problems.rows.operator import Spec

NAME = "recompute"


def refuses(spec: Spec) -> str | None:
    return None


def expected_rows(spec: Spec, window_rows: float) -> float:
    return window_rows


def open(spec: Spec) -> Recompute:
    return Recompute(spec)


ALGORITHMS = (Algorithm(NAME, growing.opener(open), refuses, expected_rows, for_comparing=True),)
