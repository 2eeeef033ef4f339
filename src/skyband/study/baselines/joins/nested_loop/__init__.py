"""Nested-loop join: each row is compared with every row, or cell, of the other inputs.

Paper:      Tran and Lee, JCSE 2009: Algorithm 1 with the nested-loop join of equations 19 to 22.
Invariant:  as the plans', but the entries of an input are one list, by no key.
Cost:       a row is compared with each entry of the first other input, and so on with those that agree; state as the
            plans'.
Choose it:  for comparisons only; the plans find what matches by a hash table.
"""

from __future__ import annotations

from skyband.core.options import Count
from skyband.problems.joins.algorithms.plans import MOST_GROUPS, GroupLimit, InputSet
from skyband.problems.joins.operator import JoinAlgorithm, Plan, Spec
from skyband.study.baselines.joins.nested_loop.state import NestedLoop

NAME = "nested_loop"


def open(
    spec: Spec,
    *,
    inputs: InputSet = 0,
    initial_room: Count = 64,
    most_groups: GroupLimit = MOST_GROUPS,
    forget_at: Count = 4096,
) -> NestedLoop:
    """`inputs`: those that are aggregated early, as bits; 0: none."""
    plan = Plan(tuple(bool(inputs >> i & 1) for i in range(len(spec.inputs))))
    return NestedLoop(spec, plan, initial_room=initial_room, most_groups=most_groups, forget_at=forget_at)


ALGORITHMS = (JoinAlgorithm(NAME, open, for_comparing=True),)
