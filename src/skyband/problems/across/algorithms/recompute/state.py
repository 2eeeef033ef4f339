"""What `recompute` holds."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.emit import ENTER, LEAVE, takes_back
from skyband.core.operator import Arrays, Ints, ShowsNoRows
from skyband.problems.across import combining
from skyband.problems.across import operator as words
from skyband.problems.across.operator import AcrossAnswer, AcrossBatch, AcrossSpec
from skyband.windows import FOREVER


class Row(NamedTuple):
    stream: int
    code: int
    value: float
    time: int  # by count: how many rows came before it
    position: int


class Ranked(NamedTuple):
    """An object of an answer, with its values stream by stream: None where it has none."""

    code: int
    score: float
    time: int  # of its most recent row
    values: tuple[float | None, ...]


class Recompute(ShowsNoRows):
    def __init__(self, spec: AcrossSpec) -> None:
        self.spec = spec
        self._size = math.inf if spec.window.size == FOREVER else spec.window.size
        self.late = 0
        self.unranked = 0
        self.repeated = 0
        self.wants_keys = False
        self._rows: list[Row] = []
        self._shown: list[Ranked] = []  # the last answer, if changes are asked for
        self._arrivals = 0
        self._now: int | None = None  # the largest time seen
        self._reached: dict[int, int] = {}  # the same by stream, of those that have come
        self._closed: int | None = None  # every window that ends here or before has closed
        self._due: int | None = None  # landmark: the end of the last window that has a row which no other had before
        self._out: list[tuple[int, int, Ranked, np.int8]] = []

    # -- the protocol -------------------------------------------------------------------------------------------------

    def push(self, batch: AcrossBatch) -> AcrossAnswer:
        for i, value in enumerate(batch.value.tolist()):
            time = self._arrivals if self.spec.window.by_count else int(batch.time[i])
            row = Row(int(batch.stream[i]), int(batch.code[i]), value, time, batch.first + i)
            if self.spec.window.by_count:
                self._arrive_by_count(row)
            elif self.spec.window.every:
                self._arrive_by_value(row)
            else:
                self._arrive_and_slide(row)
        return self._take_answer()

    def advance(self, watermark: int) -> AcrossAnswer:
        self._close_until(watermark)
        return self._take_answer()

    def next_close(self) -> int | None:
        if not self.spec.window.every or self.spec.window.by_count:
            return None
        return self._next_end()

    def finish(self) -> AcrossAnswer:
        window = self.spec.window
        if window.every and not window.by_count and self._now is not None:
            # Up to the last window of the latest row, also if it says nothing.
            endless = window.size == FOREVER
            last = max(self._first_end(self._now), self._due or self._now) if endless else self._last_end(self._now)
            self._close_until(last)
        return self._take_answer()

    def top(self, k: int, size: int | None = None) -> AcrossAnswer:
        window = self.spec.window
        at, live = (self._arrivals, self._rows) if window.by_count else (self._now or 0, self._rows)
        if window.every and window.by_count:
            at = (self._arrivals // window.every + 1) * window.every
            live = [row for row in self._rows if row.time >= at - self._size]
        elif window.every:
            end = self._next_end()
            at = 0 if end is None else end
            live = [] if end is None else [row for row in self._rows if end - self._size <= row.time < end]
        return self._answer([(at, rank, each, ENTER) for rank, each in enumerate(self._rank(live)[:k], 1)])

    def rows_held(self) -> int:
        return len(self._rows)

    def live_codes(self) -> npt.NDArray[np.bool_]:
        live = {row.code for row in self._rows} | {shown.code for shown in self._shown}
        return np.array([code in live for code in range(max(live, default=-1) + 1)], np.bool_)

    def compact(self, kept: Ints) -> None:
        code = {int(old): new for new, old in enumerate(kept)}
        self._rows = [row._replace(code=code[row.code]) for row in self._rows]
        self._shown = [shown._replace(code=code[shown.code]) for shown in self._shown]

    def state(self) -> Arrays:
        clocks = [self.late, self.unranked, self.repeated, self._arrivals]
        for clock in (self._now, self._closed, self._due):
            clocks += [int(clock is not None), clock or 0]
        return {
            "whole": np.array([[row.stream, row.code, row.time, row.position] for row in self._rows], np.int64),
            "value": np.array([row.value for row in self._rows], np.float64),
            "shown_code": np.array([shown.code for shown in self._shown], np.int64),
            "shown_score": np.array([shown.score for shown in self._shown], np.float64),
            "shown_time": np.array([shown.time for shown in self._shown], np.int64),
            "shown_values": self._matrix([shown.values for shown in self._shown]),
            "clocks": np.array(clocks, np.int64),
            "reached": np.array([*self._reached.items()], np.int64),
        }

    def restore(self, state: Arrays) -> None:
        whole = state["whole"].reshape(-1, 4).tolist()
        self._rows = [
            Row(stream, code, value, time, position)
            for (stream, code, time, position), value in zip(whole, state["value"].tolist(), strict=True)
        ]
        self._shown = [
            Ranked(code, score, time, tuple(None if value != value else value for value in values))
            for code, score, time, values in zip(
                *(state[f"shown_{name}"].tolist() for name in ("code", "score", "time", "values")), strict=True
            )
        ]
        self.late, self.unranked, self.repeated, self._arrivals, *clocks = (int(x) for x in state["clocks"])
        self._now, self._closed, self._due = (
            clock if known else None for known, clock in zip(clocks[::2], clocks[1::2], strict=True)
        )

        self._reached = dict(state["reached"].reshape(-1, 2).tolist())

    def check(self) -> None:
        positions = [row.position for row in self._rows]
        assert positions == sorted(set(positions)), "rows are held once each, in arrival order"
        assert all(row.value == row.value for row in self._rows), "a row without a value is never held"

    # -- arrivals -----------------------------------------------------------------------------------------------------

    def _arrive_by_count(self, row: Row) -> None:
        window = self.spec.window
        self._arrivals += 1
        self._rows = [old for old in self._rows if old.time >= self._arrivals - self._size]
        self._hold(row)
        if not window.every or self._arrivals % window.every == 0:
            self._show(self._arrivals, self._rows)

    def _arrive_by_value(self, row: Row) -> None:
        self._now = row.time if self._now is None else max(self._now, row.time)
        self._reached[row.stream] = max(self._reached.get(row.stream, row.time), row.time)
        slowest = min(self._reached.get(s, -FOREVER) for s in range(self.spec.streams))
        self._close_until(max(slowest, self._now - self.spec.idle_after) - self.spec.window.lateness)
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
        self._rows = [old for old in self._rows if old.time > (self._now or 0) - self._size]
        self._hold(row)
        self._show(self._now, self._rows)

    def _hold(self, row: Row) -> bool:
        """Hold the row, if it says something."""
        if row.value != row.value:
            self.unranked += 1
            return False
        self._rows.append(row)
        return True

    # -- windows by value: those that end at a multiple of `every` ----------------------------------------------------

    def _first_end(self, time: int) -> int:
        return (time // self.spec.window.every + 1) * self.spec.window.every

    def _last_end(self, time: int) -> int:
        if self.spec.window.size == FOREVER:
            return FOREVER
        return (time + self.spec.window.size) // self.spec.window.every * self.spec.window.every

    def _next_end(self) -> int | None:
        """The end of the earliest open window that holds a row, or from which one is missed that was shown before."""
        ends = [self._first_end(row.time) for row in self._rows]
        if self._closed is not None:
            following = self._closed + self.spec.window.every
            ends = [max(end, following) for end in ends]
            if takes_back(self.spec.emit) and self._shown:
                ends.append(following)
        return min(ends, default=None)

    def _close_until(self, watermark: int) -> None:
        every = self.spec.window.every
        while (end := self._next_end()) is not None and end <= watermark:
            self._show(end, [row for row in self._rows if end - self._size <= row.time < end])
            self._closed = end
            self._rows = [row for row in self._rows if self._last_end(row.time) > end]
        reached = watermark // every * every
        self._closed = reached if self._closed is None else max(self._closed, reached)

    # -- answers ------------------------------------------------------------------------------------------------------

    def _rank(self, live: list[Row]) -> list[Ranked]:
        """Every each of these rows, best first; of equal scores, the one with the most recent row."""
        objects: dict[int, list[Row]] = {}
        for row in live:
            objects.setdefault(row.code, []).append(row)
        keyed = []
        for code, rows in objects.items():
            values = tuple(self._value([row for row in rows if row.stream == s]) for s in range(self.spec.streams))
            score = self._score(values)
            time, position = max((row.time, row.position) for row in rows)
            keyed.append(((-score, -time, -position), Ranked(code, score, time, values)))
        return [ranked for _, ranked in sorted(keyed, key=lambda pair: pair[0])]

    def _value(self, rows: list[Row]) -> float | None:
        """What an object has in a stream."""
        if not rows:
            return None
        if self.spec.repeat == words.MAX:
            return max(row.value for row in rows)
        if self.spec.repeat == words.SUM:
            return math.fsum(row.value for row in rows)
        return max(rows, key=lambda row: (row.time, row.position)).value

    def _score(self, values: tuple[float | None, ...]) -> float:
        given = [low if value is None else value for value, low in zip(values, self.spec.low, strict=True)]
        combine = self.spec.combine
        if combine.kind == combining.LARGEST:
            return max(given)
        if combine.kind == combining.SMALLEST:
            return min(given)
        if combine.kind == combining.MULTIPLY:
            return math.prod(given)
        if combine.kind == combining.ADD:
            total = 0.0
            for weight, value in zip(combine.weights, given, strict=True):
                total += weight * value
            return total / combine.divisor
        score = _compute(combine.program, given)
        return -math.inf if math.isnan(score) else score

    def _show(self, at: int, live: list[Row]) -> None:
        """The answer is now the best of `live`: say so in the way the query asked for."""
        after = self._rank(live)[: self.spec.k]
        entered = list(enumerate(after, 1))
        if takes_back(self.spec.emit):
            stays = {each.code for each in after} & {each.code for each in self._shown}
            left = [(rank, each) for rank, each in enumerate(self._shown, 1) if each.code not in stays]
            self._out += [(at, rank, each, LEAVE) for rank, each in left]
            entered = [(rank, each) for rank, each in entered if each.code not in stays]
            self._shown = after
        self._out += [(at, rank, each, ENTER) for rank, each in entered]

    def _take_answer(self) -> AcrossAnswer:
        out, self._out = self._out, []
        return self._answer(out)

    def _answer(self, out: list[tuple[int, int, Ranked, np.int8]]) -> AcrossAnswer:
        return AcrossAnswer(
            np.array([at for at, *_ in out], np.int64),
            np.array([rank for _, rank, *_ in out], np.int32),
            np.array([each.score for _, _, each, _ in out], np.float64),
            np.array([each.code for _, _, each, _ in out], np.int32),
            np.array([change for *_, change in out], np.int8),
            np.array([each.time for _, _, each, _ in out], np.int64),
            self._matrix([each.values for _, _, each, _ in out]),
            np.ones(len(out)),
        )

    def _matrix(self, rows: list[tuple[float | None, ...]]) -> npt.NDArray[np.float64]:
        return np.array(rows, np.float64).reshape(-1, self.spec.streams)


def _compute(program: tuple[tuple[int, float], ...], given: list[float]) -> float:
    """The program's result, step by step. What overflows is infinite, what cannot be computed is not a number."""
    stack: list[float] = []
    for step, argument in program:
        if step == combining.NUMBER:
            stack.append(argument)
        elif step == combining.STREAM:
            stack.append(given[int(argument)])
        elif step in _UNARY:
            stack.append(_safely(_UNARY[step], stack.pop()))
        else:
            right = stack.pop()
            stack.append(_safely(_BINARY[step], stack.pop(), right))
    return stack.pop()


def _safely(function: Callable[..., float], *given: float) -> float:
    try:
        return function(*given)
    except OverflowError:
        return math.inf
    except (ValueError, ZeroDivisionError):
        return math.nan


_UNARY: dict[int, Callable[[float], float]] = {
    combining.NEGATE: operator.neg,
    combining.ABSOLUTE: abs,
    combining.ROOT: math.sqrt,
    combining.EXPONENTIAL: math.exp,
    combining.LOGARITHM: lambda x: -math.inf if x == 0 else math.log(x),
    combining.FLOOR: lambda x: float(np.floor(x)),
    combining.CEILING: lambda x: float(np.ceil(x)),
}


_BINARY: dict[int, Callable[[float, float], float]] = {
    combining.PLUS: operator.add,
    combining.MINUS: operator.sub,
    combining.TIMES: operator.mul,
    combining.DIVIDE: operator.truediv,
    combining.POWER: math.pow,
    combining.GREATER: max,
    combining.LESSER: min,
}
