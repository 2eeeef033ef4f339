"""Oracle tests of ranking: selection and sorting against Python's sort, on the orders that break quicksorts."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from skyband.kernels.heap import push_heap
from skyband.kernels.ranking import ROW, SMALL, Rows, best_first, ranks_before, select_best, sort_best_first


def some_rows(shape: str, n: int) -> Rows:
    random = np.random.default_rng(n)
    rows = np.zeros(n, ROW)
    rows["score"] = {
        "random": random.random(n),
        "ties": random.integers(0, 3, n),
        "equal": np.zeros(n),
        "rising": np.arange(n),
        "falling": -np.arange(n),
        "organ pipe": np.minimum(np.arange(n), n - np.arange(n)),
        "infinities": random.choice([np.inf, -np.inf, 0.0, -0.0], n),
    }[shape]
    rows["time"] = random.integers(0, 3, n) if shape != "equal" else 0
    rows["position"] = random.permutation(n)
    rows["last"], rows["flag"] = rows["position"] * 10, rows["position"] % 2
    return rows


SHAPES = ("random", "ties", "equal", "rising", "falling", "organ pipe", "infinities")
LENGTHS = (0, 1, 2, SMALL - 1, SMALL, SMALL + 1, 2 * SMALL, 100, 1_000)


def ranked(rows: Rows) -> Rows:
    return np.array(sorted(rows.tolist(), key=lambda row: (-row[0], -row[1], -row[2])), ROW)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("shape", SHAPES)
def test_sort(shape: str, n: int) -> None:
    rows = some_rows(shape, n)
    expected = ranked(rows)
    assert (rows[best_first(rows)] == expected).all()
    sort_best_first(rows, 0, n)
    assert (rows == expected).all()


@pytest.mark.parametrize("n", LENGTHS[2:])
@pytest.mark.parametrize("shape", SHAPES)
def test_select(shape: str, n: int) -> None:
    """The k best come first, the worst of them last; rows outside [low, high) are not touched."""
    for k in {1, 2, n // 2, n - 1, n}:
        rows = some_rows(shape, n + 10)
        before, inside = rows.copy(), ranked(rows[5 : 5 + n])
        select_best(rows, 5, 5 + n, k)
        assert (ranked(rows[5 : 5 + k]) == inside[:k]).all()
        assert rows[5 + k - 1] == inside[k - 1]
        assert (ranked(rows[5 : 5 + n]) == inside).all(), "it is a permutation"
        assert (rows[:5] == before[:5]).all()
        assert (rows[5 + n :] == before[5 + n :]).all()


def test_ranks_before() -> None:
    compiled = njit(ranks_before)
    """Higher score, then later time, then later arrival; never a row before itself."""
    rows = np.zeros(4, ROW)
    rows["score"], rows["time"], rows["position"] = [2, 1, 1, 1], [0, 5, 4, 4], [0, 1, 3, 2]
    for i in range(4):
        for j in range(4):
            assert compiled(rows[i], rows[j]) == (i < j)


@pytest.mark.parametrize("k", [1, 2, 7, 40])
def test_heap_keeps_the_largest(k: int) -> None:
    values = np.random.default_rng(k).integers(0, 20, 100)
    heap, size = np.empty(k, np.int64), 0
    for i, value in enumerate(values):
        if size < k or value > heap[0]:
            size = push_heap(heap, size, k, value)
        assert sorted(heap[:size]) == sorted(values[: i + 1])[-k:]
        assert heap[0] == min(heap[:size])
