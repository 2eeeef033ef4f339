"""Streams from a seed: less thorough than hypothesis in one place, and further apart.

Hypothesis likes short streams; here they are long enough for late rows to meet equal rows of panes that closed before.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from conformance.far_times import EDGES, moved
from conformance.rows.strategies import Case, Kind, question_of
from numbers_at_the_edge import EDGES_OF_64_BITS
from oracle import Advance, Event, Row

STEPS: list[Callable[[random.Random], int]] = [
    lambda draw: draw.randint(0, 2),
    lambda draw: draw.randint(-6, 8),
    lambda draw: draw.choice([0, 1, 1, -3, -20, 15, 60]),
    lambda draw: draw.randint(-30, 31),
    lambda draw: 1,
]
SCORES: list[Callable[[random.Random, int], float | int | None]] = [
    lambda draw, i: draw.choice(EDGES_OF_64_BITS),
    lambda draw, i: draw.choice([None, draw.randint(-(2**63), 2**63 - 1), draw.choice(EDGES_OF_64_BITS[-6:])]),
    lambda draw, i: draw.random(),
    lambda draw, i: float(draw.randint(0, 3)),
    lambda draw, i: float(i),
    lambda draw, i: float(-i),
    lambda draw, i: 1.0,
    lambda draw, i: draw.choice([None, float("nan"), 1.0, draw.random(), float("inf"), float("-inf"), 0.0, -0.0]),
]


def random_case(kinds: list[Kind], draw: random.Random) -> Case:
    kind = draw.choice(kinds)
    size = draw.choice([draw.randint(1, 8), draw.randint(1, 60)])
    question = question_of(
        kind,
        k=draw.choice([1, 2, 3, 5, 17, 30]),
        size=size,
        every=draw.randint(1, size),
        lateness=draw.choice([0, 0, draw.randint(0, 80)]),
    )
    score, step, groups = draw.choice(SCORES), draw.choice(STEPS), draw.choice([1, 3, 10])
    events: list[Event] = []
    time = draw.choice([0, -30, 1_000])
    rows = draw.choice([draw.randint(0, 30), draw.randint(0, 120)])
    silent_from = draw.choice([rows, rows, draw.randint(0, rows)])  # the rows from here on have no score
    for i in range(rows):
        time += step(draw)
        group = draw.randrange(groups) if kind.grouped else 0
        events.append(Row(score(draw, i) if i < silent_from else None, None if kind.by_count else time, group))
        if kind.external_clock and draw.random() < 0.25:
            events.append(Advance(time + draw.randint(-15, 15)))
    return Case(question, kind.spec(question), moved(events, draw.choice(EDGES)))
