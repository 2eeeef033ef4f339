"""Measures what a row costs each algorithm for pairs on this machine: see problems/pairs/costs.py."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skyband.core.cost_files import machine
from skyband.core.emit import CHANGES
from skyband.core.registry import algorithms_of, candidates_of
from skyband.expressions.pairs import bind
from skyband.problems.pairs.costs import DISTANCES, KINDS, KS, WINDOW_ROWS, PairCosts
from skyband.problems.pairs.drivers.scoring import Scoring, scoring_of
from skyband.problems.pairs.operator import Batch, PairOperator, Spec
from skyband.streams.points import anticorrelated, correlated, uniform_points
from skyband.windows import Ticks

ALGORITHMS: Final = tuple(each.name for each in candidates_of("pairs"))
ROUNDS: Final = 3  # the fastest counts


BASE: Final = KS.index(20)  # of which every kind is measured; how costs change with k is measured of one


def settings_to_measure() -> int:
    return (len(KINDS) + len(KS) - 1) * len(DISTANCES) * len(WINDOW_ROWS)


def measure(step: Callable[[str], None]) -> PairCosts:
    """The costs of every algorithm on the whole grid; `step` is told each setting before it is measured."""
    cells: dict[str, dict[str, list[list[list[float]]]]] = {name: {} for name in ALGORITHMS}
    base = {kind: _measure_all(kind, KS[BASE], step) for kind in KINDS}
    ratios = measure_ratios(step, base["nearest"])
    for name in ALGORITHMS:
        # Others than `threshold` do the same whichever pairs come first: the calmest measurement is right for all.
        calmest = np.minimum.reduce([base[kind][name] for kind in KINDS])
        for kind in KINDS:
            plain = base[kind][name] if name == "threshold" else calmest
            cells[name][kind] = [[_rounded(row) for row in plain * ratio] for ratio in ratios[name]]
    return PairCosts(machine(), cells)


Grid = npt.NDArray[np.float64]  # by number of distances and rows in a window


def measure_ratios(step: Callable[[str], None], base: dict[str, Grid] | None = None) -> dict[str, list[Grid]]:
    """By algorithm and k: what a row costs, as so many times what it costs with the k of which all is measured."""
    base = base or _measure_all("nearest", KS[BASE], step)
    found: dict[str, list[Grid]] = {name: [] for name in ALGORITHMS}
    for k in KS:
        costs = base if k == KS[BASE] else _measure_all("nearest", k, step)
        for name in ALGORITHMS:
            found[name].append(costs[name] / base[name])
    return found


def _measure_all(kind: str, k: int, step: Callable[[str], None]) -> dict[str, Grid]:
    found: dict[str, Grid] = {name: np.empty((len(DISTANCES), len(WINDOW_ROWS))) for name in ALGORITHMS}
    for i, distances in enumerate(DISTANCES):
        scoring = score_of(kind, distances)
        for j, rows in enumerate(WINDOW_ROWS):
            step(f"k = {k:,}, {kind}, {distances} distances, {rows:,} rows")
            for name in ALGORITHMS:
                found[name][i, j] = _cost(name, scoring, distances, rows, k)
    return found


def _rounded(values: npt.NDArray[np.float64]) -> list[float]:
    return [float(f"{value:.3g}") for value in values]


def score_of(kind: str, distances: int) -> Scoring:
    """The sum of distances; of mixed ones, the first as small as possible and the others as large."""
    terms = [f"abs(a.x{i} - b.x{i})" for i in range(distances)]
    by = " + ".join(terms) if kind != "mixed" else " - ".join(terms)
    schema = pa.schema([(f"x{i}", pa.float64()) for i in range(distances)])
    return scoring_of(bind(by, None, kind != "furthest", schema))


def _cost(name: str, scoring: Scoring, distances: int, rows: int, k: int) -> float:
    """Nanoseconds a row: of `threshold` the geometric mean over three distributions; others take values as they are."""
    makers = (uniform_points, correlated, anticorrelated) if name == "threshold" else (uniform_points,)
    spec = Spec(k, Ticks(rows, 0, 0, True), scoring, CHANGES)
    more = (ROUNDS + 1) * step_of(rows)
    found = [
        time_rows(algorithms_of("pairs")[name].open(spec), points(make, rows + more, distances), rows)
        for make in makers
    ]
    return float(f"{math.exp(float(np.mean(np.log(found)))):.3g}")


def points(make: Callable[..., pa.RecordBatchReader], rows: int, dimensions: int) -> npt.NDArray[np.float64]:
    """By column, then by row."""
    table = make(rows, dimensions=max(2, dimensions)).read_all()
    return np.array([table.column(f"x{axis}").to_numpy() for axis in range(dimensions)])


def step_of(size: int) -> int:
    """How many rows are timed together."""
    return max(96, min(size // 4, 1_920))


def time_rows(operator: PairOperator, values: npt.NDArray[np.float64], size: int) -> float:
    """Nanoseconds a row once the window is full, and as many rows have come as are timed: algorithms adapt to them."""
    step, best = step_of(size), math.inf
    full = size + step
    _push(operator, values[:, :full], 0)
    for i in range(ROUNDS):
        part = values[:, full + i * step : full + (i + 1) * step]
        started = time.process_time()  # of this process: others may take time, too
        _push(operator, part, full + i * step)
        best = min(best, (time.process_time() - started) / part.shape[1])
    return 1e9 * best


def _push(operator: PairOperator, values: npt.NDArray[np.float64], first: int) -> None:
    operator.push(Batch(values, np.empty((0, values.shape[1])), np.empty(0, np.int64), first))
