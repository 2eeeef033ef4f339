"""Oracle tests: no algorithm for rows holds more rows than it states."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from conformance.rows.algorithms import AND_PUBLISHED, every_algorithm_and_published, opener
from conformance.rows.bounds import STATED, whole_window
from conformance.rows.driver import Driver, spec_of
from conformance.rows.strategies import cases
from conformance.suite import batch_sizes, capacities, examples
from hypothesis import given
from hypothesis import strategies as st
from oracle import Question

from skyband.problems.rows.operator import Batch, RowAlgorithm

NO_TIMES, NO_GROUPS = np.empty(0, np.int64), np.empty(0, np.int32)


@every_algorithm_and_published
@examples(30)
@given(st.data(), batch_sizes())
def test_rows_held_stay_within_what_is_stated(algorithm: RowAlgorithm, data: st.DataObject, sizes: list[int]) -> None:
    case = data.draw(cases(algorithm, external_clock=None))
    capacity = {name: data.draw(st.integers(1, 8), label=name) for name in capacities(algorithm)}
    driver = Driver(case.spec, opener(algorithm, **capacity))
    for i, event in enumerate(case.events, 1):
        driver.run([event])
        held = len(driver.operator.held())
        assert held <= driver.operator.rows_held(), "the quick count is never too low"
        stated = STATED.get(algorithm.name, whole_window)  # who states no bound may hold the window
        assert held <= stated(case.question, case.spec, case.events[:i], driver)


SHAPES = {
    "rising": lambda i: i.astype(float),
    "falling": lambda i: -i.astype(float),
    "equal": lambda i: np.zeros(len(i)),
    "rising saw": lambda i: (i % 500).astype(float),
    "falling saw": lambda i: -(i % 500).astype(float),
    "random": lambda i: np.random.default_rng(int(i[0])).random(len(i)),
}


@every_algorithm_and_published
@pytest.mark.parametrize("by_count", [True, False], ids=["by count", "by value"])
@pytest.mark.parametrize("shape", SHAPES)
def test_state_does_not_grow_with_the_stream(algorithm: RowAlgorithm, shape: str, by_count: bool) -> None:
    """A window of 20 rows, twenty or a hundred times over: in any order of scores, about a window's rows are held."""
    for every, (batch, rows) in itertools.product((None, 5), ((1, 400), (10, 2_000), (500, 2_000))):
        emit = "changes" if every is None else "windows"
        spec = spec_of(Question(k=3, size=20, every=every, by_count=by_count, emit=emit), grouped=False)
        if algorithm.refuses(spec):
            continue
        operator = opener(algorithm, **dict.fromkeys(capacities(algorithm), 4))(spec)
        most = 0
        for first in range(0, rows, batch):
            i = np.arange(first, first + batch)
            operator.push(Batch(SHAPES[shape](i), NO_TIMES if by_count else i, NO_GROUPS, first))
            most = max(most, operator.rows_held())
        operator.check()
        assert most <= 3 * 20 + 8


def test_every_algorithm_and_published_states_a_bound() -> None:
    assert STATED.keys() == AND_PUBLISHED.keys()
