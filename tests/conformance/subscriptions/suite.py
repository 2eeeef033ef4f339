"""Conformance of subscriptions: each query is told what it would be told alone, as queries come and go."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, ClassVar

import oracle
from conformance.subscriptions.driver import SCORES, Come, Driver, spec_of
from conformance.subscriptions.random_cases import Case, random_case
from conformance.suite import AnyAlgorithm, Opener, Suite
from hypothesis import Phase, settings
from hypothesis import strategies as st
from oracle import Advance, Question, Row, Shown
from subscriptions_oracle import Asked, Point

from skyband.core.registry import every_algorithm_of, find
from skyband.problems.subscriptions.algorithms.recompute.state import PerQuery
from skyband.study.baselines.subscriptions import grids, indexed
from skyband.study.baselines.subscriptions.grids.state import GridOperator
from skyband.study.baselines.subscriptions.indexed.state import Indexed

# With slack=0 lists run short all the time; with few=1 rows are taken in the smallest steps.
OPTIONS = ("", "slack=0, few=1, parts=2, hits=1", "slack=1, few=1, parts=4", "slack=0, few=3, hits=20")
MORE = {  # of one algorithm
    "cells": ("resolution=1", "resolution=3"),
    "shared": ("", "thinned_at=1", "room=1"),
    "sasf_grid": ("", "resolution=1, room=1", "resolution=3, buffer=3, room=1", "buffer=1"),
    "rapf_grid": ("", "resolution=1, room=1", "resolution=3, buffer=3, room=1", "buffer=4, gamma=0"),
}
IN_GRIDS = (*grids.NAMES, *indexed.NAMES)  # what is published for many queries
# Algorithms for rows run here once for each query. All of them are seen with rows; these are seen here, too.
FOR_EACH_QUERY = ("recompute", "relaxed", "relaxed+probabilistic")


class SubscriptionSuite(Suite[Case]):
    problem = "subscriptions"
    restores_in_place = False
    examples: ClassVar[Mapping[str, int]] = {"answers": 40}
    few = 15  # each has queries that come and go, and an oracle for each of them
    random_streams = (5, 8)

    def algorithms(self) -> Mapping[str, AnyAlgorithm]:
        known = super().algorithms()
        return {name: known[name] for name in known if name not in every_algorithm_of("rows") or name in FOR_EACH_QUERY}

    def cases(
        self, algorithm: AnyAlgorithm, *, rows: str = "usual", external_clock: bool | None = False, coded: bool = False
    ) -> st.SearchStrategy[Case]:
        """From seeds: a query that comes and goes among rows is more than hypothesis would draw."""
        return st.integers(0, 2**32 - 1).map(lambda seed: case_for(algorithm, random.Random(seed), external_clock))

    def explored(self, check: str) -> settings:
        """Of seeds none is simpler than another."""
        return settings(super().explored(check), phases=[Phase.explicit, Phase.reuse, Phase.generate])

    def takes_external_clock(self, algorithm: AnyAlgorithm) -> bool:
        return algorithm.refuses(spec_of(Question(k=1, size=8, every=4, lateness=None), "distance")) is None

    def variants(self, algorithm: AnyAlgorithm, case: Case) -> st.SearchStrategy[Opener]:
        return st.sampled_from(texts(algorithm)).map(lambda text: find(text, self.problem).open)

    def smallest(self, algorithm: AnyAlgorithm, case: Case, most: int = 3) -> st.SearchStrategy[Opener]:
        return self.variants(algorithm, case)

    def random(self, algorithm: AnyAlgorithm, seed: int) -> random.Random:
        return random.Random(f"{algorithm.name} {seed}")

    def random_case(self, algorithm: AnyAlgorithm, draw: random.Random) -> Case:
        return case_for(algorithm, draw, None)

    def random_opener(self, algorithm: AnyAlgorithm, draw: random.Random) -> Opener:
        return find(draw.choice(texts(algorithm)), self.problem).open

    def driver(self, case: Case, open_operator: Opener) -> Driver:
        return Driver(case.question, case.score, open_operator)

    def expected(self, case: Case, driver: Driver, *, finished: bool) -> dict[int, list[Shown]]:
        return driver.expected(case.question, case.score, finished=finished)

    def said(self, driver: Driver) -> dict[int, list[Shown]]:
        return driver.told()

    def has_reference(self, case: Case) -> bool:
        queries = [query for event in case.events if isinstance(event, Come) for query in event.queries]
        return not any(query.backfill or query.every for query in queries)

    def may_look_sooner(self, case: Case, close: int | None, due: int | None) -> bool:
        """Only by value is there a next close; a window may close that shows nothing to any query."""
        return case.question.by_count or due is None or (close is not None and close <= due)

    def moments(self, case: Case, driver: Driver) -> Iterable[Sequence[int]]:
        return [[line.at for line in lines] for lines in driver.told().values()]

    def shown(self, driver: Driver) -> Sequence[Sequence[int]]:
        return [(line.position,) for line in driver.lines]

    def behind_the_rows(self, case: Case) -> Case:
        return case  # windows that slide are asked about elsewhere: each query may have a slide of its own

    def questions(self, case: Case, driver: Driver) -> st.SearchStrategy[list[tuple[int, int | None]]]:
        asks = not isinstance(driver.operator, (GridOperator, Indexed)) and case.question.every is None
        if not asks or not driver.alive or not any(isinstance(event, Point) for event in driver.events):
            return st.just([])
        as_a_whole = isinstance(driver.operator, PerQuery) or case.question.size is None  # no other size is asked for
        sizes = st.none() if as_a_whole else st.none() | st.integers(1, 60)
        return st.lists(st.tuples(st.integers(1, 20), sizes), max_size=3)

    def top(self, case: Case, driver: Driver, k: int, size: int | None) -> list[Shown]:
        found = []
        for number in driver.alive:
            asked = driver.asked[number]
            least = min((each for each in (size, asked.size) if each is not None), default=None)
            alone = case.question._replace(k=asked.k, size=asked.size)
            lines = oracle.top(alone, seen_by(driver, asked, case.score), min(k, asked.k), least)
            found += [line._replace(group=number) for line in lines]
        return found


def seen_by(driver: Driver, asked: Asked, score: str) -> list[oracle.Event]:
    """What a query sees: rows before it have no score."""
    of = SCORES[score].of
    return [
        event
        if isinstance(event, Advance)
        else Row(of(event.values, asked.values) if i >= asked.added or asked.backfill else None, event.time)
        for i, event in enumerate(driver.events)
    ]


def texts(algorithm: AnyAlgorithm) -> list[str]:
    """The algorithm with each choice of its options."""
    mine = product(OPTIONS if "hits" in algorithm.options else ("",), MORE.get(algorithm.name, ("",)))
    options = [", ".join(filter(None, each)) for each in mine]
    return [f"{algorithm.name}({each})" if each else algorithm.name for each in options]


def case_for(algorithm: AnyAlgorithm, draw: random.Random, external_clock: bool | None) -> Case:
    """One that the algorithm takes; None: with a clock from outside or without."""
    while True:
        case = random_case(draw)
        # For the competitors the loop is compiled anew for each score, which takes long.
        is_quick = algorithm.name not in IN_GRIDS or case.score == "distance"
        is_wanted = external_clock in (None, case.external_clock)
        if is_quick and is_wanted and algorithm.refuses(case.spec) is None:
            return case._replace(events=[_fitting(algorithm, case, event) for event in case.events])


def _fitting(algorithm: AnyAlgorithm, case: Case, event: Any) -> Any:
    """Queries of which the algorithm asks no more than it can do: those that are for comparing have one window."""
    if not isinstance(event, Come) or not algorithm.for_comparing:
        return event
    queries = [query._replace(backfill=False, every=None) for query in event.queries]
    if algorithm.name in IN_GRIDS:
        queries = [query._replace(size=case.question.size) for query in queries]
    return Come(queries)


SUITE = SubscriptionSuite()
