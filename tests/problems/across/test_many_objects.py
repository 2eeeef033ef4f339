"""Restart tests: an operator goes on elsewhere, and forgets objects, with more of them than it had room for first."""

from __future__ import annotations

import numpy as np
import pytest
from across_oracle import Row
from conformance.across.driver import Driver

from skyband.core.registry import every_algorithm_of
from skyband.problems.across.combining import ADD, Combine
from skyband.problems.across.operator import AcrossAlgorithm, AcrossSpec
from skyband.windows import Ticks

EXACT = {name: each for name, each in every_algorithm_of("across").items() if each.exact and name != "recompute"}
every_algorithm = pytest.mark.parametrize("algorithm", list(EXACT.values()), ids=list(EXACT))


def spec_of(size: int, every: int) -> AcrossSpec:
    window = Ticks(size, every, 0, by_count=True)
    return AcrossSpec(40, window, combine=Combine(ADD, (1.0, 1.0)), low=(0.0, 0.0), high=(1.0, 1.0))


def rows_of(objects: int) -> list[Row]:
    """Objects that come once in each of two streams, the second time a little later."""
    random = np.random.default_rng(5)
    came = np.concatenate([np.arange(objects), np.arange(objects) + 0.5 + random.integers(0, 20, objects)])
    values = random.random(2 * objects)
    return [Row(int(i >= objects), int(i % objects), float(values[i])) for i in np.argsort(came)]


def opened(algorithm: AcrossAlgorithm, spec: AcrossSpec) -> tuple[Driver, Driver]:
    if refused := algorithm.refuses(spec):
        pytest.skip(refused)
    return Driver(spec, algorithm.open), Driver(spec, every_algorithm_of("across")["recompute"].open)


@every_algorithm
def test_restarts_with_many_objects(algorithm: AcrossAlgorithm) -> None:
    driver, reference = opened(algorithm, spec_of(600, 50))
    rows = rows_of(400)
    for start in range(0, len(rows), 160):
        for each in (driver, reference):
            each.push(rows[start : start + 160])
        driver.restart()
        driver.operator.check()
    assert driver.lines == reference.lines
    assert driver.top(40) == reference.top(40)


@every_algorithm
def test_forgets_most_objects(algorithm: AcrossAlgorithm) -> None:
    driver, reference = opened(algorithm, spec_of(30, 5))
    rows = rows_of(200)
    reference.push(rows)
    driver.push(rows[:200])
    for start in range(200, len(rows), 3):
        driver.compact()
        driver.push(rows[start : start + 3])
        driver.operator.check()
    assert driver.lines == reference.lines
