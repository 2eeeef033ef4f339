"""Example tests: what a row costs, between the points that were measured, and where the figures are kept."""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path

import pytest

from skyband.core.registry import algorithms_of
from skyband.errors import InvalidQuery, SkybandError
from skyband.problems.rows import costs as costs_module
from skyband.problems.rows.costs import (
    EACH_ROWS,
    KS,
    MEASURED_AS,
    ORDERS,
    SHAPES,
    SLIDE_ROWS,
    Costs,
    Shape,
    cache_file,
    is_measured,
    known_costs,
    read,
    window_rows_of,
    write,
)
from skyband.problems.rows.planning import NEAR, plan
from skyband.study import costs as calibrate
from skyband.study.pushing import setting

TIED = "tied"  # it takes no query that the others take, so there is nothing to choose


def made_up(**ns: float | dict[str, float]) -> Costs:
    """The same cost at all points, for each order or for all."""
    grids = {}
    for name, cost in ns.items():
        by_order = cost if isinstance(cost, dict) else dict.fromkeys(ORDERS, cost)
        grids[name.replace("_", "+")] = {
            order: [[[value] * len(KS) for _ in window_rows_of(shape)] for shape in SHAPES]
            for order, value in by_order.items()
        }
    return Costs("made up", grids)


def growing() -> Costs:
    """k times the rows of a window, and for slides as many times."""

    def ns(shape: Shape, rows: int, k: int) -> float | None:
        return float(k * rows * max(shape.slides, 1)) if is_measured(shape, "random", rows, k) else None

    grid = [[[ns(shape, rows, k) for k in KS] for rows in window_rows_of(shape)] for shape in SHAPES]
    return Costs("made up", {"relaxed": {"random": grid}})


@pytest.mark.parametrize("k", [3, 7, 10, 200, 10_000])
@pytest.mark.parametrize("rows", [*EACH_ROWS, 5_000, 200_000])
@pytest.mark.parametrize("slides", [0, 1, 5, 10, 50, 100, 1_000])
def test_between_the_points(k: int, rows: int, slides: int) -> None:
    spec = setting(k, rows, slides)
    assert growing().ns_per_row("relaxed", spec, rows, "random") == pytest.approx(k * rows * max(slides, 1), rel=1e-9)


@pytest.mark.parametrize("by_count", [True, False])
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("k", [3, 10_000])
@pytest.mark.parametrize("slides", [10_000, 50_000, 100_000, 1_000_000])
def test_beyond_the_slides_that_were_measured_the_trend_goes_on(
    by_count: bool, whole: bool, k: int, slides: int
) -> None:
    """Nobody showed 10,000 rows a million times in each window; what a slide costs is known without that."""
    spec = setting(k, 1_000_000, slides, by_count=by_count, whole=whole)
    expected = k * 1_000_000 * slides
    assert growing().ns_per_row("relaxed", spec, 1_000_000, "random") == pytest.approx(expected, rel=1e-9)


def test_a_trend_that_falls_is_not_followed_below_what_was_measured() -> None:
    falling = {shape: 100.0 - shape.slides / 10_000 for shape in SHAPES}
    grid = [[[falling[shape]] * len(KS) for _ in window_rows_of(shape)] for shape in SHAPES]
    costs = Costs("made up", {"relaxed": {"random": grid}})
    spec = setting(9, 1_000_000, 1_000_000, whole=False)
    assert costs.ns_per_row("relaxed", spec, 1_000_000, None) == pytest.approx(90.0)


def test_a_slide_costs_at_least_what_it_shows() -> None:
    """Figures that seem not to grow with the slides do not make 10,000 rows shown with each arrival free."""
    costs, few, many = made_up(mintopk=5.0), setting(10_000, 1_000_000, 100), setting(10_000, 1_000_000, 1_000_000)
    assert costs.ns_per_row("mintopk", few, 1_000_000, None) == 5.0
    assert costs.ns_per_row("mintopk", many, 1_000_000, None) > 10_000


def test_beyond_the_points_the_nearest_k_and_window_count() -> None:
    assert growing().ns_per_row("relaxed", setting(1, 10, 0), 10, "random") == KS[0] * EACH_ROWS[0]
    assert growing().ns_per_row("relaxed", setting(10**6, 10**9, 0), 10**9, "random") == KS[-1] * EACH_ROWS[-1]


def test_in_a_window_of_more_rows_it_counts_how_many_a_slide_has() -> None:
    """Ten million rows that slide by a hundred: as a million that do."""
    tenfold, largest = setting(10, 10_000_000, 100_000), setting(10, SLIDE_ROWS[-1], 10_000)
    expected = growing().ns_per_row("relaxed", largest, SLIDE_ROWS[-1], "random")
    assert growing().ns_per_row("relaxed", tenfold, 10_000_000, "random") == pytest.approx(expected)


