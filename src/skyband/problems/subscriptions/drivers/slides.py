"""When windows close that slide by more than a row, whatever is kept for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import pairwise
from typing import Any

import numpy as np

from skyband.core.operator import Answer, Floats, Ints
from skyband.problems.subscriptions.drivers.kernels.lists import LATEST
from skyband.problems.subscriptions.operator import Batch, Spec
from skyband.windows import FOREVER


def due_at(end: int, every: Ints) -> Ints:
    """When queries that are answered so often are next, from the window on that ends at `end`."""
    due: Ints = -(-end // every) * every
    return due


class Schedule(ABC):
    """Clocks, and what is due when. An algorithm says what it does with rows, and with a window that closes."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.late = 0
        self.unranked = 0
        every = spec.window.every or 1
        self._arrivals = 0
        self._position = 0
        self._now = -FOREVER
        self._closed = -FOREVER // every * every  # every window that ends here or before has closed
        self._earliest = LATEST  # from the start on: the smallest time
        self._latest_end = self._closed  # with a slide: up to where windows close at the end of the input

    @property
    def endless(self) -> bool:
        return self.spec.window.size == FOREVER

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
        window, n = self.spec.window, batch.columns.shape[1]
        time = self._arrivals + np.arange(n, dtype=np.int64) if window.by_count else batch.time
        self._arrivals += n
        self._position = batch.first + n
        if not n:
            return self._answer()
        position = batch.first + np.arange(n, dtype=np.int64)
        now = time if window.by_count else np.maximum(np.maximum.accumulate(time), self._now)
        return self._push_rows(batch.columns, time, position, now)

    def _push_rows(self, columns: Floats, time: Ints, position: Ints, now: Ints) -> Answer:
        return self._push_sliding(columns, time, position, now)

    def _push_sliding(self, columns: Floats, time: Ints, position: Ints, now: Ints) -> Answer:
        window = self.spec.window
        every = window.every
        if window.by_count:
            closed = time // every * every  # before each row
        elif window.lateness >= FOREVER:
            closed = np.full(len(time), self._closed)
        else:
            closed = np.maximum(np.maximum(now - window.lateness, -FOREVER) // every * every, self._closed)
        if not self.endless and not window.by_count:
            in_time = (time + window.size) // every * every > closed
            self.late += int(np.count_nonzero(~in_time))
        else:
            in_time = np.ones(len(time), np.bool_)
        cuts = [0, *(np.flatnonzero(closed[1:] != closed[:-1]) + 1).tolist(), len(time)]
        done: list[Any] = []
        for u, v in pairwise(cuts):
            self._close_until(int(closed[u]), done)
            chosen = np.flatnonzero(in_time[u:v]) + u
            if len(chosen):
                self._note_ends(time[chosen])
                self._take_sliding(columns[:, chosen], time[chosen], position[chosen], now[chosen])
            self._now = max(self._now, int(now[v - 1]))
        if window.by_count:
            self._close_until(self._arrivals // every * every, done)
        return self._answer(done)

    def _note_ends(self, time: Ints) -> None:
        window = self.spec.window
        ends = np.maximum((time // window.every + 1) * window.every, self._next_end())
        if not self.endless:
            ends = np.maximum(ends, (time + window.size) // window.every * window.every)
        self._latest_end = max(self._latest_end, int(ends.max()))
        self._earliest = min(self._earliest, int(time.min()))

    # -- windows ---------------------------------------------------------------------------------------------------

    def _next_end(self) -> int:
        return self._closed + self.spec.window.every

    def _close_until(self, closed: int, done: list[Any]) -> None:
        """Close all windows that end at `closed` or before. Those that have nothing to show are passed over."""
        while (end := self._worth_closing()) is not None and end <= closed:
            self._closed = end - self.spec.window.every
            self._close_window(end, done)
            self._closed = end
        self._closed = max(self._closed, closed)

    def _worth_closing(self) -> int | None:
        """The end of the earliest open window that has something to show, if only rows leaving."""
        following, every = self._next_end(), self.spec.window.every
        if self._is_showing():
            return following
        if self.spec.window.by_count and not self.endless:
            return max(following, every) if self._arrivals else None
        earliest = self._earliest if self.endless else self._earliest_live()
        return None if earliest == LATEST else max(following, (earliest // every + 1) * every)

    def advance(self, watermark: int) -> Answer:
        every = self.spec.window.every
        done: list[Any] = []
        self._close_until(max(self._closed, max(watermark, -FOREVER) // every * every), done)
        return self._answer(done)

    def finish(self) -> Answer:
        window = self.spec.window
        if window.by_count or not window.every:
            return self._answer()
        return self.advance(max(self._closed, self._latest_end))

    def next_close(self) -> int | None:
        if self.spec.window.by_count or not self.spec.window.every:
            return None
        return self._worth_closing()

    # -- state -----------------------------------------------------------------------------------------------------

    def _clocks(self) -> tuple[int, ...]:
        return (
            *(self.late, self._arrivals, self._position, self._now),
            *(self._closed, self._earliest, self._latest_end),
        )

    def _set_clocks(self, clocks: list[int]) -> None:
        self.late, self._arrivals, self._position, self._now = clocks[:4]
        self._closed, self._earliest, self._latest_end = clocks[4:]
