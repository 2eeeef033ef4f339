"""Probabilistic k-skyband as published: the top k, the candidates and a list by time, each sorted on its own.

Paper:      Pripužić, Podnar Žarko, Aberer, TODS 2015, section 4.1.2 (PA: Algorithms 1 and 2).
Invariant:  that of `probabilistic`. The list by time has every row that is held, the oldest first.
Cost:       push one comparison for a row that is rejected, else three binary searches, and moving half of each list at
            most; an expiry takes the first row of the list by time, and looks it up; state k + limit rows, each twice.
Choose it:  for comparisons only; `probabilistic` finds the oldest row with one vectorised pass over those it holds.
"""

from __future__ import annotations

from skyband.core.options import Chance, Count, CountOrNone
from skyband.problems.rows.operator import Spec, row_algorithm
from skyband.study.baselines.rows.probabilistic import expected_rows, refuses
from skyband.study.baselines.rows.probabilistic.state import SIGMA, candidates_of
from skyband.study.baselines.rows.probabilistic_published.state import PublishedProbabilistic

NAME = "probabilistic_published"

__all__ = ["ALGORITHMS", "NAME", "expected_rows", "open", "refuses"]


def open(
    spec: Spec,
    *,
    sigma: Chance | None = None,
    limit: Count | None = None,
    additional: CountOrNone = 0,
    initial_room: Count = 1024,
) -> PublishedProbabilistic:
    """The options are those of `probabilistic`."""
    limit = candidates_of(spec, sigma or SIGMA) if limit is None else limit
    return PublishedProbabilistic(spec, limit, additional, initial_room)


ALGORITHMS = (row_algorithm(NAME, open, refuses, expected_rows, exact=False, for_comparing=True),)
