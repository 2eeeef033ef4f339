"""What a row costs each algorithm, measured on a grid of settings, and read between the points of the grid.

The figures come with the package; `skyband calibrate` measures them on this machine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple

from skyband.operators.protocol import Spec
from skyband.planner import figures
from skyband.windows import FOREVER


class Shape(NamedTuple):
    slides: int
    by_count: bool


# The grid: how many rows are shown, rows in a window, how it slides, how scores come. `Slides`: how many slides make a
# window; 0: it slides with each arrival. By value with a slide, one figure has to do for all. Windows are multiples
# of their slides: where one is not, a slide has two panes.
KS: Final = (3, 10, 30, 100, 300, 1_000)
WINDOW_ROWS: Final = (1_000, 3_000, 8_000, 60_000, 180_000, 500_000)
SHAPES: Final = tuple(
    Shape(slides, by_count)
    for slides, by_count in ((0, True), (1, True), (10, True), (25, True), (100, True), (0, False), (10, False))
)
ORDERS: Final = ("random", "rising", "falling", "bursty")

Cells = Mapping[str, Mapping[str, Sequence[Sequence[Sequence[float | None]]]]]


@dataclass(frozen=True)
class Costs:
    """Nanoseconds a row: of an algorithm, for an order, by shape, rows in a window, and k. None: not possible."""

    machine: str
    cells: Cells

    def ns_per_row(self, algorithm: str, spec: Spec, window_rows: float, order: str | None) -> float:
        """NaN: nobody has measured it. Random order is assumed when nobody says how scores come."""
        cells = self.cells.get(algorithm, {}).get(order or "random")
        if cells is None:
            return math.nan
        slides = _slides(spec)
        figures = {
            shape.slides: self._between(cells[i], window_rows, spec.k)
            for i, shape in enumerate(SHAPES)
            if shape.by_count == spec.window.by_count and (shape.slides == 0) == (slides == 0)
        }
        return _interpolate(tuple(figures), tuple(figures.values()), slides)

    def _between(self, cells: Sequence[Sequence[float | None]], window_rows: float, k: int) -> float:
        by_rows = [_interpolate(KS, [math.nan if ns is None else ns for ns in row], k) for row in cells]
        return _interpolate(WINDOW_ROWS, by_rows, window_rows)


def _slides(spec: Spec) -> float:
    """How many slides make a window. Of one that is no multiple of its slide, how many panes, which are what costs."""
    if spec.slides_with_each_arrival:
        return 0.0
    size, every = spec.window.size, spec.window.every
    return 1.0 if size == FOREVER else size / every * (1 if size % every == 0 else 2)


def _interpolate(points: Sequence[float], values: Sequence[float], x: float) -> float:
    """Between the points, linear where both axes are logarithmic; beyond them, the nearest."""
    x = min(max(x, points[0]), points[-1])
    for (a, left), (b, right) in zip(
        zip(points, values, strict=True), zip(points[1:], values[1:], strict=True), strict=False
    ):
        if x <= b:
            share = math.log(x / a) / math.log(b / a)
            return (
                math.exp((1 - share) * math.log(left) + share * math.log(right))
                if 0 < share < 1
                else (left if share <= 0 else right)
            )
    return values[-1]


_file = figures.File(
    "costs.json",
    {"k": list(KS), "window_rows": list(WINDOW_ROWS), "slides": [list(shape) for shape in SHAPES]},
    "skyband calibrate",
    Costs,
)
cache_file, write, read, known_costs = _file.cache_file, _file.write, _file.read, cache(_file.known)
