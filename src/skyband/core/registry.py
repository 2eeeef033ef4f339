"""Problems and their algorithms, found by walking packages: there is no list to edit.

A problem is a package under `skyband.problems` whose `problem.py` has `PROBLEM`. An algorithm is a package under
`skyband.problems.<problem>.algorithms` that has `ALGORITHMS`: usually one, several if they differ only in a setting. A
baseline is such a package under `skyband.study.baselines.<problem>`: it runs if a query names it, and is never chosen.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from types import ModuleType
from typing import Any, Generic, TypeVar

from skyband.core.options import declared
from skyband.core.problem import Problem
from skyband.core.query import Query
from skyband.errors import InvalidQuery, SnapshotMismatch

S = TypeVar("S")  # the problem's Spec: a query in numbers
Op = TypeVar("Op")  # the problem's operator


def refuses_nothing(spec: object) -> None:
    return None


def whole_window(spec: object, window_rows: float) -> float:
    return window_rows


@dataclass(frozen=True)
class Algorithm(Generic[S, Op]):
    """What the chooser and the engines know about an algorithm."""

    name: str
    open: Callable[..., Op]  # takes an S and the algorithm's options by keyword
    refuses: Callable[[S], str | None] = refuses_nothing  # says why it cannot answer the query; None if it can
    # (query, rows in a window) -> rows that it holds per group, if scores come in random order
    expected_rows: Callable[[S, float], float] = whole_window
    # (query, rows in a window) -> nanoseconds a row, until `skyband calibrate` measures them
    expected_ns: Callable[[S, float], float] | None = None
    exact: bool = True  # False: it may miss as many rows as the query allows; a baseline may miss any
    for_comparing: bool = False  # the oracle, or a baseline: the planner never chooses it

    @property
    def base(self) -> str:
        """The name without options."""
        return self.name.partition("(")[0].strip()

    @property
    def options(self) -> tuple[str, ...]:
        parameters = inspect.signature(self.open).parameters.values()
        return tuple(parameter.name for parameter in parameters if parameter.kind is inspect.Parameter.KEYWORD_ONLY)


@cache
def problems() -> Mapping[str, Problem[Any]]:
    """Every problem, by name."""
    package = importlib.import_module("skyband.problems")
    names = [found.name for found in pkgutil.iter_modules(package.__path__) if found.ispkg]
    return {name: _problem(name) for name in names}


@cache
def _problem(name: str) -> Problem[Any]:
    found: Problem[Any] = importlib.import_module(f"skyband.problems.{name}.problem").PROBLEM
    return found


def is_query(value: object) -> bool:
    """Is it a query of any problem?"""
    return isinstance(value, Query)


def problem_of(query: object) -> Problem[Any]:
    """The problem that answers `query`. Nothing else in the source dispatches on the kind of a query."""
    if isinstance(query, Query):
        return _problem(query.problem)
    raise InvalidQuery(f"A query such as sb.TopK(…) is needed, got {type(query).__name__}.")


def problem_named(name: object) -> Problem[Any]:
    """The problem of this name, as a state that somebody saved calls it."""
    found = problems().get(str(name))
    if found is None:
        raise SnapshotMismatch(f"There is no kind of query {name!r}. Possible: {', '.join(problems())}.")
    return found


@cache
def algorithms_of(problem: str) -> Mapping[str, Algorithm[Any, Any]]:
    """Every algorithm of a problem, by name; those that the planner may choose come first."""
    return _by_name(packages_of(problem))


def candidates_of(problem: str) -> list[Algorithm[Any, Any]]:
    """The algorithms of a problem that the planner may choose."""
    return [each for each in algorithms_of(problem).values() if not each.for_comparing]


@cache
def baselines_of(problem: str) -> Mapping[str, Algorithm[Any, Any]]:
    """The published algorithms that studies compare with ours, by name."""
    return _by_name(baseline_packages_of(problem))


def every_algorithm_of(problem: str) -> Mapping[str, Algorithm[Any, Any]]:
    """All algorithms that a query can name: the problem's own, and the baselines."""
    return {**algorithms_of(problem), **baselines_of(problem)}


def _by_name(packages: Iterable[ModuleType]) -> Mapping[str, Algorithm[Any, Any]]:
    found = [each for package in packages for each in package.ALGORITHMS]
    return {each.name: each for each in sorted(found, key=lambda each: each.for_comparing)}


def packages_of(problem: str) -> Iterator[ModuleType]:
    """The package of each algorithm of a problem. Its docstring describes the algorithm."""
    return _packages_in(importlib.import_module(f"skyband.problems.{problem}.algorithms"))


def baseline_packages_of(problem: str) -> Iterator[ModuleType]:
    """The package of each baseline of a problem."""
    studied = importlib.import_module("skyband.study.baselines")
    for package in _packages_in(studied):
        if package.__name__ == f"{studied.__name__}.{problem}":
            yield from _packages_in(package)


def _packages_in(package: ModuleType) -> Iterator[ModuleType]:
    for found in pkgutil.iter_modules(package.__path__):
        if found.ispkg:
            yield importlib.import_module(f"{package.__name__}.{found.name}")


def find(text: str, problem: str) -> Algorithm[Any, Any]:
    """Find an algorithm of a problem by its name, with or without options: "relaxed" or "relaxed(gamma=0.5)"."""
    (name, options), among = _read(text), algorithms_of(problem)
    if name not in among and name not in (among := every_algorithm_of(problem)):
        raise InvalidQuery(f"No algorithm {name!r}. There are: {', '.join(among)}.")
    algorithm = among[name]
    known = declared(algorithm.open) if options else {}
    if unknown := [option for option in options if option not in known]:
        raise InvalidQuery(f"{name!r} has no option {unknown[0]!r}. It has: {', '.join(known) or 'none'}.")
    numbers = {option: known[option].read(number, name) for option, number in options.items()}
    return replace(algorithm, name=text, open=partial(algorithm.open, **numbers))


_CALL = re.compile(r"\s*([\w+]+)\s*(?:\(([^()]*)\))?\s*")
_OPTION = re.compile(r"\s*(\w+)\s*=\s*([^\s=]+)\s*")


def _read(text: str) -> tuple[str, dict[str, str]]:
    """Split "name(option=1, other=0.5)" into the name and the options."""
    call = _CALL.fullmatch(text) if isinstance(text, str) else None
    parts = [_OPTION.fullmatch(part) for part in (call[2] or "").split(",") if part.strip()] if call else []
    if call is None or None in parts:
        raise InvalidQuery(
            f"Cannot read {text!r} as an algorithm. Write a name, or a name with options: 'relaxed(gamma=0.5)'."
        )
    found = [(part[1], part[2]) for part in parts if part]
    if twice := [option for option, count in Counter(option for option, _ in found).items() if count > 1]:
        raise InvalidQuery(f"{text!r} has {twice[0]!r} twice.")
    return call[1], dict(found)
