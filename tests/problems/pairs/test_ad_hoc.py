"""Example tests: an operator for pairs that has seen no row has nothing to say."""

from __future__ import annotations

import pytest
from conformance.pairs.driver import Driver, spec_of
from oracle import Question

from skyband.core.registry import every_algorithm_of
from skyband.problems.pairs.operator import PairAlgorithm

EXACT = {name: each for name, each in every_algorithm_of("pairs").items() if each.exact}


@pytest.mark.parametrize("algorithm", EXACT.values(), ids=EXACT)
def test_asking_before_the_first_row_gives_nothing(algorithm: PairAlgorithm) -> None:
    for question in (
        Question(k=2, size=6, every=None, by_count=True, emit="changes"),
        Question(k=2, size=6, every=4, by_count=True),
        Question(k=2, size=6, every=None, emit="changes"),
        Question(k=2, size=6, every=4),
    ):
        driver = Driver(spec_of(question, "closest of the same"), algorithm.open)
        assert driver.top(1) == []
        assert driver.top(2, 3) == []
        assert driver.top_many([(1, None), (2, 3)]) == [[], []]
        assert driver.top_many([]) == []
        assert driver.operator.next_close() is None
        driver.finish()
        assert driver.lines == []
