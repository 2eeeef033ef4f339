"""The state of the hybrid: of each group the rows that may be shown, and a buffer of recent rows that it tests.

The hybrid promises nothing: a test of some rows cannot tell what other rows will do, and a row that was turned away is
gone. Whoever needs a promise uses `budgeted`. A row that was turned away is still in the buffer at the next test, so
the hybrid loses no row that came since a test failed; it loses some that left the buffer before.

The hybrid makes two tests. The first asks whether the k-skyband of the buffer is as large as in random order; it is
larger where scores fall, if only those of one of several sources. The second asks whether scores cross their median as
often (Wald and Wolfowitz); trends, waves, walks and bursts cross it less often. The hybrid starts exact, and stays
exact until the buffer has rows to test.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.ranking import SMALL
from skyband.problems.rows.algorithms.filtered.kernels import BUFFER, FILTER, PROBABILISTIC, QUERY, RELAXED
from skyband.problems.rows.algorithms.filtered.state import rows_in_filter, span_of
from skyband.problems.rows.drivers.step_driver import StepDriver
from skyband.problems.rows.operator import Spec
from skyband.study.baselines.rows.hybrid.kernels import HYBRID_FIELDS, Hybrid

TESTED_ROWS = 1_024  # of a buffer


class HybridSkyband(StepDriver):
    def __init__(
        self, spec: Spec, limit: int, *, gamma: float, buffer: int, patience: int, initial_room: int = 1024
    ) -> None:
        span = span_of(spec, buffer)
        scores, best = np.empty(TESTED_ROWS), np.empty(2 * spec.k + SMALL)
        candidates = rows_in_filter(spec, span)
        kind = Hybrid(RELAXED, PROBABILISTIC, span, candidates, gamma, limit, 0, patience, scores, best)
        super().__init__(spec, kind, lists=3, fields=HYBRID_FIELDS, initial_room=initial_room)

    @property
    def exact_now(self) -> bool:
        """Is every group exact at the moment?"""
        return bool((self._state.groups["exact"] == 1).all())

    def check(self) -> None:
        super().check()
        for g in range(len(self._state.groups)):
            group, band, buffer = self._state.groups[g], self._list(QUERY, g), self._list(BUFFER, g)
            assert (np.diff(buffer["time"]) >= 0).all(), "the buffer is in order of time"
            assert (band["time"][: self.spec.k] >= group["limit"]).all(), "no expired row is among the first k"
            if not group["exact"]:
                assert len(band) <= self.spec.k + self._kind.limit, (
                    "a probabilistic group holds a limited number of rows"
                )
                assert not len(self._list(FILTER, g)), "a probabilistic group has no filter"
