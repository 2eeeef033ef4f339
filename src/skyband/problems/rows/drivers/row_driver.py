"""What operators share that take rows as they arrive: which row is due, which window closes, what may be asked.

An algorithm below takes rows in, in the order it is given them, and shows its answer: with each arrival, every so many
arrivals, or when it is told that a window ends. With a slide by value, rows that belong to a later window than the next
one to close wait here, in `_pending`: that is also what puts rows in order that come late, but not too late.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.ad_hoc import NEXT_WINDOW, Asked, Held
from skyband.core.clock import EARLIEST, LATEST, WindowClock
from skyband.core.emit import takes_back
from skyband.core.operator import ANSWER, Answer, Arrays, Codes, Ints
from skyband.kernels import slabs
from skyband.kernels.compiling import allocating, inlined, kernel
from skyband.kernels.ranking import ROW, Rows, joined
from skyband.problems.rows.drivers.emit_kernels import OUT
from skyband.problems.rows.drivers.rescoring import Change, rescored
from skyband.problems.rows.operator import Batch, Spec
from skyband.windows import FOREVER

NEVER = FOREVER

# What the clock array of such an algorithm holds, beside OUT.
NOW = 1  # the largest time seen
LATE = 2  # rows dropped because they were older than the window
NEED = 3  # pool entries that the last call was short of
UNRANKED = 4  # rows without a score
START = 5  # rows before this are of no use to the group whose row is being taken
CLOCKS = 6

# A row that waits for its window, and its group.
PENDING = np.dtype([*ROW.descr, ("group", np.int64)])
NO_ORDER = np.empty(0, np.int64)


class Input(NamedTuple):
    """Rows of a batch. Those of group g are order[start[g]:start[g + 1]]; without groups order is empty.

    One class for all kernels: of two with the same name and the same types numba knows one, and takes a fraction of a
    millisecond to find the other, with every call.
    """

    score: npt.NDArray[np.float64]  # in order of arrival, or already group after group
    time: npt.NDArray[np.int64]  # by value
    now: npt.NDArray[np.int64]  # by value: the largest time up to each row
    position: npt.NDArray[np.int64]  # empty: first, first + 1, …
    first: int
    order: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]


@inlined
def row_index(batch, j):  # type: ignore[no-untyped-def]
    """Which row of the batch is row j, group after group."""
    return batch.order[j] if len(batch.order) else j


@inlined
def first_due(now, due, end):  # type: ignore[no-untyped-def]
    """The first of the batch's rows before `end` by which this time is reached, or `end`."""
    low, high = 0, end
    while low < high:
        middle = (low + high) >> 1
        if now[middle] >= due:
            high = middle
        else:
            low = middle + 1
    return low


@allocating
def running_maximum(time, now):  # type: ignore[no-untyped-def]
    latest = np.empty(len(time), np.int64)
    for i in range(len(time)):
        now = max(now, time[i])
        latest[i] = now
    return latest


@kernel
def earliest_from(start, end, pool, headers):  # type: ignore[no-untyped-def]
    """The earliest time of these lists' rows that is not before `start`, or the first before `end`; NEVER: none."""
    earliest = NEVER
    for g in range(len(headers)):
        for r in range(headers[g].offset, headers[g].offset + headers[g].length):
            time = pool.rows[r].time
            if start <= time < earliest:
                earliest = time
                if earliest < end:
                    return earliest
    return earliest


