"""Example tests: the planner chooses for pairs by measured costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import skyband as sb
from skyband.core.plan import Choice
from skyband.core.registry import candidates_of
from skyband.expressions.pairs import bind
from skyband.problems.pairs.costs import (
    DISTANCES,
    KINDS,
    KS,
    WINDOW_ROWS,
    PairCosts,
    between,
    known_pair_costs,
    read,
    write,
)
from skyband.problems.pairs.drivers.scoring import scoring_of
from skyband.problems.pairs.operator import Spec
from skyband.problems.pairs.planning import plan
from skyband.windows import Ticks

SCHEMA = pa.schema([("x", pa.float64()), ("y", pa.float64())])


def spec(by: str, size: int = 10_000, *, where: str | None = None, k: int = 5, **colours: bool) -> Spec:
    return Spec(k, Ticks(size, 0, 0, by_count=True), scoring_of(bind(by, where, True, SCHEMA), **colours), 1)


def costs(staircase: float, threshold: float) -> PairCosts:
    def everywhere(ns: float) -> dict[str, list[list[list[float]]]]:
        return {kind: [[[ns] * len(WINDOW_ROWS)] * len(DISTANCES)] * len(KS) for kind in KINDS}

    return PairCosts("a test", {"staircase": everywhere(staircase), "threshold": everywhere(threshold)})


def test_what_adapts_is_chosen_where_it_can_be() -> None:
    """`threshold` sweeps all rows where looking them up does not pay, so it never costs much more than the other."""
    nearest = spec("abs(a.x - b.x) + abs(a.y - b.y)")
    assert plan(nearest, costs=costs(10, 20)).algorithm == "threshold"
    assert plan(nearest, costs=costs(20, 10)).algorithm == "threshold"
    assert plan(nearest, costs=costs(20, 10)).ns == 10
    assert plan(spec("a.x + b.y"), costs=costs(20, 10)).algorithm == "staircase"


def test_what_is_for_comparing_is_not_chosen() -> None:
    considered = plan(spec("abs(a.x - b.x)")).considered
    assert {choice.algorithm for choice in considered} == {each.name for each in candidates_of("pairs")}
    named = plan(spec("abs(a.x - b.x)"), "naive")
    assert named.algorithm == "naive"
    assert {*named.considered} - {*considered} == {Choice("naive")}


def test_the_figures_that_come_with_the_package_are_whole() -> None:
    figures = known_pair_costs()
    for name in ("staircase", "threshold"):
        for kind in KINDS:
            for distances in (*DISTANCES, 9):
                for rows in (10.0, 1_000.0, 5_000.0, 1e6):
                    for k in (1, 7, 1_000, 50_000):
                        assert figures.ns_per_row(name, kind, distances, rows, k) > 0


def test_large_windows_of_two_distances_are_for_threshold() -> None:
    """The issue's bar: on closest pairs of two attributes the planner's choice beats scoring every pair."""
    assert plan(spec("abs(a.x - b.x) + abs(a.y - b.y)", 100_000)).algorithm == "threshold"


@pytest.mark.parametrize("only", [{"same": True}, {"different": True}, {"where": "a.x < b.x"}])
def test_the_reason_says_that_rows_are_looked_up(only: dict[str, Any]) -> None:
    nearest = "abs(a.x - b.x) + abs(a.y - b.y)"
    chosen = plan(spec(nearest, **only), costs=costs(10, 20))
    assert chosen.algorithm == "threshold"
    assert "looks rows up" in chosen.why
    assert chosen.ns <= 10


def test_a_larger_k_costs_more() -> None:
    def ns(k: int) -> float:
        return plan(spec("a.x + b.y", k=k)).ns

    assert ns(1) < ns(20) < ns(200) < ns(1_000) < ns(5_000)
    assert ns(1_000) > 3 * ns(20)


def test_many_distances_are_for_staircase() -> None:
    names = [f"x{i}" for i in range(20)]
    schema = pa.schema([(name, pa.float64()) for name in names])
    score = bind(" + ".join(f"abs(a.{name} - b.{name})" for name in names), None, True, schema)
    wide = Spec(5, Ticks(100_000, 0, 0, by_count=True), scoring_of(score), 1)
    assert plan(wide).algorithm == "staircase"
    assert plan(wide).ns > plan(spec("abs(a.x - b.x) + abs(a.y - b.y)", 100_000), "staircase").ns


def test_between_the_points() -> None:
    assert between((1, 10, 100), (5, 50, 500), 30) == pytest.approx(150)
    assert between((1, 10, 100), (5, 5, 50), 5) == pytest.approx(5)


def test_figures_are_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "pair_costs.json"
    write(costs(1, 2), path)
    assert read(path) == costs(1, 2)
    path.write_text("{}")
    with pytest.raises(sb.SkybandError, match="calibrate --pairs"):
        read(path)


def test_only_queries_are_explained() -> None:
    with pytest.raises(sb.InvalidQuery, match="explain takes a query"):
        sb.explain("top 10")
