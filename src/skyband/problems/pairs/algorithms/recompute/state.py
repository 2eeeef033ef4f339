"""The state of recomputation: every row of every open window, in a plain list. It shares no code with the others."""

from __future__ import annotations

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.emit import ENTER, LEAVE, is_once, takes_back
from skyband.core.operator import Arrays, Ints
from skyband.problems.pairs.operator import Answer, Batch, Spec
from skyband.windows import FOREVER


class Row(NamedTuple):
    time: int  # by count: its arrival
    position: int
    values: tuple[float, ...]
    colours: tuple[float, ...]


class Pair(NamedTuple):
    score: float
    a: Row
    b: Row


def best_first(pair: Pair) -> tuple[float, int, int, int, int]:
    return -pair.score, -pair.a.time, -pair.a.position, -pair.b.time, -pair.b.position


def row_order(row: Row) -> tuple[int, int]:
    return row.time, row.position


Line = tuple[int, int, float, int, int, np.int8]


class Recompute:
    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self._size = math.inf if spec.window.size == FOREVER else spec.window.size
        self.late = 0
        self.unranked = 0
        self._rows: list[Row] = []
        self._shown: list[Pair] = []  # the last answer
        self._entered: set[tuple[int, int]] = set()  # pairs that have been shown before
        self._now: int | None = None  # the largest time seen; by count, arrivals so far
        self._closed: int | None = None  # every window that ends here or before has closed
        self._due: int | None = None  # landmark: the end of the last window that has a row which no other had before
        self._out: list[Line] = []

    # -- the protocol ---------------------------------------------------------------------------------------------

    def push(self, batch: Batch) -> Answer:
        rows, shown, entered = list(self._rows), list(self._shown), set(self._entered)
        clocks = self._now, self._closed, self._due, self.late
        try:
            for i in range(batch.columns.shape[1]):
                position = batch.first + i
                time = position if self.spec.window.by_count else int(batch.time[i])
                values = tuple(batch.columns[:, i].tolist())
                self._arrive(Row(time, position, values, tuple(batch.colours[:, i].tolist())))
        except Exception:
            self._rows, self._shown, self._entered = rows, shown, entered
            self._now, self._closed, self._due, self.late = clocks
            self._out = []
            raise
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
        if window.every and not window.by_count and self._open_rows():
            latest = max(self._last_end(row.time) for row in self._open_rows())
            self._close_until(latest if window.size != FOREVER or self._due is None else self._due)
        return self._take_answer()

    def top(self, k: int, size: int | None) -> Answer:
        if self._now is None:
            return _answer([])
        start, end, at = self._asked(size)
        return _answer(
            [
                (at, rank, pair.score, pair.a.position, pair.b.position, ENTER)
                for rank, pair in enumerate(self._ranked([r for r in self._rows if start <= r.time < end])[:k], 1)
            ]
        )

    def top_many(self, k: Ints, size: Ints) -> tuple[Answer, Ints]:
        answers = [self.top(int(a), int(b) or None) for a, b in zip(k, size, strict=True)]
        ends = np.cumsum([0, *(len(answer.at) for answer in answers)])
        return Answer.joined([_answer([]), *answers]), ends

    def held(self) -> Ints:
        kept = {row.position for row in self._rows}
        if takes_back(self.spec.emit):
            kept |= {row.position for pair in self._shown for row in (pair.a, pair.b)}
        return np.array(sorted(kept), np.int64)

    def rows_held(self) -> int:
        return len(self.held())

    def live_codes(self, which: int) -> npt.NDArray[np.bool_]:
        live = {int(row.colours[which]) for row in self._rows}
        return np.array([code in live for code in range(max(live, default=-1) + 1)], np.bool_)

    def compact(self, kept: Ints, which: int = 0) -> None:
        code = {int(old): new for new, old in enumerate(kept)}

        def recoloured(row: Row) -> Row:
            colours = list(row.colours)
            colours[which] = code.get(int(colours[which]), -1)
            return row._replace(colours=tuple(colours))

        self._rows = [recoloured(row) for row in self._rows]
        self._shown = [Pair(pair.score, recoloured(pair.a), recoloured(pair.b)) for pair in self._shown]

    def live_values(self, which: int) -> Ints:
        return np.array([row.values[which] for row in self._rows], np.float64).view(np.int64)

    def relabel(self, which: int, old: Ints, new: Ints) -> None:
        label = dict(zip(old.view(np.float64).view("V8").tolist(), new.view(np.float64).tolist(), strict=True))

        def relabelled(row: Row) -> Row:
            values = list(row.values)
            bits = np.float64(values[which]).tobytes()
            values[which] = label.get(bits, values[which])
            return row._replace(values=tuple(values))

        self._rows = [relabelled(row) for row in self._rows]
        self._shown = [Pair(pair.score, relabelled(pair.a), relabelled(pair.b)) for pair in self._shown]

    def state(self) -> Arrays:
        shown = [row for pair in self._shown for row in (pair.a, pair.b)]
        clocks = [x for clock in (self._now, self._closed, self._due) for x in (clock is not None, clock or 0)]
        return {
            **self._columns("rows", self._rows),
            **self._columns("shown", shown),
            "shown_score": np.array([pair.score for pair in self._shown], np.float64),
            "entered": np.array(sorted(self._entered), np.int64).reshape(-1, 2),
            "clocks": np.array([self.late, *clocks], np.int64),
        }

    def restore(self, state: Arrays) -> None:
        self._rows = _read_rows("rows", state)
        shown = iter(_read_rows("shown", state))
        self._shown = [Pair(score, next(shown), next(shown)) for score in state["shown_score"].tolist()]
        self._entered = {(int(a), int(b)) for a, b in state["entered"]}
        self.late, has_now, now, has_closed, closed, has_due, due = (int(x) for x in state["clocks"])
        self._now = now if has_now else None
        self._closed = closed if has_closed else None
        self._due = due if has_due else None

    def check(self) -> None:
        positions = [row.position for row in self._rows]
        assert positions == sorted(set(positions)), "rows are held once each, in arrival order"

    # -- arrivals -------------------------------------------------------------------------------------------------

    def _arrive(self, row: Row) -> None:
        window = self.spec.window
        if window.by_count:
            self._now = row.position + 1
            self._rows = [old for old in [*self._rows, row] if old.position >= self._now - self._size]
            if not window.every or self._now % window.every == 0:
                self._show(self._now, self._rows)
        elif window.every:
            self._now = row.time if self._now is None else max(self._now, row.time)
            self._close_until(self._now - window.lateness)
            assert self._closed is not None
            if self._last_end(row.time) <= self._closed:
                self.late += 1
            else:
                self._rows.append(row)
                first = max(self._first_end(row.time), self._closed + window.every)
                self._due = first if self._due is None else max(self._due, first)
        else:
            self._now = row.time if self._now is None else max(self._now, row.time)
            if row.time <= self._now - self._size:
                self.late += 1
                return
            self._rows = [old for old in [*self._rows, row] if old.time > self._now - self._size]
            self._show(self._now, self._rows)

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
        """The end of the earliest open window that holds a row, or that a pair which was shown has left."""
        ends = [self._first_end(row.time) for row in self._open_rows()]
        if self._closed is not None:
            following = self._closed + self.spec.window.every
            ends = [max(end, following) for end in ends]
            if takes_back(self.spec.emit) and self._shown:
                ends.append(following)
        return min(ends, default=None)

    def _close_until(self, watermark: int) -> None:
        window = self.spec.window
        while (end := self._next_end()) is not None and end <= watermark:
            self._show(end, [row for row in self._rows if end - self._size <= row.time < end])
            self._closed = end
        reached = watermark // window.every * window.every
        self._closed = reached if self._closed is None else max(self._closed, reached)
        self._rows = [
            row
            for row in self._rows
            if self._last_end(row.time) > self._closed or (self._now is not None and row.time > self._now - self._size)
        ]

    # -- answers --------------------------------------------------------------------------------------------------

    def _ranked(self, rows: list[Row]) -> list[Pair]:
        """All pairs of these rows that have a score, best first."""
        scored = [Pair(self._score(a, b), a, b) for a, b in combinations(sorted(rows, key=row_order), 2)]
        return sorted((pair for pair in scored if pair.score == pair.score), key=best_first)

    def _score(self, a: Row, b: Row) -> float:
        scoring, score = self.spec.scoring, np.empty(1)
        columns = np.array([a.values, b.values], np.float64).T.copy().reshape(scoring.width, 2)
        colours = np.array([a.colours, b.colours], np.float64).T.copy().reshape(scoring.colours, 2)
        scoring.scores(columns, colours, 1, 0, 1, score)
        return float(score[0])

    def _show(self, at: int, rows: list[Row]) -> None:
        """Emit the best of these rows' pairs as the new answer, in the way the query asked for."""
        before, after = self._shown, self._ranked(rows)[: self.spec.k]
        self._shown = after if takes_back(self.spec.emit) else []
        entered = list(enumerate(after, 1))
        if takes_back(self.spec.emit):
            now, then = ({(pair.a.position, pair.b.position) for pair in pairs} for pairs in (after, before))
            left = [(rank, p) for rank, p in enumerate(before, 1) if (p.a.position, p.b.position) not in now]
            self._out += [(at, rank, p.score, p.a.position, p.b.position, LEAVE) for rank, p in left]
            entered = [(rank, p) for rank, p in entered if (p.a.position, p.b.position) not in then]
        elif is_once(self.spec.emit):
            entered = [(rank, p) for rank, p in entered if (p.a.position, p.b.position) not in self._entered]
            self._entered |= {(p.a.position, p.b.position) for p in after}
        self._out += [(at, rank, p.score, p.a.position, p.b.position, ENTER) for rank, p in entered]

    def _asked(self, size: int | None) -> tuple[int, int, int]:
        """The times [start, end) that an ad-hoc query covers, and the time that its answer carries."""
        window, now = self.spec.window, self._now
        assert now is not None
        if size is not None or not window.every:
            size = window.size if size is None else size
            return (now - size, now, now) if window.by_count else (now - size + 1, now + 1, now)
        end = (now // window.every + 1) * window.every if window.by_count else self._next_end()
        return (0, 0, 0) if end is None else (end - window.size, end, end)

    def _take_answer(self) -> Answer:
        out, self._out = self._out, []
        live = {row.position for row in self._rows}
        self._entered = {(a, b) for a, b in self._entered if a in live and b in live}
        return _answer(out)

    def _columns(self, name: str, rows: list[Row]) -> Arrays:
        scoring = self.spec.scoring
        return {
            f"{name}_time": np.array([row.time for row in rows], np.int64),
            f"{name}_position": np.array([row.position for row in rows], np.int64),
            f"{name}_values": np.array([row.values for row in rows], np.float64).reshape(len(rows), scoring.width),
            f"{name}_colours": np.array([row.colours for row in rows], np.float64).reshape(len(rows), scoring.colours),
        }


def _read_rows(name: str, state: Arrays) -> list[Row]:
    parts = [state[f"{name}_{part}"].tolist() for part in ("time", "position", "values", "colours")]
    return [
        Row(time, position, tuple(values), tuple(colours))
        for time, position, values, colours in zip(*parts, strict=True)
    ]


def _answer(out: list[Line]) -> Answer:
    at, rank, score, a, b, change = zip(*out, strict=True) if out else [()] * 6
    return Answer(
        np.array(at, np.int64),
        np.array(rank, np.int32),
        np.array(score, np.float64),
        np.array(a, np.int64),
        np.array(b, np.int64),
        np.array(change, np.int8),
    )
