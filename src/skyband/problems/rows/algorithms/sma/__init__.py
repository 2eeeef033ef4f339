"""SMA: the whole window, and of its best rows those that may still be shown.

Paper:      Mouratidis, Bakiras, Papadias, SIGMOD 2006, section 5 (Skyband Monitoring Algorithm), on one score; the
            baseline of Yang and others, EDBT 2011.
Invariant:  every row of the window is held, and is in its cell of a grid; the skyband has the rows that rank as high as
            the threshold, and that fewer than k better rows outlive. With k rows in it, its first k are the answer;
            with fewer, the best cells that have k rows in all are looked through for the k best, and the k-th of these
            is the new threshold.
Cost:       push O(1) a row, once for putting it into its cell and once for taking it out, O(s) for one above the
            threshold; an answer O(sqrt(n) + c + k log k) if the skyband has fewer than k rows, with c rows in those
            cells: k + sqrt(n) if scores are spread evenly; state n + s rows, s at most 2k + 16, and sqrt(n) cells.
Choose it:  to compare others with; `mintopk` and `relaxed` keep no window, nor a grid.

As published, the grid is over all columns that a score may be made from. Here there is one score, so it is over that.
It has 512 cells at most, so of windows of more than 512 * 512 rows a cell has n / 512 instead of sqrt(n).

As published, the threshold never rises between two looks at the window, which starts full. Here it starts empty, so the
threshold rises when the skyband has more than 2k + 16 rows: it is cut back to its first k.
"""

from __future__ import annotations

import numpy as np

from skyband.core.operator import Spec
from skyband.core.options import Count
from skyband.core.registry import Algorithm
from skyband.kernels.ranking import best_first
from skyband.problems.rows.algorithms.tma import WholeWindow
from skyband.problems.rows.drivers import growing
from skyband.problems.rows.drivers.window_kernels import SMA_FIELDS, TOP, WINDOW, Sma

NAME = "sma"


class SkybandMonitoring(WholeWindow):
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


def expected_rows(spec: Spec, window_rows: float) -> float:
    return window_rows


def refuses(spec: Spec) -> str | None:
    return None


def open(spec: Spec, *, initial_room: Count = 1024) -> SkybandMonitoring:
    kind = Sma(2 * spec.k + 16, np.empty(2 * spec.k, np.int64))
    return SkybandMonitoring(spec, kind, fields=SMA_FIELDS, initial_room=initial_room)


ALGORITHMS = (Algorithm(NAME, growing.opener(open), refuses, expected_rows, for_comparing=True),)
