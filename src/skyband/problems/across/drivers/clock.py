"""Turns the rows of several streams into steps, which algorithms execute one by one.

At each step the clock advances, and a row begins or an answer is due: the table in `core/clock.py` defines when. So no
algorithm knows what a window is, which rows are late, and which wait. A row that came late begins after others and may
end before them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.clock import EARLIEST, WindowClock
from skyband.core.emit import takes_back
from skyband.core.operator import Arrays, Codes, Floats, Ints
from skyband.core.validation import FARTHEST, Saved
from skyband.problems.across.drivers.kernels.slots import interleave, slide
from skyband.problems.across.operator import AcrossBatch, AcrossSpec


class Rows(NamedTuple):
    """The rows of steps."""

    stream: Codes
    code: Codes  # the object
    value: Floats  # NaN: the row only moves the clock
    time: Ints  # by count: the number of earlier rows
    position: Ints
    last: Ints  # the last moment of the clock at which it lives

    def map(self, change: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> Rows:
        columns: list[Any] = [change(column) for column in self]
        return Rows(*columns)

    def take(self, which: Ints | slice) -> Rows:
        return self.map(lambda column: column[which])

    def followed_by(self, more: Rows) -> Rows:
        columns: list[Any] = [np.concatenate([mine, theirs]) for mine, theirs in zip(self, more, strict=True)]
        return Rows(*columns)


class Steps(NamedTuple):
    """Steps in order."""

    rows: Rows
    clock: Ints  # the clock at each step; it never falls
    row: Ints  # the row that begins at each step, or ANSWER_DUE
    each: bool  # is an answer due after each row?


_NONE = np.empty(0, np.int64)
_NO_ROWS = Rows(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0), _NONE, _NONE, _NONE)


class StepClock:
    """Takes batches of rows and returns steps."""

    def __init__(self, spec: AcrossSpec, windows: WindowClock) -> None:
        self.spec = spec
        self._clock = windows
        self._longest = EARLIEST  # by value, with a slide: the last moment of any row that has begun
        self._shown = False  # did the last answer show something?
        self._waiting = _NO_ROWS  # by value, with a slide: rows that wait for their first window, in its order
        self._begins = _NONE  # the end of the first window of each waiting row

    # -- rows and time ------------------------------------------------------------------------------------------------

    def push(self, batch: AcrossBatch) -> Steps:
        clock, n = self._clock, len(batch.value)
        if not n:
            return Steps(_NO_ROWS, _NONE, _NONE, each=False)
        measured, first = self.measured(batch), clock.arrivals
        now = clock.now_after(measured)
        closed = clock.closed_after(clock.slowest_after(now, batch.time, batch.stream)) if clock.waits else now
        position = batch.first + np.arange(n, dtype=np.int64)
        rows = Rows(batch.stream, batch.code, batch.value, measured, position, clock.last_moments(measured))
        in_time = clock.in_time(measured, closed, rows.last)
        clock.move_to(int(now[-1]), arrivals=n)
        until = int(closed[-1])
        if in_time is not None:
            kept = np.flatnonzero(in_time)
            rows, now, closed = rows.take(kept), now[kept], closed[kept]
        unranked = np.isnan(rows.value)
        clock.unranked += int(np.count_nonzero(unranked))
        if clock.waits:
            self._wait(rows, clock.first_moments(rows.time, closed), unranked)
            return self.close(until)
        if clock.slides:
            return self._slide(rows, first)
        return Steps(rows, clock.arrived(now), np.arange(len(now), dtype=np.int64), each=True)

    def close(self, until: int) -> Steps:
        """The steps that close the windows up to `until`."""
        closed, every = self._clock.closed, self.spec.window.every
        count = int(np.searchsorted(self._begins, until, side="right"))
        begins, rows = self._begins[:count], self._waiting.take(slice(count))
        lingers = takes_back(self.spec.emit)
        room = 0
        while True:
            clock, row = np.empty(room, np.int64), np.empty(room, np.int64)
            needed, longest, shown = interleave(
                begins, rows.last, closed, until, every, self._longest, self._shown, lingers, clock, row
            )
            if needed <= room:
                break
            room = needed
        self._longest, self._shown, self._clock.closed = int(longest), bool(shown), until
        self._begins = self._begins[count:].copy()
        self._waiting = self._waiting.map(lambda column: column[count:].copy())
        return Steps(rows, clock[:needed], row[:needed], each=False)

    def worth_closing(self) -> int | None:
        """By value, with a slide: the end of the earliest open window that has something to show."""
        return self._clock.next_end if takes_back(self.spec.emit) and self._shown else self.next_held()

    def next_held(self) -> int | None:
        """The end of the earliest open window that holds a row."""
        if self._longest >= self._clock.next_end:
            return self._clock.next_end
        return int(self._begins[0]) if len(self._begins) else None

    def measured(self, batch: AcrossBatch) -> Ints:
        """What the window measures of the next rows."""
        return self._clock.measured(batch.time, len(batch.value))

    def live_from(self) -> int:
        """The first time that is among the last `size`."""
        return self._clock.start_of(self._clock.now + 1)

    def now(self) -> int:
        """The clock of an answer now: with a slide, of the window that closes next."""
        moment = self._clock.answered_at(self.next_held)
        return self._clock.next_end if moment is None else moment  # if no row is left, that window is empty

    def until_now(self) -> Steps:
        """Steps to the window that closes next: its waiting rows, and a row without a value that moves the clock.

        They do not move this clock.
        """
        end = self.now()
        count = int(np.searchsorted(self._begins, end, side="right"))
        none = _NO_ROWS.map(lambda column: np.zeros(1, column.dtype))._replace(value=np.full(1, np.nan))
        return Steps(
            self._waiting.take(slice(count)).followed_by(none),
            np.full(count + 1, end),
            np.arange(count + 1),
            each=False,
        )

    # -- inside -------------------------------------------------------------------------------------------------------

    def _slide(self, rows: Rows, first: int) -> Steps:
        """By count, with a slide: rows begin as they come, and an answer is due with the last row of a slide."""
        n, every = len(rows.time), self.spec.window.every
        steps = n + (first + n) // every - first // every
        clock, row = np.empty(steps, np.int64), np.empty(steps, np.int64)
        slide(first, every, n, clock, row)
        return Steps(rows, clock, row, each=False)

    def _wait(self, rows: Rows, begins: Ints, unranked: npt.NDArray[np.bool_]) -> None:
        """Let rows with a value wait for their first open window."""
        if unranked.any():
            kept = np.flatnonzero(~unranked)
            rows, begins = rows.take(kept), begins[kept]
        self._clock.begin(rows.time)
        if len(self._begins):
            begins = np.concatenate([self._begins, begins])
            rows = self._waiting.followed_by(rows)
        if len(begins) > 1 and (begins[1:] < begins[:-1]).any():
            order = np.argsort(begins, kind="stable")
            rows, begins = rows.take(order), begins[order]
        self._waiting, self._begins = rows, begins

    # -- state --------------------------------------------------------------------------------------------------------

    def compact(self, code_of: Codes) -> None:
        """Renumber objects."""
        self._waiting = self._waiting._replace(code=code_of[self._waiting.code])

    def codes(self) -> Codes:
        """The objects of waiting rows."""
        return self._waiting.code

    def rows_waiting(self) -> int:
        return len(self._begins)

    def state(self) -> Arrays:
        return {
            "window_clock": self._clock.state(),
            "steps": np.array([self._longest, self._shown], np.int64),
            "begins": self._begins.copy(),
            **{f"waiting_{name}": column.copy() for name, column in self._waiting._asdict().items()},
        }

    def validate(self, saved: Saved, codes: int) -> None:
        self._clock.validate(saved, "window_clock", saved["window_clock"], alone=not self.spec.idle_after)
        begins, every = saved["begins"], self.spec.window.every
        saved.length(2, "steps")
        saved.moments("steps", saved["steps"])
        saved.length(len(begins), *(f"waiting_{name}" for name in Rows._fields))
        saved.promise(self._clock.waits or not len(begins), "rows wait, and windows do not")
        saved.ascends("begins", begins)
        closed = int(saved["window_clock"][4])
        saved.promise(not len(begins) or begins[0] > closed, "'begins' has windows that have closed")
        saved.promise(not len(begins) or not (begins % every).any(), "'begins' has moments at which no window ends")
        saved.moments("begins", begins)
        saved.indices("waiting_stream", saved["waiting_stream"], self.spec.streams)
        saved.indices("waiting_code", saved["waiting_code"], codes)
        saved.numbers("waiting_value", saved["waiting_value"])
        saved.within("waiting_time", saved["waiting_time"], -FARTHEST, FARTHEST)
        saved.counts("waiting_position", saved["waiting_position"])
        saved.moments("waiting_last", saved["waiting_last"])

    def restore(self, state: Arrays) -> None:
        self._clock.restore(state["window_clock"])
        self._longest, shown = (int(number) for number in state["steps"])
        self._shown = bool(shown)
        self._begins = state["begins"].copy()
        columns: list[Any] = [state[f"waiting_{name}"].copy() for name in Rows._fields]
        self._waiting = Rows(*columns)
