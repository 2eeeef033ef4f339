"""The part that all operators for subscriptions share: the clock, and when windows close."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from skyband.core.clock import Driver, WindowClock
from skyband.core.operator import Answer, Floats, Ints
from skyband.core.validation import Saved
from skyband.problems.subscriptions.operator import Batch, Spec
from skyband.problems.subscriptions.query import MOST_ROWS


class WindowDriver(Driver[Answer]):
    """The operator without what an algorithm adds: what it does with rows, and with a window that closes."""

    def __init__(self, spec: Spec) -> None:
        super().__init__(WindowClock(spec.window))
        self.spec = spec
        self._numbered = self._windows.numbered  # is the time of a row its number among all arrivals?
        self._position = 0
        self._done: list[Answer] = []  # the answers that `_take_answer` has not returned yet

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
        """Take rows in where windows slide: no answer is due before the next window closes."""

    # -- rows ------------------------------------------------------------------------------------------------------

    def push(self, batch: Batch) -> Answer:
        n, clock = batch.columns.shape[1], self._windows
        time = clock.measured(batch.time, n)
        clock.arrivals += n
        self._position = batch.first + n
        if not n:
            return self._take_answer()
        position = batch.first + np.arange(n, dtype=np.int64)
        self._push_rows(batch.columns, time, position, clock.now_after(time))
        return self._take_answer()

    def _push_rows(self, columns: Floats, time: Ints, position: Ints, now: Ints) -> None:
        clock = self._windows
        closed = clock.closed_after(now)
        in_time = clock.in_time(time, closed)
        for first, end, until in clock.runs(closed):
            self._close_until(until)
            chosen = slice(first, end) if in_time is None else np.flatnonzero(in_time[first:end]) + first
            if len(time[chosen]):
                clock.begin(time[chosen])
                self._take_sliding(columns[:, chosen], time[chosen], position[chosen], now[chosen])
            clock.move_to(int(now[end - 1]))
        if not clock.waits:
            self._close_until(clock.arrived_end)

    def _take_answer(self) -> Answer:
        done, self._done = self._done, []
        return Answer.joined(done)

    # -- state -----------------------------------------------------------------------------------------------------

    def _clocks(self) -> tuple[int, ...]:
        return (self._position, *self._windows.state().tolist())

    def _validate_clocks(self, saved: Saved, more: int) -> None:
        """Check that the array `counters` has the numbers of the clocks, and `more` others."""
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
