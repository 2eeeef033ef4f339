"""The state of the relaxed k-skyband: each group has its band, its recent rows and its last answer.

It prunes a block of rows at a time, going backwards from the block's end: see kernels/pushing.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.core.emit import takes_back
from skyband.core.operator import Arrays
from skyband.core.validation import Saved
from skyband.kernels import slabs
from skyband.kernels.ranking import Rows, best_first
from skyband.problems.rows.algorithms.relaxed.kernels.arrays import GROUP, SPENT, Config, State, expired_at, new_work
from skyband.problems.rows.algorithms.relaxed.kernels.pushing import expire_all, find_oldest, push, show_all
from skyband.problems.rows.drivers.row_kernels import NOW, Input
from skyband.problems.rows.drivers.window_driver import LIST, SHOWN, WindowDriver
from skyband.problems.rows.operator import Spec

BANDS, RECENT = "band", "recent"  # the names of the lists


class Relaxed(WindowDriver):
    """The operator, which takes rows in blocks."""

    def __init__(
        self,
        spec: Spec,
        *,
        block: int = 32768,
        slack: int = 64,
        initial_room: int = 1024,
        budget: tuple[float, int, int] = (0.0, 0, 0),
    ) -> None:
        """It takes `block` rows at a time. A group that has s rows after pruning is pruned again at 2 s + `slack` rows.

        `budget` has the last three fields of `Config`, for `budgeted`.
        """
        super().__init__(spec, initial_room)
        clock, every = self._windows, spec.window.every if self._numbered else 0
        when = spec.window.size, not clock.endless, self._numbered, every, not clock.slides
        self._config = Config(spec.k, *when, spec.emit, block, slack, *budget)
        self._state = State(np.zeros(1, GROUP), np.zeros(1, LIST), np.zeros(1, LIST), self._clock, self._new_spent(1))
        self._work = new_work(self._config, block)

    def rows_held(self) -> int:
        state = self._state
        # With changes, a row that was shown is held until it leaves; most rows shown are counted twice here.
        lists = (
            (state.groups, state.recent, state.shown) if takes_back(self.spec.emit) else (state.groups, state.recent)
        )
        return sum(int(headers["length"].sum()) for headers in lists) + len(self._pending)

    def live_codes(self) -> npt.NDArray[np.bool_]:
        state = self._state
        live: npt.NDArray[np.bool_] = (
            (state.groups["length"] > 0) | (state.shown["length"] > 0) | (state.groups["arrivals"] > 0)
        )
        live[self._pending["group"]] = True
        return live

    def validate(self, saved: Saved) -> None:
        super().validate(saved)
        saved.counts("arrivals", saved["arrivals"])
        saved.counts("pruned", saved["pruned"])
        saved.best_first(f"{BANDS}_length", f"{BANDS}_rows")
        if self._numbered and self._config.expires:
            shown = saved.ranks(f"{BANDS}_length") < self.spec.k
            age = saved["arrivals"][saved.owners(f"{BANDS}_length")] - saved[f"{BANDS}_rows"]["time"]
            saved.within(f"{BANDS}_rows", age[shown], 1, self.spec.window.size)

    def check(self) -> None:
        saved, k = self.state(), self.spec.k
        rows = self._rows()[1]
        assert len(np.unique(rows["position"])) == len(rows), "no row is held twice"
        assert not np.isnan(rows["score"]).any(), "a row without a score is never held"
        bands, recents = _split(saved, BANDS), _split(saved, RECENT)
        for g, (band, recent) in enumerate(zip(bands, recents, strict=True)):
            assert (best_first(band) == np.arange(len(band))).all(), "a band is sorted, best first"
            assert (np.diff(recent["time"]) >= 0).all(), "recent rows are in order of time"
            limit = 2 * int(self._state.groups["pruned"][g]) + self._config.slack
            assert len(band) + len(recent) <= limit, "a group is pruned before it has twice the rows of the last time"
            alive = recent[recent["time"] > self._expired(g)]
            if len(band) >= k and len(alive):
                first = np.concatenate([band[k - 1 : k], alive])
                assert best_first(first)[0] == 0, "no recent row ranks before the worst of the first k"

    # -- inside ---------------------------------------------------------------------------------------------------

    def _expired(self, g: int) -> int:
        """The latest time of group g's rows that have left the window."""
        now = int(self._arrivals()[g]) - 1 if self._numbered else int(self._clock[NOW])
        return int(expired_at(now, self._config))

    def _new_spent(self, groups: int) -> npt.NDArray[Any]:
        """The spent error of new groups, which is nothing; empty if the query allows no error."""
        return np.full(groups if self._config.error > 0 else 0, np.array((0, 0, -np.inf), SPENT))

    def _know_groups(self, count: int) -> None:
        known = len(self._state.groups)
        if count > known:
            count = max(count, 2 * known)
            groups, recent, shown, clock, old = self._state
            spent = self._new_spent(count)
            spent[: len(old)] = old
            self._state = State(
                slabs.grown(groups, count), slabs.grown(recent, count), slabs.grown(shown, count), clock, spent
            )

    def _take(self, rows: Input) -> None:
        g, j = 0, 0
        while True:
            self._fit_work()
            g, j = push(g, j, rows, self._config, self._pool, self._state, self._work, self._out)
            if g == len(self._state.groups):
                return
            self._make_room()

    def _end(self, end: int) -> None:
        expired = int(expired_at(end - 1, self._config))
        self._fit_work()
        g, groups = 0, len(self._state.groups)
        while (g := expire_all(expired, g, self._config, self._pool, self._state, self._work)) < groups:
            self._make_room()
        g = 0
        while (g := show_all(end, g, self._config, self._pool, self._state, self._out)) < groups:
            self._make_room()

    def _fit_work(self) -> None:
        """Make the scratch space long enough for the recent rows of any group and a block."""
        carried = int(self._state.recent["length"].max(initial=0))
        if len(self._work.score) < self._config.block + carried:
            self._work = new_work(self._config, 2 * carried)

    def _all_lists(self) -> dict[str, slabs.Headers]:
        bands = np.zeros(len(self._state.groups), LIST)
        bands["offset"] = self._state.groups["offset"] + self._state.groups["gap"]
        bands["length"] = self._state.groups["length"]
        return {BANDS: bands, RECENT: self._state.recent, SHOWN: self._state.shown}

    def _by_group(self) -> Arrays:
        return {name: self._state.groups[name].copy() for name in ("arrivals", "pruned")}

    def _restore_groups(self, state: Arrays, lists: dict[str, slabs.Headers]) -> None:
        groups = np.zeros(len(state["arrivals"]), GROUP)
        for name in LIST.names or ():
            groups[name] = lists[BANDS][name]
        groups["arrivals"], groups["pruned"] = state["arrivals"], state["pruned"]
        find_oldest(groups, self._config.k, self._pool)
        self._state = State(groups, lists[RECENT], lists[SHOWN], self._clock, self._new_spent(len(groups)))


def _split(saved: Arrays, name: str) -> list[Rows]:
    """The rows of each group."""
    ends = np.cumsum(saved[f"{name}_length"])
    return [saved[f"{name}_rows"][end - n : end] for n, end in zip(saved[f"{name}_length"], ends, strict=True)]
