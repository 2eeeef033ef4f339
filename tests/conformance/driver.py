"""Runs an operator the way an engine does, and writes its answers down as the oracle does."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import pairwise

import numpy as np
from oracle import Event, Question, Row, Shown

from skyband.errors import InvalidQuery
from skyband.operators.objects.asking import NEXT_WINDOW, top_many
from skyband.operators.protocol import EMIT_CODES, LEAVE, Answer, Batch, ObjectOperator, Spec
from skyband.windows import FOREVER, Ticks


def spec_of(question: Question, *, grouped: bool = True, ad_hoc: bool = False) -> Spec:
    """The oracle's question as operators take it."""
    lateness = FOREVER if question.lateness is None else question.lateness
    size = FOREVER if question.size is None else question.size
    ticks = Ticks(size, question.every or 0, lateness, question.by_count)
    return Spec(question.k, ticks, EMIT_CODES[question.emit], grouped, ad_hoc)


class Driver:
    """One operator and the codes of its groups. `lines` is all it has said so far."""

    def __init__(self, spec: Spec, open_operator: Callable[[Spec], ObjectOperator]) -> None:
        self.spec = spec
        self.operator = open_operator(spec)
        self.lines: list[Shown] = []
        self._open = open_operator
        self._codes: dict[Hashable, int] = {}
        self.position = 0  # rows taken
        self.events_taken = 0  # rows and clock ticks

    def push(self, rows: Sequence[Row]) -> None:
        score = np.array([np.nan if row.score is None else row.score for row in rows], np.float64)
        time = np.array([] if self.spec.window.by_count else [row.time for row in rows], np.int64)
        group = np.array([self._code(row.group) for row in rows] if self.spec.grouped else [], np.int32)
        self._say(self.operator.push(Batch(score, time, group, self.position)))
        self.position += len(rows)
        self.events_taken += len(rows)

    def advance(self, watermark: int) -> None:
        self._say(self.operator.advance(watermark))
        self.events_taken += 1

    def finish(self) -> None:
        self._say(self.operator.finish())

    def top(self, k: int, size: int | None = None) -> list[Shown]:
        return self._read(self.operator.top(k, size))

    def top_many(self, questions: Sequence[tuple[int, int | None]]) -> list[list[Shown]]:
        """The answer to each question, all asked at once."""
        k = np.array([k for k, _ in questions], np.int64)
        size = np.array([size or NEXT_WINDOW for _, size in questions], np.int64)
        answer, ends = top_many(self.operator, k, size)
        lines = self._read(answer)
        assert ends[0] == 0
        assert ends[-1] == len(lines)
        return [lines[a:b] for a, b in pairwise(ends.tolist())]

    def restart(self) -> None:
        """Go on with another operator that knows only the state of this one."""
        state = {name: array.copy() for name, array in self.operator.state().items()}
        self.operator = self._open(self.spec)
        self.operator.restore(state)

    def forget_groups(self) -> None:
        """Keep the codes of live groups only, as a session does when there are many others."""
        live = np.flatnonzero(self.operator.live_groups())
        self.operator.regroup(live)
        code_of = {int(old): new for new, old in enumerate(live)}
        self._codes = {group: code_of[code] for group, code in self._codes.items() if code in code_of}

    def run(
        self, events: Iterable[Event], batch_sizes: Iterable[int] = (), after_each: Callable[[], None] | None = None
    ) -> None:
        """Feed all events, in batches of the given sizes (a clock tick ends one; what is left over is one)."""
        sizes = iter(batch_sizes)
        rows: list[Row] = []
        wanted = next(sizes, None)
        for event in events:
            while wanted is not None and len(rows) == wanted:
                self._push_and(rows, after_each)
                rows, wanted = [], next(sizes, None)
            if isinstance(event, Row):
                rows.append(event)
            else:
                self._push_and(rows, after_each)
                rows = []
                self.advance(event.watermark)
                if after_each:
                    after_each()
        self._push_and(rows, after_each)

    def _push_and(self, rows: list[Row], after_each: Callable[[], None] | None) -> None:
        self.push(rows)
        if after_each:
            after_each()

    def _code(self, group: Hashable) -> int:
        return self._codes.setdefault(group, len(self._codes))

    def _say(self, answer: Answer) -> None:
        self.lines += self._read(answer)

    def _read(self, answer: Answer) -> list[Shown]:
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


def refuses(driver: Driver, k: int, size: int) -> bool:
    """Does it say that it has not kept what this size asks for?"""
    try:
        driver.top(k, size)
    except InvalidQuery as refusal:
        return f"size={size} " in str(refusal) and "ad_hoc=True" in str(refusal)
    return False
