"""Runs an operator for pairs the way an engine does, and writes its answers down as the oracle does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

import numpy as np
from conformance.pairs.scores import SCORES, scoring
from oracle import Question
from pair_oracle import Event, PairRow, ShownPair

from skyband.operators.objects.asking import NEXT_WINDOW
from skyband.operators.pairs.protocol import Answer, Batch, PairOperator, Spec
from skyband.operators.protocol import EMIT_CODES, LEAVE
from skyband.windows import FOREVER, Ticks


def spec_of(question: Question, score: str) -> Spec:
    """The oracle's question as operators take it."""
    lateness = FOREVER if question.lateness is None else question.lateness
    size = FOREVER if question.size is None else question.size
    ticks = Ticks(size, question.every or 0, lateness, question.by_count)
    return Spec(question.k, ticks, scoring(score), EMIT_CODES[question.emit])


class Driver:
    """One operator. `lines` is all it has said so far."""

    def __init__(self, spec: Spec, open_operator: Callable[[Spec], PairOperator]) -> None:
        self.spec = spec
        self.operator = open_operator(spec)
        self.lines: list[ShownPair] = []
        self._open = open_operator
        self.position = 0  # rows taken
        self.events_taken = 0  # rows and clock ticks

    def push(self, rows: Sequence[PairRow]) -> None:
        scoring = self.spec.scoring
        columns = np.array([row.values for row in rows], np.float64).reshape(len(rows), 2).T
        columns = columns[["xy".index(name) for name in scoring.score.columns]]
        colours = np.tile(np.array([float(row.colour) for row in rows]), (scoring.colours, 1))
        time = np.array([] if self.spec.window.by_count else [row.time for row in rows], np.int64)
        self._say(self.operator.push(Batch(columns, colours, time, self.position)))
        self.position += len(rows)
        self.events_taken += len(rows)

    def advance(self, watermark: int) -> None:
        self._say(self.operator.advance(watermark))
        self.events_taken += 1

    def finish(self) -> None:
        self._say(self.operator.finish())

    def top(self, k: int, size: int | None = None) -> list[ShownPair]:
        return _read(self.operator.top(k, size))

    def top_many(self, questions: Sequence[tuple[int, int | None]]) -> list[list[ShownPair]]:
        k = np.array([k for k, _ in questions], np.int64)
        size = np.array([size or NEXT_WINDOW for _, size in questions], np.int64)
        answer, ends = self.operator.top_many(k, size)
        lines = _read(answer)
        assert ends[0] == 0
        assert ends[-1] == len(lines)
        return [lines[a:b] for a, b in pairwise(ends.tolist())]

    def restart(self) -> None:
        """Go on with another operator that knows only the state of this one."""
        state = {name: array.copy() for name, array in self.operator.state().items()}
        self.operator = self._open(self.spec)
        self.operator.restore(state)

    def run(
        self, events: Iterable[Event], batch_sizes: Iterable[int] = (), after_each: Callable[[], None] | None = None
    ) -> None:
        """Feed all events, in batches of the given sizes (a clock tick ends one; what is left over is one)."""
        sizes = iter(batch_sizes)
        rows: list[PairRow] = []
        wanted = next(sizes, None)
        for event in events:
            while wanted is not None and len(rows) == wanted:
                self._push_and(rows, after_each)
                rows, wanted = [], next(sizes, None)
            if isinstance(event, PairRow):
                rows.append(event)
            else:
                self._push_and(rows, after_each)
                rows = []
                self.advance(event.watermark)
                if after_each:
                    after_each()
        self._push_and(rows, after_each)

    def _push_and(self, rows: list[PairRow], after_each: Callable[[], None] | None) -> None:
        self.push(rows)
        if after_each:
            after_each()

    def _say(self, answer: Answer) -> None:
        self.lines += _read(answer)


def _read(answer: Answer) -> list[ShownPair]:
    return [
        ShownPair(at, "leave" if change == LEAVE else "enter", rank, score, a, b)
        for at, rank, score, a, b, change in zip(*(column.tolist() for column in answer[:-1]), strict=True)
    ]


def meaning(score: str) -> Callable[[PairRow, PairRow], float]:
    return SCORES[score].of
