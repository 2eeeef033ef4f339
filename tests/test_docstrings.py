"""Example tests: what docstrings show is what happens, and every public name shows something."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil

import pytest

import skyband as sb
from skyband.core.query import Query
from skyband.expressions import functions

MODULES = [
    "skyband",
    *(
        module.name
        for module in pkgutil.walk_packages(sb.__path__, "skyband.")
        if not module.name.startswith("skyband.engines.spark") and not module.name.endswith("__main__")
    ),
]


@pytest.fixture(autouse=True)
def _functions_of_examples_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "_known", {})


def examples_of(name: str) -> list[doctest.Example]:
    return doctest.DocTestParser().get_examples(inspect.getdoc(getattr(sb, name)) or "")


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("name", sb.__all__)
def test_every_public_name_has_an_example_that_is_run(name: str) -> None:
    """Of its own, not of its base, and none of it is passed over."""
    value = getattr(sb, name)
    assert value.__module__ in MODULES
    assert value.__doc__, "a docstring of its own"
    assert "Examples\n" in value.__doc__
    examples = examples_of(name)
    assert len(examples) > 1
    assert not any(doctest.SKIP in example.options for example in examples)
    finder = doctest.DocTestFinder()
    found = finder.find(importlib.import_module(value.__module__))
    assert any(each.name == f"{value.__module__}.{name}" and each.examples for each in found)


@pytest.mark.parametrize("name", [name for name in sb.__all__ if inspect.isclass(getattr(sb, name))])
def test_a_query_says_what_it_takes_and_where_it_comes_from(name: str) -> None:
    kind = getattr(sb, name)
    if issubclass(kind, Query):
        sections = [
            line for line in inspect.getdoc(kind).splitlines() if line in ("Parameters", "Examples", "References")
        ]
        assert sections == ["Parameters", "Examples", "References"]
