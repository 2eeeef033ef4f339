"""What operators for pairs share: which rows are due, which window closes, what may be asked, what is shown.

With a slide by value nothing is shown before a window closes. Until then rows wait, so that an algorithm gets them in
order of time, however they came; only a row that comes after one of its windows has closed is out of order. Without a
slide, a row is taken when it comes.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import numpy.typing as npt

from skyband.core.ad_hoc import NEXT_WINDOW, Spans
from skyband.core.clock import LATEST, Driver, WindowClock
from skyband.core.emit import is_once, takes_back
from skyband.core.operator import Arrays, Ints
from skyband.core.validation import Saved
from skyband.kernels.positions import ascending
from skyband.problems.pairs.drivers.ad_hoc import AdHocPairs
from skyband.problems.pairs.drivers.kernels import MARKED, NUMBERS, OUT, SHOWN, Shown, renumber, show_answer
from skyband.problems.pairs.drivers.window_rows import Rows, WindowRows
from skyband.problems.pairs.operator import ANSWER, PAIR, Answer, Batch, Pairs, Spec, relabelled

KEPT_OUT = 65_536  # entries: room for more than so many is given back when they have been answered


class RowDriver(Driver[Answer]):
    """The protocol (see operator.py), but for what an algorithm has to say itself: the methods below `-- below --`."""

    def __init__(self, spec: Spec) -> None:
        super().__init__(WindowClock(spec.window))
        self.spec = spec
        scoring = spec.scoring
        self._rows = WindowRows(scoring.width, scoring.colours, timed=not self._windows.numbered)
        self._waiting: list[Rows] = []  # by value with a slide: rows that have not been taken
        last = np.empty(spec.k if takes_back(spec.emit) else 0, PAIR)
        self._shown = Shown(last, np.empty(0, ANSWER), np.zeros(NUMBERS, np.int64))
        self._viewed: list[int] = []  # of each answer to one of several views, in turn: how many entries it has
        self._ad_hoc: dict[int, AdHocPairs] = {}  # pairs ready for ad-hoc queries, until rows come

    # -- the protocol ---------------------------------------------------------------------------------------------

    def push(self, batch: Batch) -> Answer:
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

    @property
    def latest(self) -> int:
        """The largest time so far."""
        return int(self._windows.now)

    def top(self, k: int, size: int | None) -> Answer:
        before = self.next_held() if size is None else None
        spans = self._windows.spans(np.array([NEXT_WINDOW if size is None else size]), 1, self.next_held)
        return self._answer_one(k, spans, LATEST if before is None else before)

    def top_many(self, k: Ints, size: Ints) -> tuple[Answer, Ints]:
        closing = size == NEXT_WINDOW
        if self._windows.waits and closing.any() and not closing.all():
            # The next window and the last so many are not about the same rows; who asks of both is answered one by one.
            answers = [self.top_many(k[i : i + 1], size[i : i + 1])[0] for i in range(len(k))]
            ends = np.cumsum([0, *(len(answer.at) for answer in answers)])
            return Answer.joined(answers), ends
        before = self.next_held() if closing.any() else None
        spans = self._windows.spans(size, 1, self.next_held)
        return self._ad_hoc_pairs(LATEST if before is None else before).top_many(k, spans)

    def held(self) -> Ints:
        shown = self._last_answer()
        waiting = [rows.position for rows in self._waiting]
        return ascending(np.concatenate([self._rows.positions(), *waiting, shown["a_position"], shown["b_position"]]))

    def rows_held(self) -> int:
        return self._rows.count + sum(rows.length for rows in self._waiting) + 2 * len(self._last_answer())

    def pairs_held(self) -> Pairs:
        return self._caught_up(LATEST)._candidates().copy()

    def live_codes(self, which: int) -> npt.NDArray[np.bool_]:
        codes = np.concatenate([rows.colours[which] for rows in self._all_rows()]).astype(np.int64)
        live = np.zeros(int(codes.max(initial=-1)) + 1, np.bool_)
        live[codes] = True
        return live

    def compact(self, kept: Ints, which: int = 0) -> None:
        code = np.full(int(kept.max(initial=-1)) + 1, -1.0)
        code[kept] = np.arange(len(kept))
        for rows in self._all_rows():
            rows.colours[which] = code[rows.colours[which].astype(np.int64)]

    def live_values(self, which: int) -> Ints:
        return np.concatenate([rows.columns[which] for rows in self._all_rows()]).view(np.int64)

    def relabel(self, which: int, old: Ints, new: Ints) -> None:
        for rows in self._all_rows():
            if len(old) and rows.length:
                rows.columns[which] = relabelled(rows.columns[which].view(np.int64), old, new).view(np.float64)

    def state(self) -> Arrays:
        waiting = self._all_waiting()
        saved: Arrays = {f"rows_{name}": array for name, array in self._rows.state().items()}
        saved |= {f"waiting_{name}": array.copy() for name, array in waiting._asdict().items()}
        saved["clock"] = self._windows.state()
        saved["shown"] = self._last_answer().copy()
        return saved | self._saved()

    def validate(self, saved: Saved) -> None:
        self._windows.validate(saved, "clock", saved["clock"])
        self._rows.validate(Saved(dict(saved), "rows_"))
        self._rows.validate_others(Saved(dict(saved), "waiting_"))
        waits = self._windows.waits or not len(saved["waiting_time"])
        saved.promise(waits, "rows wait, and windows do not")
        if not self._rows.timed:
            after = int(saved["rows_base"][0]) + saved["rows_columns"].shape[1]
            arrivals = int(saved["clock"][2])
            saved.promise(after == arrivals, f"{arrivals} rows have come, and the next one is number {after}")
        shown = saved["shown"]
        saved.within("shown", np.array([len(shown)]), 0, len(self._shown.pairs))
        saved.numbers("shown.score", shown["score"])
        for name in ("a_position", "b_position"):
            saved.counts(f"shown.{name}", shown[name])

    def restore(self, state: Arrays) -> None:
        self._ad_hoc = {}
        self._rows.restore({name[5:]: array for name, array in state.items() if name.startswith("rows_")})
        waiting = Rows(*(state[f"waiting_{name}"].copy() for name in Rows._fields))
        self._waiting = [waiting] if waiting.length else []
        self._windows.restore(state["clock"])
        self._forget_written()
        self._shown.numbers[SHOWN] = len(state["shown"])
        self._last_answer()[:] = state["shown"]
        self._restored(state)

    def check(self) -> None:
        self._rows.check()
        assert len(self._last_answer()) <= self.spec.k, "no more than k pairs are shown"
        if not self._rows.timed and not self._windows.endless:
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
    def _mark(self, a: Ints, b: Ints) -> None:
        """With entries: the pairs of these arrivals have been shown."""

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
            if self._rows.follow(row.time):
                self._append(row)
            else:
                self._insert(row)
            self._show(self._windows.arrived(self._windows.now), self._best(self._rows.base + self._rows.head))

    def _heads(self, now: Ints) -> Ints:
        """Without a slide: the index of the window's first row when `now` is each of these."""
        return self._rows.firsts_at(self._windows.starts_at(now))

    def _renumber(self, numbers: Ints) -> None:
        """Rows were put in before these numbers, ascending: pairs get the new numbers of their rows."""
        renumber(self._shown.pairs, self._shown.numbers[SHOWN], numbers)

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

    def _all_rows(self) -> list[Rows]:
        """Rows that wait, and those taken, as views."""
        window, live = self._rows, slice(self._rows.head, self._rows.tail)
        taken = Rows(window.columns[:, live], window.colours[:, live], window.times(), window.positions())
        return [*self._waiting, taken]

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
        late = self._rows.before_last(rows)
        if late:
            self._insert(rows.take(slice(0, late)))
        if late < rows.length:
            self._append(rows.take(slice(late, None)))

    def _takes_back(self) -> bool:
        return len(self._last_answer()) > 0

    def _earliest_live(self) -> int:
        times = self._rows.times()
        first = self._rows.first_at(self._windows.next_start) - self._rows.head
        earliest = [int(times[first])] if first < len(times) else []
        return min([*earliest, *(int(rows.time.min()) for rows in self._waiting if rows.length)], default=LATEST)

    def _close_window(self, end: int) -> None:
        """The window that ends here closes; so does that of every view."""
        if self._windows.waits:
            self._take_waiting(end)
        if not self.spec.views:
            self._show(end, self._best(self._first_of(end, self.spec.window.size)))
        for view in self.spec.views:
            pairs = self._best(self._first_of(end, view.size))[: view.k]
            self._show(end, pairs)
            self._viewed.append(len(pairs))

    def _first_of(self, end: int, size: int) -> int:
        """The number of the first row of a window of this size."""
        return self._rows.base + self._rows.first_at(self._windows.start_of(end, size))

    # -- answers --------------------------------------------------------------------------------------------------

    def _last_answer(self) -> Pairs:
        """With changes: the pairs that were shown last, best first; otherwise none."""
        return self._shown.pairs[: self._shown.numbers[SHOWN]]

    def _show(self, at: int, pairs: Pairs) -> None:
        """The answer is now these pairs, best first: say so in the way the query asked for."""
        self._reserve_out(len(pairs) + len(self._last_answer()))
        show_answer(self.spec.emit, at, pairs, len(pairs), self._shown)
        self._mark_written()

    def _reserve_out(self, entries: int) -> None:
        """Make room to write so many entries more."""
        out, written = self._shown.out, self._shown.numbers[OUT]
        if written + entries > len(out):
            longer = np.empty(max(2 * len(out), written + entries), ANSWER)
            longer[:written] = out[:written]
            self._shown = self._shown._replace(out=longer)

    def _mark_written(self) -> None:
        """With entries: mark the pairs that were written, so that they are not written again."""
        out, numbers = self._shown.out, self._shown.numbers
        if is_once(self.spec.emit) and numbers[MARKED] < numbers[OUT]:
            new = out[numbers[MARKED] : numbers[OUT]]
            self._mark(new["a"], new["b"])
            numbers[MARKED] = numbers[OUT]

    def _take_answer(self) -> Answer:
        self._ad_hoc = {}
        views = len(self.spec.views)
        view = np.repeat(np.arange(len(self._viewed)) % views, self._viewed).astype(np.int32) if views else None
        answer = Answer.of(self._shown.out[: self._shown.numbers[OUT]], view)
        self._forget_written()
        return answer

    def _forget_written(self) -> None:
        self._viewed = []
        self._shown.numbers[OUT] = self._shown.numbers[MARKED] = 0
        if len(self._shown.out) > KEPT_OUT:
            self._shown = self._shown._replace(out=np.empty(0, ANSWER))

    # -- ad-hoc queries -------------------------------------------------------------------------------------------

    def _answer_one(self, k: int, spans: Spans, before: int) -> Answer:
        """The answer to one question, about rows before this time."""
        return self._ad_hoc_pairs(before).top(k, spans)

    def _ad_hoc_pairs(self, before: int) -> AdHocPairs:
        """The pairs of rows before this time that can be an answer, ready for ad-hoc queries."""
        if before not in self._ad_hoc:
            holder = self._caught_up(before)
            self._ad_hoc[before] = AdHocPairs(holder._candidates(), holder._rows)
        return self._ad_hoc[before]

    def _caught_up(self, before: int) -> RowDriver:
        """This operator, or if rows wait another one that has taken in those before this time.

        They count in what is asked now, and still wait for their window.
        """
        if not any(rows.length for rows in self._waiting):
            return self
        other = type(self)(self.spec)
        other.restore(self.state())
        other._take_waiting(before)
        return other
