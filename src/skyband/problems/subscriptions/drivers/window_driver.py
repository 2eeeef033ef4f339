"""An operator for subscriptions that closes windows as the clock says, whatever is kept for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from skyband.core.clock import WindowClock
from skyband.core.operator import Answer, Floats, Ints
from skyband.core.validation import Saved
from skyband.problems.subscriptions.operator import Batch, Spec
from skyband.problems.subscriptions.query import MOST_ROWS


class WindowDriver(ABC):
    """The protocol, but for what an algorithm does with rows, and with a window that closes."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.unranked = 0
        self._windows = WindowClock(spec.window)
        self._numbered = self._windows.numbered  # the time of a row is its number among all arrivals
        self._position = 0

    @property
    def late(self) -> int:
        return self._windows.late

    @property
    def endless(self) -> bool:
        return self._windows.endless

    @property
    def _now(self) -> int:
        return self._windows.now

    @property
    def _arrivals(self) -> int:
        return self._windows.arrivals

    # -- what an algorithm says ------------------------------------------------------------------------------------

    @abstractmethod
    def _take_sliding(self, columns: Floats, time: Ints, position: Ints, now: Ints) -> None:
        """Rows come, and no answer is due before the next window closes."""

    @abstractmethod
    def _close_window(self, end: int, done: list[Any]) -> None:
        """The window that ends at `end` closes: what it shows is added to `done`."""

    @abstractmethod
    def _earliest_live(self) -> int:
        """By value, of a window that ends: the time of the earliest row that is in the next window or a later one."""

    @abstractmethod
    def _answer(self, done: list[Any] | None = None) -> Answer:
        """All that is done."""

    def _is_showing(self) -> bool:
        """Has the next window something to show, if only rows leaving?"""
        return False

    # -- rows ------------------------------------------------------------------------------------------------------

    def push(self, batch: Batch) -> Answer:
        n, clock = batch.columns.shape[1], self._windows
        time = clock.measured(batch.time, n)
        clock.arrivals += n
        self._position = batch.first + n
        if not n:
            return self._answer()
        position = batch.first + np.arange(n, dtype=np.int64)
        return self._push_rows(batch.columns, time, position, clock.now_after(time))

    def _push_rows(self, columns: Floats, time: Ints, position: Ints, now: Ints) -> Answer:
        return self._push_sliding(columns, time, position, now)

    def _push_sliding(self, columns: Floats, time: Ints, position: Ints, now: Ints) -> Answer:
        clock, done = self._windows, list[Any]()
        closed = clock.closed_after(now)
        in_time = clock.in_time(time, closed)
        for first, end, until in clock.runs(closed):
            self._close_until(until, done)
            chosen = slice(first, end) if in_time is None else np.flatnonzero(in_time[first:end]) + first
            if len(time[chosen]):
                clock.begin(time[chosen])
                self._take_sliding(columns[:, chosen], time[chosen], position[chosen], now[chosen])
            clock.move_to(int(now[end - 1]))
        if not clock.waits:
            self._close_until(clock.arrived_end, done)
        return self._answer(done)

    # -- windows ---------------------------------------------------------------------------------------------------

    def _next_end(self) -> int:
        return self._windows.next_end

    def _close_until(self, closed: int, done: list[Any]) -> None:
        """Close all windows that end at `closed` or before. Those that have nothing to show are passed over."""
        self._windows.close_until(closed, self._worth_closing, lambda end: self._close_window(end, done))

    def _worth_closing(self) -> int | None:
        """The end of the earliest open window that has something to show, if only rows leaving."""
        return self._windows.worth_closing(self._earliest_live, showing=self._is_showing())

    def advance(self, watermark: int) -> Answer:
        done: list[Any] = []
        self._close_until(self._windows.watermark_end(watermark), done)
        return self._answer(done)

    def finish(self) -> Answer:
        if not self._windows.waits:
            return self._answer()
        done: list[Any] = []
        self._close_until(self._windows.finish_end, done)
        return self._answer(done)

    def next_close(self) -> int | None:
        return self._worth_closing() if self._windows.waits else None

    # -- state -----------------------------------------------------------------------------------------------------

    def _clocks(self) -> tuple[int, ...]:
        return (self._position, *self._windows.state().tolist())

    def _validate_clocks(self, saved: Saved, more: int) -> None:
        """The array `counters` has the clocks, and so many numbers more."""
        counters = saved["counters"]
        saved.promise(len(counters) > 1 + more, "'counters' is too short")
        saved.counts("counters", counters[:1])
        self._windows.validate(saved, "counters", counters[1 : len(counters) - more])

    def _validate_queries(self, saved: Saved, k: Ints, size: Ints, every: Ints) -> None:
        window = self.spec.window
        saved.within("queries.k", k, 1, MOST_ROWS)
        saved.within("queries.size", size, 1, window.size)
        saved.within("queries.every", every, window.every, max(window.size, window.every))
        if window.every:
            saved.promise(not bool((every % window.every).any()), "'queries.every' is no multiple of the slide")

    def _set_clocks(self, clocks: list[int]) -> None:
        self._position, *numbers = clocks
        self._windows.restore(np.array(numbers, np.int64))
