"""What conformance is tested on: queries of every kind, and streams with everything that goes wrong in streams."""

from __future__ import annotations

import itertools
from typing import NamedTuple

from conformance.far_times import EDGES, moved
from conformance.rows.driver import spec_of
from hypothesis import strategies as st
from numbers_at_the_edge import EDGES_OF_64_BITS
from oracle import Advance, Event, Question, Row

from skyband.problems.rows.operator import RowAlgorithm, Spec


class Kind(NamedTuple):
    """What decides whether an algorithm takes a query at all."""

    by_count: bool
    slides: bool  # with `every`; else with each arrival
    landmark: bool
    emit: str
    grouped: bool
    ad_hoc: bool
    external_clock: bool
    ties: str | None = None

    def spec(self, question: Question) -> Spec:
        return spec_of(question, grouped=self.grouped, ad_hoc=self.ad_hoc)


class Case(NamedTuple):
    """A query and the stream it is asked over."""

    question: Question
    spec: Spec
    events: list[Event]


def kinds(algorithm: RowAlgorithm) -> list[Kind]:
    """The kinds of queries that make sense and that the algorithm does not refuse."""
    switch = (False, True)
    every_kind = (
        Kind(*parts)
        for parts in itertools.product(
            switch,
            switch,
            switch,
            ("windows", "changes", "entries"),
            switch,
            switch,
            switch,
            (None, "rank", "dense"),
        )
    )
    return [
        kind
        for kind in every_kind
        if (kind.slides or kind.emit != "windows")
        and not (kind.external_clock and (kind.by_count or not kind.slides))
        and algorithm.refuses(kind.spec(question_of(kind, k=2, size=6, every=4, lateness=0))) is None
    ]


def question_of(kind: Kind, *, k: int, size: int, every: int, lateness: int) -> Question:
    waits = kind.slides and not kind.by_count
    return Question(
        k=k,
        size=None if kind.landmark else size,
        every=every if kind.slides else None,
        by_count=kind.by_count,
        emit=kind.emit,
        lateness=None if kind.external_clock else lateness if waits else 0,
        ties=kind.ties,
    )


@st.composite
def questions(draw: st.DrawFn, kind: Kind) -> Question:
    size = draw(st.integers(1, 20))
    return question_of(
        kind,
        # k above SMALL (16) takes other paths than k below it.
        k=draw(st.one_of(st.integers(1, 4), st.integers(1, 40))),
        size=size,
        every=draw(st.one_of(st.integers(1, size), st.just(size))),
        lateness=draw(st.one_of(st.just(0), st.integers(0, 25))),
    )


TIES = st.integers(0, 3).map(float)
STRANGE = st.sampled_from([0.0, -0.0, 1.0, float("inf"), float("-inf"), float("nan"), None, 5e-324, -1e308])
ANY = st.floats(allow_nan=True)


# Whole numbers of 64 bits: where something ends, a few of them over and over, and anywhere, as hashes are.
WHOLE = st.one_of(
    st.none(),
    st.sampled_from(EDGES_OF_64_BITS),
    st.sampled_from(EDGES_OF_64_BITS[:4] + EDGES_OF_64_BITS[-4:]),
    st.integers(-(2**63), 2**63 - 1),
)


@st.composite
def scores(draw: st.DrawFn, n: int, *, whole: bool = False) -> list[float | int | None]:
    """Random, tied, strange, all equal, rising or falling; with `whole`, also whole numbers of 64 bits. From some row
    on, none may have a score."""
    silent_from = draw(st.one_of(st.just(n), st.integers(0, n)))
    return [*draw(scores_that_speak(silent_from, whole=whole)), *[None] * (n - silent_from)]


@st.composite
def scores_that_speak(draw: st.DrawFn, n: int, *, whole: bool) -> list[float | int | None]:
    shape = draw(st.sampled_from(["any", "ties", "strange", "equal", "rising", "falling", *["whole"] * whole]))
    if shape == "whole":
        return draw(st.lists(WHOLE, min_size=n, max_size=n))
    if shape == "rising":
        return [float(i) for i in range(n)]
    if shape == "falling":
        return [float(-i) for i in range(n)]
    if shape == "equal":
        return [draw(STRANGE)] * n
    return draw(st.lists({"any": ANY, "ties": TIES, "strange": STRANGE}[shape], min_size=n, max_size=n))


@st.composite
def times(draw: st.DrawFn, n: int) -> list[int]:
    """In order with equal times, out of order, with jumps, or a few over and over; often negative, or far from zero."""
    if draw(st.integers(0, 3)) == 0:
        return draw(st.lists(st.integers(-4, 8), min_size=n, max_size=n))
    steps = draw(st.sampled_from([st.integers(0, 2), st.integers(-6, 8), st.sampled_from([0, 1, 1, -3, -20, 15, 60])]))
    time = draw(st.sampled_from([0, -30, -7, 1_000, 1_000_000_007, -(2**40)]))
    found = []
    for step in draw(st.lists(steps, min_size=n, max_size=n)):
        time += step
        found.append(time)
    return found


@st.composite
def groups(draw: st.DrawFn, n: int) -> list[str]:
    """Mixed, one of them larger than the others; or in runs, so that a group falls silent, dies, and comes back."""
    if draw(st.booleans()):
        return draw(st.lists(st.sampled_from("aaabc"), min_size=n, max_size=n))
    run = draw(st.integers(1, 12))
    return ["abcd"[i // run % 4] for i in range(n)]


@st.composite
def rows(draw: st.DrawFn, kind: Kind, most: int, *, whole: bool = False) -> list[Row]:
    n = draw(st.integers(0, most))
    when = [None] * n if kind.by_count else draw(times(n))
    group = draw(groups(n)) if kind.grouped else [0] * n
    return [Row(*parts) for parts in zip(draw(scores(n, whole=whole)), when, group, strict=True)]


@st.composite
def clock_ticks(draw: st.DrawFn, stream: list[Row]) -> list[Event]:
    """The stream with ticks of an external clock in between: before and behind the times of rows, some backwards."""
    events: list[Event] = []
    for row in stream:
        events.append(row)
        if draw(st.integers(0, 3)) == 0:
            events.append(Advance(row.time + draw(st.integers(-15, 15))))
    return events


@st.composite
def cases(
    draw: st.DrawFn,
    algorithm: RowAlgorithm,
    *,
    most: int = 40,
    external_clock: bool | None = False,
    grouped: bool | None = None,
    ad_hoc: bool | None = None,
) -> Case:
    """A query that `algorithm` takes, and a stream of up to `most` rows; None: with and without."""
    wanted = {"external_clock": external_clock, "grouped": grouped, "ad_hoc": ad_hoc}
    fixed = {name: value for name, value in wanted.items() if value is not None}
    possible = [kind for kind in kinds(algorithm) if all(getattr(kind, name) == value for name, value in fixed.items())]
    kind = draw(st.sampled_from(possible))
    question = draw(questions(kind))
    # An algorithm that may miss rows goes by how far scores are apart, and so by their keys.
    stream = draw(rows(kind, most, whole=algorithm.exact))
    events = draw(clock_ticks(stream)) if kind.external_clock else list(stream)
    return Case(question, kind.spec(question), moved(events, draw(st.sampled_from(EDGES))))
