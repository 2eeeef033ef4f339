"""The state of the published probabilistic k-skyband: of each group three sorted lists."""

from __future__ import annotations

import numpy as np

from skyband.core.emit import takes_back
from skyband.kernels.ranking import best_first, joined
from skyband.problems.rows.drivers.step_driver import StepDriver
from skyband.problems.rows.operator import Spec
from skyband.study.baselines.rows.probabilistic.kernels import FIELDS
from skyband.study.baselines.rows.probabilistic_published.kernels import CANDIDATES, TIMES, TOP, Published


class PublishedProbabilistic(StepDriver):
    def __init__(self, spec: Spec, limit: int, additional: int, initial_room: int) -> None:
        super().__init__(spec, Published(limit, additional), lists=3, fields=FIELDS, initial_room=initial_room)

    def rows_held(self) -> int:
        """A row is in the list by time, and in one of the others."""
        shown = int(self._state.shown["length"].sum()) if takes_back(self.spec.emit) else 0
        return int(self._state.lists[TIMES]["length"].sum()) + shown + len(self._pending)

    def check(self) -> None:
        super().check()
        for g in range(len(self._state.groups)):
            top, candidates, times = (self._list(i, g) for i in (TOP, CANDIDATES, TIMES))
            assert len(candidates) <= self._kind.limit + self._kind.additional, "there is a limit of candidates"
            assert len(top) == self.spec.k or not len(candidates), "candidates wait only behind k rows"
            ranked = joined([top, candidates])
            order = best_first(ranked)
            assert (order == np.arange(len(ranked))).all(), "the top k come first, then the candidates, best first"
            oldest_first = ranked[np.lexsort((ranked["position"], ranked["time"]))]
            assert times["position"].tolist() == oldest_first["position"].tolist(), "the list by time has the same rows"
