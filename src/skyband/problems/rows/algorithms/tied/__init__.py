"""Tied ranks: exact RANK() and DENSE_RANK(), where equal scores share a rank and are all shown.

Paper:      none; the k-skyband of the others, in which only strictly better rows dominate.
Invariant:  every row is held that fewer than k strictly better rows outlive; with dense ranks, rows of fewer than k
            better scores. Equal rows never rule each other out.
Cost:       push O(s), to move rows aside and to count the answer; state s is k (1 + ln(n/k)) rows on random order if
            few are equal, and up to the whole window if many share the best scores, as the answer is then.
Choose it:  the query ranks equal rows together; no other algorithm does.
"""

from __future__ import annotations

from skyband.core.options import Count
from skyband.problems.rows.algorithms.relaxed import expected_rows
from skyband.problems.rows.algorithms.tied.state import Tied
from skyband.problems.rows.operator import Spec, row_algorithm

NAME = "tied"


def expected_ns(spec: Spec, window_rows: float) -> float:
    return 100 + expected_rows(spec, window_rows)


def open(spec: Spec, *, slack: Count = 64, initial_room: Count = 1024) -> Tied:
    return Tied(spec, slack=slack, initial_room=initial_room)


ALGORITHMS = (row_algorithm(NAME, open, expected_rows=expected_rows, expected_ns=expected_ns, for_ties=True),)
