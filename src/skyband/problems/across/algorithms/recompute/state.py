"""Recomputation across streams: it defines the values and scores of objects. Windows and emit are those of
`core/plain.py`."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Arrays, Ints, ShowsNoRows
from skyband.core.plain import BEFORE, Line
from skyband.core.recompute import Arrival, Recomputing, live, measured
from skyband.problems.across import combining
from skyband.problems.across import operator as words
from skyband.problems.across.operator import AcrossAnswer, AcrossBatch, AcrossSpec


class Row(NamedTuple):
    """A row in numbers."""

    stream: int
    code: int
    value: float
    time: int  # what the window measures
    position: int


class Ranked(NamedTuple):
    """An object of an answer, with its value in each stream; None: no value."""

    code: int
    score: float
    time: int  # of its most recent row
    values: tuple[float | None, ...]


class Recompute(ShowsNoRows, Recomputing[AcrossBatch, Row, Ranked, AcrossAnswer]):
    """The oracle of all algorithms across streams."""

    def __init__(self, spec: AcrossSpec) -> None:
        super().__init__(spec.window, spec.k, spec.emit, Row._make, Ranked._make)
        self.spec = spec
        self.repeated = 0
        self.wants_keys = False
        self._reached = [BEFORE for _ in range(spec.streams)]  # by stream: the largest time seen

    def arrivals(self, batch: AcrossBatch) -> Iterator[Arrival[Row]]:
        times = measured(batch.time, batch.first, len(batch.value))
        for i, (value, time) in enumerate(zip(batch.value.tolist(), times, strict=True)):
            stream = int(batch.stream[i])
            self._reached[stream] = max(self._reached[stream], time)
            # Windows do not wait for a stream that is too far behind the fastest.
            reached = max(min(self._reached), max(self._reached) - self.spec.idle_after)
            row = Row(stream, int(batch.code[i]), value, time, batch.first + i)
            yield Arrival(row if value == value else None, time, reached=reached)

    def ranked(self, rows: list[Row]) -> list[Ranked]:
        """All objects of these rows, best first; among equal scores, the one with the most recent row comes first."""
        objects: dict[int, list[Row]] = {}
        for row in rows:
            objects.setdefault(row.code, []).append(row)
        keyed = []
        for code, mine in objects.items():
            values = tuple(self._value([row for row in mine if row.stream == s]) for s in range(self.spec.streams))
            score = self._score(values)
            time, position = max((row.time, row.position) for row in mine)
            keyed.append(((-score, -time, -position), Ranked(code, score, time, values)))
        return [ranked for _, ranked in sorted(keyed, key=lambda pair: pair[0])]

    def _value(self, rows: list[Row]) -> float | None:
        """An object's value in a stream, from its rows there."""
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

    def answer(self, lines: Sequence[Line[Ranked]]) -> AcrossAnswer:
        values = [line.item.values for line in lines]
        return AcrossAnswer(
            np.array([line.at for line in lines], np.int64),
            np.array([line.rank for line in lines], np.int32),
            np.array([line.item.score for line in lines], np.float64),
            np.array([line.item.code for line in lines], np.int32),
            np.array([line.change for line in lines], np.int8),
            np.array([line.item.time for line in lines], np.int64),
            np.array(values, np.float64).reshape(-1, self.spec.streams),
            np.ones(len(lines)),
        )

    def key(self, item: Ranked) -> tuple[int, ...]:
        return (item.code,)

    def state(self) -> Arrays:
        return {**super().state(), "reached": np.array(self._reached)}

    def restore(self, state: Arrays) -> None:
        super().restore(state)
        self._reached = state["reached"].tolist()

    def rows_held(self) -> int:
        return len(self.rows())

    def live_codes(self) -> npt.NDArray[np.bool_]:
        return live({row.code for row in self.rows()} | {each.code for each in self.emit.all_shown()})

    def compact(self, kept: Ints) -> None:
        code = {int(old): new for new, old in enumerate(kept)}
        self.replace_rows(lambda row: row._replace(code=code[row.code]))
        self.emit.replace(lambda each: each._replace(code=code[each.code]))


def _compute(program: tuple[tuple[int, float], ...], given: list[float]) -> float:
    """Run the program. A result that overflows is infinite, and one that cannot be computed is NaN."""
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
