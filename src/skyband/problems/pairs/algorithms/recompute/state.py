"""What recomputation says of pairs: how they are scored and ranked. Windows and emit are those of `core/plain.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Ints
from skyband.core.plain import Line
from skyband.core.recompute import Arrival, Recomputing, live, measured
from skyband.problems.pairs.operator import PAIR, Answer, Batch, Pairs, Spec


class Row(NamedTuple):
    time: int  # what the window measures
    position: int
    values: tuple[int, ...]  # the bits of what the score reads: floats, whole numbers, labels of strings
    colours: tuple[int, ...]


class Pair(NamedTuple):
    score: float
    a: Row
    b: Row


def best_first(pair: Pair) -> tuple[float, int, int, int, int]:
    return -pair.score, -pair.a.time, -pair.a.position, -pair.b.time, -pair.b.position


def row_order(row: Row) -> tuple[int, int]:
    return row.time, row.position


def read_pair(saved: Sequence[Any]) -> Pair:
    score, a, b = saved
    return Pair(score, Row(*a), Row(*b))


class Recompute(Recomputing[Batch, Row, Pair, Answer]):
    def __init__(self, spec: Spec) -> None:
        super().__init__(spec.window, spec.k, spec.emit, Row._make, read_pair)
        self.spec = spec

    def push(self, batch: Batch) -> Answer:
        before = self.state()
        try:
            return super().push(batch)
        except Exception:  # of a user's function
            self.restore(before)
            raise

    def arrivals(self, batch: Batch) -> Iterator[Arrival[Row]]:
        bits, colours = batch.columns.T.copy().view(np.int64).tolist(), batch.colours.T.astype(np.int64).tolist()
        times = measured(batch.time, batch.first, len(bits))
        for i, (values, colour, time) in enumerate(zip(bits, colours, times, strict=True)):
            yield Arrival(Row(time, batch.first + i, tuple(values), tuple(colour)), time)

    def ranked(self, rows: list[Row]) -> list[Pair]:
        scored = [Pair(self._score(a, b), a, b) for a, b in combinations(sorted(rows, key=row_order), 2)]
        return sorted((pair for pair in scored if pair.score == pair.score), key=best_first)

    def _score(self, a: Row, b: Row) -> float:
        scoring, score = self.spec.scoring, np.empty(1)
        columns = np.array([a.values, b.values], np.int64).view(np.float64).T.copy().reshape(scoring.width, 2)
        colours = np.array([a.colours, b.colours], np.float64).T.copy().reshape(scoring.colours, 2)
        scoring.scores(columns, colours, 1, 0, 1, score)
        return float(score[0])

    def answer(self, lines: Sequence[Line[Pair]]) -> Answer:
        return Answer(
            np.array([line.at for line in lines], np.int64),
            np.array([line.rank for line in lines], np.int32),
            np.array([line.item.score for line in lines], np.float64),
            np.array([line.item.a.position for line in lines], np.int64),
            np.array([line.item.b.position for line in lines], np.int64),
            np.array([line.change for line in lines], np.int8),
        )

    def key(self, item: Pair) -> tuple[int, ...]:
        return item.a.position, item.b.position

    def pairs_held(self) -> Pairs:
        return np.empty(0, PAIR)

    def top_many(self, k: Ints, size: Ints) -> tuple[Answer, Ints]:
        answers = [self.top(int(a), int(b) or None) for a, b in zip(k, size, strict=True)]
        ends = np.cumsum([0, *(len(answer.at) for answer in answers)])
        return Answer.joined([self.answer([]), *answers]), ends

    def live_codes(self, which: int) -> npt.NDArray[np.bool_]:
        return live({row.colours[which] for row in self.rows()})

    def compact(self, kept: Ints, which: int = 0) -> None:
        code = {int(old): new for new, old in enumerate(kept)}
        self._replace(lambda row: row._replace(colours=_with(row.colours, which, code.get(row.colours[which], -1))))

    def live_values(self, which: int) -> Ints:
        return np.array([row.values[which] for row in self.rows()], np.int64)

    def relabel(self, which: int, old: Ints, new: Ints) -> None:
        label = dict(zip(old.tolist(), new.tolist(), strict=True))
        self._replace(
            lambda row: row._replace(values=_with(row.values, which, label.get(row.values[which], row.values[which])))
        )

    def _replace(self, change: Callable[[Row], Row]) -> None:
        self.replace_rows(change)
        self.emit.replace(lambda pair: Pair(pair.score, change(pair.a), change(pair.b)))


def _with(values: tuple[int, ...], which: int, value: int) -> tuple[int, ...]:
    """The same values, one of them replaced."""
    return (*values[:which], value, *values[which + 1 :])
