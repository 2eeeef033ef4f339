"""What conformance across streams is tested on: queries of every kind, and streams with all that goes wrong."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

from across_oracle import Advance, Event, Row, Scoring
from conformance.far_times import EDGES, moved
from hypothesis import strategies as st
from oracle import Question

from skyband.core.emit import code_of
from skyband.problems.across.combining import resolve
from skyband.problems.across.operator import REPEAT_CODES, AcrossAlgorithm, AcrossSpec
from skyband.windows import FOREVER, Ticks

SWITCH = (False, True)


class Kind(NamedTuple):
    """What decides whether an algorithm takes a query at all."""

    by_count: bool
    slides: bool  # with `every`; else with each arrival
    landmark: bool
    emit: str
    external_clock: bool
    repeat: str | None
    most: int  # how often an object comes to a stream, at most; 0: as often as it likes


class Case(NamedTuple):
    """A query and the streams it is asked over."""

    question: Question
    scoring: Scoring
    spec: AcrossSpec
    events: list[Event]


# What a user may write for three streams, and what it means.
COMBINES: dict[object, Callable[[list[float]], float]] = {
    "sum": lambda v: v[0] + v[1] + v[2],
    "mean": lambda v: (v[0] + v[1] + v[2]) / 3,
    "max": max,
    "min": min,
    "product": math.prod,
    ("weights", 0.5, 0.0, 2.0): lambda v: 0.5 * v[0] + 0.0 * v[1] + 2.0 * v[2],
    "s0 * s1 + sqrt(s2)": lambda v: v[0] * v[1] + math.sqrt(v[2]),
    "greatest(s0, s1) + least(s1, s2) / 2": lambda v: max(v[0], v[1]) + min(v[1], v[2]) / 2,
}


def spec_of(
    question: Question,
    scoring: object,
    low: tuple[float, ...],
    high: tuple[float, ...],
    repeat: str | None,
    most: int = 0,
) -> AcrossSpec:
    """The oracle's question as operators take it."""
    names = [f"s{i}" for i in range(len(low))]
    combine = dict(zip(names, scoring[1:], strict=True)) if isinstance(scoring, tuple) else scoring
    lateness = FOREVER if question.lateness is None else question.lateness
    size = FOREVER if question.size is None else question.size
    ticks = Ticks(size, question.every or 0, lateness, question.by_count)
    resolved = resolve(combine, names, low, high)  # type: ignore[arg-type]
    # Most do not care that a share is enough; `recorded` takes no other queries.
    how = resolved, low, high, REPEAT_CODES[repeat]
    return AcrossSpec(question.k, ticks, code_of(question.emit), *how, recall=0.95, max_repeats=most)


def kinds(algorithm: AcrossAlgorithm) -> list[Kind]:
    """The kinds of queries that make sense and that the algorithm does not refuse."""
    every_kind = (
        Kind(*parts)
        for parts in itertools.product(
            SWITCH, SWITCH, SWITCH, ("windows", "changes"), SWITCH, (None, "last", "max", "sum"), (0, 2)
        )
    )
    return [
        kind
        for kind in every_kind
        if (kind.slides or kind.emit != "windows")
        and not (kind.external_clock and (kind.by_count or not kind.slides))
        and not (kind.most and kind.repeat is None)
        and algorithm.refuses(
            spec_of(question_of(kind, 2, 6, 4, 0), "sum", (0.0,) * 3, (1.0,) * 3, kind.repeat, kind.most)
        )
        is None
    ]


def question_of(kind: Kind, k: int, size: int, every: int, lateness: int) -> Question:
    waits = kind.slides and not kind.by_count
    return Question(
        k=k,
        size=None if kind.landmark else size,
        every=every if kind.slides else None,
        by_count=kind.by_count,
        emit=kind.emit,
        lateness=None if kind.external_clock else lateness if waits else 0,
    )


@st.composite
def questions(draw: st.DrawFn, kind: Kind) -> Question:
    size = draw(st.integers(1, 20))
    k = draw(st.one_of(st.integers(1, 3), st.integers(1, 12)))
    every = draw(st.one_of(st.integers(1, size), st.just(size)))
    return question_of(kind, k, size, every, draw(st.one_of(st.just(0), st.integers(0, 25))))


# Sixteenths: sums of them are exact, in whatever order they are added, and often equal.
VALUES = st.one_of(
    st.integers(0, 16).map(lambda n: n / 16), st.sampled_from([0.0, 1.0, 0.5, None, float("nan")]), st.just(0.25)
)


