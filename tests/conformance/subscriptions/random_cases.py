"""Streams, and queries that come and go, from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from conformance.far_times import EDGES, moved
from conformance.rows.random_streams import STEPS
from conformance.rows.strategies import Kind, question_of
from conformance.subscriptions.driver import SCORES, Come, Go, spec_of
from oracle import Advance, Question
from subscriptions_oracle import Asked, Event, Point

from skyband.problems.subscriptions.operator import Spec

INFINITY, NAN = float("inf"), float("nan")
VALUES: list[Callable[[random.Random, int], float]] = [
    lambda draw, i: draw.random(),
    lambda draw, i: draw.uniform(-2, 2),
    lambda draw, i: float(draw.randint(0, 3)),
    lambda draw, i: i / 8,
    lambda draw, i: -i / 8,
    lambda draw, i: draw.choice([NAN, 1.0, draw.random(), INFINITY, -INFINITY, 0.0, -0.0, 1e200]),
]


# Queries that ask for the same few values, so that what one leaves behind is what another finds.
FEW: Callable[[random.Random, int], float] = lambda draw, i: float(draw.randint(0, 1))  # noqa: E731
OF_VALUES = ("by symbol", "filtered")  # scores that only some values have


class Case(NamedTuple):
    question: Question
    score: str
    events: list[Event | Come | Go]
    external_clock: bool

    @property
    def spec(self) -> Spec:
        return spec_of(self.question, self.score)


def random_case(draw: random.Random) -> Case:
    slides, by_count = draw.random() < 0.5, draw.random() < 0.5
    kind = Kind(
        by_count=by_count,
        slides=slides,
        landmark=draw.random() < 0.2,
        emit=draw.choice(["windows", "changes", "entries"] if slides else ["changes", "entries"]),
        grouped=False,
        ad_hoc=False,
        external_clock=slides and not by_count and draw.random() < 0.3,
    )
    size = draw.choice([draw.randint(1, 8), draw.randint(1, 60)])
    question = question_of(
        kind,
        k=1,
        size=size,
        every=draw.randint(1, size),
        lateness=draw.choice([0, 0, draw.randint(0, 80)]),
    )
    few = draw.random() < 0.3
    value, step = FEW if few else draw.choice(VALUES), draw.choice(STEPS)
    events: list[Event | Come | Go] = []
    time = draw.choice([0, -30, 1_000])
    number = 0
    for _ in range(draw.randint(4, 12) if few else draw.randint(1, 5)):
        rows: list[Event] = []
        for _ in range(draw.choice([draw.randint(0, 4), draw.randint(0, 4 if few else 40)])):
            number += 1
            time += step(draw)
            rows.append(Point((value(draw, number), value(draw, number)), None if by_count else time))
            if kind.external_clock and draw.random() < 0.25:
                rows.append(Advance(time + draw.randint(-15, 15)))
        backfill = question.emit == "windows" and question.size is not None and draw.random() < 0.4
        added = [_query(draw, question, value, backfill) for _ in range(draw.choice([0, 1, 3]))]
        removed = [draw.random()] if draw.random() < 0.3 else []
        changes: list[Event | Come | Go] = [Go(removed), Come(added)]  # one that goes and comes is changed
        events += [*(draw.sample(changes, 2) if few else changes), *rows]
    score = draw.choice(OF_VALUES if few else list(SCORES))
    return Case(question, score, moved(events, draw.choice(EDGES)), kind.external_clock)


def _query(
    draw: random.Random, question: Question, value: Callable[[random.Random, int], float], backfill: bool
) -> Asked:
    size = question.size
    if size is not None and draw.random() < 0.5:
        size = draw.randint(question.every or 1, size)
    every = None
    if size is not None and question.every and draw.random() < 0.4:
        every = question.every * draw.randint(1, size // question.every)
    k, values = draw.choice([1, 2, 3, 5, 17]), (value(draw, 1), value(draw, 2))
    return Asked(k, size, values, backfill=backfill, every=every)
