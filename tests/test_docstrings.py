"""Example tests: what docstrings show is what happens, and every public name shows something."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re

import api_page
import pytest

import skyband as sb
from skyband.core.query import Query
from skyband.expressions import functions

NEVER_RAISES = {
    "plots.follow",
    "progress",
    "Stats",
    "Stats.told",
    "Store.close",
    "Session.observe",
    "Session.stats",
    "Session.held",
}
NEVER_RAISES |= {
    "Session.next_close",
    "Session.next_held",
    "Session.latest",
    "Session.snapshot",
    "Session",
    "JoinSession.statistics",
}
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


def documented() -> dict[str, object]:
    """Every function, class and method of the page of functions."""
    names = {name: getattr(sb, name) for names in api_page.CHAPTERS.values() for name in names}
    found: dict[str, object] = {name: value for name, value in names.items() if callable(value)}
    for name, value in names.items():
        found |= {f"{name}.{method}": each for method, each in api_page.methods(value).items()}
    for kind, methods in api_page.SESSIONS.values():
        found |= {f"{kind.__name__}.{name}": getattr(kind, name) for name in methods}
    return found


@pytest.mark.parametrize("name", documented())
def test_a_docstring_says_what_is_taken_returned_and_raised(name: str) -> None:
    value = documented()[name]
    parts = api_page.SECTION.split(inspect.getdoc(value) or "")
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    if name != "Session":  # a query opens it
        taken = [each for each in inspect.signature(value).parameters if each != "self"]  # type: ignore[arg-type]
        said = re.findall(r"^(\w+)$", sections.get("Parameters", sections.get("Attributes", "")), re.MULTILINE)
        assert sorted(said) == sorted(taken)
    if not inspect.isclass(value) and inspect.signature(value).return_annotation not in ("None", None):  # type: ignore[arg-type]
        assert sections["Returns"].strip()
    assert ("Raises" in sections) == (name not in NEVER_RAISES)
