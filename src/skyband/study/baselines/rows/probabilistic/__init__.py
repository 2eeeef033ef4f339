"""Probabilistic k-skyband: top-k with each arrival, sometimes wrong, from a fixed number of rows.

Paper:      Pripužić, Podnar Žarko, Aberer, TODS 2015, section 4.1 (PA).
Invariant:  it holds about the k + limit best of the rows seen. It turns a row away when its rank is so poor that of
            all such rows together less than sigma is ever shown.
Cost:       push one comparison for a row that is rejected; state k + limit rows, however large the window.
Choose it:  for comparisons, and if you know that scores come in random order. The planner never chooses it: `error`
            has to hold on any stream, and `budgeted` guarantees that.
"""

from __future__ import annotations

from skyband.core.options import Chance, Count, CountOrNone
from skyband.problems.rows.operator import Spec, row_algorithm
from skyband.study.baselines.rows.probabilistic.state import SIGMA, ProbabilisticSkyband, candidates_of

NAME = "probabilistic"


def refuses(spec: Spec) -> str | None:
    if spec.ad_hoc:
        return "ad-hoc queries over a part of the window need rows that are not among the best of the whole window"
    return None


def expected_rows(spec: Spec, window_rows: float) -> float:
    """It holds the first k and the candidates."""
    return min(window_rows, spec.k + candidates_of(spec, SIGMA))


def open(
    spec: Spec,
    *,
    sigma: Chance | None = None,
    limit: Count | None = None,
    additional: CountOrNone = 0,
    initial_room: Count = 1024,
) -> ProbabilisticSkyband:
    """`limit`: how many candidates it holds; by default as many as sigma asks for."""
    limit = candidates_of(spec, sigma or SIGMA) if limit is None else limit
    return ProbabilisticSkyband(spec, limit, additional, initial_room)


ALGORITHMS = (row_algorithm(NAME, open, refuses, expected_rows, exact=False, for_comparing=True),)