class Arriving(ABC):
    """The protocol (see protocol.py), but for what an algorithm has to say itself: the methods below `-- below --`."""

    def __init__(self, spec: Spec, initial_room: int) -> None:
        self.spec = spec
        self._windows = WindowClock(spec.window)
        self._pool = slabs.new_pool(initial_room)
        self._out = np.zeros(initial_room, ANSWER)
        self._clock = np.zeros(CLOCKS, np.int64)
        self._clock[NOW], self._clock[START] = -NEVER, EARLIEST
        self._pending = np.empty(0, PENDING)
        self._held: Held | None = None  # for questions; None: not made since rows came or left

    @property
    def late(self) -> int:
        return self._windows.late + int(self._clock[LATE])

    @property
    def unranked(self) -> int:
        return self._windows.unranked + int(self._clock[UNRANKED])

    @property
    def _closed(self) -> int:
        """By value with a slide: windows with a smaller index have closed."""
        return self._windows.closed // self.spec.window.every

    # -- the protocol ---------------------------------------------------------------------------------------------

    def push(self, batch: Batch) -> Answer:
        self._held = None
        if len(batch.group):
            self._know_groups(int(batch.group.max()) + 1)
        if self._windows.waits:
            self._push_and_close(batch)
        else:
            self._take(batch.score, batch.time, batch.group, batch.first, NO_ORDER)
            self._windows.move_to(int(self._clock[NOW]))
        return self._take_answer()

    def advance(self, watermark: int) -> Answer:
        self._held = None
        self._close_until(self._windows.watermark_end(watermark))
        return self._take_answer()

    def next_close(self) -> int | None:
        return self._worth_closing() if self._windows.waits else None

    def finish(self) -> Answer:
        self._held = None
        if self._windows.waits:
            self._close_until(self._windows.finish_end)
        return self._take_answer()

    def top(self, k: int, size: int | None) -> Answer:
        held = self._ask()
        return held.best(k, self._asked(held.codes, np.array([NEXT_WINDOW if size is None else size])))

    def top_many(self, k: Ints, size: Ints) -> tuple[Answer, Ints]:
        held = self._ask()
        return held.best_of_many(k, self._asked(held.codes, size))

    def held(self) -> Ints:
        positions = self._rows()[1]["position"]
        if takes_back(self.spec.emit):
            positions = np.concatenate([positions, slabs.pack(self._pool, self._shown())["position"]])
        return np.unique(positions)

    def rescore(self, change: Change) -> None:
        self.restore(rescored(self.state(), change))

    # -- below: what an algorithm says ----------------------------------------------------------------------------

    @abstractmethod
    def state(self) -> Arrays:
        """As in the protocol."""

    @abstractmethod
    def restore(self, state: Arrays) -> None:
        """As in the protocol."""

    @abstractmethod
    def _take(
        self, score: npt.NDArray[np.float64], time: Ints, group: Codes | Ints, first: int, position: Ints
    ) -> None:
        """Take rows in, in this order, moving the clock with them by value. Without positions: first, first + 1, …"""

    @abstractmethod
    def _end(self, end: int) -> None:
        """By value with a slide: drop what is older than the window that ends here, and show what it holds."""

    @abstractmethod
    def _know_groups(self, count: int) -> None:
        """There are at least so many groups."""

    @abstractmethod
    def _lists(self) -> list[slabs.Headers]:
        """Lists by group that together hold every live row taken in, without gaps before their first rows."""

    @abstractmethod
    def _shown(self) -> slabs.Headers:
        """By group: the rows shown last, with changes."""

    @abstractmethod
    def _arrivals(self) -> Ints:
        """By group, in windows of arrivals: rows so far."""

    # -- windows by value that slide ------------------------------------------------------------------------------

    def _push_and_close(self, batch: Batch) -> None:
        """Cut the batch where windows close; between two closings, rows of the next window go in, later ones wait."""
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
        """Take in the rows before this time; the others wait for their first window to be next."""
        due = rows["time"] < before
        self._pending = np.concatenate([self._pending, rows[~due]])
        if due.any():
            score, time, position, group = (
                np.ascontiguousarray(rows[name][due]) for name in ("score", "time", "position", "group")
            )
            self._clock[START] = self._windows.live_from
            self._take(score, time, group, 0, position)

    def _worth_closing(self) -> int | None:
        """The end of the earliest open window that has something to show."""
        showing = takes_back(self.spec.emit) and bool(self._shown()["length"].any())
        return self._windows.worth_closing(self._earliest_live, showing=showing)

    def _earliest_live(self) -> int:
        """The earliest time of the rows held that are in an open window, or any that is in the next one."""
        start, end = self._windows.next_start, self._windows.next_end
        pending = self._pending["time"]
        earliest = int(pending[pending >= start].min(initial=NEVER))
        for headers in self._lists():
            # A row of the first window that has not closed settles it: mostly that is the first one looked at.
            if earliest >= end:
                earliest = min(earliest, int(earliest_from(start, end, self._pool, headers)))
        return LATEST if earliest == NEVER else earliest

    def _close_until(self, until: int) -> None:
        """Close every window that ends here or before."""
        if until > self._windows.closed:
            self._windows.close_until(until, self._worth_closing, self._close_window)
            self._take_pending(self._windows.next_end)

    def _close_window(self, end: int) -> None:
        self._take_pending(end)
        self._end(end)

    def _take_pending(self, before: int) -> None:
        """Take in those rows that waited for a window that ends here or before to be the next."""
        if len(self._pending):
            pending, self._pending = self._pending, np.empty(0, PENDING)
            self._take_due(pending[np.lexsort((pending["position"], pending["time"]))], before)

    # -- looking at the state -------------------------------------------------------------------------------------

    def _taken(self) -> tuple[Ints, Rows]:
        """Every live row taken in, once, and its group."""
        lists = self._lists()
        codes = np.arange(len(lists[0]))
        group = np.concatenate([np.repeat(codes, headers["length"]) for headers in lists])
        return group, joined([slabs.pack(self._pool, headers) for headers in lists])

    def _rows(self) -> tuple[Ints, Rows]:
        """Every live row held, and its group."""
        group, rows = self._taken()
        if not len(self._pending):
            return group, rows
        pending = np.zeros(len(self._pending), ROW)
        for name in ROW.names or ():
            pending[name] = self._pending[name]
        return np.concatenate([group, self._pending["group"]]), joined([rows, pending])

    def _ask(self) -> Held:
        """The rows held, ready for questions."""
        if self._held is None:
            self._held = Held(*self._rows())
        return self._held

    def _asked(self, groups: Ints, size: Ints) -> Asked:
        """What ad-hoc questions of these sizes cover, for each of these groups."""
        arrivals = self._arrivals()[groups] if self.spec.window.by_count else None
        return self._windows.asked(size, len(groups), self.next_close, arrivals)

    def _saved_clock(self) -> Ints:
        clock = self._windows.state()
        counted = np.array([self._clock[NOW], self._clock[LATE], self._clock[UNRANKED]], np.int64)
        return np.concatenate([counted, clock])

    def _restore_clock(self, state: Arrays) -> None:
        self._held = None
        self._clock[:] = 0
        self._clock[START] = EARLIEST
        self._clock[NOW], self._clock[LATE], self._clock[UNRANKED], *clock = (int(x) for x in state["clock"])
        self._windows.restore(np.array(clock, np.int64))
        self._pending = state["pending"].copy()

    def _take_answer(self) -> Answer:
        written = self._out[: self._clock[OUT]]
        self._clock[OUT] = 0
        if self.spec.grouped and not self._windows.waits:
            # Groups were taken one after another; their answers came about in the order of the rows.
            written = written[np.argsort(written["order"], kind="stable")]
        return Answer.of(written)
