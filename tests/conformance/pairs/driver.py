"""Runs an operator for pairs the way an engine does, and writes its answers down as the oracle does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from conformance.feeding import Feeder
from conformance.pairs.scores import SCORES, scoring, whole
from oracle import Question
from pair_oracle import PairRow, ShownPair

from skyband.core.emit import LEAVE, code_of
from skyband.kernels.whole_scores import NULL, from_keys
from skyband.problems.pairs.operator import Answer, Batch, Spec
from skyband.windows import FOREVER, Ticks


def spec_of(question: Question, score: str) -> Spec:
    """The oracle's question as operators take it."""
    lateness = FOREVER if question.lateness is None else question.lateness
    size = FOREVER if question.size is None else question.size
    ticks = Ticks(size, question.every or 0, lateness, question.by_count)
    return Spec(question.k, ticks, scoring(score), code_of(question.emit))


class Driver(Feeder[Spec, PairRow, ShownPair]):
    """An operator for pairs, and the codes of its colours."""

    def __init__(self, spec: Spec, open_operator: Callable[[Spec], Any]) -> None:
        super().__init__(spec, open_operator)
        self._codes: list[dict[int, int]] = [{} for _ in range(spec.scoring.colours)]

    def batch(self, rows: Sequence[PairRow]) -> Batch:
        scoring = self.spec.scoring
        names = scoring.score.columns
        columns = np.array([self._column(name, rows) for name in names]).reshape(len(names), len(rows))
        coded = [[codes.setdefault(row.colour, len(codes)) for row in rows] for codes in self._codes]
        colours = np.array(coded, np.float64).reshape(len(coded), len(rows))
        time = np.array([] if self.spec.window.by_count else [row.time for row in rows], np.int64)
        return Batch(columns, colours, time, self.position)

    def _column(self, name: str, rows: Sequence[PairRow]) -> np.ndarray[Any, np.dtype[np.float64]]:
        if name in "xy":
            return np.array([row.values["xy".index(name)] for row in rows], np.float64)
        numbers = [whole(row.values["mn".index(name)]) for row in rows]
        return np.array([NULL if number is None else number for number in numbers], np.int64).view(np.float64)

    def read(self, answer: Answer) -> list[ShownPair]:
        if self.spec.scoring.score.is_key:
            answer = answer._replace(score=from_keys(answer.score))
        return [
            ShownPair(at, "leave" if change == LEAVE else "enter", rank, score, a, b)
            for at, rank, score, a, b, change in zip(*(column.tolist() for column in answer[:-1]), strict=True)
        ]

    def compact(self) -> None:
        for which, codes in enumerate(self._codes):
            live = np.flatnonzero(self.operator.live_codes(which))
            self.operator.compact(live, which)
            code_of = {int(old): new for new, old in enumerate(live)}
            self._codes[which] = {colour: code_of[code] for colour, code in codes.items() if code in code_of}


def meaning(score: str) -> Callable[[PairRow, PairRow], float]:
    return SCORES[score].of
