"""Golden and example tests: which plan the cost functions prefer, and what `explain` says of it."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.core.plan import Plan as ChosenPlan
from skyband.problems.joins import costs as join_costs
from skyband.problems.joins.costs import Constants, Statistics, cost, enumerate_plans, groups_of, worth_considering
from skyband.problems.joins.operator import Plan
from skyband.problems.joins.planning import name_of
from skyband.study.papers.tran_costs import Stream, Tuning, hashed, nested_loop, tuned

PLANS = {"LAP": (False, False), "EAP10": (True, False), "EAP01": (False, True), "EAP11": (True, True)}
TUNING = Tuning(probe=1.0, window=1.0, group=1.0)


def constants_of(**given: float) -> Constants:
    """These constants; the others are nothing."""
    return Constants(**{field.name: given.get(field.name, 0.0) for field in fields(Constants)})


def best(inputs: list[Statistics], constants: Constants, *, linear: bool, slide: float = 0.0) -> Plan:
    """The cheapest of the plans that are worth considering and can answer the query."""

    def estimate(plan: Plan) -> float:
        return cost(plan, inputs, constants, slide, linear=linear)

    considered = worth_considering(len(inputs), estimate)
    return min((plan for plan in considered if linear or not plan.multiply), key=estimate)


def stream(groups: float, window: float = 2000) -> Stream:
    return Stream(300, window, groups, 0.1)


@pytest.mark.parametrize("formula", [nested_loop, hashed])
@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [(2, 2, "EAP11"), (2, 5000, "EAP10"), (5000, 2, "EAP01"), (5000, 5000, "LAP")],
)
def test_the_best_plan_by_groups_is_the_papers(formula: Any, first: float, second: float, expected: str) -> None:
    """Figure 6: aggregating early pays where there are few groups."""
    costs = {name: formula(stream(first), stream(second), early, TUNING) for name, early in PLANS.items()}
    assert min(costs, key=lambda name: costs[name]) == expected


@pytest.mark.parametrize("formula", [nested_loop, hashed])
def test_parameters_are_tuned_to_what_was_measured(formula: Any) -> None:
    true = Tuning(0.25, 3.0, 0.5)
    streams = [Stream(300, window, groups, 0.1) for window in (200, 2000) for groups in (2, 50)]
    points = [(a, b, early) for a in streams for b in streams for early in ((False, False), (True, False))]
    found = tuned(formula, points, [formula(*point, true) for point in points])
    assert (found.probe, found.window, found.group) == pytest.approx((0.25, 3.0, 0.5))
    # A part that would have to be negative is left out.
    small = tuned(formula, points, [formula(*point, true) - 2 * 600 * 3.5 for point in points])
    assert small.window == 0
    assert min(small.probe, small.group) > 0


def test_early_plans_stop_growing_with_the_window() -> None:
    """Figure 4a: beyond 2000 rows the first aggregation set is full, so the plans that are early there do not grow."""
    second = Stream(300, 5000, 1, 0.1)

    def at(window: float, early: tuple[bool, bool]) -> float:
        return hashed(Stream(300, window, 150, 0.1), second, early, TUNING)

    for early in (PLANS["LAP"], PLANS["EAP01"]):
        assert at(5000, early) > 1.25 * at(2000, early)
    for early in (PLANS["EAP10"], PLANS["EAP11"]):
        assert at(5000, early) < 1.02 * at(2000, early)


def test_every_plan_is_enumerated_and_many_inputs_are_chosen_one_by_one() -> None:
    plans = enumerate_plans(3)
    assert len(set(plans)) == len(plans) == 9
    assert [plan.multiply for plan in plans] == [False] * 8 + [True]
    constants = constants_of(late=100, early=200, match=50, visit=50)
    few, many = Statistics(10, 1000, 10, 10), Statistics(10, 1000, 1000, 1000)
    assert best([few, many], constants, linear=False).early == (True, False)
    assert best([few, many] + [many] * 5, constants, linear=False).early == (True, *[False] * 6)


def test_what_a_slide_gathers_is_joined_once() -> None:
    constants = constants_of(late=100, early=100, match=50, gather=10, touch=100)
    few = [Statistics(1000, 10_000, 10, 10)] * 2
    multiply, early = enumerate_plans(2)[-1], enumerate_plans(2)[-2]
    assert cost(multiply, few, constants, slide=1.0) < cost(early, few, constants, slide=1.0) / 5
    assert best(few, constants, linear=True, slide=1.0).multiply
    assert cost(multiply, few, constants) == cost(early, few, constants), "with each arrival there is nothing to gather"


def test_one_input_alone_is_added_to_its_groups_whatever_the_slide() -> None:
    constants = constants_of(late=100, early=100, match=50, visit=50, gather=10, touch=100)
    for slide in (0.0, 1.0):
        assert best([Statistics(1000, 10_000, 10, 1)], constants, linear=True, slide=slide).multiply


def test_what_is_far_in_memory_is_dearer() -> None:
    """A join whose groups are many costs more for each match than one that matches as often and has few."""
    constants = constants_of(match=10, far_match=10, far=10)
    plan = enumerate_plans(2)[0]
    few, many = ([Statistics.of(300, 5000, groups, 0.1)] * 2 for groups in (1, 1000))
    assert groups_of(few) == pytest.approx(1, rel=0.01)
    assert groups_of(many) > 100_000
    assert cost(plan, many, constants) > 2 * cost(plan, few, constants)


QUERY = sb.JoinAggregate(
    inputs={"a": sb.landmark(on="t"), "p": sb.relation()},
    on="a.id = p.id",
    group_by="p.kind",
    aggregates={"n": "COUNT(*)", "low": "MIN(a.x)"},
    every=60,
)


def test_explain_shows_every_plan_with_its_cost() -> None:
    known = {"a": Statistics(100, 10_000, 500, 100), "p": Statistics(0, 100, 100, 100)}
    explained = sb.explain(QUERY, statistics=known)
    assert explained.plan.algorithm == explained.plan.considered[0].algorithm
    text = str(explained)
    for expected in (
        "COUNT(*) AS n, MIN(a.x) AS low for each p.kind",
        "a          a stream, from the start, every 60, on t",
        "p          a relation",
        "holds      a 10,000 rows in 500 cells of 100 keys; p 100 rows",
        "join       a.id = p.id",
        "multiply  cannot: a minimum or maximum is not a product",
        "late",
        "early:a,p",
    ):
        assert expected in text
    assert "(assumed)" in str(sb.explain(QUERY))
    with pytest.raises(sb.InvalidQuery, match="Give statistics of each input: a, p"):
        sb.explain(QUERY, statistics={"a": known["a"]})


def test_a_session_switches_when_another_plan_has_become_cheaper(monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing of the answer is lost or said twice."""
    rng = np.random.default_rng(5)
    n = 600
    a = pa.table({"t": np.arange(n), "id": rng.integers(0, 5, n), "x": rng.integers(0, 9, n)})
    p = pa.table({"id": [0, 1, 2, 3], "kind": ["u", "v", "u", "w"]})
    schemas = {"a": a.schema, "p": p.schema}
    monkeypatch.setattr("skyband.problems.joins.codec._LOOK_AT", 100)

    def run(query: sb.JoinAggregate) -> tuple[pa.Table, list[str]]:
        session, plans, found = query.open(schemas), [], []
        session.push(p, "p")
        for i in range(0, n, 50):
            found.append(session.push(a.slice(i, 50), "a"))
            session.check()
            plans.append(session.algorithm)
        return pa.concat_tables([*found, session.finish()]), plans

    query = sb.JoinAggregate(
        inputs={"a": sb.sliding(40, on="t"), "p": sb.relation()},
        on="a.id = p.id",
        group_by="p.kind",
        aggregates={"n": "COUNT(*)", "low": "MIN(a.x)"},
        every=7,
    )
    expected, before = run(query)
    assert set(before) == {"early:a,p"}
    # Aggregating early becomes dear.
    dear = constants_of(late=1, early=1e6, match=1, visit=1)
    session_plans = run_with(monkeypatch, dear, lambda: run(query))
    assert session_plans[0].equals(expected)
    assert session_plans[1][0] == "early:a,p"
    assert session_plans[1][-1] == "late"


