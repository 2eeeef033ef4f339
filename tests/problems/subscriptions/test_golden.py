"""Golden: the worked trace for every algorithm, and the bound that the approximate one promises."""

from __future__ import annotations

import numpy as np
import pytest
from conformance.subscriptions.driver import Driver, spec_of
from oracle import Question
from subscriptions_oracle import Asked, Point

from skyband.core.registry import find
from skyband.problems.subscriptions.operator import Batch
from skyband.study.subscriptions import same

# The smallest of the last six: o1 o2 o2 o2 o2 o2 o2 o3 o7 o7 o7.
TRACE = [4, 1, 2, 7, 5, 10, 3, 7.5, 6, 11, 9]
FIRST_SHOWN = [(1, 1), (2, 2), (8, 3), (9, 7)]  # after which arrival, which of them


@pytest.mark.parametrize("name", ["scan", "boxes", "cells", "cpmw", "snn", "relaxed", "probabilistic"])
def test_the_worked_trace(name: str) -> None:
    question = Question(k=1, size=6, by_count=True, emit="entries")
    driver = Driver(question, "distance", find(name, "subscriptions").open)
    driver.add([Asked(1, 6, (0.0, 0.0)), Asked(1, 6, (0.0, 0.0))])
    driver.feed([Point((value, 0.0)) for value in TRACE])
    for said in driver.told().values():
        assert [(line.at, line.position + 1) for line in said] == FIRST_SHOWN


def test_the_approximate_one_misses_no_more_than_it_promises() -> None:
    """200 queries are 200 repetitions: at most sigma N / n rows are missed by each, on average."""
    size, rows, queries, sigma = 200, 4_000, 200, 0.001
    spec = spec_of(Question(k=1, size=size, by_count=True, emit="entries"), "distance")
    rng = np.random.default_rng(11)
    asked = same(queries, 9, size, rng.random((2, queries)))
    points = rng.random((2, rows))
    told = {}
    for name in ("boxes", "probabilistic"):
        operator = find(name, "subscriptions").open(spec)
        operator.add(asked, backfill=False)
        answer = operator.push(Batch(points, np.empty(0, np.int64), 0))
        told[name] = set(zip(answer.group.tolist(), answer.position.tolist(), strict=True))
    missed = len(told["boxes"] - told["probabilistic"])
    assert missed <= sigma * rows / size * queries
    assert len(told["boxes"]) > 1_000 * 9
