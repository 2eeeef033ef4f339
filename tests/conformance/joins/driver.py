"""Runs a plan the way an engine does, and writes its answers down so that they can be compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from conformance.joins.strategies import Case, Row, batch_of

from skyband.problems.joins.operator import Answer, JoinOperator

Line = tuple[Any, ...]


class Driver:
    def __init__(self, case: Case, open_operator: Callable[[], JoinOperator]) -> None:
        self.case, self._open = case, open_operator
        self.operator = open_operator()
        self.lines: list[Line] = []
        self._told = [0 for _ in case.spec.inputs]

    def push(self, rows: list[Row]) -> None:
        self._say(self.operator.push(batch_of(self.case, rows, self._told)))

    def advance(self, watermark: int) -> None:
        self._say(self.operator.advance(watermark))

    def finish(self) -> None:
        self._say(self.operator.finish())

    def restart(self) -> None:
        state = {name: array.copy() for name, array in self.operator.state().items()}
        self.operator = self._open()
        self.operator.restore(state)

    def run(self, sizes: Sequence[int] = (), after_each: Callable[[], None] | None = None) -> None:
        rows = list(self.case.rows)
        for size in (*sizes, len(rows)):
            self.push(rows[:size])
            rows = rows[size:]
            if after_each:
                after_each()

    def _say(self, answer: Answer) -> None:
        parts = self.operator.parts(np.maximum(answer.group, 0)) if len(answer.group) else np.zeros((0, 0))
        with_turn = self.case.spec.every == 0
        lines = [
            (at, turn if with_turn else 0, tuple(key) if group >= 0 else (), live, valid, tuple(values))
            for at, turn, group, key, live, valid, values in zip(
                answer.at.tolist(),
                answer.turn.tolist(),
                answer.group.tolist(),
                parts.tolist(),
                answer.live.tolist(),
                answer.valid.tolist(),
                answer.values.tolist(),
                strict=True,
            )
        ]
        self.lines += sorted(lines)


def states(lines: list[Line]) -> list[tuple[Any, ...]]:
    """With a k: what each moment shows, without those that show the same as the one before."""
    moments: dict[tuple[int, int], list[Line]] = {}
    for at, turn, *rest in lines:
        moments.setdefault((at, turn), []).append(tuple(rest))
    found: list[tuple[Any, ...]] = []
    for moment, shown in moments.items():
        real = [line for line in shown if line[1]]
        if (found and found[-1][1] != real) or (not found and real):
            found.append((moment, real))
    return found
