"""The state of recomputation: every row of every open window, in a plain list. It shares no code with the others."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.emit import ENTER, LEAVE, is_once, is_whole, takes_back
from skyband.core.operator import Answer, Arrays, Floats, Ints
from skyband.problems.rows.operator import Batch, Spec
from skyband.windows import FOREVER


class Row(NamedTuple):
    score: float
    time: int  # by count: how many rows of the group arrived before it
    position: int
    group: int


def best_first(row: Row) -> tuple[float, int, int]:
    return -row.score, -row.time, -row.position


class Recompute:
    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self._size = math.inf if spec.window.size == FOREVER else spec.window.size
        self.late = 0
        self.unranked = 0
        self._rows: list[Row] = []
        self._shown: dict[int, list[Row]] = {}  # group -> its last answer
        self._entered: set[int] = set()  # positions of held rows that have been shown before
        self._arrivals: dict[int, int] = {}  # group -> rows so far
        self._now: int | None = None  # the largest time seen
        self._closed: int | None = None  # every window that ends here or before has closed
        self._due: int | None = None  # landmark: the end of the last window that has a row which no other had before
        self._out: list[tuple[int, int, int, float, int, np.int8]] = []

    # -- the protocol ---------------------------------------------------------------------------------------------

    def push(self, batch: Batch) -> Answer:
        for i, score in enumerate(batch.score.tolist()):
            group = int(batch.group[i]) if self.spec.grouped else 0
            if self.spec.window.by_count:
                self._arrive_by_count(Row(score, self._arrivals.get(group, 0), batch.first + i, group))
            elif self.spec.window.every:
                self._arrive_by_value(Row(score, int(batch.time[i]), batch.first + i, group))
            else:
                self._arrive_and_slide(Row(score, int(batch.time[i]), batch.first + i, group))
        return self._take_answer()

    def advance(self, watermark: int) -> Answer:
        self._close_until(watermark)
        return self._take_answer()

    def next_close(self) -> int | None:
        if not self.spec.window.every or self.spec.window.by_count:
            return None
        return self._next_end()

    def finish(self) -> Answer:
        window = self.spec.window
        if window.every and not window.by_count and self._now is not None:
            # The last window of the latest row closes too, even if that row has no score.
            endless = window.size == FOREVER
            last = max(self._first_end(self._now), self._due or self._now) if endless else self._last_end(self._now)
            self._close_until(last)
        return self._take_answer()

    def top(self, k: int, size: int | None) -> Answer:
        out = []
        for group in sorted({row.group for row in self._rows}):
            start, end, at = self._asked(group, size)
            live = [row for row in self._rows if row.group == group and start <= row.time < end]
            ranked = sorted(live, key=best_first)[:k]
            out += [(at, group, rank, row.score, row.position, ENTER) for rank, row in enumerate(ranked, 1)]
        return _answer(out)

    def held(self) -> Ints:
        kept = {row.position for row in self._rows}
        if takes_back(self.spec.emit):
            kept |= {row.position for shown in self._shown.values() for row in shown}
        return np.array(sorted(kept), np.int64)

    def rows_held(self) -> int:
        return len(self.held())

    def live_codes(self) -> npt.NDArray[np.bool_]:
        live = (
            {row.group for row in self._rows}
            | {group for group, shown in self._shown.items() if shown}
            | set(self._arrivals)
        )
        return np.array([group in live for group in range(max(live, default=-1) + 1)], np.bool_)

    def compact(self, kept: Ints) -> None:
        code = {int(old): new for new, old in enumerate(kept)}
        self._rows = [row._replace(group=code[row.group]) for row in self._rows]
        self._shown = {
            code[g]: [row._replace(group=code[g]) for row in shown] for g, shown in self._shown.items() if g in code
        }
        self._arrivals = {code[g]: count for g, count in self._arrivals.items() if g in code}

    def state(self) -> Arrays:
        shown = [row for rows in self._shown.values() for row in rows]
        clocks = [
            self.late,
            self.unranked,
            *(x for clock in (self._now, self._closed, self._due) for x in (clock is not None, clock or 0)),
        ]
        return {
            **_columns("rows", self._rows),
            **_columns("shown", shown),
            "entered": np.array(sorted(self._entered), np.int64),
            "arrivals": np.array(sorted(self._arrivals.items()), np.int64).reshape(-1, 2),
            "clocks": np.array(clocks, np.int64),
        }

    def restore(self, state: Arrays) -> None:
        self._rows = _rows("rows", state)
        self._shown = {}
        for row in _rows("shown", state):
            self._shown.setdefault(row.group, []).append(row)
        self._entered = set(state["entered"].tolist())
        self._arrivals = {int(group): int(count) for group, count in state["arrivals"]}
        self.late, self.unranked, has_now, now, has_closed, closed, has_due, due = (int(x) for x in state["clocks"])
        self._now = now if has_now else None
        self._closed = closed if has_closed else None
        self._due = due if has_due else None

    def rescore(self, change: Callable[[Floats], Floats]) -> None:
        scores = [row.score for rows in (self._rows, *self._shown.values()) for row in rows]
        following = iter(change(np.array(scores)).tolist())
        self._rows = [row._replace(score=next(following)) for row in self._rows]
        self._shown = {g: [row._replace(score=next(following)) for row in rows] for g, rows in self._shown.items()}

    def check(self) -> None:
        positions = [row.position for row in self._rows]
        assert positions == sorted(set(positions)), "rows are held once each, in arrival order"
        assert all(row.score == row.score for row in self._rows), "a row without a score is never held"

    # -- arrivals -------------------------------------------------------------------------------------------------

    def _arrive_by_count(self, row: Row) -> None:
        window = self.spec.window
        count = self._arrivals[row.group] = row.time + 1
        self._hold(row)
        self._rows = [old for old in self._rows if old.group != row.group or old.time >= count - self._size]
        if not window.every or count % window.every == 0:
            self._show(count, row.group, [old for old in self._rows if old.group == row.group])

    def _arrive_by_value(self, row: Row) -> None:
        if self._now is None or row.time > self._now:
            self._now = row.time
        self._close_until(self._now - self.spec.window.lateness)
        assert self._closed is not None
        if self._last_end(row.time) <= self._closed:
            self.late += 1
        elif self._hold(row):
            first = max(self._first_end(row.time), self._closed + self.spec.window.every)
            self._due = first if self._due is None else max(self._due, first)

    def _arrive_and_slide(self, row: Row) -> None:
        self._now = row.time if self._now is None else max(self._now, row.time)
        if row.time <= self._now - self._size:
            self.late += 1
            return
        self._hold(row)
        self._rows = [old for old in self._rows if old.time > self._now - self._size]
        for group in sorted({old.group for old in self._rows} | set(self._shown)):
            self._show(self._now, group, [old for old in self._rows if old.group == group])

    def _hold(self, row: Row) -> bool:
        """Hold the row, if it can be ranked."""
        if row.score != row.score:
            self.unranked += 1
            return False
        self._rows.append(row)
        return True

    # -- windows by value: those that end at a multiple of `every` ---------------------------------------------------

    def _first_end(self, time: int) -> int:
        return (time // self.spec.window.every + 1) * self.spec.window.every

    def _last_end(self, time: int) -> int:
        if self.spec.window.size == FOREVER:
            return FOREVER
        return (time + self.spec.window.size) // self.spec.window.every * self.spec.window.every

    def _open_rows(self) -> list[Row]:
        """The rows that some open window holds (others are kept only for `top`)."""
        return [row for row in self._rows if self._closed is None or self._last_end(row.time) > self._closed]

    def _next_end(self) -> int | None:
        """The end of the earliest open window that holds a row, or that a row which was shown before has left."""
        ends = [self._first_end(row.time) for row in self._open_rows()]
        if self._closed is not None:
            following = self._closed + self.spec.window.every
            ends = [max(end, following) for end in ends]
            if takes_back(self.spec.emit) and any(self._shown.values()):
                ends.append(following)
        return min(ends, default=None)

    def _close_until(self, watermark: int) -> None:
        window = self.spec.window
        while (end := self._next_end()) is not None and end <= watermark:
            inside = [row for row in self._rows if end - self._size <= row.time < end]
            for group in sorted({row.group for row in inside} | set(self._shown)):
                self._show(end, group, [row for row in inside if row.group == group])
            self._closed = end
        reached = watermark // window.every * window.every
        self._closed = reached if self._closed is None else max(self._closed, reached)
        self._rows = [
            row
            for row in self._rows
            if self._last_end(row.time) > self._closed or (self._now is not None and row.time > self._now - self._size)
        ]

    # -- answers --------------------------------------------------------------------------------------------------

    def _show(self, at: int, group: int, live: list[Row]) -> None:
        """Emit the best of `live` as the new answer, in the way the query asked for."""
        before = self._shown.pop(group, [])
        after = sorted(live, key=best_first)[: self.spec.k]
        if after:
            self._shown[group] = after
        entered = [(rank, row) for rank, row in enumerate(after, 1)]
        if takes_back(self.spec.emit):
            left = [(rank, row) for rank, row in enumerate(before, 1) if row not in after]
            self._out += [(at, group, rank, row.score, row.position, LEAVE) for rank, row in left]
            entered = [(rank, row) for rank, row in entered if row not in before]
        elif is_once(self.spec.emit):
            entered = [(rank, row) for rank, row in entered if row.position not in self._entered]
            self._entered |= {row.position for row in after}
        self._out += [(at, group, rank, row.score, row.position, ENTER) for rank, row in entered]
        if is_whole(self.spec.emit):
            self._shown.clear()

    def _asked(self, group: int, size: int | None) -> tuple[int, int, int]:
        """The times [start, end) that an ad-hoc query covers, and the time that its answer carries."""
        window = self.spec.window
        now = self._arrivals[group] if window.by_count else self._now
        assert now is not None
        if size is not None or not window.every:
            size = window.size if size is None else size
            return (now - size, now, now) if window.by_count else (now - size + 1, now + 1, now)
        end = (now // window.every + 1) * window.every if window.by_count else self._next_end()
        return (0, 0, 0) if end is None else (end - window.size, end, end)

    def _take_answer(self) -> Answer:
        out, self._out = self._out, []
        self._entered &= {row.position for row in self._rows}
        return _answer(out)


def _answer(out: list[tuple[int, int, int, float, int, np.int8]]) -> Answer:
    at, group, rank, score, position, change = zip(*out, strict=True) if out else [()] * 6
    return Answer(
        np.array(at, np.int64),
        np.array(group, np.int32),
        np.array(rank, np.int32),
        np.array(score, np.float64),
        np.array(position, np.int64),
        np.array(change, np.int8),
    )


def _columns(name: str, rows: list[Row]) -> Arrays:
    return {
        f"{name}_score": np.array([row.score for row in rows], np.float64),
        f"{name}_whole": np.array([row[1:] for row in rows], np.int64).reshape(-1, 3),
    }


def _rows(name: str, state: Arrays) -> list[Row]:
    whole = state[f"{name}_whole"].tolist()
    return [Row(score, *numbers) for score, numbers in zip(state[f"{name}_score"].tolist(), whole, strict=True)]
