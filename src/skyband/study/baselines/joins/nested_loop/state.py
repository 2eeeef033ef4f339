"""What `nested_loop` holds: what a plan holds, found by no key."""

from __future__ import annotations

from skyband.problems.joins.algorithms.plans.graph import Graph, Step, graph_of
from skyband.problems.joins.algorithms.plans.state import Joined
from skyband.problems.joins.operator import Spec


class NestedLoop(Joined):
    """A plan whose joins compare all variables of all entries."""

    @staticmethod
    def _graph_of(spec: Spec) -> Graph:
        """The same steps, but all entries of an input are in one list, and every shared variable is checked."""
        found = []
        for start, steps in enumerate(graph_of(spec).steps):
            chosen, others = [start], []
            for step in steps:
                checks = tuple(
                    (variable, next(other for other in chosen if variable in spec.inputs[other].variables))
                    for variable in spec.inputs[step.input].variables
                    if any(variable in spec.inputs[other].variables for other in chosen)
                )
                others.append(Step(step.input, step.parent, 0, checks))
                chosen.append(step.input)
            found.append(tuple(others))
        return Graph(((),), tuple(found))
