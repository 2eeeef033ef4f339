"""The state of PreTopk: of each group the answer shown last, and a predicted answer for each open window."""

from __future__ import annotations

import math

import numpy as np

from skyband.core.operator import Arrays
from skyband.core.validation import Saved
from skyband.kernels.ranking import best_first
from skyband.problems.rows.drivers.row_kernels import Input
from skyband.problems.rows.operator import Spec
from skyband.study.baselines.rows.open_windows import OpenWindowDriver
from skyband.study.baselines.rows.pretopk.kernels import ANSWER, PredictedHeaps
from skyband.windows import NEVER

MOST_WINDOWS = 4096  # that hold the same row


def windows_of(spec: Spec) -> int:
    """How many windows may hold a row, beside those that have closed."""
    return 0 if spec.window.endless else math.ceil(spec.window.size / spec.window.every)


class PredictedTopK(OpenWindowDriver):
    def __init__(self, spec: Spec, *, initial_room: int = 1024) -> None:
        lists = 1 + max(1, windows_of(spec))
        kind = PredictedHeaps(spec.window.every, windows_of(spec), -NEVER)
        # A list has at most k + 1 rows; each of them may move.
        room = (8 * (spec.k + 8) * (lists + 1), 0)
        super().__init__(spec, kind, lists=lists, room=room, initial_room=initial_room)

    def validate(self, saved: Saved) -> None:
        super().validate(saved)
        for i in range(len(self._state.lists)):
            saved.within(f"list{i}_length", saved[f"list{i}_length"], 0, self.spec.k)

    def check(self) -> None:
        super().check()
        k, every, size = self.spec.k, self.spec.window.every, self.spec.window.size
        all_closed = self._windows.closed_by(self._arrivals()) // every
        for g, closed in enumerate(all_closed.tolist()):
            lists = [self._list(i, g) for i in range(len(self._state.lists))]
            assert all(len(rows) <= k for rows in lists), "no list has more than k rows"
            for i, rows in enumerate(lists[1:], 1):
                order = best_first(rows)
                rank = np.argsort(order)
                assert (rank[(np.arange(1, len(rows)) - 1) // 2] > rank[1:]).all(), "above each row is a worse one"
                lists[i] = rows[order]
            later = lists[ANSWER][:0]
            for window in range(closed + windows_of(self.spec) - 1, closed - 1, -1):
                rows = lists[1 + window % windows_of(self.spec)]
                end = (window + 1) * every
                assert ((rows["time"] >= end - size) & (rows["time"] < end)).all(), "a list has rows of its window"
                known = np.unique(np.concatenate([rows, later]))
                best = known[best_first(known)[:k]]
                assert (best["position"] == rows["position"]).all(), "no row is only in the list of a later window"
                later = rows

    def restore(self, state: Arrays) -> None:
        super().restore(state)
        for header in self._state.lists[1:].ravel():
            rows = self._pool.rows[header["offset"] :][: header["length"]]
            rows[:] = rows[best_first(rows)[::-1]]  # rows in order are a heap: snapshots may have the best in front

    def _take(self, rows: Input) -> None:
        if self._windows.waits:
            self._kind = self._kind._replace(closed=self._windows.closed // self.spec.window.every)
        super()._take(rows)
