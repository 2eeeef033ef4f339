"""The cost of a row with each algorithm, measured on a grid of settings and interpolated between its points.

The package ships measured costs; `skyband calibrate` measures them on this machine.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Final, NamedTuple

from skyband.core import cost_files
from skyband.core.emit import is_whole
from skyband.problems.rows.algorithms import budgeted, relaxed
from skyband.problems.rows.operator import Spec

MEASURED_AS: Final = {budgeted.NAME: relaxed.NAME}  # both do the same work, so one measurement serves both


class Shape(NamedTuple):
    """How a window slides, and what it shows."""

    slides: int  # slides in a window; 0: it slides with each arrival
    by_count: bool
    whole: bool  # does each slide show the whole answer, or only what is new?


# The grid: k, rows in a window, shape, and the order of scores. Sizes are multiples of the slide.
KS: Final = (3, 10, 30, 100, 300, 1_000, 3_000, 10_000)
EACH_ROWS: Final = (1_000, 3_000, 8_000, 60_000, 180_000, 500_000)  # of a window that slides with each arrival
SLIDE_ROWS: Final = (1_000, 8_000, 60_000, 180_000, 1_000_000)  # of a window that slides by more
SHAPES: Final = (
    *(Shape(0, by_count, whole=False) for by_count in (True, False)),
    *(Shape(slides, by_count=True, whole=True) for slides in (1, 10, 100, 1_000, 10_000, 100_000)),
    *(Shape(slides, by_count=True, whole=False) for slides in (10, 100, 1_000, 10_000, 100_000)),
    *(Shape(slides, by_count=False, whole=True) for slides in (10, 1_000, 10_000)),
    *(Shape(slides, by_count=False, whole=False) for slides in (10, 1_000, 10_000)),
)
ORDERS: Final = ("random", "rising", "falling", "bursty")
SHOWN_NS: Final = 5.0  # the least that a row of an answer costs
MOST_SHOWN: Final = 10_000_000  # with more rows in the answers of a window's slides, showing them is the main cost


def window_rows_of(shape: Shape) -> tuple[int, ...]:
    return SLIDE_ROWS if shape.slides else EACH_ROWS


def is_measured(shape: Shape, order: str, window_rows: int, k: int) -> bool:
    """Is this a point of the grid? A slide must have a row, and the answers of all slides must not be too long.

    Random order is measured everywhere. By value, closing windows is the main cost in any order. By count, with many
    slides in a window, only falling scores cost much else than random ones; for other orders the trend is enough.
    """
    if window_rows % max(shape.slides, 1) or k * shape.slides > MOST_SHOWN:
        return False
    if order == "random" or shape.slides == 0:
        return True
    return shape.by_count and (order == "falling" or (shape.slides <= 100 and shape.whole))


def _kind(shape: Shape) -> tuple[bool, bool, bool]:
    """What shapes have in common that differ only in their slides."""
    return shape.by_count, shape.whole, shape.slides > 0


# For each kind: the index of its shape with each number of slides.
_ALIKE: Final = {
    kind: {shape.slides: i for i, shape in enumerate(SHAPES) if _kind(shape) == kind}
    for kind in set(map(_kind, SHAPES))
}

Cells = Mapping[str, Mapping[str, Sequence[Sequence[Sequence[float | None]]]]]


@dataclass(frozen=True)
class Costs:
    """Nanoseconds a row, by algorithm, order, shape, rows in a window, and k. None: not measured."""

    machine: str
    cells: Cells

    def ns_per_row(self, algorithm: str, spec: Spec, window_rows: float, order: str | None) -> float:
        """The cost of a row; NaN if nobody has measured it."""
        return self.at(spec, window_rows, order)(algorithm)

    def at(self, spec: Spec, window_rows: float, order: str | None) -> Callable[[str], float]:
        """A function from an algorithm's name to the cost of a row. `order` None means random."""
        slides = _slides(spec)
        if window_rows > SLIDE_ROWS[-1] and slides > 1:
            # A slide's cost is shared by its rows, so the rows of a slide matter more than those of the window.
            slides = max(1.0, slides * SLIDE_ROWS[-1] / window_rows)
        whole = slides > 0 and is_whole(spec.emit)
        shapes = _ALIKE.get((spec.window.by_count, whole, slides > 0), {})
        rows = SLIDE_ROWS if slides else EACH_ROWS

        def ns_in(order: str, algorithm: str) -> float:
            cells = self.cells.get(MEASURED_AS.get(algorithm, algorithm), {}).get(order)
            if cells is None:
                return math.nan

            def at(n: int, j: int) -> float:
                measured = {s: ns for s, i in shapes.items() if (ns := cells[i][n][j]) is not None}
                return _along_slides(measured, slides, SHOWN_NS * KS[j] / rows[n] if whole else 0.0)

            ns = _interpolate(rows, lambda n: _interpolate(KS, lambda j: at(n, j), spec.k), window_rows)
            return ns_in("random", algorithm) if math.isnan(ns) and order != "random" else ns

        return partial(ns_in, order or "random")


def _along_slides(measured: Mapping[int, float], slides: float, least: float) -> float:
    """Interpolate over the slides of a window, linearly: more slides share the cost of a slide among fewer rows.

    Beyond the points, each further slide adds at least `least` to the cost of a row, because it shows an answer.
    """
    if not measured:
        return math.nan
    points = sorted(measured)
    if slides <= points[0] or len(points) == 1:
        return measured[points[0]]
    b = next((point for point in points if slides <= point), points[-1])
    a = points[points.index(b) - 1]
    slope = (measured[b] - measured[a]) / (b - a)
    return measured[a] + slope * (slides - a) if slides <= b else measured[b] + max(slope, least) * (slides - b)


def _slides(spec: Spec) -> float:
    """Slides in a window; if it is not a multiple of its slide, panes, because panes are what costs."""
    if not spec.window.slides:
        return 0.0
    size, every = spec.window.size, spec.window.every
    return 1.0 if spec.window.endless else size / every * (1 if size % every == 0 else 2)


def _interpolate(points: Sequence[float], value: Callable[[int], float], x: float) -> float:
    """Interpolate between points on logarithmic axes; beyond them, take the nearest. NaN: no point is measured.

    `value` gives the value at the i-th point. It is asked only for the measured points next to x.
    """
    middle = bisect_right(points, x)
    left, a = _first_measured(points, value, range(middle - 1, -1, -1))
    if a == x:
        return left
    right, b = _first_measured(points, value, range(middle, len(points)))
    if math.isnan(left) or math.isnan(right):
        return right if math.isnan(left) else left
    share = math.log(x / a) / math.log(b / a)
    return math.exp((1 - share) * math.log(left) + share * math.log(right))


def _first_measured(
    points: Sequence[float], value: Callable[[int], float], order: Iterable[int]
) -> tuple[float, float]:
    """The first measured value in this order, and its point."""
    found = ((value(i), points[i]) for i in order)
    return next((each for each in found if not math.isnan(each[0])), (math.nan, math.nan))


_file = cost_files.File(
    "rows",
    {
        "k": list(KS),
        "window_rows": {"each arrival": list(EACH_ROWS), "slides": list(SLIDE_ROWS)},
        "slides": [list(shape) for shape in SHAPES],
    },
    "skyband calibrate",
    Costs,
)
cache_file, write, read, known_costs = _file.cache_file, _file.write, _file.read, cache(_file.known)
