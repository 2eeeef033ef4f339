"""The state of algorithms that keep the whole window, and of TMA among them.

The published grid is over all columns that a score is made from; this one is over the score itself. It has 512 cells at
most, so in windows of more than 512 * 512 rows a cell has n / 512 rows instead of sqrt(n).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skyband.core.operator import Arrays
from skyband.core.validation import Saved
from skyband.kernels import slabs
from skyband.kernels.ranking import ROW, best_first
from skyband.problems.rows.drivers.row_driver import Change, rescored
from skyband.problems.rows.drivers.step_driver import StepDriver
from skyband.problems.rows.operator import Spec
from skyband.study.baselines.rows.tma.kernels.score_grid import MOST_CELLS, cell_of
from skyband.study.baselines.rows.tma.kernels.steps import GRID, TOP, WINDOW, WINDOW_FIELDS, Tma


class WholeWindow(StepDriver):
    """The window, in order of time, and a list that answers come from; the list is made anew when it is too short."""

    def __init__(self, spec: Spec, kind: Any, *, fields: dict[str, int | float], initial_room: int) -> None:
        # In one step the window may move, its grid may be made anew, and lists of a few k rows may move.
        room = (32 * spec.k + 256 + MOST_CELLS, 4)
        super().__init__(spec, kind, lists=3, fields=fields, room=room, initial_room=initial_room)
        self._repeats = False

    def rows_held(self) -> int:
        return super().rows_held() - int(self._state.lists[GRID]["length"].sum())

    def state(self) -> Arrays:
        """Without the grids: they follow from the window, and the next answer makes them anew."""
        state = super().state()
        state[f"list{GRID}_length"][:], state[f"list{GRID}_rows"] = 0, np.empty(0, ROW)
        state["groups"]["made_of"] = 0
        return state

    def validate(self, saved: Saved) -> None:
        super().validate(saved)
        saved.length(0, f"list{GRID}_rows")
        saved.promise(not saved["groups"]["made_of"].any(), "'groups' have grids")
        for name in ("left", "made_at"):
            saved.counts(f"groups.{name}", saved["groups"][name])
        window, owners = saved[f"list{WINDOW}_rows"], saved.owners(f"list{WINDOW}_length")
        saved.distinct(f"list{WINDOW}_rows", window["position"], owners)
        top, of_top = saved[f"list{TOP}_rows"], saved.owners(f"list{TOP}_length")
        live = top["time"] >= saved["groups"]["limit"][of_top]  # an expired row may be listed until the next answer
        saved.among(f"list{TOP}_rows", of_top[live], top["position"][live], owners, window["position"])

    def rescore(self, change: Change) -> None:
        self.restore(rescored(self.state(), change, other=("low", "per_score")))

    def check(self) -> None:
        super().check()
        for g in range(len(self._state.groups)):
            top, window, group = self._list(TOP, g), self._list(WINDOW, g), self._state.groups[g]
            order = np.lexsort((window["position"], window["time"]))
            assert (order == np.arange(len(window))).all(), "the window is in order of time, then of arrival"
            assert (window["time"] >= group["limit"]).all(), "no expired row is in the window"
            live = top[top["time"] >= group["limit"]]
            assert np.isin(live["position"], window["position"]).all(), "a listed row is expired or in the window"
            assert top["time"].min(initial=group["expires"]) == group["expires"], "no listed row expires sooner"
            self._check_grid(g)

    def _check_grid(self, g: int) -> None:
        window, grid, group = self._list(WINDOW, g), self._list(GRID, g), self._state.groups[g]
        if len(grid) == 0:
            assert group["made_of"] == 0, "a grid without cells is yet to be made"
            return
        with np.errstate(invalid="ignore", over="ignore"):
            cell = np.array([cell_of(s, group["low"], group["per_score"], len(grid)) for s in window["score"]], int)
        assert (np.diff(cell[np.argsort(window["score"])]) >= 0).all(), "a higher score lies in no lower cell"
        for c in range(len(grid)):
            chain, number = [], int(grid[c]["position"])
            for _ in range(grid[c]["last"]):
                chain.append(number - int(group["left"]))
                assert 0 <= chain[-1] < len(window), "a chain stays in the window"
                number = int(window[chain[-1]]["last"])
            # Over all cells this says that every row of the window is in one chain, that of its cell.
            assert chain == np.flatnonzero(cell == c)[::-1].tolist(), "a cell's chain has its rows, the newest first"

    def _lists(self) -> list[slabs.Headers]:
        return [self._all_lists()[f"list{WINDOW}"]]


class TopKMonitoring(WholeWindow):
    def __init__(self, spec: Spec, *, initial_room: int = 1024) -> None:
        super().__init__(spec, Tma(spec.k), fields=WINDOW_FIELDS, initial_room=initial_room)

    def check(self) -> None:
        super().check()
        for g in range(len(self._state.groups)):
            top, window = self._list(TOP, g), self._list(WINDOW, g)
            assert len(top) <= self.spec.k, "the list has at most k rows"
            known = np.concatenate([window, top[~np.isin(top["position"], window["position"])]])
            best = known[best_first(known)[: self.spec.k]]
            assert (best["position"] == top["position"]).all(), "it has the best of the window and of its expired rows"
