"""Budgeted k-skyband: the answer with each arrival, exact except for a few rows; never more than the query allows.

Paper:      none for the budget; it drops the rows that PA drops (Pripužić and others, TODS 2015, section 4.1), and
            keeps the skyband of `relaxed`.
Invariant:  it holds the score of every row that fewer than k better rows outlive, as `relaxed` does. It lets some of
            these rows go: it no longer holds their columns. Rows let go and rows missed are together at most
            error * N / n, after N rows in windows of n, at any moment and on any stream.
Cost:       push as `relaxed`; state as `relaxed`, but once the budget allows it, with the columns of only k + limit
            rows and of those since the last pruning. A row without its columns keeps 40 bytes.
Choose it:  the query has `error=`, and its window of arrivals slides with each of them.
"""

from __future__ import annotations

from skyband.core.options import Count, CountOrNone
from skyband.problems.rows.algorithms.budgeted.state import Budgeted
from skyband.problems.rows.algorithms.filtered.candidate_bound import candidates
from skyband.problems.rows.algorithms.relaxed import expected_rows as skyband_rows
from skyband.problems.rows.operator import Spec, row_algorithm

NAME = "budgeted"


def refuses(spec: Spec) -> str | None:
    window = spec.window
    if window.endless:
        return "nothing leaves a landmark window, so there are no candidates to drop"
    if window.known_rows is None:
        return "the number of rows in a window by value changes, so it cannot know what error * N / n allows"
    if window.slides:
        return "windows that slide by panes need few rows anyway"
    if spec.ad_hoc:
        return "ad-hoc queries over a part of the window need rows that are not among the best of the whole window"
    return None


def expected_rows(spec: Spec, window_rows: float) -> float:
    """The first k rows and the candidates, once error * N / n is large enough."""
    skyband = skyband_rows(spec, window_rows)
    return min(skyband, spec.k + candidates(spec.window.size, spec.k, spec.error)) if spec.error else skyband


def open(
    spec: Spec, *, limit: CountOrNone | None = None, block: Count = 32768, slack: Count = 64, initial_room: Count = 1024
) -> Budgeted:
    """`limit` is the number of candidates that it holds behind the first k; None: as many as the error requires."""
    return Budgeted(spec, limit, block, slack, initial_room)


ALGORITHMS = (row_algorithm(NAME, open, refuses, expected_rows, exact=False),)
