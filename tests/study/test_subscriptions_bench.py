"""Examples: the experiments about many queries run, at sizes that say nothing, and every figure is there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from skyband.problems.subscriptions import costs as subscription_costs
from skyband.study import subscriptions_costs as measuring
from skyband.study.papers import subscriptions, subscriptions_points
from skyband.study.papers.experiments import Effort
from skyband.study.papers.points import COST
from skyband.study.papers.subscriptions_points import BOUND, DATA, EXTRA, HELD, MISSED, Points, Setting

TINY = Effort(quick=True, turn_seconds=0.0005, passes=1, fill_seconds=0.05, shrink=200)


def silent(_: str) -> None:
    pass


def test_costs_and_errors_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions_points, "QUICK_QUERIES", 10)
    measure = subscriptions_points.sweep(lambda size: Setting(window=int(size)))
    found = measure((40_000,), ("boxes", "probabilistic"), TINY, silent)
    assert {(reading.measure, reading.algorithm) for reading in found.readings} == {
        (measure, algorithm) for measure in (COST, HELD) for algorithm in ("boxes", "probabilistic")
    }
    assert all(reading.value > 0 for reading in found.readings)
    found = subscriptions_points.errors((9,), ("uniform",), TINY, silent)
    missed = {reading.algorithm: reading.value for reading in found.readings if reading.measure == MISSED}
    assert missed["uniform"] <= 100 * missed[BOUND], "PA is exact but for a few rows"


def test_errors_are_averaged_over_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs of ten queries: of each, what an exact algorithm shows, and what PA does."""
    told = {
        ("boxes", 1): [1, 2, 3],
        ("probabilistic", 1): [1, 2],
        ("boxes", 2): [5, 6],
        ("probabilistic", 2): [5, 7, 8],
    }
    monkeypatch.setattr(subscriptions_points, "QUICK_QUERIES", 10)
    monkeypatch.setattr(subscriptions_points, "_entries", lambda name, setting, *_: np.array(told[name, setting.seed]))
    found = subscriptions_points.errors((9,), ("uniform",), replace(TINY, error_runs=2), silent)
    by_measure = {reading.measure: reading.value for reading in found.readings if reading.algorithm == "uniform"}
    assert by_measure == {MISSED: 2 / 20, EXTRA: 2 / 20}
    assert "Runs: 2" in found.notes[0]
    assert (Points("uniform", 2, seed=1).take(3) != Points("uniform", 2, seed=2).take(3)).any()


@pytest.mark.parametrize("kind", DATA)
def test_points_are_made_as_they_are_read(kind: str) -> None:
    points = Points(kind, 3)
    assert points.take(5).shape == points.take(5).shape == (3, 5)
    assert (Points(kind, 3).take(5) == Points(kind, 3).take(5)).all()


def test_every_figure_of_the_paper_is_there() -> None:
    sources = " ".join(experiment.source for experiment in subscriptions.EXPERIMENTS)
    for what in ("8", "9 (a)", "9 (d)", "10 (a, b)", "10 (e, f)", "11 (a)", "11 (b)", "11 (c)", "11 (f)", "12 (a)"):
        assert f"figure {what}" in sources


def test_costs_are_measured_and_kept(tmp_path: Path) -> None:
    steps: list[str] = []
    costs = measuring.measure(steps.append, measuring.Effort(rows=500, window=2_000, queries=40, more=3))
    assert len(steps) == measuring.settings_to_measure()
    assert set(costs.ns) == set(subscription_costs.PIECES)
    assert all(ns > 0 for ns in costs.ns.values())
    subscription_costs.write(costs, tmp_path / "costs.json")
    assert subscription_costs.read(tmp_path / "costs.json") == costs
