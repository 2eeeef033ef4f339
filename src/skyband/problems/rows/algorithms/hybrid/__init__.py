"""Hybrid: by odds while scores come in random order, exactly while they do not.

Paper:      Pripužić, Podnar Žarko, Aberer, TODS 2015, named in section 10 as future work; the parts are PA and RAPF.
Invariant:  a buffer holds the recent rows. While a test of it finds no order, the k + limit best rows are held as by
            `probabilistic`; from when it does until it no longer does, those of `relaxed+probabilistic`.
Cost:       those of the part that runs, and two passes over the buffer for every half of it that is new.
Choose it:  to compare others with; the planner does not.

It promises nothing: a test of some rows cannot tell what others will do, and what was turned away is gone. `budgeted`
is for who needs a promise. A row that is turned away is still in the buffer when the next test is made, so of the rows
since the test failed none is lost; of those before the buffer some are.

There are two tests. The k-skyband of the buffer is to be as large as in random order; where scores fall, if only those
of one of several sources, it is larger. And its scores are to cross their median as often (Wald and Wolfowitz); trends,
waves, walks and bursts cross it less often. It starts exactly, until there is a buffer to test.
"""

from __future__ import annotations

import numpy as np

from skyband.core.operator import Spec
from skyband.core.options import Chance, Count, Growth, Span
from skyband.core.registry import Algorithm
from skyband.kernels.ranking import SMALL
from skyband.problems.rows.algorithms import filtered, probabilistic
from skyband.problems.rows.algorithms.filtered.kernels import BUFFER, PROBABILISTIC, QUERY, RELAXED
from skyband.problems.rows.algorithms.probabilistic.candidate_bound import candidates
from skyband.problems.rows.algorithms.probabilistic.kernels import HYBRID_FIELDS, Hybrid
from skyband.problems.rows.drivers import growing
from skyband.problems.rows.drivers.step_driver import Stepwise
from skyband.windows import FOREVER

NAME = "hybrid"

TESTED_ROWS = 1_024  # of a buffer


def refuses(spec: Spec) -> str | None:
    if spec.window.size == FOREVER:
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
    buffer: Span = 0,
    patience: Count = 64,
    initial_room: Count = 1024,
) -> HybridSkyband:
    """`patience`: at least so many rows from one test to the next. The others as for the two parts."""
    span = filtered.span_of(spec, buffer)
    held = candidates(span if spec.window.by_count else filtered.MANY_ROWS, spec.k, filtered.SIGMA)
    if limit is None:
        limit = probabilistic.candidates_of(spec, sigma or probabilistic.SIGMA)
    scores = np.empty(TESTED_ROWS)
    best = np.empty(2 * spec.k + SMALL)
    kind = Hybrid(RELAXED, PROBABILISTIC, span, spec.k + held, gamma, limit, 0, patience, scores, best)
    return HybridSkyband(spec, kind, initial_room)


class HybridSkyband(Stepwise):
    def __init__(self, spec: Spec, kind: Hybrid, initial_room: int) -> None:
        super().__init__(spec, kind, lists=3, fields=HYBRID_FIELDS, initial_room=initial_room)

    @property
    def exact_now(self) -> bool:
        """Does every group run exactly at the moment?"""
        return bool((self._state.groups["exact"] == 1).all())

    def check(self) -> None:
        super().check()
        for g in range(len(self._state.groups)):
            group, band, buffer = self._state.groups[g], self._list(QUERY, g), self._list(BUFFER, g)
            assert (np.diff(buffer["time"]) >= 0).all(), "the buffer is in order of time"
            assert (band["time"][: self.spec.k] >= group["limit"]).all(), "no expired row is among the first k"
            if not group["exact"]:
                assert len(band) <= self.spec.k + self._kind.limit, "by odds, a limited number of rows is held"
                assert not len(self._list(2, g)), "by odds there is no filter"


ALGORITHMS = (Algorithm(NAME, growing.opener(open), refuses, expected_rows, exact=False, for_comparing=True),)
