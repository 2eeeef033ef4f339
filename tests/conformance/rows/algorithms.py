"""The algorithms for rows, for checks that are special to them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from skyband.core.registry import every_algorithm_of
from skyband.problems.rows.operator import RowAlgorithm, RowOperator, Spec

AND_PUBLISHED = {name: algorithm for name, algorithm in every_algorithm_of("rows").items() if algorithm.exact}
# What is there exactly as published takes only the windows of its paper.
EXACT = {name: algorithm for name, algorithm in AND_PUBLISHED.items() if not name.endswith("_published")}
# Those that keep no bound but in random order; for the one that does on any stream see test_error.py.
APPROXIMATE = {
    name: algorithm
    for name, algorithm in every_algorithm_of("rows").items()
    if not algorithm.exact and algorithm.for_comparing
}

every_algorithm = pytest.mark.parametrize("algorithm", list(EXACT.values()), ids=list(EXACT))
every_algorithm_and_published = pytest.mark.parametrize(
    "algorithm", list(AND_PUBLISHED.values()), ids=list(AND_PUBLISHED)
)
every_approximate_one = pytest.mark.parametrize("algorithm", list(APPROXIMATE.values()), ids=list(APPROXIMATE))


def opener(algorithm: RowAlgorithm, **capacity: int) -> Callable[[Spec], RowOperator]:
    """Opens the algorithm with these capacities instead of its own."""
    return lambda spec: algorithm.open(spec, **capacity)
