"""Examples: the benchmarks of pairs measure what they name, at sizes that say nothing about speed."""

from __future__ import annotations

import numpy as np
import pytest

from skyband.problems.pairs.costs import KINDS
from skyband.study import limits, pair_costs, pair_planner, pairs, planner
from skyband.study.baselines.pairs.staircase_published.kernels import search_tree
from skyband.study.baselines.pairs.supreme.state import Supreme
from skyband.study.papers import pair_answers, pair_points, report
from skyband.study.papers import pairs as papers
from skyband.study.papers.experiments import Effort
from skyband.study.papers.points import COST

TINY = Effort(quick=True, turn_seconds=0.0005, passes=1, fill_seconds=0.05, questions=5, size_samples=3, shrink=100)


def silent(_: str) -> None:
    pass


def test_the_bars_of_the_issue_are_lines() -> None:
    assert set(limits.choose(["pairs"])) == {
        *(f"pairs-10k-s{i}" for i in range(1, 5)),
        *("pairs-100k", "pairs-naive", "pairs-planned", "pairs-late", "pairs-memory"),
    }


def test_a_line_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    line = next(line for line in pairs.LINES if line.name == "pairs-naive")
    monkeypatch.setattr(pairs, "LINES", (line._replace(size=150),))
    found = list(pairs.measure(["pairs-naive", "pairs-memory"], 1, silent))
    assert [result.name for result in found] == ["pairs-naive", "pairs-memory"]
    assert found[0].measured > 1
    assert found[0].bar == 100
    assert found[1].met, "what is kept of a million rows does not depend on the machine"


def test_late_rows_are_measured_and_none_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    opened, open_session = [], pairs.TopKPairs.open
    monkeypatch.setattr(pairs.TopKPairs, "open", lambda *given: opened.append(open_session(*given)) or opened[-1])
    found = pairs._late(200, 1, silent)
    assert found.name == "pairs-late"
    assert found.measured >= 1
    assert [session.stats().rows_in for session in opened] == [500] * 3
    assert not any(session.stats().rows_late for session in opened)


def test_supreme_scores_every_pair_and_keeps_the_window() -> None:
    spec = pairs.spec_of("s1", 3, 150)
    operator = pairs.opened("supreme", spec, np.random.default_rng(1).random((3, 150)))
    assert isinstance(operator, Supreme)
    pairs.push(operator, np.ones((3, 300)), 150)
    assert operator._rows.count == 150


SOME = (
    *("pairs-cost-k", "pairs-late", "pairs-colours", "pairs-asked-count", "pairs-size-k", "pairs-known-k"),
    *("pairs-known-n", "pairs-snapshot-most-k", "pairs-snapshot-most-n", "pairs-snapshot-k", "pairs-snapshot-n"),
    *("pairs-continuous-k", "pairs-continuous-count"),
)


@pytest.mark.parametrize("name", SOME)
def test_experiments_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_points, "_scores", lambda effort: ("s1",))  # each more is compiled
    experiment = next(experiment for experiment in papers.EXPERIMENTS if experiment.name == name)
    outcome = report.run(experiment, TINY, silent)
    assert outcome.readings.readings
    assert all(claim.verdict.holds is not None for claim in outcome.claims), "every claim is about what was measured"
    if name == "pairs-cost-k":
        assert set(outcome.readings.algorithms(COST)) == {*pair_points.MAINTAINED, "naive"}


def test_every_way_to_answer_finds_the_same_pairs() -> None:
    spec = pairs.spec_of("s1", 2, 200, k=5)
    operator = pairs.opened("staircase_published", spec, np.random.default_rng(1).random((2, 300)))
    band, tree, held = operator._band, operator._tree, len(operator._candidates())
    k, size = np.array([1, 3, 5, 5]), np.array([200, 3, 60, 200])
    start = operator._rows.base + operator._rows.tail - size
    answers, ends = pair_answers.Answering(operator, k, size)._known(start)
    for q in range(len(k)):
        one = slice(q, q + 1)
        by_tree, by_scan, known = (np.zeros(held, np.int64) for _ in range(3))
        n = search_tree.search_each(tree, band.pairs, k[one], start[one], by_tree)
        assert n == search_tree.scan_each(band.pairs, band.by_score, held, k[one], start[one], by_scan)
        assert n == search_tree.copy_each(answers[ends[q] : ends[q + 1]], np.array([0, n]), known)
        assert by_tree[:n].tolist() == by_scan[:n].tolist() == known[:n].tolist()
        assert operator.top(int(k[q]), int(size[q])).a.tolist() == band.pairs["a_position"][by_scan[:n]].tolist()


def test_every_figure_and_table_of_the_paper_is_there() -> None:
    sources = " ".join(experiment.source for experiment in papers.EXPERIMENTS)
    for what in ("figure 8", "9 (a)", "10 (a)", "11 (a", "12 (a)", "13 (d)", "figure 17 (a)", "18 (a)", "18 (b)"):
        assert what in sources
    assert "table 2" in sources
    assert "table 3" in sources


def test_calibration_measures_the_whole_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_costs, "DISTANCES", (3,))
    monkeypatch.setattr(pair_costs, "WINDOW_ROWS", (100,))
    monkeypatch.setattr(pair_costs, "KINDS", ("nearest",))
    costs = pair_costs.measure(silent)
    assert set(costs.cells) == {"staircase", "threshold"}
    assert all(cells.keys() <= set(KINDS) for cells in costs.cells.values())
    assert costs.cells["threshold"]["nearest"][0][0][0] > 0


def test_the_planner_is_compared_with_the_best() -> None:
    settings = [("1 near", "none", 100, 2), ("1 near", "same 2", 100, 2)]
    found = pair_planner.measure(silent, settings=settings, timed=16)
    assert [(verdict.score, verdict.restriction) for verdict in found] == [setting[:2] for setting in settings]
    assert all(verdict.ratio >= 1 and verdict.chosen in verdict.ns for verdict in found)
    assert "of 2 choices" in planner.summary(found, pair_planner.BAR)
    assert pair_planner.table(found).row_count == 2
