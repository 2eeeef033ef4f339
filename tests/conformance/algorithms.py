"""Every algorithm of the registry, for every check: a new one is found here by itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest
from conformance.driver import spec_of
from hypothesis import settings
from oracle import Question

from skyband.operators.protocol import Operator, Spec
from skyband.operators.registry import OBJECTS, Algorithm

every_algorithm = pytest.mark.parametrize("algorithm", list(OBJECTS.values()), ids=list(OBJECTS))


def examples(count: int) -> settings:
    """So many examples in an everyday run, and more in a deep one."""
    return settings(max_examples=count * settings().max_examples // 100)


def capacities(algorithm: Algorithm) -> list[str]:
    """The keyword arguments of the algorithm's constructor: its internal capacities."""
    questions = (Question(k=1, size=2, every=1), Question(k=1, size=2, emit="changes"))
    specs = [spec for spec in map(spec_of, questions) if algorithm.refuses(spec) is None]
    parameters = inspect.signature(type(algorithm.open(specs[0]))).parameters.values()
    return [parameter.name for parameter in parameters if parameter.kind is inspect.Parameter.KEYWORD_ONLY]


def opener(algorithm: Algorithm, **capacity: int) -> Callable[[Spec], Operator]:
    """Opens the algorithm with these capacities instead of its own."""
    return lambda spec: type(algorithm.open(spec))(spec, **capacity)
