"""The join graph: in which order a row of one input searches the other inputs for matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from skyband.problems.joins.operator import Spec


class Step(NamedTuple):
    """A step to one more input: find its entries that agree with the chosen entry of `parent` in all variables of
    `domain`."""

    input: int
    parent: int
    domain: int
    checks: tuple[tuple[int, int], ...]  # other variables that it shares with earlier inputs, and one such input each


@dataclass(frozen=True, slots=True)
class Graph:
    """The steps from each input, and the sets of variables by which entries are found."""

    domains: tuple[tuple[int, ...], ...]  # sets of variables
    steps: tuple[tuple[Step, ...], ...]  # by the input that starts

    def indexes(self, source: int) -> tuple[int, ...]:
        """The domains by which entries of this input are found."""
        wanted = {step.domain for steps in self.steps for step in steps if step.input == source}
        return tuple(sorted(wanted))


def graph_of(spec: Spec) -> Graph:
    """Build the graph. Shared variables must connect all inputs."""
    domains: dict[tuple[int, ...], int] = {}
    steps = tuple(_steps_from(start, spec, domains) for start in range(len(spec.inputs)))
    return Graph(tuple(domains), steps)


def _steps_from(start: int, spec: Spec, domains: dict[tuple[int, ...], int]) -> tuple[Step, ...]:
    chosen, steps = [start], []
    while len(chosen) < len(spec.inputs):
        # The input that shares most variables with a chosen one has the fewest matches.
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
