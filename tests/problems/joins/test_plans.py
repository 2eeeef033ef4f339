"""Oracle and restart tests of plans: all of them agree, one goes on where another stopped, and the best groups are the
best."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from conformance.joins.driver import Driver, states
from conformance.joins.strategies import Case, cases, plans_for
from conformance.joins.suite import SUITE
from conformance.suite import examples
from hypothesis import given
from hypothesis import strategies as st

from skyband.core.emit import takes_back
from skyband.problems.joins.algorithms import plans, recompute
from skyband.problems.joins.operator import Plan

SIZES = SUITE.batch_sizes()


def driver(case: Case, plan: Plan, room: int = 1) -> Driver:
    """Room for one of everything, so that everything has to grow."""
    return Driver(case, partial(plans.open, plan=plan, initial_room=room, forget_at=room))


@examples(60)
@given(cases(linear=True), SIZES)
def test_all_plans_agree(case: Case, sizes: list[int]) -> None:
    answers = []
    for plan in plans_for(case.spec):
        running = driver(case, plan, room=2)
        running.run(case.events, sizes)
        running.finish()
        answers.append(running.lines)
    assert all(lines == answers[0] for lines in answers)


@examples(80)
@given(cases(external_clock=None), SIZES, st.data())
def test_restarting_as_any_other_plan_changes_nothing(case: Case, sizes: list[int], data: st.DataObject) -> None:
    """What is saved is the rows, from which any plan can go on."""
    possible = plans_for(case.spec)
    restarted = Driver(case, lambda spec: plans.open(spec, data.draw(st.sampled_from(possible)), initial_room=1))
    whole = Driver(case, partial(plans.open, plan=possible[0]))
    restarted.run(case.events, sizes, restarted.restart)
    whole.run(case.events, sizes)
    for each in (restarted, whole):
        each.operator.check()
        each.finish()
    assert restarted.lines == whole.lines


@examples(60)
@given(cases(), SIZES, st.data())
def test_the_best_groups(case: Case, sizes: list[int], data: st.DataObject) -> None:
    spec = case.spec
    by = data.draw(st.integers(0, len(spec.aggregates) - 1))
    case = case._replace(
        spec=replace(spec, top=data.draw(st.integers(1, 3)), top_by=by, ascending=data.draw(st.booleans()))
    )
    running, expected = driver(case, data.draw(st.sampled_from(plans_for(spec)))), Driver(case, recompute.open)
    for each in (running, expected):
        each.run(case.events, sizes, lambda each=each: each.operator.check())
        each.finish()
    if takes_back(spec.emit):
        assert states(running.lines) == states(expected.lines)
    else:
        assert running.lines == expected.lines
