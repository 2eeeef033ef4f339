"""Golden and oracle tests: queries in a grid as published, Pripužić, Podnar Žarko, Aberer, TODS 2015, section 6."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from skyband.core.registry import find
from skyband.problems.subscriptions.operator import Batch
from skyband.study.baselines.subscriptions.indexed import NAMES
from skyband.study.baselines.subscriptions.indexed.kernels.lists import QUERY
from skyband.study.subscriptions import same, spec_of

NO_TIMES = np.empty(0, np.int64)


def opened(algorithm: str, queries: np.ndarray, *, k: int, size: int) -> Any:
    operator = find(algorithm, "subscriptions").open(spec_of(2, size=size))
    operator.add(same(queries.shape[1], k, size, queries), backfill=False)
    return operator


def entries(algorithm: str, rows: np.ndarray, queries: np.ndarray, *, k: int, size: int) -> list[tuple[int, ...]]:
    """Which row entered whose answer when, and with which rank."""
    operator, found = opened(algorithm, queries, k=k, size=size), []
    for first in range(0, rows.shape[1], 50):
        answer = operator.push(Batch(np.ascontiguousarray(rows[:, first : first + 50]), NO_TIMES, first))
        columns = answer.at, answer.group, answer.position, answer.rank
        found += list(zip(*(each.tolist() for each in columns), strict=True))
        operator.check()
    return sorted(found)


@pytest.mark.parametrize("algorithm", [*NAMES[1:], "pa_grid(additional=1000)"])
def test_every_entry_of_an_exact_answer(algorithm: str) -> None:
    """PA is exact if it may keep as many candidates as the window has rows."""
    rng = np.random.default_rng(1)
    rows, queries = rng.random((2, 600)), rng.random((2, 12))
    expected = entries("recompute", rows, queries, k=3, size=100)
    assert entries(algorithm, rows, queries, k=3, size=100) == expected
    assert len(expected) > 12 * 3


SCORES = [4, 1, 2, 7, 5, 10, 3, 7.5, 6, 11, 9]
# Table VI, by the orders that it implies: candidates after each arrival, the best first.
CANDIDATES = [
    [], [1], [3, 1], [3, 1, 4], [3, 1, 5, 4], [3, 1, 5, 4], [3, 7, 5, 4], [7, 5, 4, 8], [5, 9, 4, 8], [5, 9, 8],
    [9, 8, 11],
]  # fmt: skip


def test_the_worked_trace_of_pa() -> None:
    """The best of the last 6 rows; the lower score, here a distance from the origin, is the better."""
    operator = opened("pa_grid(limit=3, additional=1)", np.zeros((2, 1)), k=1, size=6)
    found = []
    for first, score in enumerate(SCORES):
        operator.push(Batch(np.array([[float(score)], [0.0]]), NO_TIMES, first))
        operator.check()
        bands, wrappers = operator._bands, operator._wrappers.all
        held = wrappers["row"][bands.members[QUERY, 0, 1 : bands.length[QUERY, 0]]]
        found.append([int(row) + 1 for row in held])
    assert found == CANDIDATES


@pytest.mark.parametrize("algorithm", NAMES)
def test_a_row_concerns_few_queries(algorithm: str) -> None:
    """Once windows are full, a cell knows those whose thresholds reach it, and not all others."""
    rng = np.random.default_rng(1)
    operator = opened(
        f"{algorithm}(buffer=500)" if algorithm != "pa_grid" else algorithm, rng.random((2, 40)), k=3, size=2000
    )
    for first in range(0, 4000, 500):
        operator.push(Batch(rng.random((2, 500)), NO_TIMES, first))
    assert operator._grid.members.mean() < 0.5 * 40
    assert operator._grid.members.min() < 0.25 * 40


@pytest.mark.parametrize("algorithm", NAMES)
def test_one_buffer_for_all(algorithm: str) -> None:
    """More queries refer to more rows, but each row is held once."""
    rng = np.random.default_rng(1)
    rows, queries = rng.random((2, 1000)), rng.random((2, 100))
    held = {}
    for count in (1, 100):
        operator = opened(algorithm, np.ascontiguousarray(queries[:, :count]), k=5, size=400)
        operator.push(Batch(rows, NO_TIMES, 0))
        held[count] = operator.rows_held(), operator.references()
    assert held[100][0] <= 400
    assert held[100][1] > 20 * held[1][1]
