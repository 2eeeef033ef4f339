"""Oracle tests of pane arithmetic: panes against windows counted one by one, and scans against plain loops."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from skyband.kernels import panes
from skyband.windows import FOREVER

SHAPES = [(1, 1), (2, 1), (10, 10), (10, 5), (10, 3), (10, 4), (7, 5), (19, 6)]


@pytest.mark.parametrize(("size", "every"), SHAPES)
def test_rows_of_a_pane_are_in_the_same_windows(size: int, every: int) -> None:
    shape = panes.shape_of(size, every)
    windows_of: dict[int, set[tuple[int, ...]]] = {}
    for time in range(-60, 60):
        pane = int(panes.pane_of(shape, time))
        assert panes.pane_start(shape, pane) <= time < panes.pane_end(shape, pane)
        # Window i is [(i + 1) * every - size, (i + 1) * every).
        windows = tuple(i for i in range(-100, 100) if (i + 1) * every - size <= time < (i + 1) * every)
        windows_of.setdefault(pane, set()).add(windows)
        assert windows[0] == pane >> 1
        assert windows[-1] == panes.last_window(shape, pane)
    assert all(len(windows) == 1 for windows in windows_of.values())
    assert len(set(itertools.chain(*windows_of.values()))) == len(windows_of), "panes are as large as can be"


def test_panes_follow_each_other_without_gaps() -> None:
    for size, every in SHAPES:
        shape = panes.shape_of(size, every)
        ends = sorted({(panes.pane_start(shape, p), panes.pane_end(shape, p)) for p in map(int, pane_numbers(shape))})
        assert all(end == start for (_, end), (start, _) in itertools.pairwise(ends))


def pane_numbers(shape: panes.Shape) -> set[int]:
    return {panes.pane_of(shape, time) for time in range(-50, 50)}


def test_from_the_start_nothing_ends() -> None:
    shape = panes.shape_of(FOREVER, 10)
    assert panes.last_window(shape, panes.pane_of(shape, 5)) == FOREVER
    assert panes.pane_of(shape, -1) >> 1 == -1


@pytest.mark.parametrize("rank", [0, 1, 5, 98, 99])
@pytest.mark.parametrize("values", ["random", "ties", "equal", "rising", "falling"])
def test_largest(values: str, rank: int) -> None:
    numbers = {
        "random": np.random.default_rng(1).random(100),
        "ties": np.random.default_rng(1).integers(0, 4, 100).astype(float),
        "equal": np.ones(100),
        "rising": np.arange(100.0),
        "falling": -np.arange(100.0),
    }[values]
    assert panes.largest(numbers.copy(), rank) == np.sort(numbers)[::-1][rank]
