"""The state of SMA: that of algorithms that keep the whole window, and a skyband of its best rows.

The published grid is over all columns that a score is made from; this one is over the score itself. It has 512 cells at
most, so in windows of more than 512 * 512 rows a cell has n / 512 rows instead of sqrt(n).

The published window starts full, and the threshold never rises between two looks at it. This window starts empty, so
the threshold rises when the skyband has more than 2k + 16 rows: the skyband is then cut back to its first k.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.ranking import best_first
from skyband.problems.rows.operator import Spec
from skyband.study.baselines.rows.sma.kernels import SMA_FIELDS, Sma
from skyband.study.baselines.rows.tma.kernels.steps import TOP, WINDOW
from skyband.study.baselines.rows.tma.state import WholeWindow


class SkybandMonitoring(WholeWindow):
    def __init__(self, spec: Spec, *, initial_room: int = 1024, tight: bool = False) -> None:
        kind = Sma(2 * spec.k + 16, tight, np.empty(2 * spec.k, np.int64))
        super().__init__(spec, kind, fields=SMA_FIELDS, initial_room=initial_room)

    @property
    def recomputed(self) -> tuple[int, int]:
        """How often the skyband was made anew because it was too short, and how often an answer was due."""
        groups = self._state.groups
        return int(groups["recomputed"].sum()), int(groups["answered"].sum())

    def check(self) -> None:
        super().check()
        k = self.spec.k
        for g in range(len(self._state.groups)):
            band, window, group = self._list(TOP, g), self._list(WINDOW, g), self._state.groups[g]
            assert len(band) <= self._kind.most, "the skyband has a limited number of rows"
            threshold = (group["score"], group["time"], group["position"])
            ranked = window[best_first(window)]
            above = [row >= threshold for row in ranked[["score", "time", "position"]].tolist()]
            ranked = ranked[: sum(above)]
            time = ranked["time"].copy()
            outliving = np.array([(time[:i] >= time[i]).sum() for i in range(len(time))], int)
            live = band[band["time"] >= group["limit"]]
            expected = ranked["position"][outliving < k]
            assert (live["position"] == expected).all(), "the skyband has what is above the threshold and may be shown"
            assert (live["last"] == outliving[outliving < k]).all(), "it counts the better rows that outlive a row"
