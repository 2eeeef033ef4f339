"""Every algorithm, by name. Adding one is one file and one line here; the conformance suite finds it by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from skyband.errors import InvalidQuery
from skyband.operators.objects import mintopk, recompute, relaxed
from skyband.operators.protocol import Operator, Spec


@dataclass(frozen=True, slots=True)
class Algorithm:
    """What the planner and the engines know of an algorithm."""

    name: str
    open: Callable[[Spec], Operator]
    refuses: Callable[[Spec], str | None]  # why it cannot answer this, or None
    expected_rows: Callable[[Spec, float], float]  # rows held per group, for so many rows per window, in random order


OBJECTS: dict[str, Algorithm] = {
    algorithm.NAME: Algorithm(algorithm.NAME, algorithm.open, algorithm.refuses, algorithm.expected_rows)
    for algorithm in (recompute, mintopk, relaxed)
}


def find(name: str) -> Algorithm:
    """The algorithm of that name."""
    if name not in OBJECTS:
        raise InvalidQuery(f"No algorithm {name!r}. There are: {', '.join(OBJECTS)}.")
    return OBJECTS[name]
