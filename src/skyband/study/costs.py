"""Measures what a row costs each algorithm on this machine, for the planner: see problems/rows/costs.py."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product

from skyband.core.cost_files import machine
from skyband.core.registry import candidates_of
from skyband.problems.rows.costs import KS, MEASURED_AS, ORDERS, SHAPES, Costs, Shape, is_measured, window_rows_of
from skyband.problems.rows.operator import RowAlgorithm
from skyband.study.pushing import SCORES, STREAM_ROWS, Floats, cost, setting

SECONDS = 0.01  # for one setting of one algorithm, once
ROUNDS = 3  # the best one counts
HOPELESS = 8.0  # times the best: an algorithm that is so slow need not be measured well


def _takes_some(algorithm: RowAlgorithm) -> bool:
    """Does it take a setting of the grid? One for equal rows that share a rank takes none."""
    few = [shape for shape in SHAPES if shape.slides <= 100]
    specs = [setting(3, 100, shape.slides, by_count=shape.by_count, whole=shape.whole) for shape in few]
    return any(algorithm.refuses(spec) is None for spec in specs)


ALGORITHMS = tuple(
    algorithm for algorithm in candidates_of("rows") if algorithm.name not in MEASURED_AS and _takes_some(algorithm)
)


def settings_to_measure() -> int:
    return sum(
        is_measured(shape, order, rows, k)
        for order, shape, k in product(ORDERS, SHAPES, KS)
        for rows in window_rows_of(shape)
    )


Grid = list[list[float | None]]  # by rows in a window, and k


def measure(step: Callable[[str], None], *, seconds: float = SECONDS) -> Costs:
    """The costs of every algorithm on the whole grid; `step` is told each setting before it is measured."""
    for algorithm in ALGORITHMS:
        for _ in _compiled(algorithm):
            step(f"{algorithm.name}: compiling")
    cells: dict[str, dict[str, list[Grid]]] = {
        algorithm.name: {order: [] for order in ORDERS} for algorithm in ALGORITHMS
    }
    for order in ORDERS:
        scores = SCORES[order](STREAM_ROWS)
        for shape in SHAPES:
            for name, grid in measure_shape(shape, order, scores, step, seconds=seconds).items():
                cells[name][order].append(grid)
    return Costs(machine(), cells)


def measure_shape(
    shape: Shape, order: str, scores: Floats, step: Callable[[str], None], *, seconds: float = SECONDS
) -> dict[str, Grid]:
    """What each algorithm costs for windows of this shape.

    One after the other at each setting: no machine is always as fast, and what counts is how they compare.
    """
    sizes = window_rows_of(shape)
    grids: dict[str, Grid] = {algorithm.name: [[None] * len(KS) for _ in sizes] for algorithm in ALGORITHMS}
    for (n, rows), (i, k) in product(enumerate(sizes), enumerate(KS)):
        if not is_measured(shape, order, rows, k):
            continue
        step(f"{order}: k = {k}, {rows:,} rows, {shape.slides} slides")
        spec, best = setting(k, rows, shape.slides, by_count=shape.by_count, whole=shape.whole), math.inf
        for algorithm in ALGORITHMS:
            if algorithm.refuses(spec):
                continue
            found = cost(algorithm.open, spec, scores, seconds=seconds, rounds=ROUNDS, hopeless_ns=HOPELESS * best)
            ns, grid = found.ns_per_row, grids[algorithm.name]
            if n and not found.is_steady:
                # A window that was not filled in time has nothing expire: it costs no less than a smaller one.
                ns = max(ns, grid[n - 1][i] or ns)
            grid[n][i] = float(f"{ns:.3g}")
            best = min(best, ns)
    return grids


def _compiled(algorithm: RowAlgorithm) -> Iterator[None]:
    """Runs the algorithm with each kind of window, small k and large, so that no measurement includes compiling."""
    for shape, k in product(SHAPES, (3, 100)):
        spec = setting(k, 100, min(shape.slides, 100), by_count=shape.by_count, whole=shape.whole)
        if algorithm.refuses(spec) is None:
            yield
            cost(algorithm.open, spec, SCORES["random"](1_000), seconds=0.001)
