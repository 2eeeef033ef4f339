"""Oracle tests: all plans give the answers that joining and grouping all live rows gives, after every row."""

from __future__ import annotations

from dataclasses import replace

from conformance.algorithms import examples
from conformance.joins.driver import Driver, states
from conformance.joins.strategies import Case, cases, plans_for
from hypothesis import given
from hypothesis import strategies as st

from skyband.core.emit import takes_back
from skyband.problems.joins.algorithms import plans, recompute
from skyband.problems.joins.operator import Plan

SIZES = st.lists(st.sampled_from([0, 1, 1, 2, 5, 11]), max_size=12)


def driver(case: Case, plan: Plan, room: int = 1) -> Driver:
    """Room for one of everything, so that everything has to grow."""
    return Driver(case, lambda: plans.open(case.spec, plan, initial_room=room, forget_at=room))


def oracle(case: Case) -> Driver:
    return Driver(case, lambda: recompute.open(case.spec))


@examples(150)
@given(cases(), SIZES, st.data(), st.booleans())
def test_a_plan_agrees_with_recompute(case: Case, sizes: list[int], data: st.DataObject, finished: bool) -> None:
    running = driver(case, data.draw(st.sampled_from(plans_for(case.spec))))
    expected = oracle(case)
    said: dict[int, list[int]] = {0: [], 1: []}
    for i, each in enumerate((running, expected)):
        each.run(sizes, lambda each=each, i=i: (each.operator.check(), said[i].append(len(each.lines))))
    assert running.lines == expected.lines
    assert said[0] == said[1], "what is known is said at once, not with a later batch"
    if case.spec.every and not takes_back(case.spec.emit) and (due := expected.operator.next_close()) is not None:
        close = running.operator.next_close()
        assert close is not None
        assert close <= due, "nothing is due before the next close"
    if finished:
        for each in (running, expected):
            each.finish()
            each.operator.check()
    assert running.lines == expected.lines
    assert running.operator.late == expected.operator.late


@examples(60)
@given(cases(linear=True), SIZES)
def test_all_plans_agree(case: Case, sizes: list[int]) -> None:
    answers = []
    for plan in plans_for(case.spec):
        running = driver(case, plan, room=2)
        running.run(sizes)
        running.finish()
        answers.append(running.lines)
    assert all(lines == answers[0] for lines in answers)


@examples(60)
@given(cases(), SIZES, st.data())
def test_batches_do_not_matter(case: Case, sizes: list[int], data: st.DataObject) -> None:
    plan = data.draw(st.sampled_from(plans_for(case.spec)))
    at_once, in_parts = driver(case, plan), driver(case, plan)
    at_once.run()
    in_parts.run(sizes)
    for each in (at_once, in_parts):
        each.finish()
    assert at_once.lines == in_parts.lines


@examples(60)
@given(cases(), SIZES, st.data())
def test_the_best_groups(case: Case, sizes: list[int], data: st.DataObject) -> None:
    spec = case.spec
    by = data.draw(st.integers(0, len(spec.aggregates) - 1))
    case = case._replace(
        spec=replace(spec, top=data.draw(st.integers(1, 3)), top_by=by, ascending=data.draw(st.booleans()))
    )
    running, expected = driver(case, data.draw(st.sampled_from(plans_for(spec)))), oracle(case)
    for each in (running, expected):
        each.run(sizes, lambda each=each: each.operator.check())
        each.finish()
    if takes_back(spec.emit):
        assert states(running.lines) == states(expected.lines)
    else:
        assert running.lines == expected.lines
