"""Measures what a row costs each algorithm on this machine, for the planner: see planner/costs.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

from skyband.bench.pushing import SCORES, STREAM_ROWS, Cost, Floats, cost, setting
from skyband.operators.protocol import Spec
from skyband.operators.registry import OBJECTS, ObjectAlgorithm
from skyband.planner.costs import KS, ORDERS, SHAPES, WINDOW_ROWS, Costs
from skyband.planner.figures import machine
from skyband.planner.objects import MEASURED_AS

SECONDS = 0.01  # for one setting of one algorithm, once
ROUNDS = 2  # the better one counts

# Those that may be chosen and, so that they can be compared with them, those that keep no bound but in random order.
ALGORITHMS = tuple(
    algorithm
    for algorithm in OBJECTS.values()
    if algorithm.name not in MEASURED_AS and not (algorithm.exact and algorithm.for_comparing)
)


def settings_to_measure() -> int:
    return len(ORDERS) * len(SHAPES) * len(WINDOW_ROWS) * len(KS)


def measure(step: Callable[[str], None], *, seconds: float = SECONDS) -> Costs:
    """The costs of every algorithm on the whole grid; `step` is told each setting before it is measured.

    The algorithms take turns at each setting: no machine is always as fast, and what counts is how they compare.
    """
    for algorithm in ALGORITHMS:
        for _ in _compiled(algorithm):
            step(f"{algorithm.name}: compiling")
    cells: dict[str, dict[str, list[list[list[float | None]]]]] = {
        algorithm.name: {order: [[[None] * len(KS) for _ in WINDOW_ROWS] for _ in SHAPES] for order in ORDERS}
        for algorithm in ALGORITHMS
    }
    for order in ORDERS:
        scores = SCORES[order](STREAM_ROWS)
        for (s, shape), (n, rows), (i, k) in product(enumerate(SHAPES), enumerate(WINDOW_ROWS), enumerate(KS)):
            step(f"{order}: k = {k}, {rows:,} rows, {shape.slides} slides")
            for name, found in _in_turns(setting(k, rows, shape.slides, by_count=shape.by_count), scores, seconds):
                grid = cells[name][order][s]
                ns = min(one.ns_per_row for one in found)
                if n and not all(one.is_steady for one in found):
                    # A window that was not filled in time has nothing expire: it costs no less than a smaller one.
                    ns = max(ns, grid[n - 1][i] or ns)
                grid[n][i] = float(f"{ns:.3g}")
    return Costs(machine(), cells)


def _in_turns(spec: Spec, scores: Floats, seconds: float) -> Iterator[tuple[str, list[Cost]]]:
    """What each algorithm that can answer this cost, in each round."""
    able = [algorithm for algorithm in ALGORITHMS if algorithm.refuses(spec) is None]
    rounds = [[cost(algorithm.open, spec, scores, seconds=seconds) for algorithm in able] for _ in range(ROUNDS)]
    return ((algorithm.name, list(found)) for algorithm, *found in zip(able, *rounds, strict=True))


def _compiled(algorithm: ObjectAlgorithm) -> Iterator[None]:
    """Runs the algorithm once with each kind of window, so that no measurement includes compiling."""
    for shape in SHAPES:
        spec = setting(3, 100, shape.slides, by_count=shape.by_count)
        if algorithm.refuses(spec) is None:
            yield
            cost(algorithm.open, spec, SCORES["random"](1_000), seconds=0.001)
