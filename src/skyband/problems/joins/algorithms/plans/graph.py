"""How inputs are reached from each other: the order in which a row of one input looks for its matches in the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from skyband.problems.joins.operator import Spec


class Step(NamedTuple):
    """One input more: its entries that agree with the entry chosen of `parent` in all variables of `domain`."""

    input: int
    parent: int
    domain: int
    checks: tuple[tuple[int, int], ...]  # variables of it that inputs chosen before have too, and one such input each


@dataclass(frozen=True, slots=True)
class Graph:
    """The steps from each input, and the sets of variables that entries have to be found by."""

    domains: tuple[tuple[int, ...], ...]  # sets of variables
    steps: tuple[tuple[Step, ...], ...]  # by the input that starts

    def indexes(self, source: int) -> tuple[int, ...]:
        """The domains by which entries of this input are looked for."""
        wanted = {step.domain for steps in self.steps for step in steps if step.input == source}
        return tuple(sorted(wanted))


def graph_of(spec: Spec) -> Graph:
    """The inputs must be connected: every one reached from every other through shared variables."""
    domains: dict[tuple[int, ...], int] = {}
    steps = tuple(_steps_from(start, spec, domains) for start in range(len(spec.inputs)))
    return Graph(tuple(domains), steps)


def _steps_from(start: int, spec: Spec, domains: dict[tuple[int, ...], int]) -> tuple[Step, ...]:
    chosen, steps = [start], []
    while len(chosen) < len(spec.inputs):
        # The input that shares most variables with one chosen already finds the fewest entries.
        shared, source, parent = max(
            (
                (len(_shared(spec, source, parent)), -source, -parent)
                for source in range(len(spec.inputs))
                if source not in chosen
                for parent in chosen
            ),
        )
        assert shared, "the join graph is connected"
        source, parent = -source, -parent
        by = _shared(spec, source, parent)
        domain = domains.setdefault(by, len(domains))
        checks = tuple(
            (variable, next(other for other in chosen if variable in spec.inputs[other].variables))
            for variable in spec.inputs[source].variables
            if variable not in by and any(variable in spec.inputs[other].variables for other in chosen)
        )
        steps.append(Step(source, parent, domain, checks))
        chosen.append(source)
    return tuple(steps)


def _shared(spec: Spec, a: int, b: int) -> tuple[int, ...]:
    return tuple(sorted(set(spec.inputs[a].variables) & set(spec.inputs[b].variables)))
