"""Every algorithm of the registry, for every check: a new one is found here by itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest
from hypothesis import settings

from skyband.core.registry import algorithms_of
from skyband.problems.rows.operator import RowAlgorithm, RowOperator, Spec

EXACT = {name: algorithm for name, algorithm in algorithms_of("rows").items() if algorithm.exact}
# Those that keep no bound but in random order; for the one that does on any stream see test_error.py.
APPROXIMATE = {
    name: algorithm
    for name, algorithm in algorithms_of("rows").items()
    if not algorithm.exact and algorithm.for_comparing
}

every_algorithm = pytest.mark.parametrize("algorithm", list(EXACT.values()), ids=list(EXACT))
every_approximate_one = pytest.mark.parametrize("algorithm", list(APPROXIMATE.values()), ids=list(APPROXIMATE))


def examples(count: int) -> settings:
    """So many examples in an everyday run, and more in a deep one."""
    return settings(max_examples=count * settings().max_examples // 200)


def capacities(algorithm: RowAlgorithm) -> list[str]:
    """The algorithm's internal capacities: its options that are whole numbers."""
    parameters = inspect.signature(algorithm.open).parameters
    return [name for name in algorithm.options if isinstance(parameters[name].default, int)]


def opener(algorithm: RowAlgorithm, **capacity: int) -> Callable[[Spec], RowOperator]:
    """Opens the algorithm with these capacities instead of its own."""
    return lambda spec: algorithm.open(spec, **capacity)
