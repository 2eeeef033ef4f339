"""The one clock. It turns windows of every kind into moments: when a row begins to live, when it dies, and when an
answer is due.

    window                    the clock is             a row begins                 and lives while the clock is at most
    each arrival, by count    arrivals so far          with its arrival             its number + size
    each arrival, by value    the largest time seen    with its arrival             its time + size - 1
    slides, by count          the end of a window      with its first window        the end of its last window
    slides, by value          the end of a window      with its first open window   the end of its last window

By count, rows are numbered from 0. A window that slides ends at a multiple of `every` and holds the rows in
[end - size, end); a landmark window holds all rows before its end. By value, a window closes when the watermark reaches
its end; the watermark is the largest time seen minus `lateness`. By count, it closes with its last arrival. A row is
late if the last window that would hold it has closed.

Drivers ask the clock, and algorithms ask their driver. No other code looks at the kind of the window.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from skyband.core.ad_hoc import NEXT_WINDOW, NOTHING, Spans, cover
from skyband.core.operator import Ints
from skyband.core.validation import Saved
from skyband.windows import FOREVER, Ticks

EARLIEST: Final = -2 * FOREVER  # before every time
LATEST: Final = 2 * FOREVER - 1  # after every time

Now = TypeVar("Now", int, Ints)


class Run(NamedTuple):
    """Rows [first, end) of a batch, between which no window closes."""

    first: int
    end: int
    closed: int  # when the first of these rows has come, every window that ends here or before has closed


def first_ends(time: Ints, every: int) -> Ints:
    """The end of the first window that holds each row."""
    ends: Ints = (time // every + 1) * every
    return ends


def last_ends(time: Ints, size: int, every: int) -> Ints:
    """The end of the last window that holds each row; LATEST for landmark windows, which have no last one."""
    return np.full(len(time), LATEST) if size >= FOREVER else (time + size) // every * every


def earliest_times(first: Ints, last: Ints, size: int, every: int) -> Ints:
    """The earliest time in the windows that end at `first`, at `last` and in between."""
    times: Ints = first - every
    return times if size >= FOREVER else np.maximum(times, last - size)


def next_due(end: int, every: Ints) -> Ints:
    """For queries with slides of their own (`every`): the end of the next window that answers each, from `end` on."""
    due: Ints = -(-end // every) * every
    return due


class WindowClock:
    """How far rows and windows have come.

    A batch moves it in two steps, because what happens to a row depends on the clock before it: `now_after` and
    `closed_after` compute where the clock stands after each row, and `move_to` moves it there.
    """

    def __init__(self, window: Ticks, *, streams: int = 1, idle_after: int = 0) -> None:
        """`idle_after`: with several streams, how far one may be behind the others before they stop waiting for it."""
        self.window = window
        self.endless, self.slides = window.endless, window.slides
        self.waits = window.closes_by_value
        self.numbered = window.by_count  # does the window measure a row's number, among all rows or in its group?
        self.late = 0  # rows dropped because every window that would hold them had closed
        self.unranked = 0  # rows that took their place in a window, but have no score
        self.arrivals = 0
        self.now = -FOREVER  # by value the largest time seen; by count the number of the last arrival
        # Every window that ends here or before has closed.
        self.closed = -FOREVER // window.every * window.every if self.waits else 0
        self._earliest = LATEST  # landmark: the smallest time of the rows so far
        self._latest_end = self.closed  # the end of the last window that shows something because of a row so far
        self._idle_after = idle_after
        self._reached = np.full(streams if idle_after else 0, -FOREVER)  # the largest time seen, by stream

    # -- rows come ----------------------------------------------------------------------------------------------------

    def measured(self, time: Ints, count: int) -> Ints:
        """What the window measures of the next `count` rows: by value their times, by count their numbers."""
        return np.arange(self.arrivals, self.arrivals + count) if self.window.by_count else time

    def now_after(self, measured: Ints) -> Ints:
        """Where `now` is after each of these rows."""
        if self.window.by_count:
            return measured
        now: Ints = np.maximum.accumulate(measured)
        return np.maximum(now, self.now, out=now)

    def closed_after(self, now: Ints) -> Ints:
        """Where `closed` is after each row. By count, the window that ends with a row has not closed yet."""
        window, closed = self.window, self.closed
        if window.by_count:
            return now // window.every * window.every
        if window.lateness >= FOREVER or not len(now) or self._closed_at(int(now[-1])) <= closed:
            return np.full(len(now), closed)
        watermark = np.maximum(now - window.lateness, -FOREVER)
        return np.maximum(watermark // window.every * window.every, closed)

    def _closed_at(self, now: int) -> int:
        return max(now - self.window.lateness, -FOREVER) // self.window.every * self.window.every

    def slowest_after(self, now: Ints, time: Ints, stream: npt.NDArray[np.int32]) -> Ints:
        """After each row: how far the slowest stream has come, of those that the others still wait for."""
        if not self._idle_after or not len(now):
            return now
        behind = now
        for s in range(len(self._reached)):
            # A batch may start with a row behind its stream; the stream stays where it was.
            mine = np.maximum.accumulate(np.maximum(np.where(stream == s, time, -FOREVER), self._reached[s]))
            self._reached[s] = mine[-1]
            behind = np.minimum(behind, mine)
        return np.maximum(behind, now - self._idle_after)

    def move_to(self, now: int, *, arrivals: int = 0) -> None:
        """Move the clock to `now`, after `arrivals` more rows."""
        self.now = max(self.now, now)
        self.arrivals += arrivals

    def runs(self, closed: Ints) -> list[Run]:
        """Cut a batch at the rows with which windows close."""
        cuts = (np.flatnonzero(closed[1:] != closed[:-1]) + 1).tolist()
        starts = [0, *cuts]
        return [Run(*run) for run in zip(starts, [*cuts, len(closed)], closed[starts].tolist(), strict=True)]

    # -- when each row lives ------------------------------------------------------------------------------------------

    def first_moments(self, measured: Ints, closed: Ints | int) -> Ints:
        """With a slide: the end of the first window that holds each row and is open when the row comes."""
        return np.maximum(first_ends(measured, self.window.every), closed + self.window.every)

    def last_moments(self, measured: Ints) -> Ints:
        """The last moment at which each row lives."""
        if self.endless:
            return np.full(len(measured), LATEST)
        if self.slides:
            return last_ends(measured, self.window.size, self.window.every)
        return measured + (self.window.size - (not self.window.by_count))

    def in_time(self, measured: Ints, clock: Ints, last: Ints | None = None) -> npt.NDArray[np.bool_] | None:
        """Find the rows that are not late, and count the others. None: no row is late.

        `clock` is `closed`, or without a slide `now`, after each row; `last` has the rows' last moments, if the caller
        knows them already.
        """
        if self.endless or self.window.by_count:
            return None
        last = self.last_moments(measured) if last is None else last
        found: npt.NDArray[np.bool_] = last > clock if self.slides else last >= clock
        late = len(found) - int(np.count_nonzero(found))
        self.late += late
        return found if late else None

    def begin(self, measured: Ints) -> None:
        """Note that these rows begin to live, or will: the windows that hold them are worth closing."""
        if not len(measured):
            return
        latest, self._earliest = int(measured.max()), min(self._earliest, int(measured.min()))
        self._latest_end = max(self._latest_end, self.next_end, self._end_of(latest))

    def _end_of(self, time: int) -> int:
        """The end of the last window that shows something because of a row with this time."""
        every = self.window.every
        # Every landmark window holds all rows so far, so only a new row makes another one worth closing.
        return (time // every + 1) * every if self.endless else (time + self.window.size) // every * every

    def starts_at(self, now: Ints) -> Ints:
        """Without a slide: the first time that the window holds, for each of these values of `now`."""
        return np.full(len(now), EARLIEST) if self.endless else now - (self.window.size - 1)

    def arrived(self, now: Now) -> Now:
        """Without a slide: the `at` of the answer that is due at this `now`."""
        return now + 1 if self.window.by_count else now

    # -- which window closes ------------------------------------------------------------------------------------------

    @property
    def next_end(self) -> int:
        """The end of the next window, whether it holds a row or not."""
        return self.closed + self.window.every

    def start_of(self, end: int, size: int | None = None) -> int:
        """The first time in the window that ends here; `size` replaces the size of the window."""
        size = self.window.size if size is None else size
        return EARLIEST if size >= FOREVER else max(EARLIEST, end - size)

    @property
    def next_start(self) -> int:
        """The first time in any window that is still open."""
        return self.start_of(self.next_end if self.slides else self.now + 1)

    @property
    def live_from(self) -> int:
        """With a slide: rows before this time are in no open window, and not among the last `size`."""
        return self.start_of(min(self.next_end, self.now + 1))

    def worth_closing(self, earliest_live: Callable[[], int], *, takes_back: bool) -> int | None:
        """The end of the earliest open window that has something to show, even if only leaving rows; None if none has.

        `takes_back`: did the last answer show rows that the next one may take back? `earliest_live` finds the earliest
        time of a row in the next window or a later one, or LATEST.
        """
        if takes_back or (self.window.by_count and self.arrivals):
            return self.next_end
        earliest, every = self._earliest if self.endless else earliest_live(), self.window.every
        return None if earliest == LATEST else max(self.next_end, (earliest // every + 1) * every)

    def close_until(self, until: int, worth_closing: Callable[[], int | None], close: Callable[[int], object]) -> None:
        """Close the windows that end at `until` or before, and pass over those that have nothing to show.

        `worth_closing` finds the end of the next window that has something to show, and `close` closes it.
        """
        while (end := worth_closing()) is not None and end <= until:
            self.closed = end - self.window.every
            close(end)
            self.closed = end
        self.closed = max(self.closed, until)

    def watermark_end(self, watermark: int) -> int:
        """The end of the last window that closes when the watermark is here."""
        return max(self.closed, max(watermark, -FOREVER) // self.window.every * self.window.every)

    @property
    def arrived_end(self) -> int:
        """By count: the end of the last window that has closed with the arrivals so far."""
        return self.arrivals // self.window.every * self.window.every

    @property
    def finish_end(self) -> int:
        """The end of the last window that closes when the input ends: by value, the last one that holds a row.

        The latest row counts even if it has no score and so never began to live.
        """
        if not self.waits or self.now == -FOREVER:
            return self.closed
        return max(self.closed, self._latest_end, self._end_of(self.now))

    # -- questions right now ------------------------------------------------------------------------------------------

    def answered_at(self, closing: Callable[[], int | None]) -> int | None:
        """The `at` of an answer now; with a slide, that of the window that closes next.

        `closing` finds the end of that window by value; None: no window will close.
        """
        if self.window.by_count:
            return self.arrived_end + self.window.every if self.slides else self.arrivals
        return closing() if self.slides else self.now

    def spans(self, size: Ints, groups: int, closing: Callable[[], int | None], arrivals: Ints | None = None) -> Spans:
        """The times that ad-hoc questions of these sizes cover, for each group.

        `arrivals` are those of each group, if every group counts its own.
        """
        window, spans = self.window, Spans.room(groups, len(size))
        if window.by_count:
            now = np.full(groups, self.arrivals) if arrivals is None else arrivals
            ends = (now // window.every + 1) * window.every if window.every else now
        else:
            now = np.full(groups, self.now)
            end = closing() if NEXT_WINDOW in size else None
            ends = np.full(groups, NOTHING if end is None else end)
        cover(now, size, window.by_count, window.every, window.size, ends, spans)
        return spans

    def closed_by(self, arrivals: Ints) -> Ints:
        """Where `closed` is for each group; by count from its own `arrivals`, by value the same for all."""
        every = self.window.every
        return arrivals // every * every if self.window.by_count else np.full(len(arrivals), self.closed)

    def reach(self, size: Ints, arrivals: Ints) -> tuple[Ints, Ints]:
        """With a slide: the first time that questions of these sizes cover, and `closed`, for groups that had rows.

        Both are by group, then by question. Groups that share this clock count as one.
        """
        ends = arrivals[arrivals > 0] if self.window.by_count else np.full(int(self.now > -FOREVER), self.now + 1)
        return ends[:, np.newaxis] - size, self.closed_by(ends)[:, np.newaxis]

    # -- state --------------------------------------------------------------------------------------------------------

    def state(self) -> Ints:
        numbers = self.late, self.unranked, self.arrivals, self.now, self.closed, self._earliest, self._latest_end
        return np.array([*numbers, *self._reached], np.int64)

    def validate(self, saved: Saved, name: str, state: Ints, *, alone: bool = True) -> None:
        """Check what `restore` relies on. `alone`: only the operator's own rows move the clock."""
        saved.promise(state.shape == (7 + len(self._reached),), f"{name!r} is the clock of other streams")
        now, closed, _, latest_end = (int(number) for number in state[3:7])
        saved.counts(name, state[:3])
        saved.within(name, state[7:], -FOREVER, FOREVER)
        saved.promise(-FOREVER <= now <= FOREVER, f"{name!r} is at {now}")
        saved.promise(EARLIEST <= closed <= LATEST - self.window.every, f"{name!r} has closed {closed}")
        if not self.waits:
            return
        every = self.window.every
        saved.promise(closed % every == 0 and latest_end % every == 0, f"{name!r} has closed where no window ends")
        # With a later end, closing windows would never stop.
        last = max(closed + every, self._end_of(now))
        saved.promise(latest_end <= last, f"{name!r} has windows to close after {last}, the last that holds a row")
        if alone and self.window.lateness < FOREVER:
            saved.promise(closed >= self._closed_at(now), f"{name!r} has not closed what its watermark has passed")

    def restore(self, state: Ints) -> None:
        numbers = [int(number) for number in state]
        self.late, self.unranked, self.arrivals, self.now, self.closed, self._earliest, self._latest_end = numbers[:7]
        if len(numbers) != 7 + len(self._reached):
            raise ValueError("the clock has another number of streams")
        self._reached = np.array(numbers[7:], np.int64)


