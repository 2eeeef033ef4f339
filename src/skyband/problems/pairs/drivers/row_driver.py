"""What operators for pairs share: which rows are due, which window closes, what may be asked, what is shown.

With a slide by value nothing is shown before a window closes. Until then rows wait, so that an algorithm gets them in
order of time, however they came; only a row that comes after one of its windows has closed is out of order. Without a
slide, a row is taken when it comes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.core.ad_hoc import NEXT_WINDOW, Asked, Held
from skyband.core.clock import LATEST, WindowClock
from skyband.core.emit import ENTER, LEAVE, is_once, takes_back
from skyband.core.operator import Arrays, Ints
from skyband.kernels.ranking import ROW
from skyband.problems.pairs.drivers.window_rows import Rows, WindowRows
from skyband.problems.pairs.operator import ANSWER, PAIR, Answer, Batch, Pairs, Spec, relabelled


class Arriving(ABC):
    """The protocol (see protocol.py), but for what an algorithm has to say itself: the methods below `-- below --`."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self._windows = WindowClock(spec.window)
        scoring = spec.scoring
        self._rows = WindowRows(scoring.width, scoring.colours, spec.window.by_count)
        self._waiting: list[Rows] = []  # by value with a slide: rows that have not been taken
        self._shown = np.empty(0, PAIR)  # with changes: the last answer, best first
        self._written: list[npt.NDArray[Any]] = []  # records of type ANSWER
        self._viewed: list[int] = []  # for which of several views each of those is
        self._asking: dict[int, tuple[Held, Pairs]] = {}  # pairs ready for questions, until rows come

    @property
    def late(self) -> int:
        return self._windows.late

    @property
    def unranked(self) -> int:
        """Rows without a score are not known to pairs: only a pair has one."""
        return 0

    # -- the protocol ---------------------------------------------------------------------------------------------

    def push(self, batch: Batch) -> Answer:
        self._asking = {}
        count = batch.columns.shape[1]
        position = np.arange(batch.first, batch.first + count)
        rows = Rows(batch.columns, batch.colours, self._windows.measured(batch.time, count), position)
        if not count:
            return self._take_answer()
        if not self.spec.scoring.may_raise:
            return self._push(rows)
        before = self.state()
        try:
            return self._push(rows)
        except Exception:
            # A user's function failed on some pair: nothing of the batch was taken.
            self.restore(before)
            raise

    def advance(self, watermark: int) -> Answer:
        self._asking = {}
        self._close_until(self._windows.watermark_end(watermark))
        return self._take_answer()

    def next_close(self) -> int | None:
        return self._worth_closing() if self._windows.waits else None

    def finish(self) -> Answer:
        self._asking = {}
        if self._windows.waits:
            self._close_until(self._windows.finish_end)
        return self._take_answer()

    def top(self, k: int, size: int | None) -> Answer:
        answer, _ = self.top_many(np.array([k]), np.array([NEXT_WINDOW if size is None else size]))
        return answer

    def top_many(self, k: Ints, size: Ints) -> tuple[Answer, Ints]:
        closing = size == NEXT_WINDOW
        if self._windows.waits and closing.any() and not closing.all():
            # The next window and the last so many are not about the same rows; who asks of both is answered one by one.
            answers = [self.top_many(k[i : i + 1], size[i : i + 1])[0] for i in range(len(k))]
            ends = np.cumsum([0, *(len(answer.at) for answer in answers)])
            return Answer.joined(answers), ends
        before = self.next_close() if closing.any() else None
        held, pairs = self._ask(LATEST if before is None else before)
        found, ends = held.best_of_many(k, self._asked(size, len(held.codes)))
        chosen = pairs[len(pairs) - 1 - found.position]
        return Answer(found.at, found.rank, found.score, chosen["a_position"], chosen["b_position"], found.change), ends

    def held(self) -> Ints:
        parts = [self._rows.positions(), *(rows.position for rows in self._waiting)]
        if takes_back(self.spec.emit):
            parts += [self._shown["a_position"], self._shown["b_position"]]
        return np.unique(np.concatenate(parts))

    def rows_held(self) -> int:
        return self._rows.count + sum(rows.length for rows in self._waiting) + 2 * len(self._shown)

    def live_colours(self, which: int) -> npt.NDArray[np.bool_]:
        parts = [rows.colours[which] for rows in [*self._waiting, self._live()]]
        codes = np.concatenate(parts).astype(np.int64)
        live = np.zeros(int(codes.max(initial=-1)) + 1, np.bool_)
        live[codes] = True
        return live

    def compact(self, kept: Ints, which: int = 0) -> None:
        code = np.full(int(kept.max(initial=-1)) + 1, -1.0)
        code[kept] = np.arange(len(kept))
        for rows in [*self._waiting, self._live()]:
            rows.colours[which] = code[rows.colours[which].astype(np.int64)]

    def live_values(self, which: int) -> Ints:
        parts = [rows.columns[which] for rows in [*self._waiting, self._live()]]
        return np.concatenate(parts).view(np.int64)

    def relabel(self, which: int, old: Ints, new: Ints) -> None:
        for rows in [*self._waiting, self._live()]:
            if len(old) and rows.length:
                rows.columns[which] = relabelled(rows.columns[which].view(np.int64), old, new).view(np.float64)

    def state(self) -> Arrays:
        waiting = self._all_waiting()
        saved: Arrays = {f"rows_{name}": array for name, array in self._rows.state().items()}
        saved |= {f"waiting_{name}": array.copy() for name, array in waiting._asdict().items()}
        saved["clock"] = self._windows.state()
        saved["shown"] = self._shown.copy()
        return saved | self._saved()

    def restore(self, state: Arrays) -> None:
        self._asking = {}
        self._written, self._viewed = [], []
        self._rows.restore({name[5:]: array for name, array in state.items() if name.startswith("rows_")})
        waiting = Rows(*(state[f"waiting_{name}"].copy() for name in Rows._fields))
        self._waiting = [waiting] if waiting.length else []
        self._windows.restore(state["clock"])
        self._shown = state["shown"].copy()
        self._restored(state)

    def check(self) -> None:
        self._rows.check()
        assert len(self._shown) <= self.spec.k, "no more than k pairs are shown"
        if self._rows.by_count and not self._windows.endless:
            assert self._rows.count <= self.spec.window.size, "no more rows are held than a window has"

    # -- below: what an algorithm says ----------------------------------------------------------------------------

    @abstractmethod
    def _append(self, rows: Rows) -> None:
        """Take rows that come after all others, in order, and score their pairs. None of the window's rows leaves."""

    @abstractmethod
    def _insert(self, rows: Rows) -> None:
        """Take rows of which some come before some of the others."""

    @abstractmethod
    def _expire(self, head: int) -> None:
        """Rows before this index leave the window."""

    @abstractmethod
    def _best(self, start: int) -> Pairs:
        """The k best pairs of rows from this number on, best first."""

    @abstractmethod
    def _mark(self, pairs: Pairs) -> None:
        """With entries: these pairs have been shown."""

    @abstractmethod
    def _candidates(self) -> Pairs:
        """All pairs that can be among the k best of a window that starts with any of the rows."""

    @abstractmethod
    def _saved(self) -> Arrays:
        """What `_restored` needs, beside the rows."""

    @abstractmethod
    def _restored(self, state: Arrays) -> None:
        """Rows are there again; so must be what the algorithm knows of them."""

    def _arrive(self, rows: Rows) -> None:
        """Without a slide: take rows, each of which may change the answer. By value, none is older than the window."""
        for i in range(rows.length):
            row = rows.take(slice(i, i + 1))
            self._windows.move_to(int(row.time[0]))
            self._expire(self._rows.first_at(self._windows.next_start))
            self._take_row(row)
            self._show(self._windows.arrived(self._windows.now), self._best(self._rows.base + self._rows.head))

    # -- rows -----------------------------------------------------------------------------------------------------

    def _push(self, rows: Rows) -> Answer:
        clock = self._windows
        now = clock.now_after(rows.time)
        clock.arrivals += rows.length
        if not clock.slides:
            in_time = clock.in_time(rows.time, now)
            self._arrive(rows if in_time is None else rows.take(in_time))
            clock.move_to(int(now[-1]))
        elif clock.waits:
            self._push_and_close(rows, now)
        else:
            self._push_and_count(rows)
        return self._take_answer()

    def _push_and_count(self, rows: Rows) -> None:
        """By count with a slide: cut the batch where windows close."""
        for first, end, until in self._windows.runs(self._windows.closed_after(rows.time)):
            self._close_until(until)
            self._append_within(rows.take(slice(first, end)))
            self._windows.move_to(int(rows.time[end - 1]))
        self._close_until(self._windows.arrived_end)

    def _append_within(self, rows: Rows) -> None:
        """By count: append rows in steps, so that no more than the window's rows are held."""
        size = self.spec.window.size
        step = max(1, min(size // 2, 4096))
        for i in range(0, rows.length, step):
            part = rows.take(slice(i, i + step))
            if not self._windows.endless:
                after = int(part.position[-1]) + 1
                self._expire(self._rows.first_at(min(after - size, int(part.position[0]))))
            self._append(part)

    def _take_row(self, row: Rows) -> None:
        """One row, in order or out of it."""
        window = self._rows
        if window.by_count or not window.count or int(row.time[0]) >= int(window.time[window.tail - 1]):
            self._append(row)
        else:
            self._insert(row)

    def _live(self) -> Rows:
        """The rows taken, as views."""
        window, live = self._rows, slice(self._rows.head, self._rows.tail)
        return Rows(window.columns[:, live], window.colours[:, live], window.times(), window.positions())

    def _all_waiting(self) -> Rows:
        if len(self._waiting) != 1:
            scoring = self.spec.scoring
            self._waiting = [Rows.joined([Rows.none(scoring.width, scoring.colours), *self._waiting])]
        return self._waiting[0]

    # -- windows by value that slide ------------------------------------------------------------------------------

    def _push_and_close(self, rows: Rows, now: Ints) -> None:
        """Cut the batch where windows close; rows wait until the first window that they can be in does."""
        clock = self._windows
        closed = clock.closed_after(now)
        in_time = clock.in_time(rows.time, closed)
        clock.move_to(int(now[-1]))
        for first, end, until in clock.runs(closed):
            self._close_until(until)
            part = rows.take(slice(first, end))
            if in_time is not None:
                part = part.take(in_time[first:end])
            if part.length:
                clock.begin(part.time)
                # A copy: the batch belongs to somebody else.
                self._waiting.append(part.copied())

    def _take_waiting(self, before: int) -> None:
        """Take in the rows that waited and whose time is before this one."""
        waiting = self._all_waiting()
        due = waiting.time < before
        self._waiting = [waiting.take(~due)] if not due.all() else []
        rows = waiting.take(due).in_order()
        self._expire(self._rows.first_at(self._windows.live_from))
        if not rows.length:
            return
        window = self._rows
        in_order = 0
        if window.count:
            last = window.tail - 1
            after = (rows.time > window.time[last]) | (
                (rows.time == window.time[last]) & (rows.position > window.position[last])
            )
            in_order = int(np.argmax(after)) if after.any() else rows.length
        if in_order:
            self._insert(rows.take(slice(0, in_order)))
        if in_order < rows.length:
            self._append(rows.take(slice(in_order, None)))

    def _worth_closing(self) -> int | None:
        """The end of the earliest open window that has a row, or something to say about what has left it."""
        showing = takes_back(self.spec.emit) and len(self._shown) > 0
        return self._windows.worth_closing(self._earliest_live, showing=showing)

    def _earliest_live(self) -> int:
        times = self._rows.times()
        first = self._rows.first_at(self._windows.next_start) - self._rows.head
        earliest = [int(times[first])] if first < len(times) else []
        return min([*earliest, *(int(rows.time.min()) for rows in self._waiting if rows.length)], default=LATEST)

    def _close_until(self, until: int) -> None:
        """Close every window that ends here or before."""
        if until > self._windows.closed:
            self._windows.close_until(until, self._worth_closing, self._close_window)

    def _close_window(self, end: int) -> None:
        if self._windows.waits:
            self._take_waiting(end)
        self._show_window(end)

    # -- answers --------------------------------------------------------------------------------------------------

    def _show_window(self, end: int) -> None:
        """The window that ends here has closed; so has that of every view."""
        if not self.spec.views:
            self._show(end, self._best(self._first_of(end, self.spec.window.size)))
        for number, view in enumerate(self.spec.views):
            pairs = self._best(self._first_of(end, view.size))[: view.k]
            self._write(end, pairs, np.arange(len(pairs)), ENTER)
            self._viewed += [number] * (len(self._written) - len(self._viewed))

    def _first_of(self, end: int, size: int) -> int:
        """The number of the first row of a window of this size."""
        return self._rows.base + self._rows.first_at(self._windows.start_of(end, size))

    def _show(self, at: int, pairs: Pairs) -> None:
        """The answer is now these pairs, best first: say so in the way the query asked for."""
        emit = self.spec.emit
        entered = np.arange(len(pairs))
        if takes_back(emit):
            shown, self._shown = self._shown, pairs.copy()
            before, now = (list(zip(some["a"].tolist(), some["b"].tolist(), strict=True)) for some in (shown, pairs))
            left, new = set(before) - set(now), set(now) - set(before)
            self._write(at, shown, [rank for rank, pair in enumerate(before) if pair in left], LEAVE)
            entered = np.array([rank for rank, pair in enumerate(now) if pair in new], np.int64)
        elif is_once(emit):
            entered = np.flatnonzero(pairs["flag"] == 0)
            if len(entered):
                self._mark(pairs[entered])
        self._write(at, pairs, entered, ENTER)

    def _write(self, at: int, pairs: Pairs, ranks: Any, change: np.int8) -> None:
        if not len(ranks):
            return
        chosen = pairs[ranks]
        records = np.empty(len(chosen), ANSWER)
        records["at"], records["rank"], records["change"] = at, np.asarray(ranks) + 1, change
        records["score"], records["a"], records["b"] = chosen["score"], chosen["a_position"], chosen["b_position"]
        self._written.append(records)

    def _take_answer(self) -> Answer:
        written, self._written = self._written, []
        viewed, self._viewed = self._viewed, []
        view = np.repeat(viewed, [len(records) for records in written]).astype(np.int32) if self.spec.views else None
        return Answer.of(np.concatenate([np.empty(0, ANSWER), *written]), view)

    # -- questions ------------------------------------------------------------------------------------------------

    def _ask(self, before: int) -> tuple[Held, Pairs]:
        """The pairs of rows before this time that can be an answer, ready for questions, and best first."""
        if before not in self._asking:
            asked: Arriving = self
            if any(rows.length for rows in self._waiting):
                # Rows that wait count in what is asked now; they still wait for their window.
                asked = type(self)(self.spec)
                asked.restore(self.state())
                asked._take_waiting(before)
            self._asking[before] = _as_held(asked._candidates(), asked._rows)
        return self._asking[before]

    def _asked(self, size: Ints, groups: int) -> Asked:
        """What questions of these sizes cover."""
        return self._windows.asked(size, groups, self.next_close)


def _as_held(pairs: Pairs, rows: WindowRows) -> tuple[Held, Pairs]:
    """Pairs as rows that leave the window when their older row does, so that what answers for rows does for pairs."""
    order = np.lexsort((-pairs["b"], -pairs["a"], -pairs["score"]))
    pairs = pairs[order]
    as_rows = np.zeros(len(pairs), ROW)
    as_rows["score"] = pairs["score"]
    as_rows["time"] = pairs["a"] if rows.by_count else rows.time[pairs["a"] - rows.base]
    as_rows["position"] = np.arange(len(pairs))[::-1]
    return Held(np.zeros(len(pairs), np.int64), as_rows), pairs
