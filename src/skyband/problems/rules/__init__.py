"""The planner: one rule after the other, each of which decides one thing and says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from skyband.problems.rules.algorithm import algorithm
from skyband.problems.rules.distribution import distribution
from skyband.problems.rules.drafting import Draft, Measured, Query, Read, Step
from skyband.problems.rules.names import names
from skyband.problems.rules.panes import panes
from skyband.problems.rules.problem import problem
from skyband.problems.rules.source import source

__all__ = ["RULES", "Draft", "Measured", "Query", "Read", "Step", "planned"]

RULES: Final[tuple[Callable[[Draft], Draft], ...]] = (problem, names, source, panes, algorithm, distribution)


def planned(draft: Draft) -> Draft:
    """The draft after every rule."""
    for rule in RULES:
        draft = rule(draft)
    return draft
