"""The clock of a join: it turns the windows of all inputs into moments at which rows come and leave.

A row is live from the moment at which it comes to its `last`, both included. With a slide, moments are the ends of
windows: a row comes with the first window that holds it and is still open when it arrives. Without a slide, moments are
arrivals. docs/reference/semantics.md defines late and closed. All plans share this clock.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from skyband.core.clock import LATEST, WindowClock
from skyband.core.emit import takes_back
from skyband.core.operator import Arrays, Ints
from skyband.core.validation import Saved
from skyband.problems.joins.drivers.lifetimes import Coming, coalesced, in_both, in_order, nothing, runs
from skyband.problems.joins.drivers.live_rows import LiveRows, Moves, as_coming, input_of_each
from skyband.problems.joins.operator import BEFORE, UNMATCHED, Batch, Rows, Spec
from skyband.windows import FOREVER, Ticks


class JoinClock(LiveRows):
    """One clock for all inputs. With `coalesce`, it merges rows that come and leave together."""

    def __init__(self, spec: Spec, *, coalesce: bool = False) -> None:
        super().__init__(spec)
        self._as_one = tuple(spec.as_one(i) if coalesce else None for i in range(len(spec.inputs)))
        # For each input: windows end together, but each input has its own size and its own progress.
        # By count, rows have their numbers as times, so a clock by value serves both.
        windows = (Ticks(source.size, spec.every, spec.lateness, by_count=False) for source in spec.inputs)
        self._clocks = tuple(map(WindowClock, windows))
        self._arrivals = 0

    @property
    def closed(self) -> int:
        clock = self._clocks[0]
        return clock.closed if clock.slides else clock.now

    def now(self) -> Ints:
        return np.full(len(self._clocks), self.closed)

    def take(self, batch: Batch) -> Moves | None:
        if not self._spec.every:
            return self._arrive(batch)
        self._wait(batch)
        return self.close(self._watermark())

    # -- with a slide ----------------------------------------------------------------------------------------------

    def _wait(self, batch: Batch) -> None:
        """Let rows wait until the first window that holds them closes."""
        for source, rows in enumerate(batch.rows):
            if rows is not None and len(rows.time):
                new = self._in_time(source, rows)
                ways = self._as_one[source]
                new = new if ways is None else coalesced(new, ways)
                self._waiting[source] = in_order(self._waiting[source], new)

    def _in_time(self, source: int, rows: Rows) -> Coming:
        # Whether a window had closed when a row arrived depends only on the watermark of its own input, so it depends
        # neither on the batches nor on the other inputs.
        clock = self._clocks[source]
        now, last = clock.now_after(rows.time), clock.last_moments(rows.time)
        closed = clock.closed_after(now)
        clock.move_to(int(now[-1]))
        in_time = last > closed
        self.late += _counted(rows, ~in_time)
        kept = np.flatnonzero(in_time & (rows.cell != UNMATCHED))
        return as_coming(clock.first_moments(rows.time[kept], closed[kept]), last[kept], rows, kept)

    def _watermark(self) -> int:
        """The watermark of the slowest stream."""
        if self._spec.lateness >= FOREVER:
            return BEFORE
        slowest = min(
            clock.now for clock, source in zip(self._clocks, self._spec.inputs, strict=True) if not source.relation
        )
        # A window of arrivals closes with its last arrival, not with the next one.
        return slowest - self._spec.lateness + self._spec.by_count if slowest > BEFORE else BEFORE

    def last_end(self) -> int:
        """The end of the last window that holds a row; for landmark windows, of the last that holds a new row."""
        ends = [BEFORE]
        inputs = zip(self._spec.inputs, self._clocks, self._waiting, self.queues, strict=True)
        for source, clock, waiting, queue in inputs:
            if source.relation:
                continue
            ends += [int(waiting.start.max())] if len(waiting.start) else []
            if not clock.endless:
                ends += [int(lasts.max()) for lasts in (waiting.last, queue.last) if len(lasts)]
        return max(ends)

    def close(self, watermark: int) -> Moves | None:
        every = self._spec.every
        target = self._clocks[0].watermark_end(watermark) if watermark > BEFORE else self.closed
        if target == self.closed:
            return None
        coming = self._come(target)
        shown = np.zeros(0, np.int64) if takes_back(self._spec.emit) else self._shown(coming, target)
        slots = self._enter(coming)
        going, lasts = self._leave(np.full(len(coming), target))
        ends = [last + every for last in lasts]
        starts = [rows.start for rows in coming]
        now, number = _moments([*starts, *ends, shown], every)
        for clock in self._clocks:
            clock.closed = target
        return Moves(
            tuple(coming), slots, tuple(map(number, starts)), going, tuple(map(number, ends)), self._by_input(now), now
        )

    def _runs(self, source: int, rows: Coming) -> tuple[Ints, Ints]:
        """The runs of open windows that hold a live row or one of these rows."""
        start, last = rows.start, rows.last
        if len(queue := self.queues[source]):
            start, last = (
                np.concatenate([[self._clocks[source].next_end], start]),
                np.concatenate([queue.last[-1:], last]),
            )
        return runs(start, last, self._spec.every)

    def _shown(self, coming: list[Coming], target: int) -> Ints:
        """The ends, up to `target`, of windows in which every input that must have rows has some. Only these can have
        groups."""
        found = np.array([BEFORE]), np.array([target])
        for source, rows in enumerate(coming):
            if self._spec.inputs[source].is_needed:
                found = in_both(found, self._runs(source, rows))
        pieces = [np.arange(a, b + 1, self._spec.every) for a, b in zip(*found, strict=True)]
        return np.concatenate([np.zeros(0, np.int64), *pieces])

    def next_close(self) -> int | None:
        """The end of the earliest window in which every input has rows that must have some; with changes, where a row
        comes or leaves."""
        if not self._spec.waits:
            return None
        if takes_back(self._spec.emit):
            ends = [int(rows.start[0]) for rows in self._waiting if len(rows.start)]
            ends += [int(queue.last[0]) + self._spec.every for queue in self.queues if len(queue)]
            return min((end for end in ends if end < LATEST), default=None)
        found = np.array([BEFORE]), np.array([LATEST])
        for source, rows in enumerate(self._waiting):
            if self._spec.inputs[source].is_needed:
                found = in_both(found, self._runs(source, rows))
        return int(found[0][0]) if len(found[0]) else None

    # -- with each arrival -----------------------------------------------------------------------------------------

    def _arrive(self, batch: Batch) -> Moves:
        """The rows that come and leave with each of these arrivals."""
        spec, order = self._spec, input_of_each(batch)
        places = [np.flatnonzero(order == source) for source in range(len(spec.inputs))]
        time = np.empty(len(order), np.int64)
        for place, rows in zip(places, batch.rows, strict=True):
            if rows is not None:
                time[place] = rows.time
        now = np.maximum(np.maximum.accumulate(time), self.closed) if len(time) else time
        coming, comes = [], []
        for source, (place, rows) in enumerate(zip(places, batch.rows, strict=True)):
            arrived = nothing(len(spec.inputs[source].floats))
            if rows is not None:
                arrived, place = self._arrived(source, rows, place, now)
            coming.append(arrived)
            comes.append(place)
        for clock in self._clocks:
            clock.move_to(int(now[-1]) if len(now) else clock.now)
        slots = self._enter(coming)
        going, lasts = self._leave(self.now())
        at = np.arange(self._arrivals + 1, self._arrivals + len(now) + 1) if spec.by_count else now
        self._arrivals += len(now)
        goes = tuple(np.searchsorted(now, last, side="right") for last in lasts)
        return Moves(tuple(coming), slots, tuple(comes), going, goes, self._by_input(now), at)

    def _arrived(self, source: int, rows: Rows, place: Ints, now: Ints) -> tuple[Coming, Ints]:
        """The rows that are not late, and the numbers of their arrivals in the batch."""
        last = self._clocks[source].last_moments(rows.time)
        in_time = last >= now[place]
        self.late += _counted(rows, ~in_time)
        kept = np.flatnonzero(in_time & (rows.cell != UNMATCHED))
        place = place[kept]
        return as_coming(now[place], last[kept], rows, kept), place

    # -- both ------------------------------------------------------------------------------------------------------

    def _by_input(self, now: Ints) -> Ints:
        """`now` for every input, which is the same for all."""
        return np.broadcast_to(now[:, None], (len(now), len(self._clocks)))

    def state(self) -> Arrays:
        return super().state() | {
            "counts": np.array([self.late, self._arrivals], np.int64),
            "clocks": np.stack([clock.state() for clock in self._clocks]),
        }

    def validate(self, saved: Saved) -> None:
        spec, clocks = self._spec, saved["clocks"]
        saved.length(2, "counts")
        saved.counts("counts", saved["counts"])
        saved.promise(clocks.shape == (len(spec.inputs), 7), "'clocks' are not those of the inputs")
        for clock, state in zip(self._clocks, clocks, strict=True):
            clock.validate(saved, "clocks", state, alone=False)
        now, closed = int(clocks[0, 3]), int(clocks[0, 4])
        saved.promise(bool((clocks[:, 4] == closed).all()), "'clocks' have closed different windows")
        for source, clock in enumerate(self._clocks):
            waiting, live = (Saved(dict(saved), f"{what} {source} ") for what in ("waiting", "live"))
            begins = waiting["start"]
            self._validate_lives(source, waiting, begins)
            waiting.ascends("start", begins)
            if clock.slides:
                late = bool((begins <= closed).any() or (begins % spec.every).any())
                waiting.promise(not late, "'start' is where no open window ends")
            self._validate_lives(source, live, np.full(len(live["last"]), closed if clock.slides else now))

    def _validate_lives(self, source: int, rows: Saved, begins: Ints) -> None:
        """Check waiting or live rows: none lives longer than its window."""
        self._validate_rows(source, rows)
        rows.promise(len(begins) == len(rows["last"]), "'start' and 'last' are not as many")
        clock = self._clocks[source]
        if not (self._spec.inputs[source].relation or clock.endless):
            longest = clock.window.size + 2 * self._spec.every
            rows.within("last", rows["last"] - begins, -longest, longest)

    def restore(self, state: Arrays) -> None:
        self.late, self._arrivals = (int(number) for number in state["counts"])
        for clock, saved in zip(self._clocks, state["clocks"], strict=True):
            clock.restore(saved)
        super().restore(state)


def _counted(rows: Rows, which: npt.NDArray[np.bool_]) -> int:
    """How many rows these rows stand for."""
    return int(np.count_nonzero(which) if rows.weight is None else rows.weight[which].sum())


def _moments(ends: list[Ints], every: int) -> tuple[Ints, Callable[[Ints], Ints]]:
    """The moments at which something happens, given the ends of windows; and a function that numbers them.

    If they are dense, the ends between them are moments, too, although nothing happens there: that is cheaper than
    leaving them out.
    """
    some = [each for each in ends if len(each)]
    if not some:
        return np.zeros(0, np.int64), lambda times: np.zeros(len(times), np.int64)
    first, last = min(int(each.min()) for each in some), max(int(each.max()) for each in some)
    if (last - first) // every <= sum(map(len, some)) + 64:
        return np.arange(first, last + 1, every), lambda times: (times - first) // every
    now = np.unique(np.concatenate(some))
    return now, lambda times: np.searchsorted(now, times)
