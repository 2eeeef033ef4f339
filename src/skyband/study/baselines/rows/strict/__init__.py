"""Strict k-skyband: exact top-k with each arrival, from exactly the rows that may still enter an answer.

Paper:      Pripužić, Podnar Žarko, Aberer, TODS 2015, section 3 (SA); Mouratidis and others before them.
Invariant:  a row is held if and only if fewer than k better rows outlive it.
Cost:       push O(s), to count for each worse row one more that outlives it; state s is k (1 + ln(n/k)) rows on random
            order, the whole window when scores fall.
Choose it:  for comparisons only; `relaxed` gives the same answers faster.
"""

from __future__ import annotations

from skyband.core.options import Count
from skyband.problems.rows.algorithms.filtered.kernels import STRICT
from skyband.problems.rows.algorithms.filtered.state import Skyband
from skyband.problems.rows.algorithms.relaxed import expected_rows
from skyband.problems.rows.operator import Spec, row_algorithm

NAME = "strict"


def open(spec: Spec, *, initial_room: Count = 1024) -> Skyband:
    return Skyband(spec, STRICT, initial_room=initial_room)


ALGORITHMS = (row_algorithm(NAME, open, expected_rows=expected_rows, for_comparing=True),)