AnswerT = TypeVar("AnswerT")


class Driver(ABC, Generic[AnswerT]):
    """The base of all drivers of problems with one window: the part of the operator protocol that needs only the clock.

    A driver takes rows. When the clock says that a window closes, `_close_window` writes the window's answer, and
    `_take_answer` returns everything written since the last call.
    """

    def __init__(self, windows: WindowClock) -> None:
        self._windows = windows

    @property
    def late(self) -> int:
        return self._windows.late

    @property
    def unranked(self) -> int:
        return self._windows.unranked

    def advance(self, watermark: int) -> AnswerT:
        self._close_until(self._windows.watermark_end(watermark))
        return self._take_answer()

    def finish(self) -> AnswerT:
        if self._windows.waits:
            self._close_until(self._finish_end())
        return self._take_answer()

    def next_close(self) -> int | None:
        return self._worth_closing() if self._windows.waits else None

    def next_held(self) -> int | None:
        # Not what the last answer may take back: `top` says the same whatever the query emits.
        return self._windows.worth_closing(self._earliest_live, takes_back=False) if self._windows.waits else None

    # -- a driver or its algorithm implements these -------------------------------------------------------------------

    @abstractmethod
    def _take_answer(self) -> AnswerT:
        """Return what was written since the last call."""

    def _close_window(self, end: int) -> None:
        """Write the answer of the window that ends here."""
        raise AssertionError("a driver without it closes windows in a loop of its own")

    def _earliest_live(self) -> int:
        """The earliest time of a row in the next window or a later one; LATEST if there is none."""
        raise AssertionError("a driver without it closes windows in a loop of its own")

    def _takes_back(self) -> bool:
        """Did the last answer show rows that the next one may take back?"""
        return False

    # -- a driver that closes many windows in a loop of its own overrides these instead -------------------------------

    def _worth_closing(self) -> int | None:
        """The end of the earliest open window that has something to show, even if only leaving rows; None if none."""
        return self._windows.worth_closing(self._earliest_live, takes_back=self._takes_back())

    def _close_until(self, until: int) -> None:
        """Close the windows that end here or before, and pass over those that have nothing to show."""
        if until > self._windows.closed:
            self._windows.close_until(until, self._worth_closing, self._close_window)

    def _finish_end(self) -> int:
        """The end of the last window that closes when the input ends."""
        return self._windows.finish_end
