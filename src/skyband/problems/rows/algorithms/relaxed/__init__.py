"""Relaxed k-skyband: exact top-k with each arrival, with lazy pruning.

Paper:      Pripužić, Podnar Žarko, Aberer, TODS 2015, section 4.2 (RA).
Invariant:  it holds every row that fewer than k better rows outlive, the k best of them in front; it may hold some
            others too.
Cost:       push about three comparisons a row and O(log s) for a row that k later rows of its block do not outrank;
            state s is at most twice the k-skyband, which has k (1 + ln(n/k)) rows on random order, and `slack` rows.
Choose it:  you want an answer with each arrival, or `top(k, size)` for any size.
"""

from __future__ import annotations

import math

from skyband.core.options import Count, Growth
from skyband.problems.rows.algorithms.filtered.kernels import RELAXED
from skyband.problems.rows.algorithms.filtered.state import Skyband
from skyband.problems.rows.algorithms.relaxed.state import Relaxed
from skyband.problems.rows.operator import Spec, row_algorithm

NAME = "relaxed"


def expected_rows(spec: Spec, window_rows: float) -> float:
    """On random order, the k-skyband of n rows has k (1 + H_n - H_k) rows, about k (1 + ln(n/k))."""
    if spec.window.endless:
        return min(spec.k, window_rows)
    return min(window_rows, spec.k * (1 + math.log(max(1.0, window_rows / spec.k))))


def open(
    spec: Spec, *, block: Count = 32768, slack: Count = 64, initial_room: Count = 1024, gamma: Growth | None = None
) -> Relaxed | Skyband:
    """With `gamma` it takes row by row, as published, and prunes at (1 + gamma) times the candidates left last time."""
    if gamma is not None:
        return Skyband(spec, RELAXED, gamma=gamma, initial_room=initial_room)
    return Relaxed(spec, block=block, slack=slack, initial_room=initial_room)


ALGORITHMS = (row_algorithm(NAME, open, expected_rows=expected_rows),)
