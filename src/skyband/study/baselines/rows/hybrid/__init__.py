"""Hybrid: a probabilistic skyband while scores come in random order, an exact one otherwise.

Paper:      Pripužić, Podnar Žarko, Aberer, TODS 2015, named in section 10 as future work; the parts are PA and RAPF.
Invariant:  a buffer holds the recent rows. While a test of the buffer finds no order, the hybrid holds the k + limit
            best rows, as `probabilistic` does; while the test finds one, those that `relaxed+probabilistic` holds.
Cost:       that of the part that runs, and two passes over the buffer for every half of it that is new.
Choose it:  for comparisons only; the planner never chooses it.
"""

from __future__ import annotations

from skyband.core.options import Chance, Count, Growth, TickSpan
from skyband.problems.rows.algorithms import filtered
from skyband.problems.rows.operator import Spec, row_algorithm
from skyband.study.baselines.rows import probabilistic
from skyband.study.baselines.rows.hybrid.state import HybridSkyband
from skyband.study.baselines.rows.probabilistic.state import SIGMA, candidates_of

NAME = "hybrid"


def refuses(spec: Spec) -> str | None:
    if spec.window.endless:
        return "nothing leaves a landmark window, so there are no candidates to choose"
    return probabilistic.refuses(spec)


def expected_rows(spec: Spec, window_rows: float) -> float:
    return min(window_rows, filtered.expected_rows(spec, window_rows) + probabilistic.expected_rows(spec, window_rows))


def open(
    spec: Spec,
    *,
    sigma: Chance | None = None,
    limit: Count | None = None,
    gamma: Growth = 0.2,
    buffer: TickSpan = 0,
    patience: Count = 64,
    initial_room: Count = 1024,
) -> HybridSkyband:
    """`patience`: at least so many rows come between two tests. The other options are those of the two parts."""
    limit = candidates_of(spec, sigma or SIGMA) if limit is None else limit
    return HybridSkyband(spec, limit, gamma=gamma, buffer=buffer, patience=patience, initial_room=initial_room)


ALGORITHMS = (row_algorithm(NAME, open, refuses, expected_rows, exact=False, for_comparing=True),)
