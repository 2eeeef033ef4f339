"""Oracle: every algorithm for many queries tells each of them what it would be told alone, as they come and go."""

from __future__ import annotations

import random

import numpy as np
import pytest
from conformance.subscriptions.driver import Driver, spec_of
from conformance.subscriptions.random_cases import Case, random_case
from oracle import Question
from subscriptions_oracle import Asked, Point

from skyband.core.operator import Ints
from skyband.core.registry import algorithms_of, find
from skyband.errors import InvalidQuery
from skyband.problems.subscriptions.algorithms import grids
from skyband.problems.subscriptions.drivers.thresholds import Thresholds

# With slack=0 lists run short all the time; with few=1 rows are taken in the smallest steps.
OPTIONS = ["", "slack=0, few=1, parts=2, hits=1", "slack=1, few=1, parts=4", "slack=0, few=3, hits=20"]
MORE = {"cells": [", resolution=1", ", resolution=3"], "shared": ["", "thinned_at=1", "room=1"]}  # of one algorithm
CASES = 40
CHOSEN = ["scan", "boxes", "cells", "shared_score", "shared"]
COMPARED = ["recompute", "relaxed", "relaxed+probabilistic", "cpmw", "snn"]  # with the ones that are chosen


def is_possible(name: str, case: Case) -> bool:
    # Of the competitors the loop is compiled anew for each score, which takes long.
    quick = name not in grids.NAMES or case.score == "distance"
    return quick and find(name, "subscriptions").refuses(spec_of(case.question, case.score)) is None


def compare(name: str, seed: int) -> None:
    draw = random.Random(f"{name} {seed}")
    case = random_case(draw)
    while not is_possible(name, case):
        case = random_case(draw)
    options = draw.choice(OPTIONS) if "hits" in algorithms_of("subscriptions")[name].options else ""
    options = (options + draw.choice(MORE.get(name, [""]))).removeprefix(", ")
    driver = Driver(case.question, case.score, find(f"{name}({options})" if options else name, "subscriptions").open)
    for events, added, removed in case.steps:
        if removed and driver.alive:
            driver.remove([driver.alive[int(share * len(driver.alive))] for share in removed])
        if added:
            _add(driver, name, added)
        cut = draw.randint(0, len(events))
        driver.feed(events[:cut])
        driver.operator.check()
        if draw.random() < 0.5:
            driver.restart()
        driver.feed(events[cut:])
        driver.operator.check()
    finished = draw.random() < 0.5
    if finished:
        driver.finish()
    assert driver.lines == driver.expected(case.question, case.score, finished=finished)


def _add(driver: Driver, name: str, queries: list[Asked]) -> None:
    if name in grids.NAMES:
        queries = [query._replace(size=driver.spec.window.size) for query in queries]
    if name in CHOSEN:
        try:
            driver.add(queries)
            return
        except InvalidQuery:  # a larger k than one skyband was kept for
            driver.forget(len(queries))
        driver.add([query._replace(backfill=False) for query in queries])
        return
    driver.add([query._replace(backfill=False, every=None) for query in queries])


@pytest.mark.parametrize("seed", range(CASES))
@pytest.mark.parametrize("name", CHOSEN)
def test_each_query_is_told_what_it_would_be_told_alone(name: str, seed: int) -> None:
    compare(name, seed)


@pytest.mark.parametrize("name", COMPARED)
def test_so_it_is_by_the_algorithms_that_are_compared_with(name: str) -> None:
    for seed in range(15):
        compare(name, seed)


def test_a_late_row_is_shown_to_a_query_that_came_after_a_better_one() -> None:
    question = Question(k=1, size=10, every=10, lateness=20, by_count=False, emit="windows")
    driver = Driver(question, "shared", find("shared", "subscriptions").open)
    for row in (Point((9.0, 0.0), 8), Point((5.0, 0.0), 3)):
        driver.add([Asked(1, 10, (0.0, 0.0))])
        driver.feed([row])
    driver.finish()
    assert [len(lines) for lines in driver.lines.values()] == [1, 1]
    assert driver.lines == driver.expected(question, "shared", finished=True)


def test_a_query_is_refused_that_would_see_rows_from_before_its_score_group() -> None:
    """Found with seed 522: a score group that had come late was taken to have all rows of the window."""
    question = Question(k=1, size=4, every=2, by_count=True, emit="windows")
    driver = Driver(question, "by symbol", find("shared", "subscriptions").open)
    driver.add([Asked(1, 4, (0.0, 5.0))])
    driver.feed([Point((1.0, 7.0)), Point((2.0, 7.0)), Point((0.5, 5.0))])
    driver.add([Asked(1, 4, (0.0, 7.0))])
    with pytest.raises(InvalidQuery):
        driver.add([Asked(2, 4, (0.0, 7.0), backfill=True)])
    driver.forget(1)
    driver.feed([Point((0.2, 7.0)), Point((0.1, 7.0)), Point((0.3, 5.0)), Point((0.1, 9.0))])
    driver.add([Asked(1, 4, (0.0, 7.0), backfill=True)])  # what came before the score group has left
    driver.feed([Point((0.0, 7.0))])
    assert driver.lines == driver.expected(question, "by symbol", finished=False)


def test_rows_are_taken_together_although_windows_are_not_all_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each row was a step of its own, a thousand queries took a hundred times as long."""
    steps: list[int] = []
    take_step = Thresholds._arrive

    def counted(self: Thresholds, which: Ints, u: int, v: int, base: int, now: Ints) -> None:
        steps.append(v - u)
        take_step(self, which, u, v, base, now)

    monkeypatch.setattr(Thresholds, "_arrive", counted)
    question = Question(k=1, size=4000, by_count=True, emit="entries")
    driver = Driver(question, "shared", find("scan", "subscriptions").open)
    driver.add([Asked(1, size, (0.0, 0.0)) for size in (1100, 1500, 2500, 4000)])
    driver.feed([Point((float(i % 977), 0.0)) for i in range(6000)])
    assert sum(steps) >= 6000
    assert np.median(steps) > 200
