"""Oracle tests of `tma` and `sma` on windows whose grids have many cells, are outgrown, and lose their range."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from skyband.core.emit import CHANGES, WINDOWS
from skyband.core.operator import Answer
from skyband.core.registry import every_algorithm_of
from skyband.problems.rows.operator import Batch, Spec
from skyband.study.baselines.rows.tma.kernels.steps import GRID, WINDOW
from skyband.study.baselines.rows.tma.state import WholeWindow
from skyband.windows import Ticks

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
ROWS, SIZE, BATCH = 1500, 300, 150
NO_TIMES, NO_GROUPS = np.empty(0, np.int64), np.empty(0, np.int32)

with_a_grid = pytest.mark.parametrize("name", ["tma", "sma"])


def some_scores(shape: str) -> Floats:
    random = np.random.default_rng(3)
    n, noise = np.arange(ROWS), random.random(ROWS)
    return {
        "uniform": noise,
        "ties": random.integers(0, 20, ROWS).astype(float),
        "equal": np.ones(ROWS),
        "rising": n + noise,
        "falling": -n - noise,
        "waves": np.sin(n / 300) + noise / 10,
        "one far from all others": np.where(n == 100, 1e300, noise),
        "as far apart as can be": np.where(noise < 0.5, -1.7e308, 1.7e308) * random.random(ROWS),
        "hardly apart": 5e-324 * random.integers(0, 3, ROWS),
        "infinities": np.where(noise < 0.2, np.inf, np.where(noise > 0.9, -np.inf, noise)),
    }[shape]


SHAPES = (
    "uniform",
    "ties",
    "equal",
    "rising",
    "falling",
    "waves",
    "one far from all others",
    "as far apart as can be",
    "hardly apart",
    "infinities",
)


def run(name: str, spec: Spec, score: Floats, time: Ints = NO_TIMES) -> list[Answer]:
    """What it says of each batch, with every invariant checked after it."""
    operator = every_algorithm_of("rows")[name].open(spec)
    said = []
    for first in range(0, len(score), BATCH):
        rows = slice(first, first + BATCH)
        said.append(operator.push(Batch(score[rows], time[rows], NO_GROUPS, first)))
        operator.check()
    return said


def assert_same(said: list[Answer], expected: list[Answer]) -> None:
    for ours, theirs in zip(said, expected, strict=True):
        for column, other in zip(ours, theirs, strict=True):
            assert column.tolist() == other.tolist()


@with_a_grid
@pytest.mark.parametrize("every", [0, 50])
@pytest.mark.parametrize("k", [5, 100])
@pytest.mark.parametrize("shape", SHAPES)
def test_says_what_recomputing_says(name: str, every: int, k: int, shape: str) -> None:
    spec = Spec(k, Ticks(SIZE, every, 0, by_count=True), WINDOWS if every else CHANGES)
    score = some_scores(shape)
    assert_same(run(name, spec, score), run("recompute", spec, score))


@with_a_grid
@pytest.mark.parametrize("every", [0, 50])
def test_rows_that_come_late_are_in_the_order_of_their_cells(name: str, every: int) -> None:
    """Now many rows come at a time and now few, so that the window's fill goes up and down, too."""
    random = np.random.default_rng(5)
    due = np.cumsum(np.where(np.arange(ROWS) // 400 % 2, 20, 1))
    time = due - np.where(random.random(ROWS) < 0.3, random.integers(0, 200, ROWS), 0)
    spec = Spec(20, Ticks(SIZE, every, 200, by_count=False), WINDOWS if every else CHANGES)
    score = some_scores("waves")
    assert_same(run(name, spec, score, time), run("recompute", spec, score, time))


def fullest_share(operator: WholeWindow) -> float:
    """The share of the window's rows that the fullest cell has."""
    return float(operator._list(GRID, 0)["last"].max() / len(operator._list(WINDOW, 0)))


@pytest.mark.parametrize(
    ("name", "shape"), [("tma", "falling"), ("sma", "falling"), ("tma", "one far from all others")]
)
def test_a_grid_whose_range_is_no_longer_that_of_the_scores_is_made_anew(name: str, shape: str) -> None:
    operator = every_algorithm_of("rows")[name].open(Spec(5, Ticks(SIZE, 10, 0, by_count=True)))
    assert isinstance(operator, WholeWindow)
    score = some_scores(shape)
    shares = []
    for first in range(0, ROWS, 10):
        operator.push(Batch(score[first : first + 10], NO_TIMES, NO_GROUPS, first))
        shares.append(fullest_share(operator))
    assert max(shares) > 0.5
    assert min(shares[-SIZE // 10 :]) < 0.2


@with_a_grid
def test_a_grid_is_not_saved_since_it_follows_from_the_window(name: str) -> None:
    spec = Spec(5, Ticks(SIZE, 50, 0, by_count=True))
    score = some_scores("waves")
    first, second = every_algorithm_of("rows")[name].open(spec), every_algorithm_of("rows")[name].open(spec)
    first.push(Batch(score[:1000], NO_TIMES, NO_GROUPS, 0))
    saved = first.state()
    assert len(saved["list2_rows"]) == 0
    second.restore(saved)
    second.check()
    rest = Batch(score[1000:], NO_TIMES, NO_GROUPS, 1000)
    assert_same([second.push(rest)], [first.push(rest)])
    second.check()