def test_an_order_that_was_not_measured_costs_what_random_order_does() -> None:
    grid = growing().cells["relaxed"]["random"]
    some = [
        table if shape.whole else [[None] * len(KS) for _ in table] for shape, table in zip(SHAPES, grid, strict=True)
    ]
    costs = Costs("made up", {"relaxed": {"random": grid, "rising": some}})
    for whole in (True, False):
        spec = setting(10, 8_000, 100, whole=whole)
        assert costs.ns_per_row("relaxed", spec, 8_000, "rising") == pytest.approx(10 * 8_000 * 100)


def test_without_an_order_random_order_is_assumed() -> None:
    costs = made_up(relaxed={"random": 1.0, "rising": 2.0, "falling": 400.0, "bursty": 4.0})
    assert costs.ns_per_row("relaxed", setting(9, 1_000, 0), 1_000, None) == 1


def test_what_nobody_measured_is_unknown() -> None:
    assert math.isnan(growing().ns_per_row("strict", setting(9, 1_000, 0), 1_000, "random"))


def test_figures_survive_the_file(tmp_path: Path) -> None:
    write(growing(), tmp_path / "deep" / "costs.json")
    spec = setting(7, 3_000, 20)
    again = read(tmp_path / "deep" / "costs.json").ns_per_row("relaxed", spec, 3_000, "random")
    assert again == growing().ns_per_row("relaxed", spec, 3_000, "random")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 99, "grid": {}}'])
def test_a_file_that_cannot_be_used_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "costs.json").write_text(text)
    with pytest.raises(SkybandError, match="skyband calibrate"):
        read(tmp_path / "costs.json")


def test_figures_of_this_machine_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKYBAND_CACHE", str(tmp_path))
    assert cache_file() == tmp_path / "costs-rows.json"
    known_costs.cache_clear()
    shipped = known_costs().machine
    write(growing(), cache_file())
    known_costs.cache_clear()
    assert known_costs().machine == "made up" != shipped
    known_costs.cache_clear()


def test_the_figures_that_come_with_the_package_cover_every_algorithm() -> None:
    shipped = read(Path(costs_module.__file__).with_name("costs.json"))
    assert shipped.cells.keys() == {algorithm.name for algorithm in calibrate.ALGORITHMS}
    chosen = {name for name, algorithm in algorithms_of("rows").items() if not algorithm.for_comparing} - {TIED}
    assert {MEASURED_AS.get(name, name) for name in chosen} <= shipped.cells.keys()
    for algorithm, order, shape, k in product(shipped.cells, ORDERS, SHAPES, KS):
        for rows in window_rows_of(shape):
            spec = setting(k, rows, min(shape.slides, rows), by_count=shape.by_count, whole=shape.whole)
            known = not math.isnan(shipped.ns_per_row(algorithm, spec, rows, order))
            assert known == (algorithms_of("rows")[algorithm].refuses(spec) is None)


def test_the_file_has_a_line_for_each_table() -> None:
    text = Path(costs_module.__file__).with_name("costs.json").read_text()
    tables = len(json.loads(text)["ns"]) * len(ORDERS) * len(SHAPES)
    assert len(text.splitlines()) < tables + 100


# -- choosing by cost -------------------------------------------------------------------------------------------------


def test_the_cheapest_is_chosen() -> None:
    costs = made_up(relaxed=10.0, staircase=100.0, relaxed_probabilistic=5.0)
    assert plan(setting(9, 40_000, 0), costs=costs).algorithm == "relaxed+probabilistic"


def test_of_those_about_as_cheap_the_one_that_holds_least() -> None:
    costs = made_up(relaxed=0.99 * NEAR, relaxed_probabilistic=1.0)
    chosen = plan(setting(9, 40_000, 0), costs=costs)
    assert chosen.algorithm == "relaxed"
    assert "fewer rows" in chosen.why


def test_what_is_expected_of_the_stream_decides() -> None:
    relaxed = {"random": 1.0, "rising": 1.0, "falling": 1_000.0, "bursty": 1.0}
    costs = made_up(relaxed=relaxed, partitioned=20.0)
    spec = setting(9, 40_000, 0)
    assert plan(spec, expect="random", costs=costs).algorithm == "relaxed"
    assert plan(spec, expect="falling", costs=costs).algorithm == "partitioned"
    assert plan(spec, costs=costs).algorithm == "relaxed"


def test_an_approximate_one_is_chosen_only_where_errors_are_allowed() -> None:
    costs = made_up(relaxed=10.0, probabilistic=1.0)
    refused = {choice.algorithm: choice.refused for choice in plan(setting(9, 40_000, 0), costs=costs).considered}
    assert "allows no error" in str(refused["budgeted"])
    assert plan(setting(9, 40_000, 0), costs=costs).algorithm == "relaxed"
    chosen = plan(setting(9, 40_000, 0, error=0.001), costs=costs)
    assert chosen.algorithm == "budgeted"
    assert "it drops no row in the first 1,000 windows" in chosen.why


@pytest.mark.parametrize("expect", ["falling", "rising", "bursty"])
def test_an_error_is_answered_exactly_unless_order_is_random(expect: str) -> None:
    costs = made_up(relaxed=10.0, partitioned=20.0, probabilistic=1.0, hybrid=1.0)
    chosen = plan(setting(9, 40_000, 0, error=0.001), expect=expect, costs=costs)
    assert chosen.algorithm == "relaxed"
    assert "it misses no row, so it is within any error" in chosen.why
    assert plan(setting(9, 40_000, 0, error=0.001), expect="random", costs=costs).algorithm == "budgeted"