def run_with(monkeypatch: pytest.MonkeyPatch, constants: Constants, run: Any) -> Any:
    """With these constants, but for the choice of the first plan."""
    monkeypatch.setattr("skyband.problems.joins.costs.known_constants", lambda: constants)
    monkeypatch.setattr("skyband.problems.joins.codec.plan", lambda query, spec: ChosenPlan.fixed("early:a,p", "first"))
    return run()


FEW_OF_MANY = sb.JoinAggregate(
    inputs={"a": sb.sliding(500, on="t"), "b": sb.sliding(500, on="t")},
    on="a.id = b.id",
    aggregates={"n": "COUNT(*)", "low": "MIN(a.x)"},
    every=100,
)


def plans_of(monkeypatch: pytest.MonkeyPatch, each_step: Any) -> tuple[list[str], pa.Table]:
    """The plan of FEW_OF_MANY after each 1,000 rows. Most of a have keys of their own; b has many of the others."""
    monkeypatch.setattr("skyband.problems.joins.codec._LOOK_AT", 10_000)
    monkeypatch.setattr(
        "skyband.problems.joins.costs.known_constants", lambda: constants_of(late=1, early=1, match=1, visit=1)
    )
    monkeypatch.setattr("skyband.problems.joins.codec.plan", lambda query, spec: ChosenPlan.fixed("late", "first"))
    schema = pa.schema([("t", pa.int64()), ("id", pa.int64()), ("x", pa.int64())])
    session, plans, found = FEW_OF_MANY.open({"a": schema, "b": schema}), [], []
    for start in range(0, 20_000, 500):
        t = np.arange(start, start + 500)
        a = pa.table([t, np.where(t % 100 == 0, t % 7, t + 7), t % 13], schema=schema)
        b = pa.table([t, t % 7, t % 11], schema=schema)
        found += [session.push(a, "a"), session.push(b, "b")]
        session = each_step(session)
        plans.append(session.algorithm)
    return plans, pa.concat_tables([*found, session.finish()])


