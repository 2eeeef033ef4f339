"""Recomputation for rows: it defines how rows are ranked. Windows and emit are those of `core/plain.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Answer, Floats, Ints
from skyband.core.plain import Line
from skyband.core.recompute import Arrival, Recomputing, live, measured
from skyband.problems.rows.operator import DENSE, RECENT, Batch, Spec


class Row(NamedTuple):
    """A row in numbers."""

    score: float
    time: int  # what the window measures
    position: int
    group: int


def best_first(row: Row) -> tuple[float, int, int]:
    return -row.score, -row.time, -row.position


class Recompute(Recomputing[Batch, Row, Row, Answer]):
    """The oracle of all algorithms for rows."""

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec.window, spec.k, spec.emit, Row._make, Row._make)
        self.spec = spec

    def arrivals(self, batch: Batch) -> Iterator[Arrival[Row]]:
        times = measured(batch.time, batch.first, len(batch.score))
        for i, (score, time) in enumerate(zip(batch.score.tolist(), times, strict=True)):
            position, group = batch.first + i, int(batch.group[i]) if self.spec.grouped else 0
            yield Arrival(Row(score, time, position, group) if score == score else None, time, group)

    def ranked(self, rows: list[Row]) -> list[Row]:
        return sorted(rows, key=best_first)

    def ranks(self, items: list[Row]) -> Sequence[int]:
        if self.spec.ties == RECENT:
            return super().ranks(items)
        rank: dict[float, int] = {}
        for better, row in enumerate(items):
            rank.setdefault(row.score, 1 + (len(rank) if self.spec.ties == DENSE else better))
        return [rank[row.score] for row in items]

    def answer(self, lines: Sequence[Line[Row]]) -> Answer:
        return Answer(
            np.array([line.at for line in lines], np.int64),
            np.array([line.group for line in lines], np.int32),
            np.array([line.rank for line in lines], np.int32),
            np.array([line.item.score for line in lines], np.float64),
            np.array([line.item.position for line in lines], np.int64),
            np.array([line.change for line in lines], np.int8),
        )

    def key(self, item: Row) -> tuple[int, ...]:
        return (item.position,)

    def group_of(self, row: Row) -> int:
        return row.group

    def live_codes(self) -> npt.NDArray[np.bool_]:
        return live(self.groups())

    def compact(self, kept: Ints) -> None:
        code = {int(old): new for new, old in enumerate(kept)}
        self.rename_groups(code)
        self._replace(lambda row: row._replace(group=code[row.group]))

    def rescore(self, change: Callable[[Floats], Floats]) -> None:
        scores = iter(change(np.array([row.score for row in [*self.rows(), *self.emit.all_shown()]])).tolist())
        self._replace(lambda row: row._replace(score=next(scores)))

    def _replace(self, change: Callable[[Row], Row]) -> None:
        self.replace_rows(change)
        self.emit.replace(change)
