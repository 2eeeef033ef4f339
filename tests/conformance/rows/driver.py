"""Runs an operator the way an engine does, and writes its answers down as the oracle does."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from conformance.feeding import Feeder
from oracle import Question, Row, Shown

from skyband.core.emit import LEAVE, code_of
from skyband.core.operator import Answer
from skyband.errors import InvalidQuery
from skyband.kernels.whole_keys import WholeKeys
from skyband.problems.rows.operator import Batch, RowOperator, Spec
from skyband.windows import FOREVER, Ticks


def spec_of(question: Question, *, grouped: bool = True, ad_hoc: bool = False) -> Spec:
    """The oracle's question as operators take it."""
    lateness = FOREVER if question.lateness is None else question.lateness
    size = FOREVER if question.size is None else question.size
    ticks = Ticks(size, question.every or 0, lateness, question.by_count)
    ties = (None, "rank", "dense").index(question.ties)
    return Spec(question.k, ticks, code_of(question.emit), grouped, ad_hoc, ties=ties)


class Driver(Feeder[Spec, Row, Shown]):
    """An operator for rows, and the codes of its groups."""

    def __init__(self, spec: Spec, open_operator: Callable[[Spec], RowOperator]) -> None:
        super().__init__(spec, open_operator)
        self._codes: dict[Hashable, int] = {}
        self._keys: WholeKeys | None = None  # once scores have come that are whole numbers: then all of them are

    def batch(self, rows: Sequence[Row]) -> Batch:
        if self._keys is None and any(isinstance(row.score, int) for row in rows):
            self._keys = WholeKeys()
        if self._keys is None:
            score = np.array([np.nan if row.score is None else row.score for row in rows], np.float64)
        else:
            score = self._keys_of([row.score for row in rows], self._keys)
        time = np.array([] if self.spec.window.by_count else [row.time for row in rows], np.int64)
        codes = [self._codes.setdefault(row.group, len(self._codes)) for row in rows] if self.spec.grouped else []
        return Batch(score, time, np.array(codes, np.int32), self.position)

    def _keys_of(self, scores: list[Any], whole: WholeKeys) -> np.ndarray:
        numbers = np.array([0 if score is None else score for score in scores], np.int64)
        keys = whole.keys(numbers)
        if keys is None:
            self.operator.rescore(lambda held: whole.rekey(held, numbers))
            keys = whole.keys(numbers)
        keys[[score is None for score in scores]] = np.nan
        return keys

    def read(self, answer: Answer) -> list[Shown]:
        if self._keys is not None:
            answer = answer._replace(score=self._keys.numbers(answer.score))
        groups = {code: group for group, code in self._codes.items()}
        return [
            Shown(
                at,
                groups[code] if self.spec.grouped else 0,
                "leave" if change == LEAVE else "enter",
                rank,
                score,
                position,
            )
            for at, code, rank, score, position, change in zip(*(column.tolist() for column in answer), strict=True)
        ]

    def compact(self) -> None:
        if not self.spec.grouped:
            return
        live = np.flatnonzero(self.operator.live_codes())
        self.operator.compact(live)
        code_of = {int(old): new for new, old in enumerate(live)}
        self._codes = {group: code_of[code] for group, code in self._codes.items() if code in code_of}
        assert self.operator.live_codes().all() or not len(self.operator.held())


def refuses(driver: Driver, k: int, size: int) -> bool:
    """Does it say that it has not kept what this size asks for?"""
    try:
        driver.top(k, size)
    except InvalidQuery as refusal:
        return f"size={size} " in str(refusal) and "ad_hoc=True" in str(refusal)
    return False
