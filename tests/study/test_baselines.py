"""Example tests: what papers publish is found by name, and by nobody else."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.core.registry import algorithms_of, baselines_of, find, problems
from skyband.problems.rows.operator import Batch, Spec
from skyband.windows import Ticks

WINDOW = sb.sliding(4, every=2)
TABLE = pa.table({"x": [3.0, 1.0, 2.0, 5.0, 4.0, 0.0]})
SMA = ("sma", "sma(tight=1)")
NO_TIMES, NO_GROUPS = np.empty(0, np.int64), np.empty(0, np.int32)


def test_a_baseline_is_asked_for_by_name_and_never_weighed() -> None:
    assert "mintopk_published" in baselines_of("rows")
    assert "mintopk_published" not in algorithms_of("rows")
    assert "mintopk_published" not in str(sb.explain(sb.TopK(k=2, by="x", window=WINDOW)))
    asked = sb.top_k(TABLE, k=2, by="x", window=WINDOW, algorithm="mintopk_published")
    assert asked.equals(sb.top_k(TABLE, k=2, by="x", window=WINDOW))
    said = str(sb.explain(sb.TopK(k=2, by="x", window=WINDOW, algorithm="mintopk_published")))
    assert "mintopk_published: named in the query" in said


RUNS = """
import sys, pyarrow as pa, skyband as sb
table = pa.table({{"x": [3.0, 1.0, 2.0]}})
sb.top_k(table, k=2, by="x", window=sb.sliding(2), algorithm={algorithm!r})
sb.explain(sb.TopKPairs(k=2, by="abs(a.x - b.x)", window=sb.sliding(2)))
print(any(name.startswith("skyband.study") for name in sys.modules))
"""


@pytest.mark.parametrize("algorithm", [None, "relaxed", "recompute", "strict"])
def test_what_runs_imports_no_study_unless_it_names_a_baseline(algorithm: str | None) -> None:
    said = subprocess.run(
        [sys.executable, "-c", RUNS.format(algorithm=algorithm)], capture_output=True, text=True, check=True
    ).stdout
    assert said.strip() == str(algorithm == "strict")


def test_a_baseline_of_joins_is_a_plan_by_name() -> None:
    table = pa.table({"t": [0, 1, 2], "id": [1, 2, 1], "x": [3, 1, 2]})
    asked = {
        "inputs": {"a": sb.sliding(3, on="t"), "b": sb.sliding(2, on="t")},
        "on": "a.id = b.id",
        "group_by": "a.id",
        "aggregates": {"n": "COUNT(*)", "low": "MIN(b.x)"},
        "every": 1,
    }
    expected = sb.join_aggregate({"a": table, "b": table}, **asked, plan="late")
    for plan in ("nested_loop", "nested_loop(inputs=3)"):
        assert sb.join_aggregate({"a": table, "b": table}, **asked, plan=plan).equals(expected)
    assert "nested_loop" not in str(sb.explain(sb.JoinAggregate(**asked)))


def test_a_name_that_is_not_there_is_told_those_that_are() -> None:
    with pytest.raises(sb.InvalidQuery, match=r"No algorithm 'mintop'\. There are: .*mintopk, .*mintopk_published"):
        find("mintop", "rows")


def test_baselines_of_pairs_are_found_too() -> None:
    points = pa.table({"x": [1.0, 5.0, 2.0, 9.0]})
    plan = sb.TopKPairs(k=1, by="abs(a.x - b.x)", window=WINDOW)
    assert set(baselines_of("pairs")) == {"basic", "naive", "staircase_published", "supreme", "threshold_published"}
    assert "basic" not in str(sb.explain(plan))
    expected = sb.top_k_pairs(points, k=1, by="abs(a.x - b.x)", window=WINDOW)
    for name in set(baselines_of("pairs")) - {"supreme"}:  # it answers nothing
        assert sb.top_k_pairs(points, k=1, by="abs(a.x - b.x)", window=WINDOW, algorithm=name).equals(expected)


def test_sma_that_is_cut_back_recomputes_more_often() -> None:
    batch = Batch(np.random.default_rng(1).random(4_000), NO_TIMES, NO_GROUPS, 0)
    operators = [find(name, "rows").open(Spec(20, Ticks(1_000, 100, 0, by_count=True))) for name in SMA]
    answers = [operator.push(batch) for operator in operators]
    assert np.array_equal(answers[0].position, answers[1].position)
    assert operators[0].recomputed[0] < operators[1].recomputed[0]
    for operator in operators:
        operator.check()


def test_every_baseline_is_for_comparing() -> None:
    found = [(problem, each) for problem in problems() for each in baselines_of(problem).values()]
    assert found
    assert all(each.for_comparing and each.name not in algorithms_of(problem) for problem, each in found)


def test_windows_are_updated_from_the_oldest_to_the_newest() -> None:
    """Lemma 4.5 of Yang and others does not hold at every moment: k = 2, and a window has two slides of three rows.

    After 10 and 5, the window that closes next has 10 and 9, the one after it 10 and 5: so 9 stands between its two
    rows. Then 20 comes. It puts 9 out of the first window, and so out of the list; now one step from 5 leads to 10.
    """
    operator = find("mintopk_published", "rows").open(Spec(2, Ticks(6, 3, 0, by_count=True)))
    operator.push(Batch(np.array([9.0, 0.0, 0.0, 10.0, 5.0]), NO_TIMES, NO_GROUPS, 0))
    operator.check()
    assert operator.held().tolist() == [0, 3, 4]
    assert operator.push(Batch(np.array([20.0]), NO_TIMES, NO_GROUPS, 5)).score.tolist() == [20.0, 10.0]
    operator.check()
    assert operator.held().tolist() == [3, 5]
