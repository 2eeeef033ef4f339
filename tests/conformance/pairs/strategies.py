"""What conformance of pairs is tested on: queries of every kind, and streams with everything that goes wrong."""

from __future__ import annotations

import random
from typing import NamedTuple

from conformance.far_times import EDGES, moved
from conformance.pairs.driver import spec_of
from conformance.pairs.scores import SCORES
from conformance.rows.strategies import times
from hypothesis import strategies as st
from oracle import Advance, Question
from pair_oracle import Event, PairRow

from skyband.problems.pairs.operator import PairAlgorithm, Spec

INF, NAN = float("inf"), float("nan")


class Case(NamedTuple):
    """A query and the stream it is asked over."""

    question: Question
    score: str
    spec: Spec
    events: list[Event]

    @property
    def grouped(self) -> bool:
        """With `per`: is there a ranking for each group?"""
        return any(isinstance(event, PairRow) and event.group for event in self.events)


def possible_scores(algorithm: PairAlgorithm) -> list[str]:
    plain = Question(k=1, size=4, every=None, by_count=True, emit="changes")
    return [name for name in SCORES if algorithm.refuses(spec_of(plain, name)) is None]


TIES = st.integers(0, 3).map(float)
STRANGE = st.sampled_from([0.0, -0.0, 1.0, INF, -INF, NAN, 5e-324, -1e308, 2.0, 3.0])
ANY = st.floats(allow_nan=True)


@st.composite
def values(draw: st.DrawFn, n: int) -> list[tuple[float, float]]:
    """Random, tied, strange, all equal, rising or falling."""
    shape = draw(st.sampled_from(["any", "ties", "ties", "strange", "equal", "rising", "falling"]))
    if shape in ("rising", "falling"):
        sign = 1.0 if shape == "rising" else -1.0
        return [(sign * i, sign * (i % 3)) for i in range(n)]
    if shape == "equal":
        return [(draw(STRANGE), draw(STRANGE))] * n
    one = {"any": ANY, "ties": TIES, "strange": STRANGE}[shape]
    return draw(st.lists(st.tuples(one, one), min_size=n, max_size=n))


@st.composite
def cases(
    draw: st.DrawFn,
    algorithm: PairAlgorithm,
    *,
    most: int = 24,
    external_clock: bool | None = False,
    coloured: bool = False,
) -> Case:
    """A query that `algorithm` takes, and a stream of up to `most` rows; None: with and without."""
    by_count = draw(st.booleans())
    slides = draw(st.booleans())
    emit = draw(st.sampled_from(["windows", "changes", "entries"] if slides else ["changes", "entries"]))
    outside = external_clock if external_clock is not None else draw(st.booleans())
    if outside:
        by_count, slides = False, True
    size = draw(st.integers(1, 14))
    question = Question(
        k=draw(st.one_of(st.integers(1, 4), st.integers(1, 30))),
        size=None if draw(st.integers(0, 6)) == 0 else size,
        every=draw(st.one_of(st.integers(1, size), st.just(size))) if slides else None,
        by_count=by_count,
        emit=emit,
        lateness=None if outside else draw(st.sampled_from([0, 0, 3, 12])) if slides and not by_count else 0,
    )
    possible = possible_scores(algorithm)
    score = draw(st.sampled_from([name for name in possible if not coloured or SCORES[name].colours]))
    n = draw(st.integers(0, most))
    when = [None] * n if by_count else draw(times(n))
    if question.size is None and not by_count:
        when = [time % 200 for time in when]  # with a landmark every window up to the last one is shown
    colours = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    most_groups = 3 if (by_count or slides) and draw(st.booleans()) else 0
    groups = draw(st.lists(st.integers(0, most_groups), min_size=n, max_size=n))
    events: list[Event] = []
    for row in map(PairRow, draw(values(n)), when, colours, groups):
        events.append(row)
        if outside and draw(st.integers(0, 3)) == 0:
            events.append(Advance(row.time + draw(st.integers(-15, 15))))
    return Case(question, score, spec_of(question, score), moved(events, draw(st.sampled_from(EDGES))))


def random_case(algorithm: PairAlgorithm, draw: random.Random) -> Case:
    """From a seed: longer, less thorough in one place, and further apart."""
    by_count, slides = draw.random() < 0.4, draw.random() < 0.5
    size = draw.choice([draw.randint(1, 6), draw.randint(1, 40)])
    outside = slides and not by_count and draw.random() < 0.2
    question = Question(
        k=draw.choice([1, 2, 3, 5, 17, 40]),
        size=None if draw.random() < 0.1 else size,
        every=draw.randint(1, size) if slides else None,
        by_count=by_count,
        emit=draw.choice(["windows", "changes", "entries"] if slides else ["changes", "entries"]),
        lateness=None if outside else draw.choice([0, 0, draw.randint(0, 40)]) if slides and not by_count else 0,
    )
    value = draw.choice(
        [
            lambda i: draw.random(),
            lambda i: float(draw.randint(0, 3)),
            lambda i: float(i),
            lambda i: float(-i),
            lambda i: 1.0,
            lambda i: draw.choice([NAN, 1.0, draw.random(), INF, -INF, 0.0, -0.0]),
        ]
    )
    step = draw.choice([lambda: draw.randint(0, 2), lambda: draw.randint(-6, 8), lambda: draw.randint(-30, 31)])
    colours = draw.choice([1, 3, 10])
    groups = draw.choice([1, 2, 5]) if by_count or slides else 1
    score = draw.choice(possible_scores(algorithm))
    time, events = draw.choice([0, -30, 1_000]), list[Event]()
    for i in range(draw.choice([draw.randint(0, 20), draw.randint(0, 60)])):
        time += step()
        group = draw.randrange(groups)
        events.append(PairRow((value(i), value(i)), None if by_count else time, draw.randrange(colours), group))
        if outside and draw.random() < 0.25:
            events.append(Advance(time + draw.randint(-15, 15)))
    return Case(question, score, spec_of(question, score), moved(events, draw.choice(EDGES)))
