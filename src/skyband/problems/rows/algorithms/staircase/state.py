"""The state of the k-staircase: each group has the k-skyband with its stairs, and the rows gathered since."""

from __future__ import annotations

import math

import numpy as np

from skyband.core.ad_hoc import HeldIndex
from skyband.kernels import slabs
from skyband.kernels.ranking import best_first
from skyband.problems.rows.algorithms.staircase.kernels import BAND, FIELDS, GATHERED, NO_STAIR, Staircase, build_all
from skyband.problems.rows.drivers.step_driver import StepDriver
from skyband.problems.rows.operator import Spec


def best_growth(k: int) -> float:
    """The growth at which rebuilding the skyband costs least per row, as a multiple of its size.

    For k = 1 the paper's analysis needs a constant instead of log k; we take 1.

    >>> round(best_growth(100), 2)
    5.45
    """
    log_k = math.log(k) if k > 1 else 1.0
    return (log_k + math.sqrt(log_k * (4 + log_k))) / 2


class Stairs(StepDriver):
    """The operator: k-skybands with staircases, and the rows gathered since these were built."""

    def __init__(self, spec: Spec, *, initial_room: int = 1024) -> None:
        super().__init__(spec, Staircase(best_growth(spec.k)), lists=2, fields=FIELDS, initial_room=initial_room)
        self._repeats = False  # no row is in both lists

    def check(self) -> None:
        super().check()
        k, groups = self.spec.k, self._state.groups
        for g in range(len(groups)):
            band, gathered = self._list(BAND, g), self._list(GATHERED, g)
            stairs = band["last"]
            built = int(groups["built"][g])
            most = built + max(1, math.ceil(self._kind.growth * built))
            assert len(band) + len(gathered) <= most, "as many rows may wait as is best, and no more"
            assert (band["time"][:k] >= groups["limit"][g]).all(), "none of the first k is expired"
            assert not len(gathered) or len(band) >= k, "rows are gathered only behind a whole answer"
            assert not np.isin(gathered["position"], band["position"]).any(), "no row is in both lists"
            if len(gathered):
                assert gathered["score"].max() <= groups["best"][g], "no row gathered is better than the best of them"
                alive = gathered[gathered["time"] >= groups["limit"][g]]
                first = np.concatenate([band[k - 1 : k], alive])
                assert best_first(first)[0] == 0, "no row gathered ranks before the last of the first k"
            assert (stairs[:-1] <= stairs[1:]).all(), "stairs rise from the best row to the worst"
            for r in np.flatnonzero((stairs != NO_STAIR) & (stairs >= groups["limit"][g])):
                # Some rows that made a stair before the limit may have gone.
                outlives = (band["time"][: r + 1] >= stairs[r]).sum()
                assert outlives >= k, "a stair is the time of which k rows up to there have a later one or the same"

    # -- inside ---------------------------------------------------------------------------------------------------

    def _ask(self) -> HeldIndex:
        if self._held is None:
            # The gathered rows must be ranked once, now or later.
            g = 0
            while (g := build_all(g, self._config, self._pool, self._state)) < len(self._state.groups):
                self._pool = slabs.grown_pool(self._pool, len(self._pool.rows))
        return super()._ask()
