"""Oracle: lists that run short in windows of thousands of rows are filled again with what an answer needs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conformance.subscriptions.driver import Driver
from oracle import Question
from subscriptions_oracle import Asked, Point

from skyband.core.emit import CHANGES, ENTRIES
from skyband.core.operator import Answer, Floats, Ints
from skyband.core.registry import find
from skyband.expressions import subscriptions
from skyband.problems.rows.operator import Batch as RowBatch
from skyband.problems.subscriptions.algorithms.recompute.state import row_spec
from skyband.problems.subscriptions.drivers.scoring import scoring_of
from skyband.problems.subscriptions.operator import Batch, Spec
from skyband.study.papers.subscriptions_points import CORRELATED, UNIFORM, Points
from skyband.study.subscriptions import same
from skyband.windows import Ticks

SIZE, ROWS, QUERIES = 10_000, 36_000, 12  # a window from which thresholds are guessed
SHORTER = 1_700  # half of the windows, by so much
NAMES = ["x", "y"]
SCHEMA = pa.schema([(name, pa.float64()) for name in NAMES])
SCORING = scoring_of(subscriptions.bind("(x - q.x)**2 + (y - q.y)**2", True, SCHEMA, SCHEMA))


def _told(name: str, spec: Spec, k: int, queries: Floats, rows: Floats, time: Ints) -> list[Any]:
    operator = find(name, "subscriptions").open(spec)
    asked = same(queries.shape[1], k, spec.window.size, queries)
    asked.size[::2] -= SHORTER
    operator.add(asked, backfill=False)
    said = []
    for first in range(0, rows.shape[1], 3_000):
        batch = Batch(np.ascontiguousarray(rows[:, first : first + 3_000]), time[first : first + 3_000], first)
        said.append(operator.push(batch))
        if first % 12_000 == 0:
            operator.check()
    return _by_query(said)


def _told_apart(spec: Spec, k: int, queries: Floats, rows: Floats, time: Ints) -> list[Any]:
    """What an operator for rows says of each query by itself."""
    said, n = [], rows.shape[1]
    for q in range(queries.shape[1]):
        operator = find("relaxed", "rows").open(row_spec(spec, k, spec.window.size - (0 if q % 2 else SHORTER)))
        scores = np.empty(n)
        spec.scoring.scores(rows, 0, n, queries, q, scores)
        answer = operator.push(RowBatch(scores, time, np.empty(0, np.int32), 0))
        said.append(answer._replace(group=np.full(len(answer.at), q, np.int32)))
    return _by_query(said)


def _by_query(said: list[Answer]) -> list[Any]:
    columns = [np.concatenate(parts) for parts in zip(*said, strict=True)]
    by_query = np.argsort(columns[1], kind="stable")
    return [column[by_query].tolist() for column in columns]


@pytest.mark.parametrize("emit", [ENTRIES, CHANGES])
@pytest.mark.parametrize("data", [CORRELATED, UNIFORM, "rounded"])
@pytest.mark.parametrize("by_count", [True, False])
def test_lists_that_run_short(emit: int, data: str, by_count: bool) -> None:
    """Rounded points have many equal scores; by value, some rows come late and many at once."""
    draw = np.random.default_rng(5)
    rows = np.ascontiguousarray(Points(CORRELATED if data == "rounded" else data, 2).take(ROWS))
    if data == "rounded":
        rows = rows.round(2)
    # Of two at the same place, with windows that are not alike, lists run short together.
    queries = np.ascontiguousarray(rows[:, np.repeat(draw.integers(0, ROWS, QUERIES // 2), 2)])
    time = np.empty(0, np.int64) if by_count else (np.arange(ROWS) // 7 * 7 - draw.integers(0, 50, ROWS))
    spec = Spec(Ticks(SIZE, 0, 0, by_count), SCORING, emit)
    k = 5
    expected = _told_apart(spec, k, queries, rows, time)
    assert len(expected[0]) > 500
    for name in ("boxes", "boxes(slack=0)", "scan(slack=1, parts=16)"):
        found = _told(name, spec, k, queries, rows, time)
        assert found == expected, name


def test_a_row_that_leaves_as_its_list_is_filled_again() -> None:
    """Each row is farther away than the one before, so that the next one enters as the nearest leaves."""
    question = Question(k=1, size=12, by_count=True, emit="entries")
    for parts in (2, 4):
        driver = Driver(question, "distance", find(f"boxes(slack=0, few=1, parts={parts})", "subscriptions").open)
        driver.add([Asked(1, 12, (0.0, 0.0)), Asked(2, 5, (0.0, 0.0))])
        for x in range(40):
            driver.feed([Point((x / 8, x / 4))])
        assert driver.told() == driver.expected(question, "distance", finished=False)


def test_windows_that_slide_need_what_later_rows_outlive() -> None:
    """A row that came later is not in the window that closes before it; with backfill, lists are filled for many."""
    question = Question(k=1, size=8, every=4, by_count=True, emit="windows")
    driver = Driver(question, "distance", find("boxes(slack=0, few=1)", "subscriptions").open)
    for x in range(11):
        driver.feed([Point((abs(7.5 - x), 0.0))])
        driver.add([Asked(2, 8, (0.0, 0.0), backfill=True)])
        driver.operator.check()
    driver.feed([Point((x / 8, 0.0)) for x in range(9)])
    driver.operator.check()
    assert driver.told() == driver.expected(question, "distance", finished=False)
