"""Oracle tests: no algorithm across streams holds more than the window."""

from __future__ import annotations

import pytest
from conformance.across.driver import Driver
from conformance.across.suite import SUITE
from conformance.suite import batch_sizes, examples
from hypothesis import given
from hypothesis import strategies as st

from skyband.problems.across.operator import AcrossAlgorithm


@pytest.mark.parametrize("algorithm", SUITE.algorithms().values(), ids=SUITE.algorithms())
@examples(40)
@given(st.data(), batch_sizes())
def test_holds_no_more_than_the_window(algorithm: AcrossAlgorithm, data: st.DataObject, sizes: list[int]) -> None:
    """By count: the rows of a window, and those of a slide more; from the start on, all of them."""
    case = data.draw(SUITE.cases(algorithm))
    driver = Driver(case.spec, algorithm.open)
    size, every = case.question.size, case.question.every or 1

    def bounded() -> None:
        rows = driver.events_taken
        most = rows if size is None or not case.question.by_count else min(rows, size + every)
        assert driver.operator.rows_held() <= most

    driver.run(case.events, sizes, after_each=bounded)