@st.composite
def times(draw: st.DrawFn, n: int) -> list[int]:
    """In order with equal times, out of order, with jumps, or a few over and over; often negative, or far from zero."""
    if draw(st.integers(0, 3)) == 0:
        return draw(st.lists(st.integers(-4, 8), min_size=n, max_size=n))
    steps = draw(st.sampled_from([st.integers(0, 2), st.integers(-6, 8), st.sampled_from([0, 1, 1, -3, -20, 15, 60])]))
    time = draw(st.sampled_from([0, -30, -7, 1_000_000_007, -(2**40)]))
    found = []
    for step in draw(st.lists(steps, min_size=n, max_size=n)):
        time += step
        found.append(time)
    return found


class Quiet(NamedTuple):
    """Rows without a value in the middle of a stream, where time may also jump: meanwhile all others leave."""

    begin: int
    end: int
    jump: int
    rises: bool  # the values before it do, so that what comes later is compared with high ones

    def quieted(self, values: list[float | None]) -> list[float | None]:
        before = values[: self.begin]
        if self.rises:
            before.sort(key=lambda value: -1.0 if value is None or value != value else value)
        return [*before, *[None] * (self.end - self.begin), *values[self.end :]]


@st.composite
def quiets(draw: st.DrawFn, n: int, size: int) -> Quiet:
    """At the start, which a restart may come before, or where many rows have come."""
    begin = draw(st.sampled_from([0, n // 2, 3 * n // 4]))
    end = min(n, begin + draw(st.sampled_from([1, 2, size + 1])))
    return Quiet(begin, end, draw(st.sampled_from([0, size + 1])), draw(st.booleans()))


@st.composite
def rows(draw: st.DrawFn, kind: Kind, streams: int, most: int, size: int) -> list[Row]:
    n = draw(st.one_of(st.integers(0, most), st.just(most)))
    when = [None] * n if kind.by_count else draw(times(n))
    silent_from = draw(st.one_of(st.just(n), st.integers(0, n)))  # the rows from here on say nothing
    values = [*draw(st.lists(VALUES, min_size=silent_from, max_size=silent_from)), *[None] * (n - silent_from)]
    if draw(st.booleans()):
        quiet = draw(quiets(n, size))
        values = quiet.quieted(values)
        when = [time if time is None or i < quiet.begin else time + quiet.jump for i, time in enumerate(when)]
    objects = draw(st.sampled_from([3, 8, 30]))
    if kind.repeat is not None and not kind.most:
        about = draw(st.lists(st.tuples(st.integers(0, streams - 1), st.integers(0, objects)), min_size=n, max_size=n))
    else:
        # Each object comes once, or so often, in each stream, soon after its first time or much later; or, when all its
        # rows have left the window, again.
        each = streams * max(1, kind.most)
        chosen, near = draw(st.permutations(range(n))), draw(st.sampled_from([1, 4, 1000]))
        pairs = sorted(range(n), key=lambda i: i // each + chosen[i] / near)
        different = size + 2 if kind.by_count and near == 1000 and not kind.landmark else n + 1
        about = [(pair % streams, pair // each % different) for pair in pairs]
    return [Row(stream, name, value, time) for (stream, name), value, time in zip(about, values, when, strict=True)]


@st.composite
def cases(draw: st.DrawFn, algorithm: AcrossAlgorithm, *, most: int = 40, external_clock: bool | None = False) -> Case:
    """A query that `algorithm` takes, and streams of up to `most` rows; None: with and without."""
    possible = [kind for kind in kinds(algorithm) if external_clock in (None, kind.external_clock)]
    kind = draw(st.sampled_from(possible))
    question = draw(questions(kind))
    streams = draw(st.sampled_from([1, 2, 3, 3]))
    name = "sum"
    combine: Callable[[list[float]], float] = math.fsum
    if streams == 3:
        name, combine = draw(st.sampled_from(list(COMBINES.items())))
    low = (
        0.0 if kind.repeat == "sum" or name in ("product", "s0 * s1 + sqrt(s2)") else draw(st.sampled_from([0.0, -1.0]))
    )
    high = draw(st.sampled_from([1.0, 1.0, math.inf]))
    if isinstance(name, str) and "(" in name:
        high = 1.0
    spec = spec_of(question, name, (low,) * streams, (high,) * streams, kind.repeat, kind.most)
    stream = draw(rows(kind, streams, most, question.size or 0))
    events: list[Event] = list(stream)
    if kind.external_clock:
        events = []
        for row in stream:
            events.append(row)
            if draw(st.integers(0, 3)) == 0:
                events.append(Advance(row.time + draw(st.integers(-15, 15))))
    events = moved(events, draw(st.sampled_from(EDGES)))
    return Case(question, Scoring(combine, (low,) * streams, kind.repeat), spec, events)
