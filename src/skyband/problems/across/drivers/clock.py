"""When each row counts: windows of every kind become one clock, on which rows begin and end to live.

    window                    the clock is             a row begins                 and lives while the clock is at most
    each arrival, by count    arrivals so far          with its arrival             its index + size
    each arrival, by value    the largest time seen    with its arrival             its time + size - 1
    slides, by count          the end of a window      with its first window        the end of its last window
    slides, by value          the end of a window      with its first open window   the end of its last window

Algorithms execute steps: at each, the clock moves on, and a row begins or the answer is due. So none of them knows what
a window is, what is late, and what waits. A row that begins after others may end before them: it came late.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.operator import CHANGES, Arrays, Codes, Floats, Ints
from skyband.problems.across.drivers.kernels.steps import interleave, slide
from skyband.problems.across.operator import AcrossBatch, AcrossSpec
from skyband.windows import FOREVER


class Rows(NamedTuple):
    stream: Codes
    code: Codes
    value: Floats  # NaN: it only moves the clock
    time: Ints  # by count: how many rows came before
    position: Ints
    last: Ints  # the clock's last moment at which it lives

    def map(self, change: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> Rows:
        columns: list[Any] = [change(column) for column in self]
        return Rows(*columns)

    def take(self, which: Ints) -> Rows:
        return self.map(lambda column: column[which])


class Steps(NamedTuple):
    rows: Rows
    clock: Ints  # by step, never falling
    row: Ints  # by step: which of the rows begins, or ANSWER_DUE
    each: bool  # an answer is due after each row


_NONE = np.empty(0, np.int64)
_NO_ROWS = Rows(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0), _NONE, _NONE, _NONE)


class Schedule:
    """Rows in, steps out."""

    def __init__(self, spec: AcrossSpec) -> None:
        self.spec = spec
        self.late = 0
        self.unranked = 0
        self._arrivals = 0
        self._now = -FOREVER  # the largest time seen
        self._reached = np.full(spec.streams, -FOREVER)  # by stream: the largest time seen, if streams are waited for
        every = spec.window.every or 1
        self._closed = -FOREVER // every * every  # every window that ends here or before has closed
        self._longest = -FOREVER  # by value, with a slide: the last moment of any row that has begun
        self._shown = False  # did the last answer show something?
        self._waiting = _NO_ROWS  # by value, with a slide: rows whose first window is still open, by its end
        self._begins = _NONE  # that end

    # -- rows and time ------------------------------------------------------------------------------------------------

    def push(self, batch: AcrossBatch) -> Steps:
        window = self.spec.window
        if window.by_count:
            return self._by_count(batch)
        position = batch.first + np.arange(len(batch.value), dtype=np.int64)
        now = np.maximum(np.maximum.accumulate(batch.time), self._now)
        if len(now):
            self._now = int(now[-1])
        if not window.every:
            return self._each_by_value(batch, position, now)
        closed = self._closes(self._waited_for(batch, now) if self.spec.idle_after else now)
        endless = window.size == FOREVER
        last = np.full(len(now), FOREVER) if endless else (batch.time + window.size) // window.every * window.every
        begins = np.maximum((batch.time // window.every + 1) * window.every, closed + window.every)
        self._add(Rows(batch.stream, batch.code, batch.value, batch.time, position, last), begins, last <= closed)
        return self._close(int(closed[-1]) if len(closed) else self._closed)

    def advance(self, watermark: int) -> Steps:
        every = self.spec.window.every
        return self._close(max(self._closed, max(watermark, -FOREVER) // every * every))

    def finish(self) -> Steps:
        window = self.spec.window
        if window.by_count or not window.every or self._now == -FOREVER:
            return self._nothing()
        # The latest row is in the last window that holds a row, also if it says nothing and so does not wait.
        if window.size < FOREVER:
            return self._close(max(self._closed, (self._now + window.size) // window.every * window.every))
        begins = [int(self._begins[-1])] if len(self._begins) else []
        return self._close(max(self._closed, (self._now // window.every + 1) * window.every, *begins))

    def next_close(self) -> int | None:
        """By value, with a slide: the end of the earliest open window that has something to show."""
        if self.spec.window.by_count or not self.spec.window.every:
            return None
        following = self._closed + self.spec.window.every
        if self._longest >= following or (self.spec.emit == CHANGES and self._shown):
            return following
        return int(self._begins[0]) if len(self._begins) else None

    def now(self) -> int:
        """The clock of the answer that is asked for right now: with a slide, of the window that closes next."""
        window = self.spec.window
        if window.by_count:
            return (self._arrivals // window.every + 1) * window.every if window.every else self._arrivals
        return (self.next_close() or 0) if window.every else self._now

    def until_now(self) -> Steps:
        """The rows that wait for the window that closes next, and one that says nothing but moves the clock there.

        The schedule stays as it is.
        """
        end = self.now()
        count = int(np.searchsorted(self._begins, end, side="right"))
        none = _NO_ROWS.map(lambda column: np.zeros(1, column.dtype))._replace(value=np.full(1, np.nan))
        first = self._waiting.map(lambda column: column[:count])
        joined: list[Any] = [np.concatenate([old, new]) for old, new in zip(first, none, strict=True)]
        return Steps(Rows(*joined), np.full(count + 1, end), np.arange(count + 1), each=False)

    # -- kinds of windows ---------------------------------------------------------------------------------------------

    def _by_count(self, batch: AcrossBatch) -> Steps:
        window, n = self.spec.window, len(batch.value)
        index = self._arrivals + np.arange(n, dtype=np.int64)
        self._arrivals += n
        self.unranked += int(np.count_nonzero(np.isnan(batch.value)))
        every, first = window.every, self._arrivals - n
        position = index if batch.first == first else index + (batch.first - first)
        last = np.full(n, FOREVER) if window.size == FOREVER else index + window.size
        rows = Rows(batch.stream, batch.code, batch.value, index, position, last)
        if not every:
            return Steps(rows, index + 1, np.arange(n, dtype=np.int64), each=True)
        steps = n + self._arrivals // every - first // every
        clock, row = np.empty(steps, np.int64), np.empty(steps, np.int64)
        slide(first, every, last, clock, row)
        return Steps(rows, clock, row, each=False)

    def _each_by_value(self, batch: AcrossBatch, position: Ints, now: Ints) -> Steps:
        size = self.spec.window.size
        last = np.full(len(now), FOREVER) if size == FOREVER else batch.time + (size - 1)
        rows = Rows(batch.stream, batch.code, batch.value, batch.time, position, last)
        in_time = last >= now
        if not in_time.all():
            kept = np.flatnonzero(in_time)
            self.late += len(now) - len(kept)
            rows, now = rows.take(kept), now[kept]
        self.unranked += int(np.count_nonzero(np.isnan(rows.value)))
        return Steps(rows, now, np.arange(len(now), dtype=np.int64), each=True)

    def _waited_for(self, batch: AcrossBatch, now: Ints) -> Ints:
        """When each row has come: how far all streams have, but for those that are too far behind the first."""
        if not len(now):
            return now
        behind = now
        for s in range(self.spec.streams):
            # A batch may start with a row that is behind its stream: the stream stays where it was.
            mine = np.maximum.accumulate(
                np.maximum(np.where(batch.stream == s, batch.time, -FOREVER), self._reached[s])
            )
            self._reached[s] = mine[-1]
            behind = np.minimum(behind, mine)
        return np.maximum(behind, now - self.spec.idle_after)

    def _closes(self, now: Ints) -> Ints:
        """Up to where windows have closed when each row has come."""
        every, lateness = self.spec.window.every, self.spec.window.lateness
        if lateness >= FOREVER:
            return np.full(len(now), self._closed)
        watermark = np.maximum(now - lateness, -FOREVER)
        return np.maximum(watermark // every * every, self._closed)

    def _add(self, rows: Rows, begins: Ints, late: npt.NDArray[np.bool_]) -> None:
        """Let rows wait for their first open window."""
        unranked = np.isnan(rows.value) & ~late
        self.late += int(np.count_nonzero(late))
        self.unranked += int(np.count_nonzero(unranked))
        useless = late | unranked
        if useless.any():
            kept = np.flatnonzero(~useless)
            rows, begins = rows.take(kept), begins[kept]
        if len(self._begins):
            begins = np.concatenate([self._begins, begins])
            joined: list[Any] = [np.concatenate([old, new]) for old, new in zip(self._waiting, rows, strict=True)]
            rows = Rows(*joined)
        if len(begins) > 1 and (begins[1:] < begins[:-1]).any():
            order = np.argsort(begins, kind="stable")
            rows, begins = rows.take(order), begins[order]
        self._waiting, self._begins = rows, begins

    def _close(self, until: int) -> Steps:
        """The steps that close the windows up to `until`."""
        window = self.spec.window
        count = int(np.searchsorted(self._begins, until, side="right"))
        begins, rows = self._begins[:count], self._waiting.map(lambda column: column[:count])
        lingers = self.spec.emit == CHANGES
        room = 0
        while True:
            clock, row = np.empty(room, np.int64), np.empty(room, np.int64)
            needed, longest, shown = interleave(
                begins, rows.last, self._closed, until, window.every, self._longest, self._shown, lingers, clock, row
            )
            if needed <= room:
                break
            room = needed
        self._longest, self._shown, self._closed = int(longest), bool(shown), until
        self._begins = self._begins[count:].copy()
        self._waiting = self._waiting.map(lambda column: column[count:].copy())
        return Steps(rows, clock[:needed], row[:needed], each=False)

    def _nothing(self) -> Steps:
        return Steps(_NO_ROWS, _NONE, _NONE, each=False)

    # -- state --------------------------------------------------------------------------------------------------------

    def recode(self, code_of: Codes) -> None:
        """Objects have other numbers now."""
        self._waiting = self._waiting._replace(code=code_of[self._waiting.code])

    def codes(self) -> Codes:
        """The objects that rows wait for."""
        return self._waiting.code

    def rows_waiting(self) -> int:
        return len(self._begins)

    def state(self) -> Arrays:
        numbers = [self.late, self.unranked, self._arrivals, self._now, self._closed, self._longest, int(self._shown)]
        return {
            "schedule": np.array(numbers, np.int64),
            "reached": self._reached.copy(),
            "begins": self._begins.copy(),
            **{f"waiting_{name}": column.copy() for name, column in self._waiting._asdict().items()},
        }

    def restore(self, state: Arrays) -> None:
        numbers = (int(number) for number in state["schedule"])
        self.late, self.unranked, self._arrivals, self._now, self._closed, self._longest, shown = numbers
        self._shown = bool(shown)
        self._reached = state["reached"].copy()
        self._begins = state["begins"].copy()
        columns: list[Any] = [state[f"waiting_{name}"].copy() for name in Rows._fields]
        self._waiting = Rows(*columns)
