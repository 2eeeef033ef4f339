"""The planner: a list of rules. Each rule decides one thing and adds a line to EXPLAIN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from skyband.core.draft import Draft
from skyband.core.rules.algorithm import algorithm
from skyband.core.rules.distribution import distribution
from skyband.core.rules.names import names
from skyband.core.rules.panes import panes
from skyband.core.rules.problem import problem
from skyband.core.rules.source import source

__all__ = ["RULES", "planned"]

RULES: Final[tuple[Callable[[Draft], Draft], ...]] = (problem, names, source, panes, algorithm, distribution)


def planned(draft: Draft) -> Draft:
    """The draft after every rule."""
    for rule in RULES:
        draft = rule(draft)
    return draft
