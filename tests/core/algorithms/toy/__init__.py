"""Toy: `recompute` under another name, which claims to cost next to nothing.

Paper:      none.
Invariant:  that of `recompute`: every row of the window is held.
Cost:       as `recompute`, whatever it says.
Choose it:  never; tests copy this folder to see that nothing else has to be edited.
"""

from __future__ import annotations

from skyband.core.registry import Algorithm
from skyband.problems.rows.algorithms import recompute
from skyband.problems.rows.operator import Spec

NAME = "toy"


def refuses(spec: Spec) -> str | None:
    return "toys are for one ranking" if spec.grouped else None


def expected_rows(spec: Spec, window_rows: float) -> float:
    return window_rows


def expected_ns(spec: Spec, window_rows: float) -> float:
    return 0.001


ALGORITHMS = (Algorithm(NAME, recompute.open, refuses, expected_rows, expected_ns),)