@pytest.mark.parametrize(("slides", "by_count"), [(10, True), (0, False), (10, False)])
def test_an_error_is_answered_exactly_where_n_is_not_fixed_or_panes_slide(slides: int, by_count: bool) -> None:
    spec = setting(9, 40_000, slides, by_count=by_count, error=0.001)
    assert algorithms_of("rows")[plan(spec).algorithm].exact


@pytest.mark.parametrize("name", ["probabilistic", "hybrid", "probabilistic(limit=7)"])
def test_what_keeps_no_error_cannot_be_asked_for_together_with_one(name: str) -> None:
    """It would break what is promised; by itself it can be studied."""
    with pytest.raises(InvalidQuery, match="on any stream") as refusal:
        plan(setting(9, 40_000, 0, error=0.0001), name)
    asked_for = str(refusal.value).rsplit("'", 2)[1]
    assert asked_for == f"{name.partition('(')[0]}(sigma=0.0001)"
    assert plan(setting(9, 40_000, 0), asked_for).algorithm == asked_for
    assert plan(setting(9, 40_000, 0, error=0.0001), "strict").algorithm == "strict"


def test_what_is_there_for_comparing_is_never_chosen() -> None:
    costs = made_up(recompute=0.001, sma=0.001, strict=0.001, relaxed=5.0)
    assert plan(setting(9, 1_000, 0), costs=costs).algorithm == "relaxed"


EXACT = [
    name
    for name, algorithm in algorithms_of("rows").items()
    if algorithm.exact and not algorithm.for_comparing and name != TIED
]


@pytest.mark.parametrize("order", ORDERS)
def test_the_choice_is_near_the_best_wherever_it_was_measured(order: str) -> None:
    """With k up to 10,000 and slides up to 100,000: against the figures themselves, never against a clock."""
    shipped = read(Path(costs_module.__file__).with_name("costs.json"))
    looked_at = 0
    for (i, shape), (j, k) in product(enumerate(SHAPES), enumerate(KS)):
        for n, rows in enumerate(window_rows_of(shape)):
            recorded = {name: ns for name in EXACT if (ns := shipped.cells[name][order][i][n][j]) is not None}
            if not recorded:
                continue
            spec = setting(k, rows, shape.slides, by_count=shape.by_count, whole=shape.whole)
            chosen = plan(spec, expect=order, window_rows=rows, costs=shipped).algorithm
            assert recorded[chosen] <= 1.15 * min(recorded.values()), (shape, rows, k, recorded)
            looked_at += 1
    assert looked_at > 150


@pytest.mark.parametrize("slides", [1_000, 10_000, 100_000, 1_000_000])
@pytest.mark.parametrize("k", [10, 1_000, 10_000])
def test_many_slides_are_not_taken_for_a_hundred(k: int, slides: int) -> None:
    """Each slide shows k rows: a row costs what its share of them does, and more in a window of more slides."""
    shipped = read(Path(costs_module.__file__).with_name("costs.json"))
    costs = [plan(setting(k, 1_000_000, n), costs=shipped).ns for n in (slides // 10, slides)]
    assert costs[1] >= k * slides / 1_000_000
    assert costs[1] > costs[0]


# -- measuring --------------------------------------------------------------------------------------------------------


def test_calibrating_measures_every_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With two algorithms, some settings and small windows: what takes long is not this, but all of them."""
    monkeypatch.setattr(calibrate, "ALGORITHMS", (algorithms_of("rows")["relaxed"], algorithms_of("rows")["mintopk"]))
    monkeypatch.setattr(calibrate, "window_rows_of", lambda _: (200, 300))
    monkeypatch.setattr(calibrate, "KS", (3, 100, 300))
    monkeypatch.setattr(calibrate, "ORDERS", ("random", "falling"))
    monkeypatch.setattr(calibrate, "ROUNDS", 1)
    told: list[str] = []
    found = calibrate.measure(told.append, seconds=0.0005)
    write(found, tmp_path / "costs.json")
    cells = json.loads((tmp_path / "costs.json").read_text())["ns"]
    assert cells.keys() == {"relaxed", "mintopk"}
    for shape, grid in zip(SHAPES, cells["mintopk"]["falling"], strict=True):
        if shape.slides == 0:
            assert grid == [[None] * 3] * 2, "mintopk has no panes there"
        elif shape.slides > 100 or not shape.by_count:
            assert grid == [[None] * 3] * 2, "a slide has a row at least; by value one order is enough"
        else:
            assert all(ns > 0 for row in grid for ns in row)
    few = [grid for shape, grid in zip(SHAPES, cells["relaxed"]["random"], strict=True) if shape.slides <= 100]
    assert all(ns > 0 for grid in few for row in grid for ns in row)
    assert len(told) > calibrate.settings_to_measure() > 0, "each setting, and compiling before"
