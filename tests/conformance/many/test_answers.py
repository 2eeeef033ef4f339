"""Oracle: every algorithm for many queries tells each of them what it would be told alone, as they come and go."""

from __future__ import annotations

import random

import pytest
from conformance.many.driver import Driver, spec_of
from conformance.many.random_cases import random_case

from skyband.operators.registry import MANY, find

# With slack=0 lists run short all the time; with few=1 rows are taken in the smallest steps.
OPTIONS = ["", "slack=0, few=1, parts=2, hits=1", "slack=1, few=1, parts=4", "slack=0, few=3, hits=20"]
CASES = 40


@pytest.mark.parametrize("seed", range(CASES))
@pytest.mark.parametrize("name", ["scan", "boxes"])
def test_each_query_is_told_what_it_would_be_told_alone(name: str, seed: int) -> None:
    draw = random.Random(f"{name} {seed}")
    case = random_case(draw)
    while find(name, MANY).refuses(spec_of(case.question, case.score)) is not None:
        case = random_case(draw)
    options = draw.choice(OPTIONS) if "slack" in MANY[name].options else ""
    driver = Driver(case.question, case.score, find(f"{name}({options})" if options else name, MANY).open)
    for events, added, removed in case.steps:
        if removed and driver.alive:
            driver.remove([driver.alive[int(share * len(driver.alive))] for share in removed])
        if added:
            driver.add(added)
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
