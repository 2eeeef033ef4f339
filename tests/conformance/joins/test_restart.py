"""Restart tests: a plan that is saved and restored, at every step and as any other plan, goes on as before."""

from __future__ import annotations

from conformance.algorithms import examples
from conformance.joins.driver import Driver
from conformance.joins.strategies import Case, cases, plans_for
from hypothesis import given
from hypothesis import strategies as st

from skyband.problems.joins.algorithms import plans, recompute


@examples(80)
@given(cases(), st.lists(st.sampled_from([0, 1, 2, 5]), max_size=12), st.data())
def test_restarting_after_every_batch_changes_nothing(case: Case, sizes: list[int], data: st.DataObject) -> None:
    possible = plans_for(case.spec)
    # Each time as another plan: what is saved is the rows, from which any plan can go on.
    restarted = Driver(case, lambda: plans.open(case.spec, data.draw(st.sampled_from(possible)), initial_room=1))
    whole = Driver(case, lambda: plans.open(case.spec, possible[0]))
    restarted.run(sizes, restarted.restart)
    whole.run(sizes)
    for each in (restarted, whole):
        each.operator.check()
        each.finish()
    assert restarted.lines == whole.lines


@examples(30)
@given(cases(), st.lists(st.sampled_from([0, 1, 2, 5]), max_size=12))
def test_recompute_can_be_restarted(case: Case, sizes: list[int]) -> None:
    restarted, whole = (Driver(case, lambda: recompute.open(case.spec)) for _ in range(2))
    restarted.run(sizes, restarted.restart)
    whole.run(sizes)
    assert restarted.lines == whole.lines
