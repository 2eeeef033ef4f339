"""Late and early aggregation: all plans of a join followed by grouping, and one that multiplies.

Paper:      Tran and Lee, JCSE 2009: Algorithm 1 with Rule 1, sections 4 to 6; `multiply` is ours.
Invariant:  an input's entries are its live rows or, aggregated early, its cells with the exact sums of their live rows;
            a group's sums are those of all combinations of entries that agree in the join variables.
Cost:       a row takes one update and one for each combination of matching entries in the other inputs; state is the
            live rows, the cells and the groups. `multiply` joins the changes of a cell once per slide, not by row.
Choose it:  `late` if rows of an input rarely agree in the columns of the join and of the grouping; `early` for inputs
            whose rows often do; `multiply` if all do, and no aggregate is a minimum or maximum.
"""

from __future__ import annotations

from typing import Annotated

from skyband.core.options import Count, Range
from skyband.problems.joins import costs
from skyband.problems.joins.algorithms.plans.state import Joined
from skyband.problems.joins.operator import JoinAlgorithm, Plan, Spec

LATE, EARLY, MULTIPLY = "late", "early", "multiply"
MOST_GROUPS = 20_000_000

GroupLimit = Annotated[int, Range(1, MOST_GROUPS)]
InputSet = Annotated[int, Range(0, 2**8 - 1)]  # bit i: input i; 0: all inputs


def open(
    spec: Spec,
    plan: Plan,
    *,
    initial_room: Count = 64,
    most_groups: GroupLimit = MOST_GROUPS,
    forget_at: Count = 4096,
) -> Joined:
    """With `forget_at` groups, it pays to look for those that are gone."""
    return Joined(spec, plan, initial_room=initial_room, most_groups=most_groups, forget_at=forget_at)


def open_late(
    spec: Spec, *, initial_room: Count = 64, most_groups: GroupLimit = MOST_GROUPS, forget_at: Count = 4096
) -> Joined:
    return Joined(spec, late(spec), initial_room=initial_room, most_groups=most_groups, forget_at=forget_at)


def open_early(
    spec: Spec,
    *,
    inputs: InputSet = 0,
    initial_room: Count = 64,
    most_groups: GroupLimit = MOST_GROUPS,
    forget_at: Count = 4096,
) -> Joined:
    plan = early(spec, inputs)
    return Joined(spec, plan, initial_room=initial_room, most_groups=most_groups, forget_at=forget_at)


def open_multiply(
    spec: Spec, *, initial_room: Count = 64, most_groups: GroupLimit = MOST_GROUPS, forget_at: Count = 4096
) -> Joined:
    return Joined(spec, multiply(spec), initial_room=initial_room, most_groups=most_groups, forget_at=forget_at)


def late(spec: Spec) -> Plan:
    return Plan(tuple(False for _ in spec.inputs))


def early(spec: Spec, inputs: int = 0) -> Plan:
    return Plan(tuple(not inputs or bool(inputs >> i & 1) for i in range(len(spec.inputs))))


def multiply(spec: Spec) -> Plan:
    return Plan(tuple(True for _ in spec.inputs), multiply=True)


def refuses_to_multiply(spec: Spec) -> str | None:
    return None if spec.linear else "a minimum or maximum is not a product of what is known of each input"


ALGORITHMS: tuple[JoinAlgorithm, ...] = (
    JoinAlgorithm(LATE, open_late, expected_ns=lambda spec, n: costs.expected_ns(late(spec), spec, window_rows=n)),
    JoinAlgorithm(EARLY, open_early, expected_ns=lambda spec, n: costs.expected_ns(early(spec), spec, window_rows=n)),
    JoinAlgorithm(
        MULTIPLY,
        open_multiply,
        refuses_to_multiply,
        expected_ns=lambda spec, n: costs.expected_ns(multiply(spec), spec, window_rows=n),
    ),
)
