"""K-staircase: a k-skyband that sees with one comparison whether a row can ever enter an answer.

Paper:      Shen, Cheema, Lin, Zhang, Wang, TKDE 2014, section 6.2 (Algorithms 4 and 6).
Invariant:  every row that fewer than k better rows outlive is held; a row under the staircase is not taken. No row that
            waits to be merged ranks before the k-th of the skyband.
Cost:       push O(log s) amortised; state at most (1 + x) s, where s is k (1 + ln(n/k)) rows on random order and x, at
            which the cost of waiting and of merging are balanced, is (log k + sqrt(log k (4 + log k))) / 2.
Choose it:  rows come out of order, or you ask many ad-hoc queries with any k and size between them.
"""

from __future__ import annotations

from skyband.core.options import Count
from skyband.problems.rows.algorithms.relaxed import expected_rows as skyband_rows
from skyband.problems.rows.algorithms.staircase.state import Stairs, best_growth
from skyband.problems.rows.operator import Spec, row_algorithm

NAME = "staircase"


def expected_rows(spec: Spec, window_rows: float) -> float:
    """The k-skyband and, on average, half of the rows that may wait."""
    return min(window_rows, (1 + best_growth(spec.k) / 2) * skyband_rows(spec, window_rows))


def open(spec: Spec, *, initial_room: Count = 1024) -> Stairs:
    return Stairs(spec, initial_room=initial_room)


ALGORITHMS = (row_algorithm(NAME, open, expected_rows=expected_rows),)