def test_rates_are_known_when_cells_were_just_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most keys of a come once: their cells are dropped again and again, and the rates must outlive that."""
    cells, rates = list[int](), list[float]()

    def watch(session: Any) -> Any:
        cells.append(sum(map(len, session._codec._codes.inputs)))
        rates.append(session.statistics()["b"].rate)
        return session

    plans, answer = plans_of(monkeypatch, watch)
    assert any(after < before for before, after in pairwise(cells)), "cells were forgotten"
    assert rates[1:] == pytest.approx([100.0] * (len(rates) - 1), rel=0.1)
    assert plans[9] != "late", "once 10,000 rows have come, their rates tell that an early plan is cheaper"
    restarted, same = plans_of(monkeypatch, lambda session: FEW_OF_MANY.open(session.schemas, session.snapshot()))
    assert restarted == plans
    alone, also = plans_of(monkeypatch, lambda session: session)
    assert alone == plans, "to ask what is known changes nothing"
    assert answer.equals(same)
    assert answer.equals(also)


def test_no_plan_is_chosen_before_a_window_has_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing has come to the windows then; the choice waits, but not for another so many rows."""
    monkeypatch.setattr("skyband.problems.joins.codec._LOOK_AT", 1_000)
    monkeypatch.setattr(
        "skyband.problems.joins.costs.known_constants", lambda: constants_of(late=1, early=1, match=1, visit=1)
    )
    monkeypatch.setattr("skyband.problems.joins.codec.plan", lambda query, spec: ChosenPlan.fixed("late", "first"))
    rows = pa.table({"t": np.arange(3_000) // 40, "id": np.arange(3_000) % 7, "x": np.arange(3_000)})
    session = FEW_OF_MANY.open({"a": rows.schema, "b": rows.schema})
    for name in "ab":
        session.push(rows, name)
    assert session.algorithm == "late"
    last = pa.table({"t": [100], "id": [1], "x": [1]})
    session.push(last, "a")
    session.push(last, "b")
    assert session.algorithm != "late"


def test_names_of_plans() -> None:
    assert [name_of(plan, ("a", "b")) for plan in enumerate_plans(2)] == [
        "late",
        "early:a",
        "early:b",
        "early:a,b",
        "multiply",
    ]
    assert join_costs.known_constants().match > 0
