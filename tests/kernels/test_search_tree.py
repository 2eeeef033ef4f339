"""Oracle tests of the search tree: what it finds is what looking at every row finds, and it looks at few."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyband.kernels.search_tree import EMPTY, HEIGHT, build, leaves_for, search


class Tree:
    """A tree over rows with these times, best first, with others before it in the same arrays."""

    def __init__(self, times: list[int], first: int = 0, root: int = 0) -> None:
        self.n, self.root = len(times), root
        self.leaves = leaves_for(self.n)
        self.node_time, self.node_row = (
            np.full(root + 2 * self.leaves, 99),
            np.full(root + 2 * self.leaves, 99, np.int32),
        )
        build(np.array([99] * first + times, np.int64), first, self.n, root, self.node_time, self.node_row)

    def best(self, k: int, start: int, end: int) -> list[int]:
        found, stack = np.full(k + 3, -7), np.empty((HEIGHT, 3), np.int64)
        count = search(self.n, self.root, self.node_time, self.node_row, start, end, k, found, 2, stack)
        assert found[:2].tolist() == [-7, -7]
        assert found[2 + k :].tolist() == [-7], "nothing is written beyond k"
        return found[2 : 2 + count].tolist()


times = st.lists(st.integers(-5, 12) | st.sampled_from([-(2**62), 2**62]), max_size=40)


@given(times, st.integers(1, 45), st.integers(-6, 13), st.integers(-6, 14), st.integers(0, 3), st.integers(0, 5))
def test_finds_what_looking_at_every_row_finds(
    times: list[int], k: int, start: int, end: int, first: int, root: int
) -> None:
    expected = [row for row, time in enumerate(times) if start <= time < end][:k]
    assert Tree(times, first, root).best(k, start, end) == expected


@given(times)
def test_every_row_is_there_once_and_none_is_later_than_the_one_above(times: list[int]) -> None:
    tree = Tree(times)
    rows = tree.node_row[1:]
    assert sorted(rows[rows != EMPTY].tolist()) == list(range(len(times)))
    for i in range(2, 2 * tree.leaves):
        assert tree.node_time[i] <= tree.node_time[i // 2]
    for i in range(1, 2 * tree.leaves):
        width = tree.leaves >> (i.bit_length() - 1)
        low = i * width - tree.leaves
        assert tree.node_row[i] == EMPTY or low <= tree.node_row[i] < low + width, "a row is above its own leaf"


@pytest.mark.parametrize("k", [1, 10, 100])
def test_it_looks_at_few_rows(k: int) -> None:
    """Counted from the tree, by which nodes the search has reason to visit, not by watching it."""
    n = 4_096
    random = np.random.default_rng(k)
    times = random.permutation(n).tolist()
    tree = Tree(times)
    for start in (0, n // 2, n - 2 * k, n - k // 2):
        expected = [row for row, time in enumerate(times) if time >= start][:k]
        assert tree.best(k, start, n) == expected
    assert rows_looked_at(tree, k, n // 2) <= 2 * k + 2 * math.log2(n)


def rows_looked_at(tree: Tree, k: int, start: int) -> int:
    """By ObjectAlgorithm 2: what ranks before the k-th row found, or is above it."""
    last = tree.best(k, start, 2**62)[-1]
    looked = 0
    for i in range(1, 2 * tree.leaves):
        width = tree.leaves >> (i.bit_length() - 1)
        looked += tree.node_row[i] != EMPTY and tree.node_time[i] >= start and i * width - tree.leaves <= last
    return looked
