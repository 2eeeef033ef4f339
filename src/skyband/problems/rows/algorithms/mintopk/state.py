"""The state of MinTopK: each group's list, its young rows and its open panes, in flat arrays.

It need not remember a row's first window: when a window closes, every row of the lists is in it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from skyband.core.ad_hoc import NEXT_WINDOW, Spans
from skyband.core.clock import LATEST, WindowClock
from skyband.core.emit import takes_back
from skyband.core.operator import Arrays, Ints
from skyband.core.validation import FARTHEST, Saved
from skyband.errors import InvalidQuery
from skyband.kernels import slabs
from skyband.kernels.compiling import read_only
from skyband.kernels.emit import OUT
from skyband.kernels.panes import SAMPLE, WORTH_GUESSING, shape_of
from skyband.kernels.positions import ascending
from skyband.kernels.ranking import Rows, best_first, joined
from skyband.problems.rows.algorithms.mintopk.kernels.arrays import (
    ALL_CLOCKS,
    CELL,
    CLOSED,
    DOMINATOR,
    FREE_CELL,
    GROUP,
    MANY,
    NEXT,
    SHOWN,
    STEPS,
    TOTAL,
    WANTED,
    YOUNG,
    Config,
    new_work,
    room_needed,
    shown_at_most,
)
from skyband.problems.rows.algorithms.mintopk.kernels.closing import FEW, close_until
from skyband.problems.rows.algorithms.mintopk.kernels.pushing import push_by_count, push_by_value
from skyband.problems.rows.drivers.row_driver import Change, RowDriver
from skyband.problems.rows.drivers.row_kernels import LATE, NEED, NOW, UNRANKED
from skyband.problems.rows.operator import Batch, Spec
from skyband.windows import NEVER


class MinTopK(RowDriver):
    """The operator. Its loops close windows themselves, with a clock in the same array as their counts."""

    by_group = False  # its loops take rows in order of arrival

    def __init__(self, spec: Spec, *, slack: int = 8, initial_room: int = 1024) -> None:
        """A pane's buffer is cut to its k best rows when it has max(2k, k + slack)."""
        super().__init__(spec, initial_room, ALL_CLOCKS)
        self._shape = shape_of(spec.window.size, spec.window.every)
        self._config = Config(spec.k, max(2 * spec.k, spec.k + slack), spec.window.lateness, spec.emit)
        self._groups = np.zeros(0, GROUP)
        self._young = np.zeros(0, YOUNG)
        self._cells = np.zeros(0, CELL)
        self._work = new_work(self._config, 1)
        self._sample = np.empty(SAMPLE) if spec.k >= WORTH_GUESSING and not spec.grouped else None
        self._clock[[CLOSED, NEXT, FREE_CELL]] = -NEVER, NEVER, slabs.NONE
        self._know_groups(1)

    # -- the protocol ---------------------------------------------------------------------------------------------

    def held(self) -> Ints:
        parts = [slabs.positions(self._pool, headers) for headers in self._lists()]
        return ascending(np.concatenate(parts))

    def rows_held(self) -> int:
        return int(self._clock[TOTAL])

    def live_codes(self) -> npt.NDArray[np.bool_]:
        groups, rows = self._groups, self._groups["length"] + self._young["length"]
        live: npt.NDArray[np.bool_] = (rows > 0) | (groups["cell"] != slabs.NONE) | (groups["arrivals"] > 0)
        return live

    def compact(self, kept: Ints) -> None:
        state = self.state()
        code = np.full(len(self._groups), slabs.NONE, np.int64)
        code[kept] = np.arange(len(kept))
        owners = {"groups": code, "young": code, "cells": code[state["cells"]["group"]]}
        for name, rows in (("groups", "list_rows"), ("young", "young_rows"), ("cells", "cell_rows")):
            stays = owners[name] != slabs.NONE
            state[rows] = state[rows][np.repeat(stays, state[name]["length"])]
            state[name] = state[name][stays]
        state["cells"]["group"] = code[state["cells"]["group"]]
        state["clock"][TOTAL] = sum(len(state[rows]) for rows in ("list_rows", "young_rows", "cell_rows"))
        self.restore(state)

    def state(self) -> Arrays:
        cells = self._open_cells()
        return {
            "clock": self._clock.copy(),
            "groups": self._groups.copy(),
            "young": self._young.copy(),
            "cells": cells,
            "list_rows": slabs.pack(self._pool, self._groups),
            "young_rows": slabs.pack(self._pool, self._young),
            "cell_rows": slabs.pack(self._pool, cells),
        }

    def validate(self, saved: Saved) -> None:
        groups, young, cells, clock = (saved[name] for name in ("groups", "young", "cells", "clock"))
        n = len(groups)
        saved.length(ALL_CLOCKS, "clock")
        saved.promise(self.spec.grouped or n == 1, f"there are {n} groups")
        saved.length(n, "young")
        for headers, name, rows in ((groups, "groups", "list"), (young, "young", "young"), (cells, "cells", "cell")):
            saved.parts(headers["length"], len(saved[f"{rows}_rows"]), f"{name}.length", f"{rows}_rows")
            saved.rows(f"{rows}_rows")
            saved.within(f"{rows}_rows.flag", saved[f"{rows}_rows"]["flag"], 0, FARTHEST)
        saved.indices("cells.group", cells["group"], n)
        saved.distinct("cells", cells["pane"], cells["group"])
        saved.within("cells.length", cells["length"], 0, self._config.limit - 1)
        saved.numbers("cells.threshold", cells["threshold"])
        saved.numbers("groups.worst", groups["worst"])
        for name in ("arrivals", "shown"):
            saved.counts(f"groups.{name}", groups[name])
        for name in ("until", "listed", "stays"):
            saved.moments(f"groups.{name}", groups[name])
        self._validate_windows(saved, clock)

    def _validate_windows(self, saved: Saved, clock: Ints) -> None:
        """Check that windows with rows are near those that have closed; otherwise closing them would never end."""
        rows = sum(len(saved[f"{name}_rows"]) for name in ("list", "young", "cell"))
        closed, following = int(clock[CLOSED]), int(clock[NEXT])
        every, limit = self._shape.every, FARTHEST // self._shape.every + 1
        saved.promise(clock[TOTAL] == rows, f"'clock' counts {clock[TOTAL]} rows, not {rows}")
        saved.within("clock", clock[[NOW]], -FARTHEST, FARTHEST)
        saved.counts("clock", clock[[LATE, UNRANKED, STEPS]])
        saved.promise(-NEVER <= closed <= limit, f"'clock' has closed {closed}")
        saved.promise(following == NEVER or closed <= following <= 2 * limit, f"'clock' closes {following} next")
        if self._windows.waits and self.spec.window.lateness < NEVER and clock[NOW] > -NEVER:
            passed = (int(clock[NOW]) - self.spec.window.lateness) // every
            # The loop notices only when a row comes to another pane, so it may be a slide behind.
            saved.promise(closed >= passed - 1, "'clock' has not closed what its watermark has passed")
        slides = 1 if self._windows.endless else self._shape.whole + 2
        pane = saved["cells"]["pane"]
        saved.within("cells.pane", pane, -2 * limit, 2 * limit)
        if not self._numbered and not self._windows.endless:
            for name in ("list_rows", "young_rows"):
                saved.within(f"{name}.last", saved[name]["last"], -limit, closed + slides)

    def restore(self, state: Arrays) -> None:
        self._held, self._windows = None, WindowClock(self.spec.window)
        self._clock, self._groups, self._young, self._cells = (
            state[name].copy() for name in ("clock", "groups", "young", "cells")
        )
        lists = self._groups, self._young, self._cells
        self._pool = slabs.new_pool(sum(slabs.room_for(headers["length"]) for headers in lists))
        for headers, name in zip(lists, ("list_rows", "young_rows", "cell_rows"), strict=True):
            headers["offset"] = 0
            slabs.unpack(self._pool, headers, state[name])
        self._groups["cell"] = self._clock[FREE_CELL] = slabs.NONE
        self._clock[OUT] = self._clock[NEED] = self._clock[WANTED] = 0  # what an earlier call left there
        for cell, g in enumerate(self._cells["group"]):
            self._cells["following"][cell] = self._groups["cell"][g]
            self._groups["cell"][g] = cell
        self._move_clock()

    def rescore(self, change: Change) -> None:
        super().rescore(change)
        self._work = new_work(self._config, len(self._work.bar))  # its predictions are scores

    def check(self) -> None:
        state, k = self.state(), self.spec.k
        rows = self._rows()[1]
        assert self.rows_held() == len(rows), "the count of rows held is their number"
        assert len(np.unique(rows["position"])) == len(rows), "no row is held twice"
        assert not np.isnan(rows["score"]).any(), "a row without a score is never held"
        assert (state["cells"]["length"] < self._config.limit).all(), "an open pane holds fewer rows than its limit"
        slides = 1 if self.spec.window.endless else self._shape.whole + (self._shape.rest > 0)
        for name, headers in (("list_rows", state["groups"]), ("young_rows", state["young"])):
            for listed in np.split(state[name], np.cumsum(headers["length"])[:-1]):
                assert (best_first(listed) == np.arange(len(listed))).all(), "a group's list is sorted, best first"
                # With changes a row stays while it is shown, and until the lists are merged after that.
                leaving = ((listed["flag"] & SHOWN > 0) | (listed["flag"] >= DOMINATOR * k)) & (
                    takes_back(self.spec.emit)
                )
                kept, last = listed[~leaving], listed["last"]
                outlived = [(last[:i] >= last[i]).sum() for i in np.flatnonzero(~leaving)]
                assert all(n < k for n in outlived), "no row is in a list that k better rows of it outlive"
                assert (kept["flag"] // DOMINATOR == outlived).all(), "each row knows how many of its list outlive it"
                assert len(kept) <= k * slides, "a list holds at most k rows for each slide of the window"
        self._check_young(state)

    def _check_young(self, state: Arrays) -> None:
        groups, young = state["groups"], state["young"]
        for rows, headers, bound in (("list_rows", groups, "listed"), ("young_rows", young, "until")):
            of = np.repeat(groups[bound], headers["length"])
            assert (state[rows]["last"] <= of).all(), f"no row lives longer than {bound!r} says"
        listed = np.repeat(groups["listed"], young["length"])
        assert (state["young_rows"]["last"] > listed).all(), "young rows outlive those of the list"
        most = np.maximum(groups["length"], FEW * self.spec.k)
        assert (young["length"] <= most).all(), "there are not more young rows than others, or few"

    # -- inside ---------------------------------------------------------------------------------------------------

    def _push(self, batch: Batch) -> None:
        group = batch.group if self.spec.grouped else None
        score, time = read_only(batch.score), read_only(batch.time)
        i, n = 0, len(score)
        while True:
            self._fit_work(n)
            state = self._shape, self._config, self._pool, *self._arrays(), self._work
            if self._numbered:
                i = push_by_count(score, group, batch.first, i, *state, self._sample)
            else:
                i = push_by_value(score, time, group, batch.first, i, *state)
            if i == n:
                break
            self._make_room()
        self._move_clock()

    def _move_clock(self) -> None:
        """Bring the driver's clock to where the loops have moved theirs."""
        if self._windows.waits:
            self._windows.move_to(int(self._clock[NOW]))
            self._windows.closed = max(self._windows.closed, int(self._clock[CLOSED]) * self._shape.every)

    def _worth_closing(self) -> int | None:
        upcoming = int(self._clock[NEXT])
        return None if upcoming == NEVER else (upcoming + 1) * self._shape.every

    def next_held(self) -> int | None:
        # The loops close windows without the clock, which therefore does not know the earliest row of a landmark.
        if not self._windows.waits or (earliest := self._earliest_live()) == LATEST:
            return None
        return max(self._windows.next_end, (earliest // self._shape.every + 1) * self._shape.every)

    def _close_until(self, until: int) -> None:
        windows = until // self._shape.every  # those with a smaller index end here or before
        while not close_until(windows - 1, self._shape, self._config, self._pool, *self._arrays()):
            self._make_room()
        self._clock[CLOSED] = max(self._clock[CLOSED], windows)
        self._move_clock()

    def _finish_end(self) -> int:
        # A row in an open pane makes the next window worth closing, even if all windows of its time have closed.
        end = self._windows.finish_end
        return max(end, self._windows.next_end) if len(self._open_cells()) else end

    def _know_groups(self, count: int) -> None:
        known = len(self._groups)
        if count > known:
            self._groups = slabs.grown(self._groups, max(count, 2 * known))
            self._groups["cell"][known:] = slabs.NONE
            self._groups["until"][known:] = self._groups["listed"][known:] = -NEVER
            self._young = slabs.grown(self._young, len(self._groups))

    def _arrays(self) -> tuple[slabs.Headers, slabs.Headers, slabs.Headers, Ints, npt.NDArray[np.void]]:
        return self._groups, self._young, self._cells, self._clock, self._out

    def _lists(self) -> tuple[slabs.Headers, ...]:
        """All lists of rows: those of groups, their young rows, and their open panes."""
        return self._groups, self._young, self._open_cells()

    def _fit_work(self, rows: int) -> None:
        """Make the scratch space large enough for a run of this many rows, if they are enough for a run."""
        groups = len(self._groups)
        if self.spec.grouped and len(self._work.bar) < groups and rows >= MANY * self.spec.k * groups:
            self._work = new_work(self._config, groups)

    def _make_room(self) -> None:
        """A kernel stopped because room might run short: enlarge the pool, the output or the cells."""
        need = int(room_needed(self._config, self._groups, self._clock))
        if self._pool.room() < need:
            self._pool = slabs.grown_pool(self._pool, need)
        shown = int(shown_at_most(self._config, self._clock))
        if len(self._out) - self._clock[OUT] < shown:
            self._out = slabs.grown(self._out, 2 * len(self._out) + shown)
        if self._clock[FREE_CELL] == slabs.NONE or self._clock[WANTED]:
            known, more = len(self._cells), max(4, len(self._cells), len(self._groups) if self._clock[WANTED] else 0)
            self._cells = slabs.grown(self._cells, known + more)
            self._cells["group"][known:] = slabs.NONE
            self._cells["following"][known:] = [*range(known + 1, known + more), self._clock[FREE_CELL]]
            self._clock[FREE_CELL] = known
        self._clock[WANTED] = 0

    def _open_cells(self) -> slabs.Headers:
        return self._cells[self._cells["group"] != slabs.NONE]

    def _rows(self) -> tuple[Ints, Rows]:
        """The group of every row held, and these rows."""
        lists, known = self._lists(), np.arange(len(self._groups))
        groups = [
            np.repeat(of, headers["length"])
            for of, headers in zip((known, known, lists[2]["group"]), lists, strict=True)
        ]
        return np.concatenate(groups), joined([slabs.pack(self._pool, headers) for headers in lists])

    def _arrivals(self) -> Ints:
        arrivals: Ints = self._groups["arrivals"]
        return arrivals

    def _spans(self, groups: Ints, size: Ints) -> Spans:
        self._refuse(size)
        return super()._spans(groups, size)

    def _refuse(self, size: Ints) -> None:
        """Refuse sizes that do not reach back to the start of an open window, for any group, even one without rows."""
        every, window = self._shape.every, self.spec.window
        start, closed = self._windows.reach(size, self._arrivals())
        # The distance from the start of the next window; for a landmark, from the last end that has closed.
        ahead = start - (closed if window.endless else closed + (every - window.size))
        refused = np.argwhere((size != NEXT_WINDOW) & ((ahead < 0) | (ahead % every > 0)))
        if len(refused):
            g, q = refused[0]
            raise InvalidQuery(
                f"size={size[q]} reaches back to {start[g, q]}, where no open window begins. Of each pane the session "
                f"keeps the {self.spec.k} best rows, and of closed windows none. Leave out size for the current "
                "window, or open the query with ad_hoc=True for any size."
            )
