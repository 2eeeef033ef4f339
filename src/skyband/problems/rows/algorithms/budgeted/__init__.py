"""Budgeted k-skyband: the exact answer at every arrival, but for a few rows; never more than the query allows.

Paper:      none for the budget; the rows it lets go are those of PA (Pripužić and others, TODS 2015, section 4.1), the
            skyband is `relaxed`.
Invariant:  the scores of every row that fewer than k better rows outlive are held, as by `relaxed`. Some of these rows
            are let go: their columns are not held. Rows let go and rows missed are together at most error * N / n,
            after N rows in windows of n, at any moment and on any stream.
Cost:       push as `relaxed`; state as `relaxed`, but the columns of k + limit rows and of those that came since it was
            pruned, once the budget allows it. 40 bytes stay of a row that is let go.
Choose it:  `error=` is given, in a window of arrivals that slides with each of them.
"""

from __future__ import annotations

from skyband.core.options import Count, CountOrNone
from skyband.core.registry import Algorithm
from skyband.problems.rows.algorithms.budgeted.state import Budgeted
from skyband.problems.rows.algorithms.probabilistic.candidate_bound import candidates
from skyband.problems.rows.algorithms.relaxed import expected_rows as skyband_rows
from skyband.problems.rows.drivers import growing
from skyband.problems.rows.operator import Spec
from skyband.windows import FOREVER

NAME = "budgeted"


def refuses(spec: Spec) -> str | None:
    window = spec.window
    if window.size == FOREVER:
        return "nothing leaves a landmark window, so there are no candidates to let go"
    if not window.by_count:
        return "how many rows a window by value holds changes, so what error * N / n allows is not known"
    if window.every:
        return "of windows that slide by panes few rows are held anyhow"
    if spec.ad_hoc:
        return "ad-hoc questions for a part of the window need rows that are not among the best of all of it"
    return None


def expected_rows(spec: Spec, window_rows: float) -> float:
    """The first k and the candidates, once error * N / n is large enough."""
    skyband = skyband_rows(spec, window_rows)
    return min(skyband, spec.k + candidates(spec.window.size, spec.k, spec.error)) if spec.error else skyband


def open(
    spec: Spec,
    *,
    limit: CountOrNone | None = None,
    block: Count = 32768,
    slack: Count = 64,
    initial_room: Count = 1024,
) -> Budgeted:
    """`limit` candidates behind the first k instead of those that the error asks for."""
    return Budgeted(spec, limit, block, slack, initial_room)


ALGORITHMS = (Algorithm(NAME, growing.opener(open), refuses, expected_rows, exact=False),)
