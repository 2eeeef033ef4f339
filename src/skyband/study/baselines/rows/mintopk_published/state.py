"""The state of MinTopK as published: the super-top-k list, and a pointer and a counter for each open window."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.core.clock import LATEST
from skyband.core.emit import takes_back
from skyband.core.operator import Arrays, Ints
from skyband.kernels.ranking import ROW, Rows, best_first
from skyband.problems.rows.drivers.row_kernels import Input
from skyband.problems.rows.operator import Spec
from skyband.study.baselines.rows.mintopk_published.kernels import (
    COUNTS,
    CURRENT,
    ENDS,
    FREE,
    LEVELS,
    NODE,
    ROWS,
    SuperList,
)
from skyband.study.baselines.rows.open_windows import OpenWindowDriver
from skyband.study.baselines.rows.pretopk.state import windows_of


class SuperTopK(OpenWindowDriver):
    def __init__(self, spec: Spec, *, initial_room: int = 1024) -> None:
        windows = windows_of(spec)
        super().__init__(spec, None, room=(8 * (spec.k + 8), 0), initial_room=initial_room)
        self._at_a_time = initial_room  # rows that one call takes, so that there is a node for each of them
        self._kind = _linked(np.empty(0, NODE), spec.window.every, windows, room=initial_room)

    # -- the protocol ---------------------------------------------------------------------------------------------

    def rows_held(self) -> int:
        shown = int(self._state.shown["length"].sum()) if takes_back(self.spec.emit) else 0
        return int(self._kind.counts[ROWS]) + shown + len(self._pending)

    def state(self) -> Arrays:
        return {**super().state(), **self._saved()}

    def restore(self, state: Arrays) -> None:
        super().restore(state)
        self._link(state, self._at_a_time)

    def check(self) -> None:
        super().check()
        kind, listed, k = self._kind, self._listed(), self.spec.k
        rows = kind.nodes[listed]
        for level in range(LEVELS):
            assert self._walk(level) == listed[rows["levels"] > level].tolist(), "every level is ranked, best first"
        assert rows["before"].tolist() == [ENDS, *listed[:-1].tolist()][: len(rows)], "links lead both ways"
        assert (rows["start"] <= rows["end"]).all(), "every row serves in some window"
        assert (rows["start"] >= kind.counts[CURRENT]).all(), "no row serves in a window that has closed"
        for window in range(kind.counts[CURRENT], kind.counts[CURRENT] + kind.windows):
            alive, slot = np.flatnonzero(rows["end"] >= window), window % kind.windows
            serving = alive[rows["start"][alive] <= window]
            assert serving.tolist() == alive[:k].tolist(), "its k best rows serve in a window, and no others"
            assert kind.tkc[slot] == len(serving), "a window's counter is the number of rows that serve in it"
            if len(serving):
                assert kind.lbp[slot] == listed[serving[-1]], "a window's pointer leads to the worst of them"

    # -- inside ---------------------------------------------------------------------------------------------------

    def _take(self, rows: Input) -> None:
        if self._windows.waits:
            self._catch_up(self._windows.closed // self.spec.window.every)
        for first in range(0, len(rows.score), self._at_a_time):
            end = min(first + self._at_a_time, len(rows.score))
            self._make_nodes(end - first)
            cut = slice(first, end)
            score, time, now, position = rows.score[cut], rows.time[cut], rows.now[cut], rows.position[cut]
            start = np.array([0, end - first])
            super()._take(Input(score, time, now, position, rows.first + first, rows.order, start))

    def _end(self, end: int) -> None:
        self._catch_up(end // self.spec.window.every - 1)
        super()._end(end)

    def _catch_up(self, window: int) -> None:
        """Windows that hold nothing pass without being closed."""
        assert self._kind.counts[ROWS] == 0 or self._kind.counts[CURRENT] == window, "a window with rows has closed"
        self._kind.counts[CURRENT] = window

    def _make_nodes(self, count: int) -> None:
        """There are so many free nodes, and one more to compare a row with."""
        kind, used = self._kind, int(self._kind.counts[ROWS]) + 1
        if len(kind.nodes) >= used + count + 1:
            return
        self._link(self._saved(), 2 * used + count)

    def _saved(self) -> Arrays:
        """The list and the windows. Pointers are saved as ranks: the nodes are others later."""
        listed, kind = self._listed(), self._kind
        rank = np.zeros(len(kind.nodes), np.int64)
        rank[listed] = np.arange(len(listed))
        return {
            "listed": kind.nodes[listed],
            "lbp": np.where(kind.tkc > 0, rank[kind.lbp], 0),
            "tkc": kind.tkc.copy(),
            "current": kind.counts[[CURRENT]],
        }

    def _link(self, saved: Arrays, room: int) -> None:
        """Become the list that was saved, with so many free nodes."""
        self._kind = _linked(saved["listed"], self._kind.every, self._kind.windows, room=room)
        self._kind.lbp[:], self._kind.tkc[:] = saved["lbp"] + 1, saved["tkc"]
        self._kind.counts[CURRENT] = saved["current"][0]

    # -- looking at the state -------------------------------------------------------------------------------------

    def _listed(self) -> Ints:
        """The nodes that are in the list, best first."""
        nodes = self._kind.nodes
        listed = np.flatnonzero(nodes["start"] <= nodes["end"])
        found: Ints = listed[best_first(nodes[listed])]
        return found

    def _walk(self, level: int) -> list[int]:
        node, found = int(self._kind.links[ENDS, level]), []
        while node != ENDS:
            found.append(node)
            node = int(self._kind.links[node, level])
        return found

    def _taken(self) -> tuple[Ints, Rows]:
        listed = self._kind.nodes[self._listed()]
        rows = np.zeros(len(listed), ROW)
        for name in ("score", "time", "position"):
            rows[name] = listed[name]
        return np.zeros(len(rows), np.int64), rows

    def _earliest_live(self) -> int:
        times = np.concatenate([self._pending["time"], self._taken()[1]["time"]])
        return int(times[times >= self._windows.next_start].min(initial=LATEST))

    def live_codes(self) -> npt.NDArray[np.bool_]:
        return super().live_codes() | (self._kind.counts[ROWS] > 0)


def _linked(listed: npt.NDArray[Any], every: int, windows: int, *, room: int) -> SuperList:
    """A list of these rows, best first, with `room` free nodes behind them and one to compare a row with."""
    rows, count = len(listed), len(listed) + room + 2
    nodes = np.zeros(count, NODE)
    nodes["start"] = 1  # after its end: a node that is not in the list
    nodes[1 : rows + 1] = listed
    nodes["before"][: rows + 1] = [rows, *range(rows)]
    links = np.zeros((count, LEVELS), np.int64)
    for level in range(LEVELS):
        there = np.flatnonzero(listed["levels"] > level) + 1
        links[np.append(ENDS, there), level] = np.append(there, ENDS)
    links[rows + 1 : -1, 0] = np.arange(rows + 2, count)
    counts = np.zeros(COUNTS, np.int64)
    counts[ROWS], counts[FREE] = rows, rows + 1
    lbp, tkc, path = np.zeros(windows, np.int64), np.zeros(windows, np.int64), np.zeros(LEVELS, np.int64)
    return SuperList(every, windows, nodes, links, lbp, tkc, counts, path)
