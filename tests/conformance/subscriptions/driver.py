"""Runs an operator for many queries the way an engine does, and writes its answers down as the oracle does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from conformance.feeding import Feeder
from oracle import Advance, Question, Shown
from subscriptions_oracle import Asked, Event, Point, Score, answers_of

from skyband.core.emit import LEAVE, code_of
from skyband.core.operator import Answer
from skyband.errors import InvalidQuery
from skyband.expressions import subscriptions
from skyband.problems.subscriptions.drivers.scoring import Scoring, scoring_of
from skyband.problems.subscriptions.operator import Batch, Queries, Spec, SubscriptionOperator
from skyband.windows import FOREVER, Ticks

COLUMNS = pa.schema([("x", pa.float64()), ("y", pa.float64())])


class Come(NamedTuple):
    """Queries that are added."""

    queries: Sequence[Asked]


class Go(NamedTuple):
    """Queries that are removed, each by where it is among all of them: from 0 to 1."""

    shares: Sequence[float]


class Scored(NamedTuple):
    text: str
    ascending: bool
    of: Score  # higher is better


def _greatest(x: float, y: float) -> float:
    known = [value for value in (x, y) if value == value]
    return max(known) if known else float("nan")


SCORES = {
    "distance": Scored(
        "(x - q.x)**2 + (y - q.y)**2",
        True,
        lambda row, q: -((row[0] - q[0]) * (row[0] - q[0]) + (row[1] - q[1]) * (row[1] - q[1])),
    ),
    "weighted sum": Scored("q.x * x - q.y * abs(y)", False, lambda row, q: q[0] * row[0] - q[1] * abs(row[1])),
    "shared": Scored("x", False, lambda row, q: row[0]),
    "filtered": Scored(
        "CASE WHEN y >= q.y THEN greatest(x, q.x) END",
        False,
        lambda row, q: _greatest(row[0], q[0]) if row[1] >= q[1] else float("nan"),
    ),
    "by symbol": Scored(
        "CASE WHEN y = q.y AND x < 3 THEN x END",
        False,
        lambda row, q: row[0] if row[1] == q[1] and row[0] < 3 else float("nan"),
    ),
}


@cache
def scoring(name: str) -> Scoring:
    return scoring_of(subscriptions.bind(SCORES[name].text, SCORES[name].ascending, COLUMNS, COLUMNS))


def spec_of(question: Question, score: str) -> Spec:
    lateness = FOREVER if question.lateness is None else question.lateness
    size = FOREVER if question.size is None else question.size
    ticks = Ticks(size, question.every or 0, lateness, question.by_count)
    return Spec(ticks, scoring(score), code_of(question.emit))


class Driver(Feeder[Spec, Point, Shown]):
    """One operator, with queries that come and go; the group of a line is the number of its query."""

    def __init__(self, question: Question, score: str, open_operator: Callable[[Spec], SubscriptionOperator]) -> None:
        super().__init__(spec_of(question, score), open_operator)
        self.asked: list[Asked] = []
        self.alive: list[int] = []  # numbers of the queries the operator has, in its order
        self.events: list[Event] = []

    # -- queries that come and go ----------------------------------------------------------------------------------

    def is_row(self, event: object) -> bool:
        return isinstance(event, Point)

    def happens(self, event: Advance | Come | Go) -> None:
        if isinstance(event, Advance):
            self.advance(event.watermark)
            return
        if isinstance(event, Go) and self.alive:
            self.remove([self.alive[int(share * len(self.alive))] for share in event.shares])
        elif isinstance(event, Come) and event.queries:
            self._come(event.queries)
        self.events_taken += 1

    def _come(self, queries: Sequence[Asked]) -> None:
        try:
            self.add(queries)
        except InvalidQuery:  # a larger k than one skyband was kept for
            assert any(query.backfill for query in queries)
            self.forget(len(queries))
            self.add([query._replace(backfill=False) for query in queries])

    def add(self, queries: Sequence[Asked]) -> None:
        score = self.spec.scoring.score
        values = np.array([query.values for query in queries], np.float64).reshape(len(queries), 2).T
        self.alive += range(len(self.asked), len(self.asked) + len(queries))
        self.asked += [query._replace(added=len(self.events)) for query in queries]
        sizes = np.array([FOREVER if query.size is None else query.size for query in queries], np.int64)
        ks = np.array([query.k for query in queries], np.int64)
        parameters = np.ascontiguousarray(values[["xy".index(name) for name in score.parameters]])
        slides = np.array([query.every or self.spec.window.every for query in queries], np.int64)
        backfill = any(query.backfill for query in queries)
        self.say(self.operator.add(Queries(ks, sizes, slides, parameters), backfill=backfill))

    def forget(self, last: int) -> None:
        """The last queries were refused."""
        del self.alive[-last:], self.asked[-last:]

    def remove(self, numbers: Sequence[int]) -> None:
        kept = [i for i, number in enumerate(self.alive) if number not in numbers]
        for number in numbers:
            self.asked[number] = self.asked[number]._replace(removed=len(self.events))
        self.alive = [self.alive[i] for i in kept]
        self.operator.compact(np.array(kept, np.int64))

    # -- rows ------------------------------------------------------------------------------------------------------

    def feed(self, events: Sequence[Event]) -> None:
        """Rows as one batch, up to a clock tick."""
        self.run(events)

    def push(self, rows: Sequence[Point]) -> None:
        super().push(rows)
        self.events += rows

    def advance(self, watermark: int) -> None:
        super().advance(watermark)
        self.events.append(Advance(watermark))

    def batch(self, rows: Sequence[Point]) -> Batch:
        names = self.spec.scoring.score.columns
        columns = np.array([row.values for row in rows], np.float64).reshape(len(rows), 2).T
        columns = np.ascontiguousarray(columns[["xy".index(name) for name in names]])
        time = np.array([] if self.spec.window.by_count else [row.time for row in rows], np.int64)
        return Batch(columns, time, self.position)

    def compact(self) -> None:
        """Queries keep their numbers: those that go are told of as they go."""
        self.operator.compact(np.arange(len(self.alive)))

    def read(self, answer: Answer) -> list[Shown]:
        return [
            Shown(at, self.alive[group], "leave" if change == LEAVE else "enter", rank, score, position)
            for at, group, rank, score, position, change in zip(*(column.tolist() for column in answer), strict=True)
        ]

    # -- what each query should be told ------------------------------------------------------------------------------

    def told(self) -> dict[int, list[Shown]]:
        """By query."""
        found: dict[int, list[Shown]] = {number: [] for number in range(len(self.asked))}
        for line in self.lines:
            found[line.group].append(line._replace(group=0))
        return found

    def expected(self, question: Question, score: str, *, finished: bool) -> dict[int, list[Shown]]:
        return {number: self._expected(question, asked, score, finished) for number, asked in enumerate(self.asked)}

    def _expected(self, question: Question, asked: Asked, score: str, finished: bool) -> list[Shown]:
        lines = answers_of(question, asked, self.events, SCORES[score].of, finished)
        if not asked.backfill:
            return lines
        # Of the windows that closed before it came it is told nothing.
        before = answers_of(question, asked._replace(removed=asked.added), self.events, SCORES[score].of, False)
        return lines[len(before) :]
