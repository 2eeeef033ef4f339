"""Measures what a row costs each algorithm for pairs on this machine, for the planner: see planner/pair_costs.py."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skyband.expressions.pairs import bind
from skyband.operators.pairs.protocol import Batch, PairOperator, Spec
from skyband.operators.pairs.scoring import Scoring, scoring_of
from skyband.operators.protocol import CHANGES
from skyband.operators.registry import PAIRS
from skyband.planner.figures import machine
from skyband.planner.pair_costs import DISTANCES, KINDS, WINDOW_ROWS, K, PairCosts
from skyband.streams.points import anticorrelated, correlated, uniform_points
from skyband.windows import Ticks

ALGORITHMS: Final = tuple(name for name, algorithm in PAIRS.items() if not algorithm.for_comparing)
ROUNDS: Final = 3  # the fastest counts


def settings_to_measure() -> int:
    return len(KINDS) * len(DISTANCES) * len(WINDOW_ROWS)


def measure(step: Callable[[str], None]) -> PairCosts:
    """The costs of every algorithm on the whole grid; `step` is told each setting before it is measured."""
    cells: dict[str, dict[str, list[list[float]]]] = {name: {} for name in ALGORITHMS}
    for kind in KINDS:
        grids: dict[str, list[list[float]]] = {name: [] for name in ALGORITHMS}
        for distances in DISTANCES:
            scoring = score_of(kind, distances)
            figures: dict[str, list[float]] = {name: [] for name in ALGORITHMS}
            for rows in WINDOW_ROWS:
                step(f"{kind}, {distances} distances, {rows:,} rows")
                for name in ALGORITHMS:
                    figures[name].append(_cost(name, scoring, distances, rows))
            for name in ALGORITHMS:
                grids[name].append(figures[name])
        for name in ALGORITHMS:
            cells[name][kind] = grids[name]
    for name in ALGORITHMS:
        if name != "threshold":
            # It does the same whichever pairs come first, so the calmest of its measurements is right for all.
            calmest = np.minimum.reduce([cells[name][kind] for kind in KINDS]).tolist()
            cells[name] = dict.fromkeys(KINDS, calmest)
    return PairCosts(machine(), cells)


def score_of(kind: str, distances: int) -> Scoring:
    """The sum of distances; of mixed ones, the first as small as possible and the others as large."""
    terms = [f"abs(a.x{i} - b.x{i})" for i in range(distances)]
    by = " + ".join(terms) if kind != "mixed" else " - ".join(terms)
    schema = pa.schema([(f"x{i}", pa.float64()) for i in range(distances)])
    return scoring_of(bind(by, None, kind != "furthest", schema))


def _cost(name: str, scoring: Scoring, distances: int, rows: int) -> float:
    """Nanoseconds a row: of `threshold` the geometric mean over three distributions; others take values as they are."""
    makers = (uniform_points, correlated, anticorrelated) if name == "threshold" else (uniform_points,)
    spec = Spec(K, Ticks(rows, 0, 0, True), scoring, CHANGES)
    more = ROUNDS * step_of(rows)
    found = [time_rows(PAIRS[name].open(spec), points(make, rows + more, distances), rows) for make in makers]
    return float(f"{math.exp(float(np.mean(np.log(found)))):.3g}")


def points(make: Callable[..., pa.RecordBatchReader], rows: int, dimensions: int) -> npt.NDArray[np.float64]:
    """By column, then by row."""
    table = make(rows, dimensions=max(2, dimensions)).read_all()
    return np.array([table.column(f"x{axis}").to_numpy() for axis in range(dimensions)])


def step_of(size: int) -> int:
    """How many rows are timed together."""
    return max(96, min(size // 4, 1_920))


def time_rows(operator: PairOperator, values: npt.NDArray[np.float64], size: int) -> float:
    """Nanoseconds a row once the window is full."""
    _push(operator, values[:, :size], 0)
    step, best = step_of(size), math.inf
    for i in range(ROUNDS):
        part = values[:, size + i * step : size + (i + 1) * step]
        started = time.perf_counter()
        _push(operator, part, size + i * step)
        best = min(best, (time.perf_counter() - started) / part.shape[1])
    return 1e9 * best


def _push(operator: PairOperator, values: npt.NDArray[np.float64], first: int) -> None:
    operator.push(Batch(values, np.empty((0, values.shape[1])), np.empty(0, np.int64), first))
