"""Example tests: the registry finds every plan, by every name that a user may give it."""

from __future__ import annotations

import math

import pytest

import skyband as sb
from skyband.core import registry
from skyband.core.registry import algorithms_of
from skyband.problems.joins.algorithms.plans.state import Joined
from skyband.problems.joins.costs import Statistics
from skyband.problems.joins.operator import COUNT, MIN, Aggregate, Input, JoinAlgorithm, Plan, Spec
from skyband.problems.joins.planning import candidates, find, find_for

ALGORITHMS = algorithms_of("joins")
every_algorithm = pytest.mark.parametrize("algorithm", list(ALGORITHMS.values()), ids=list(ALGORITHMS))

THREE = (Input(10, (0,), floats=(False,)), Input(10, (0, 1)), Input(10, (1,)))
LINEAR = Spec(THREE, (Aggregate(COUNT),), every=1)
EXTREME = Spec(THREE, (Aggregate(MIN, 0, 0),), every=1)


def plan_of(algorithm: JoinAlgorithm, spec: Spec = LINEAR) -> Plan:
    operator = algorithm.open(spec)
    assert isinstance(operator, Joined)
    return operator.plan


def test_the_registry_finds_every_kind_of_plan() -> None:
    assert list(ALGORITHMS) == ["late", "early", "multiply", "recompute"]
    assert [name for name, each in ALGORITHMS.items() if each.for_comparing] == ["recompute"]
    assert all(each.exact for each in ALGORITHMS.values())


@every_algorithm
def test_an_algorithm_says_what_it_holds_and_costs(algorithm: JoinAlgorithm) -> None:
    assert algorithm.expected_rows(LINEAR, 1_000) == 1_000
    if algorithm.for_comparing:
        assert algorithm.expected_ns is None
    else:
        assert algorithm.expected_ns is not None
        few, many = (algorithm.expected_ns(LINEAR, rows) for rows in (1_000, 1_000_000))
        assert 0 < few < many < math.inf


def test_only_multiply_refuses_an_extreme() -> None:
    refused = {name: each.refuses(EXTREME) for name, each in ALGORITHMS.items()}
    assert [name for name, why in refused.items() if why] == ["multiply"]
    assert "minimum or maximum" in str(refused["multiply"])
    with pytest.raises(sb.InvalidQuery, match=r"plan='multiply' cannot answer this: .* here: late, early:…, recompute"):
        find_for("multiply", "abc", EXTREME)


@pytest.mark.parametrize(
    ("text", "name", "plan"),
    [
        ("late", "late", Plan((False, False, False))),
        ("early", "early:a,b,c", Plan((True, True, True))),
        ("early:a,c", "early:a,c", Plan((True, False, True))),
        ("early: c , a", "early:a,c", Plan((True, False, True))),
        ("early(inputs=5)", "early(inputs=5)", Plan((True, False, True))),
        ("multiply", "multiply", Plan((True, True, True), multiply=True)),
    ],
)
def test_a_plan_is_found_by_its_text(text: str, name: str, plan: Plan) -> None:
    found = find(text, ("a", "b", "c"))
    assert found.name == name
    assert plan_of(found) == plan
    if ":" not in text:
        assert plan_of(registry.find(text, "joins")) == plan


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("earlier", "No plan 'earlier'. There are: late, early:a,b, multiply, recompute"),
        ("late:a", "No plan 'late:a'"),
        ("early:a,z", "plan='early:a,z' names no input: 'z'. Inputs: a, b"),
        ("early(inputs=999)", "'early': inputs must be a whole number from 0 to 255, got 999"),
        ("late(rooms=1)", "'late' has no option 'rooms'"),
    ],
)
def test_a_plan_that_is_none_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(sb.InvalidQuery) as error:
        find(text, ("a", "b"))
    assert message in str(error.value)


def test_the_chooser_considers_every_plan_once() -> None:
    known = [Statistics(100, 10_000, 500, 100)] * 3
    found = candidates(LINEAR, ("a", "b", "c"), known)
    assert [each.name for each in found] == [
        *("late", "early:a", "early:b", "early:a,b", "early:c", "early:a,c", "early:b,c", "early:a,b,c", "multiply"),
    ]
    assert [plan_of(each).early for each in found[:3]] == [(False,) * 3, (True, False, False), (False, True, False)]
    assert all(each.expected_ns is not None and each.expected_ns(LINEAR, math.nan) > 0 for each in found)
    assert {each.expected_rows(LINEAR, math.nan) for each in found} == {30_000}


def test_of_many_inputs_the_chooser_considers_one_chain_of_plans() -> None:
    names = "abcdefgh"
    spec = Spec(tuple(Input(10, (0,)) for _ in names), (Aggregate(COUNT),), every=1)
    found = candidates(spec, names, [Statistics(100, 10_000, 500, 100)] * 8)
    assert [len(each.name.partition(":")[2].split(",")) for each in found[1:-1]] == list(range(1, 9))
    assert (found[0].name, found[-1].name) == ("late", "multiply")
