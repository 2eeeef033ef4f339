"""Example tests: what docstrings show is what happens."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import skyband

MODULES = [
    module.name
    for module in pkgutil.walk_packages(skyband.__path__, "skyband.")
    if not module.name.startswith("skyband.engines.spark")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder()
    assert any(found.examples for name in MODULES for found in finder.find(importlib.import_module(name)))
