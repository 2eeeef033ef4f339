"""Golden tests: how many rows are held on random order, against what the papers derive and measure (GOLDEN.md)."""

from __future__ import annotations

import numpy as np
import pytest

from skyband.core.emit import CHANGES, WINDOWS
from skyband.problems.rows.algorithms.mintopk.state import MinTopK
from skyband.problems.rows.algorithms.partitioned.state import Partitioned
from skyband.problems.rows.algorithms.relaxed.state import Relaxed
from skyband.problems.rows.operator import Batch, RowOperator, Spec
from skyband.windows import Ticks

NO_TIMES, NO_GROUPS = np.empty(0, np.int64), np.empty(0, np.int32)


def push_random(operator: RowOperator, n: int, batch: int, first: int, random: np.random.Generator) -> int:
    for i in range(first, first + n, batch):
        operator.push(Batch(random.random(batch), NO_TIMES, NO_GROUPS, i))
    return first + n


def expected_skyband(n: int, k: int) -> float:
    """k (1 + H_n - H_k): each of the i newest rows survives with probability min(1, k / i)."""
    return k * (1 + sum(1 / i for i in range(k + 1, n + 1)))


@pytest.mark.parametrize(("n", "k"), [(1_000, 1), (1_000, 10), (1_000, 100), (10_000, 20), (10_000, 100)])
def test_skyband_of_random_order(n: int, k: int) -> None:
    """Right after it has looked through everything, the relaxed k-skyband holds the k-skyband and nothing else."""
    random = np.random.default_rng(n + k)
    operator = Relaxed(Spec(k, Ticks(n, 0, 0, by_count=True), CHANGES), block=n // 10, slack=0)
    arrived = push_random(operator, 2 * n, n // 10, 0, random)
    sizes = []
    for _ in range(max(5, 2_000 // k)):
        arrived = push_random(operator, n // 10, n // 10, arrived, random)
        sizes.append(after_a_prune(operator))
    assert np.mean(sizes) == pytest.approx(expected_skyband(n, k), rel=0.05)


def after_a_prune(operator: Relaxed) -> int:
    """How many rows of the operator are in the k-skyband of the rows it holds, all of which are live."""
    group, rows = operator._rows()
    assert not group.any()
    rows = rows[rows["time"] > operator._expired(0)]
    k = operator.spec.k
    ranked = rows[np.lexsort((-rows["time"], -rows["score"]))]["time"]
    return sum(int((ranked[:i] >= ranked[i]).sum()) < k for i in range(len(ranked)))


@pytest.mark.parametrize("k", [10, 50])
@pytest.mark.parametrize("slides", [2, 5, 10, 50])
def test_mintopk_candidates(k: int, slides: int) -> None:
    """k H_(s - 1) for a window of s slides: of the j-th newest pane k/j rows survive, and the oldest has just left.

    That is within the paper's 2k on average, 3.5k at most, for the windows of its runs.
    """
    random = np.random.default_rng(slides)
    every = 100 * k
    operator = MinTopK(Spec(k, Ticks(slides * every, every, 0, by_count=True), WINDOWS))
    arrived = push_random(operator, slides * every, every, 0, random)
    held = []
    for _ in range(100):
        arrived = push_random(operator, every, every, arrived, random)
        held.append(operator.rows_held())
    assert np.mean(held) == pytest.approx(k * sum(1 / j for j in range(1, slides)), rel=0.05)
    if slides in (5, 10):
        assert 2 * k <= np.mean(held) <= 3 * k
        assert max(held) <= 4 * k


def test_relaxed_holds_little_more_than_the_skyband() -> None:
    """The lazy part: up to half as many rows that have not been looked through."""
    random, n, k = np.random.default_rng(3), 10_000, 10
    operator = Relaxed(Spec(k, Ticks(n, 0, 0, by_count=True), CHANGES))
    arrived, held = push_random(operator, n, 100, 0, random), []
    for _ in range(300):
        arrived = push_random(operator, 100, 100, arrived, random)
        held.append(operator.rows_held())
    assert expected_skyband(n, k) * 0.9 <= np.mean(held) <= expected_skyband(n, k) * 2 + 64 + 2 * k


def test_partitioned_asks_for_no_more_memory_than_its_rows_may_need() -> None:
    """A list may move to a slab of four times its rows. It asked for 32 times: gigabytes for a million rows."""
    k, window = 5, 40_000
    operator = Partitioned(Spec(k, Ticks(window, 8, 0, by_count=True), WINDOWS))
    for first in range(0, window, 5_000):  # falling scores: every row may still be shown
        operator.push(Batch(-np.arange(first, first + 5_000.0), NO_TIMES, NO_GROUPS, first))
    assert operator.rows_held() > 0.99 * window
    assert len(operator._pool.rows) <= 32 * operator.rows_held()
    operator.check()
