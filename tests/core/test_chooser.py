"""Example tests of the chooser: what a running query asks its candidates, and what EXPLAIN finds out later."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from skyband.core.chooser import BY_NAME, Chooser, WindowRows
from skyband.core.plan import Choice
from skyband.core.registry import Algorithm
from skyband.errors import InvalidQuery

asked: list[str]  # for the rows that they hold


@pytest.fixture(autouse=True)
def nobody_asked_yet() -> None:
    global asked
    asked = []


def algorithm(name: str, ns: float | None, rows: float, refused: str | None = None) -> Algorithm[Any, Any]:
    def expected_rows(spec: object, window_rows: float) -> float:
        asked.append(name)
        return rows

    costs: Callable[[object, float], float] | None = None if ns is None else lambda spec, window_rows: ns
    return Algorithm(name, lambda spec: None, lambda spec: refused, expected_rows, costs)


def chooser(*candidates: Algorithm[Any, Any], near: float = 1.0) -> Chooser[None]:
    return Chooser(
        spec=None,
        window=WindowRows(1_000.0, assumed=True),
        candidates=candidates,
        reason=lambda chosen, able: f"{chosen.ns:g} of {sorted(each.ns for each in able)}",
        near=near,
    )


FAST, SMALL, SLOW = algorithm("fast", 10.0, 500.0), algorithm("small", 10.4, 5.0), algorithm("slow", 90.0, 1.0)
UNABLE = algorithm("unable", 1.0, 1.0, "it cannot")


def test_only_the_one_that_runs_is_asked_for_its_rows() -> None:
    plan = chooser(FAST, SMALL, SLOW, UNABLE).cheapest()
    assert (plan.algorithm, plan.why, plan.rows, plan.ns) == ("fast", "10 of [10.0, 10.4, 90.0]", 500.0, 10.0)
    assert asked == ["fast"]


def test_rows_decide_between_those_that_cost_about_the_same() -> None:
    assert chooser(FAST, SMALL, SLOW, near=1.05).cheapest().algorithm == "small"
    assert set(asked) == {"fast", "small"}


def test_where_nobody_knows_a_cost_rows_decide() -> None:
    assert chooser(algorithm("a", None, 9.0), algorithm("b", None, 3.0), UNABLE).cheapest().algorithm == "b"


def test_the_table_is_made_when_it_is_read_and_once() -> None:
    plan = chooser(SLOW, UNABLE, FAST).cheapest()
    before = len(asked)
    expected = (Choice("fast", None, 500.0, 10.0), Choice("slow", None, 1.0, 90.0), Choice("unable", "it cannot"))
    assert plan.considered == expected
    after = len(asked)
    assert after > before
    assert plan.considered == expected
    assert len(asked) == after


def test_what_is_named_runs_whatever_it_costs_and_is_listed() -> None:
    plan = chooser(FAST).named(algorithm("other(option=3)", 700.0, 7.0))
    assert (plan.algorithm, plan.why, plan.ns) == ("other(option=3)", BY_NAME, 700.0)
    assert plan.considered == (Choice("fast", None, 500.0, 10.0), Choice("other", None, 7.0, 700.0))


def test_what_is_named_and_cannot_says_what_can() -> None:
    with pytest.raises(InvalidQuery, match=r"^'unable' cannot answer this: it cannot\. Possible here: fast, slow\.$"):
        chooser(FAST, UNABLE, SLOW).named(UNABLE)


def test_a_plan_goes_to_another_process_without_its_table() -> None:
    plan = chooser(FAST, SLOW, UNABLE).cheapest()
    there = pickle.loads(pickle.dumps(plan))
    assert there == plan
    assert there.considered == ()
    assert asked == ["fast"]
