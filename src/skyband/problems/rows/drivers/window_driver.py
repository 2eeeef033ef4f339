"""The driver of operators for rows that close windows one after the other, as the clock says.

By value, with a slide, rows of later windows wait in `_pending` until their first window is the next to close. This
also puts rows in order that come late but in time. All other rows go to the algorithm as they arrive.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.core.clock import EARLIEST, LATEST
from skyband.core.emit import takes_back
from skyband.core.operator import Arrays, Codes, Floats, Ints
from skyband.core.validation import FARTHEST, Saved
from skyband.kernels import slabs
from skyband.kernels.codes import order_by_code
from skyband.kernels.compiling import read_only
from skyband.kernels.positions import ascending
from skyband.kernels.ranking import ROW, Rows, joined
from skyband.kernels.skyband import BAND
from skyband.problems.rows.drivers.row_driver import RowDriver
from skyband.problems.rows.drivers.row_kernels import (
    LATE,
    NEED,
    NOW,
    START,
    UNRANKED,
    Input,
    earliest_from,
    running_maximum,
)
from skyband.problems.rows.operator import RECENT, Batch, Spec
from skyband.windows import NEVER

# A waiting row, and its group.
PENDING = np.dtype([*ROW.descr, ("group", np.int64)])
LIST = np.dtype(BAND)
SHOWN = "shown"  # the name of the lists that have the last answers, with changes
NONE = np.empty(0, np.int64)


class WindowDriver(RowDriver):
    """Rows in lists of a pool, by group, and waiting rows."""

    _state: Any  # has `groups`, with their arrivals, and `shown`, the last answer of each group, with changes

    def __init__(self, spec: Spec, initial_room: int) -> None:
        super().__init__(spec, initial_room)
        self._pending = np.empty(0, PENDING)

    # -- an algorithm implements these ----------------------------------------------------------------------------

    @abstractmethod
    def _take(self, rows: Input) -> None:
        """Take rows in this order, and move the clock with them."""

    @abstractmethod
    def _end(self, end: int) -> None:
        """By value, with a slide: drop rows older than the window that ends here, and show its answer."""

    @abstractmethod
    def _all_lists(self) -> dict[str, slabs.Headers]:
        """All lists by name, each by group, without gaps before their first rows. SHOWN has the last answers."""

    @abstractmethod
    def _by_group(self) -> Arrays:
        """Copies of the other arrays that are saved by group."""

    @abstractmethod
    def _restore_groups(self, state: Arrays, lists: dict[str, slabs.Headers]) -> None:
        """Continue from the saved arrays, with these lists of the pool."""

    def _lists(self) -> list[slabs.Headers]:
        """The lists that together hold every live row."""
        return [headers for name, headers in self._all_lists().items() if name != SHOWN]

    # -- the protocol ---------------------------------------------------------------------------------------------

    def held(self) -> Ints:
        positions = self._rows()[1]["position"]
        if takes_back(self.spec.emit):
            positions = np.concatenate([positions, slabs.pack(self._pool, self._all_lists()[SHOWN])["position"]])
        return ascending(positions)

    def compact(self, kept: Ints) -> None:
        saved, by_group = self.state(), self._by_group()
        code = np.full(len(self._arrivals()), slabs.NONE, np.int64)
        code[kept] = np.arange(len(kept))
        for name in by_group:
            if len(saved[name]):  # an array that the algorithm does not need is empty
                saved[name] = saved[name][kept]
        for name in self._all_lists():
            owner = np.repeat(np.arange(len(code)), saved[f"{name}_length"])
            saved[f"{name}_rows"] = saved[f"{name}_rows"][code[owner] != slabs.NONE]
            saved[f"{name}_length"] = saved[f"{name}_length"][kept]
        saved["pending"]["group"] = code[saved["pending"]["group"]]
        self.restore(saved)

    def state(self) -> Arrays:
        counted = np.array([self._clock[NOW], self._clock[LATE], self._clock[UNRANKED]], np.int64)
        clock = np.concatenate([counted, self._windows.state()])
        saved: Arrays = {"clock": clock, "pending": self._pending.copy(), **self._by_group()}
        for name, headers in self._all_lists().items():
            saved[f"{name}_length"] = headers["length"].copy()
            saved[f"{name}_rows"] = slabs.pack(self._pool, headers)
        return saved

    def validate(self, saved: Saved) -> None:
        clock, by_group, names = saved["clock"], self._by_group(), list(self._all_lists())
        saved.promise(len(clock) > 3, "'clock' is too short")
        saved.within("clock", clock[:1], -FARTHEST, FARTHEST)
        saved.counts("clock", clock[1:3])
        self._windows.validate(saved, "clock", clock[3:])
        groups = len(saved[f"{SHOWN}_length"])
        saved.promise(self.spec.grouped or groups == 1, f"there are {groups} groups")
        saved.length(groups, *(f"{name}_length" for name in names), *(name for name in by_group if len(by_group[name])))
        for name in names:
            saved.lists(f"{name}_length", f"{name}_rows")
        saved.rows("pending", *(f"{name}_rows" for name in names))
        saved.indices("pending", saved["pending"]["group"], groups)
        if self._numbered:
            self._validate_numbers(saved, names)
        if self.spec.ties == RECENT:
            saved.within(f"{SHOWN}_length", saved[f"{SHOWN}_length"], 0, self.spec.k)

    def _validate_numbers(self, saved: Saved, names: list[str]) -> None:
        """Check that the number of each row is smaller than that of the next row of its group."""
        arrivals = saved["groups"]["arrivals"] if "groups" in saved else saved["arrivals"]
        for name in names:
            ahead = arrivals[saved.owners(f"{name}_length")] - saved[f"{name}_rows"]["time"]
            saved.within(f"{name}_rows", ahead, 1, FARTHEST)

    def restore(self, state: Arrays) -> None:
        names = list(self._all_lists())
        self._pool = slabs.new_pool(sum(slabs.room_for(state[f"{name}_length"]) for name in names))
        lists = {name: np.zeros(len(state[f"{name}_length"]), LIST) for name in names}
        for name, headers in lists.items():
            headers["length"] = state[f"{name}_length"]
            slabs.unpack(self._pool, headers, state[f"{name}_rows"])
        self._restore_groups(state, lists)
        self._held = None
        self._clock[:] = 0
        self._clock[START] = EARLIEST
        self._clock[NOW], self._clock[LATE], self._clock[UNRANKED] = state["clock"][:3]
        self._windows.restore(state["clock"][3:])
        self._pending = state["pending"].copy()

    # -- rows come ------------------------------------------------------------------------------------------------

    def _push(self, batch: Batch) -> None:
        if self._windows.waits:
            self._push_and_close(batch)
        else:
            self._take_rows(batch.score, batch.time, batch.group, batch.first, NONE)
            self._windows.move_to(int(self._clock[NOW]))

    def _take_rows(self, score: Floats, time: Ints, group: Codes | Ints, first: int, position: Ints) -> None:
        """Take rows in this order. Without positions, these are first, first + 1, …"""
        score, time = read_only(score), read_only(time)  # as from Arrow, so that loops are compiled for one type only
        now = NONE if self._numbered else running_maximum(time, self._clock[NOW])
        order, start = NONE, np.array([0, len(score)])
        if self.spec.grouped:
            order, start = order_by_code(group, len(self._arrivals()))
        self._take(Input(score, time, now, position, first, order, start))
        if len(now):
            self._clock[NOW] = now[-1]

    def _make_room(self) -> None:
        """A kernel stopped because room ran short: enlarge the pool or the output."""
        need = int(self._clock[NEED])
        if need:
            self._pool = slabs.grown_pool(self._pool, need)
        else:
            self._out = slabs.grown(self._out, 2 * len(self._out) + 2 * self.spec.k)

    # -- windows by value that slide ------------------------------------------------------------------------------

    def _push_and_close(self, batch: Batch) -> None:
        """Cut the batch where windows close. Between two closings, take rows of the next window; later ones wait."""
        count, clock = len(batch.score), self._windows
        if not count:
            return
        now = clock.now_after(batch.time)
        closed = clock.closed_after(now)
        in_time = clock.in_time(batch.time, closed)
        clock.move_to(int(now[-1]))
        rows = np.zeros(count, PENDING)
        rows["score"], rows["time"] = batch.score, batch.time
        rows["group"] = batch.group if self.spec.grouped else 0
        rows["position"] = np.arange(batch.first, batch.first + count)
        ranked = ~np.isnan(batch.score) if in_time is None else in_time & ~np.isnan(batch.score)
        clock.unranked += (count if in_time is None else int(in_time.sum())) - int(ranked.sum())
        for first, end, until in clock.runs(closed):
            self._close_until(until)
            begun = rows[first:end][ranked[first:end]]
            clock.begin(begun["time"])
            self._take_due(begun, clock.next_end)

    def _take_due(self, rows: npt.NDArray[np.void], before: int) -> None:
        """Take the rows before this time; the others wait."""
        due = rows["time"] < before
        self._pending = np.concatenate([self._pending, rows[~due]])
        if due.any():
            score, time, position, group = (
                np.ascontiguousarray(rows[name][due]) for name in ("score", "time", "position", "group")
            )
            self._clock[START] = self._windows.live_from
            self._take_rows(score, time, group, 0, position)

    def _takes_back(self) -> bool:
        return takes_back(self.spec.emit) and bool(self._state.shown["length"].any())

    def _earliest_live(self) -> int:
        """The earliest time of the rows held that are in an open window; any time in the next window will do."""
        start, end = self._windows.next_start, self._windows.next_end
        pending = self._pending["time"]
        earliest = int(pending[pending >= start].min(initial=LATEST))
        for headers in self._lists():
            # A row of the next window settles it; usually that is the first row found.
            if earliest >= end:
                found = int(earliest_from(start, end, self._pool, headers))
                earliest = earliest if found == NEVER else min(earliest, found)  # a window may end after NEVER
        return earliest

    def _close_until(self, until: int) -> None:
        if until > self._windows.closed:
            super()._close_until(until)
            self._take_pending(self._windows.next_end)

    def _close_window(self, end: int) -> None:
        self._take_pending(end)
        self._end(end)

    def _take_pending(self, before: int) -> None:
        """Take the waiting rows before this time."""
        if len(self._pending):
            pending, self._pending = self._pending, np.empty(0, PENDING)
            self._take_due(pending[np.lexsort((pending["position"], pending["time"]))], before)

    # -- looking at the state -------------------------------------------------------------------------------------

    def _arrivals(self) -> Ints:
        arrivals: Ints = self._state.groups["arrivals"]
        return arrivals

    def _taken(self) -> tuple[Ints, Rows]:
        """The group of every live row that the algorithm has taken, and these rows, each once."""
        lists = self._lists()
        codes = np.arange(len(lists[0]))
        group = np.concatenate([np.repeat(codes, headers["length"]) for headers in lists])
        return group, joined([slabs.pack(self._pool, headers) for headers in lists])

    def _rows(self) -> tuple[Ints, Rows]:
        group, rows = self._taken()
        if not len(self._pending):
            return group, rows
        pending = np.zeros(len(self._pending), ROW)
        for name in ROW.names or ():
            pending[name] = self._pending[name]
        return np.concatenate([group, self._pending["group"]]), joined([rows, pending])
