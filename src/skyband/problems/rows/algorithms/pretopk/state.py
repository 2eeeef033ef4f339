"""The state of PreTopk: of each group the answer shown last, and a predicted answer for each open window."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from skyband.core.ad_hoc import NEXT_WINDOW, Asked
from skyband.core.operator import Codes, Ints
from skyband.errors import InvalidQuery
from skyband.kernels.ranking import best_first
from skyband.problems.rows.algorithms.pretopk.kernels import ANSWER, PreTopK
from skyband.problems.rows.drivers.row_driver import NEVER
from skyband.problems.rows.drivers.step_driver import Stepwise
from skyband.problems.rows.operator import Spec
from skyband.windows import FOREVER

MOST_WINDOWS = 4096  # that hold the same row


def windows_of(spec: Spec) -> int:
    """How many windows may hold a row, beside those that have closed."""
    return 0 if spec.window.size == FOREVER else math.ceil(spec.window.size / spec.window.every)


class PredictedTopK(Stepwise):
    def __init__(self, spec: Spec, *, initial_room: int = 1024) -> None:
        lists = 1 + windows_of(spec)
        kind = PreTopK(spec.window.every, windows_of(spec), -NEVER)
        # A list has at most k + 1 rows; each of them may move.
        room = (8 * (spec.k + 8) * (lists + 1), 0)
        super().__init__(spec, kind, lists=lists, room=room, initial_room=initial_room)

    def check(self) -> None:
        super().check()
        k, every, size = self.spec.k, self.spec.window.every, self.spec.window.size
        for g in range(len(self._state.groups)):
            closed = int(self._state.groups["arrivals"][g]) // every if self.spec.window.by_count else self._closed
            lists = [self._list(i, g) for i in range(len(self._state.lists))]
            assert all(len(rows) <= k for rows in lists), "no list has more than k rows"
            later = lists[ANSWER][:0]
            for window in range(closed + windows_of(self.spec) - 1, closed - 1, -1):
                rows = lists[1 + window % windows_of(self.spec)]
                end = (window + 1) * every
                assert (best_first(rows) == np.arange(len(rows))).all(), "every list is ranked, best first"
                assert ((rows["time"] >= end - size) & (rows["time"] < end)).all(), "a list has rows of its window"
                known = np.unique(np.concatenate([rows, later]))
                best = known[best_first(known)[:k]]
                assert (best["position"] == rows["position"]).all(), "no row is only in the list of a later window"
                later = rows

    def _take(
        self, score: npt.NDArray[np.float64], time: Ints, group: Codes | Ints, first: int, position: Ints
    ) -> None:
        if not self.spec.window.by_count:
            self._kind = self._kind._replace(closed=self._closed)
        super()._take(score, time, group, first, position)

    def _asked(self, groups: Ints, size: Ints) -> Asked:
        asked, window = super()._asked(groups, size), self.spec.window
        by_count = np.asarray(self._arrivals()[groups] // window.every)
        closed = by_count if window.by_count else np.full(len(groups), self._closed)
        if window.size == FOREVER:
            held = np.zeros(asked.start.shape, np.bool_)
        else:
            end = asked.start + window.size
            held = (end % window.every == 0) & (end // window.every > closed[:, np.newaxis])
        refused = np.argwhere((size != NEXT_WINDOW) & ~held)
        if len(refused):
            g, q = refused[0]
            raise InvalidQuery(
                f"size={size[q]} reaches back to {asked.start[g, q]}, which is not where an open window begins: of "
                f"each open window only the {self.spec.k} best rows are kept. Ask without a size for the window as it "
                "stands, or make the query with ad_hoc=True to ask for any size."
            )
        return asked
