"""Every problem with each of its algorithms, as the registry finds them: for every check of the suite."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from conformance.suite import AnyAlgorithm, Suite

from skyband.core import registry


def suites() -> Mapping[str, Suite[Any]]:
    """The suite of every problem in the registry, by name."""
    return {name: importlib.import_module(f"conformance.{name}.suite").SUITE for name in registry.problems()}


def found() -> Iterator[tuple[Suite[Any], AnyAlgorithm]]:
    """Every problem with each of its algorithms."""
    for suite in suites().values():
        for algorithm in suite.algorithms().values():
            yield suite, algorithm


def name_of(value: object) -> str:
    return value.problem if isinstance(value, Suite) else getattr(value, "name", str(value))


every_algorithm = pytest.mark.parametrize(("suite", "algorithm"), list(found()), ids=name_of)
every_random_stream = pytest.mark.parametrize(
    ("suite", "algorithm", "seed"),
    [(suite, algorithm, seed) for suite, algorithm in found() for seed in range(suite.random_streams[0])],
    ids=name_of,
)
