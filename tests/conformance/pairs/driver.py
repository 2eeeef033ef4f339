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
from skyband.problems.pairs.drivers.per_group import PerGroup
from skyband.problems.pairs.operator import Answer, Batch, Spec
from skyband.windows import FOREVER, Ticks


def spec_of(question: Question, score: str) -> Spec:
    """The oracle's question as operators take it."""
    lateness = FOREVER if question.lateness is None else question.lateness
    size = FOREVER if question.size is None else question.size
    ticks = Ticks(size, question.every or 0, lateness, question.by_count)
    return Spec(question.k, ticks, scoring(score), code_of(question.emit))


class Driver(Feeder[Spec, PairRow, ShownPair]):
    """An operator for pairs, and the codes of its colours and groups."""

    def __init__(self, spec: Spec, open_operator: Callable[[Spec], Any], *, grouped: bool = False) -> None:
        super().__init__(spec, (lambda spec: PerGroup(spec, open_operator)) if grouped else open_operator)
        self._groups: dict[int, int] = {}  # codes in use, by group
        self._grouped = grouped
        self._codes: list[dict[int, int]] = [{} for _ in range(spec.scoring.colours)]

    def batch(self, rows: Sequence[PairRow]) -> Batch:
        scoring = self.spec.scoring
        names = scoring.score.columns
        columns = np.array([self._column(name, rows) for name in names]).reshape(len(names), len(rows))
        coded = [[codes.setdefault(row.colour, len(codes)) for row in rows] for codes in self._codes]
        colours = np.array(coded, np.float64).reshape(len(coded), len(rows))
        time = np.array([] if self.spec.window.by_count else [row.time for row in rows], np.int64)
        groups = [self._groups.setdefault(row.group, len(self._groups)) for row in rows]
        return Batch(columns, colours, time, self.position, np.array(groups, np.int32) if self._grouped else None)

    def _column(self, name: str, rows: Sequence[PairRow]) -> np.ndarray[Any, np.dtype[np.float64]]:
        if name in "xy":
            return np.array([row.values["xy".index(name)] for row in rows], np.float64)
        numbers = [whole(row.values["mn".index(name)]) for row in rows]
        return np.array([NULL if number is None else number for number in numbers], np.int64).view(np.float64)

    def read(self, answer: Answer) -> list[ShownPair]:
        if self.spec.scoring.score.is_key:
            answer = answer._replace(score=from_keys(answer.score))
        name = {code: group for group, code in self._groups.items()}
        codes = np.zeros(len(answer.at), np.int32) if answer.group is None else answer.group
        groups = [name[code] if self._grouped else 0 for code in codes.tolist()]
        return [
            ShownPair(at, "leave" if change == LEAVE else "enter", rank, score, a, b, group)
            for at, rank, score, a, b, change, group in zip(
                *(column.tolist() for column in answer[:6]), groups, strict=True
            )
        ]

    def compact(self) -> None:
        if self._grouped:
            kept = np.flatnonzero(self.operator.live_groups())
            self.operator.compact_groups(kept)
            new_of = {int(old): new for new, old in enumerate(kept)}
            self._groups = {group: new_of[code] for group, code in self._groups.items() if code in new_of}
        for which, codes in enumerate(self._codes):
            live = np.flatnonzero(self.operator.live_codes(which))
            self.operator.compact(live, which)
            code_of = {int(old): new for new, old in enumerate(live)}
            self._codes[which] = {colour: code_of[code] for colour, code in codes.items() if code in code_of}


def meaning(score: str) -> Callable[[PairRow, PairRow], float]:
    return SCORES[score].of
