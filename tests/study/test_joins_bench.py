"""Example tests: the benchmarks of joins run, and judge by what was measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from skyband import cli
from skyband.problems.joins.costs import read
from skyband.study import join_costs, joins
from skyband.study.baselines.joins.nested_loop.state import NestedLoop
from skyband.study.papers import report, tran
from skyband.study.papers.experiments import QUICK, Axis, Experiment, Reading, Readings
from skyband.study.papers.tran import AS_PRINTED, CHOSEN, ESTIMATED, MEASURED

EFFORT = replace(QUICK, turn_seconds=0.005, passes=1, fill_seconds=0.2)


def test_names_of_plans_are_the_papers() -> None:
    for name in (*tran.PLANS_OF_TWO, *tran.PLANS_OF_THREE):
        inputs = 3 if len(name) == 6 else 2
        assert tran.name_of(tran.plan_of(name, inputs)) == name
    assert len({experiment.name for experiment in tran.EXPERIMENTS}) == len(tran.EXPERIMENTS) == 11


@pytest.mark.parametrize("experiment", [tran.EXPERIMENTS[1], tran.EXPERIMENTS[5], tran.HASHED], ids=lambda e: e.name)
def test_an_experiment_measures_and_estimates_every_plan(experiment: Experiment) -> None:
    small = replace(experiment, axis=replace(experiment.axis, values=experiment.axis.values[:1], quick=()))
    outcome = report.run(small, EFFORT, lambda _: None)
    for measure in (MEASURED, ESTIMATED):
        assert outcome.readings.algorithms(measure) == list(experiment.algorithms)
    is_printed = "multiply" in experiment.algorithms and len(experiment.algorithms) == 5  # equations are of two streams
    assert outcome.readings.measures == [MEASURED, ESTIMATED, CHOSEN, *([AS_PRINTED] if is_printed else [])]
    if is_printed:
        assert outcome.readings.algorithms(AS_PRINTED) == list(experiment.algorithms[:4])
    assert len(outcome.claims) == 3 + is_printed + (4 if experiment is tran.EXPERIMENTS[1] else 0)


def test_figure_6_joins_by_nested_loops() -> None:
    values = tran.SHOWCASES.axis.values[:1]
    outcome = report.run(
        replace(tran.SHOWCASES, axis=replace(tran.SHOWCASES.axis, values=values, quick=())), EFFORT, lambda _: None
    )
    assert outcome.readings.measures == [MEASURED, AS_PRINTED]
    assert outcome.readings.algorithms(MEASURED) == ["LAP", "EAP10", "EAP01", "EAP11"]
    assert isinstance(tran.open_nested(tran.TWO.spec(), tran.plan_of("EAP10", 2)), NestedLoop)


def judged(claim: int, measured: dict[str, float], estimated: dict[str, float]) -> bool | None:
    readings = [Reading(MEASURED, name, 1, value) for name, value in measured.items()]
    readings += [Reading(ESTIMATED, name, 1, value) for name, value in estimated.items()]
    chosen = min(estimated, key=lambda name: estimated[name])
    readings.append(Reading(CHOSEN, "the planner", 1, measured[chosen] / min(measured.values())))
    return tran.CLAIMS[claim].judge(Readings(Axis("x", (1.0,)), tuple(readings))).holds


def test_claims_can_fail() -> None:
    good, bad = {"LAP": 10.0, "EAP11": 1.0}, {"LAP": 1.0, "EAP11": 10.0}
    assert [judged(claim, good, good) for claim in range(3)] == [True, True, True]
    assert [judged(claim, bad, good) for claim in range(3)] == [False, False, False]


def test_the_lines_of_the_limits_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"ITEMS": 50, "KINDS": 5, "WINDOW": 500, "SLIDE": 50, "BATCH": 500}.items():
        monkeypatch.setattr(joins, name, value)
    monkeypatch.setattr(joins, "QUICK", EFFORT)
    results = {result.name: result for result in joins.measure(joins.NAMES, 1, lambda _: None)}
    assert set(results) == set(joins.NAMES)
    assert all(result.measured > 0 for result in results.values())


def test_calibrating_writes_what_the_planner_reads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(join_costs, "SETTINGS", (tran.TWO, replace(tran.TWO, windows=(500, 500))))
    monkeypatch.setattr(join_costs, "FULL", EFFORT)
    said = CliRunner().invoke(cli.app, ["calibrate", "--joins", "--file", str(tmp_path / "deep" / "join_costs.json")])
    assert said.exit_code == 0, said.output
    found = read(tmp_path / "deep" / "join_costs.json")
    assert found.match > 0
    assert found.slide > 0
    assert "one of" in CliRunner().invoke(cli.app, ["calibrate", "--joins", "--pairs"]).output
