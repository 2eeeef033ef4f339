"""What a row costs each algorithm for pairs, measured on a grid, and read between its points and beyond.

As for single rows (costs.py), the figures come with the package, and `skyband calibrate --pairs` measures them on this
machine. They are of a window that slides with each arrival. What `threshold` costs depends on how values are
distributed as well: its figures are averages over uniform, correlated and anti-correlated values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from skyband.core import cost_files

KS: Final = (1, 20, 1_000)
WINDOW_ROWS: Final = (1_000, 10_000, 100_000)
DISTANCES: Final = (1, 2, 3, 4)
KINDS: Final = ("nearest", "furthest", "mixed")  # which pairs come first: by all distances, or by some and by others

Cells = Mapping[str, Mapping[str, Sequence[Sequence[Sequence[float]]]]]


@dataclass(frozen=True)
class PairCosts:
    """Nanoseconds a row: of an algorithm, for a kind of score, by k, number of distances and rows in a window."""

    machine: str
    cells: Cells

    def ns_per_row(self, algorithm: str, kind: str, distances: int, window_rows: float, k: int) -> float:
        """NaN: nobody has measured it. Each distance beyond those that were measured costs as much as the last one."""
        cells = self.cells.get(algorithm, {}).get(kind)
        if cells is None:
            return math.nan
        most = len(DISTANCES)
        by_k = []
        for by_distance in cells:
            last, before = (between(WINDOW_ROWS, by_distance[i], max(window_rows, 2.0)) for i in (most - 1, most - 2))
            if distances > most:
                by_k.append(last + (distances - most) * max(last - before, 0.0))
            else:
                by_k.append(between(WINDOW_ROWS, by_distance[distances - 1], max(window_rows, 2.0)))
        return between(KS, by_k, float(k))


def between(points: Sequence[float], values: Sequence[float], x: float) -> float:
    """Linear where both axes are logarithmic, beyond the last point as before it.

    >>> between((1, 10, 100), (5, 50, 500), 1_000)
    5000.0
    """
    right = next((i for i in range(1, len(points)) if x <= points[i]), len(points) - 1)
    a, b, low, high = points[right - 1], points[right], values[right - 1], values[right]
    share = math.log(x / a) / math.log(b / a)
    return float(f"{math.exp((1 - share) * math.log(low) + share * math.log(high)):.6g}")


def kind_of(nearest: Sequence[bool]) -> str:
    return "nearest" if all(nearest) else "mixed" if any(nearest) else "furthest"


_file = cost_files.File(
    "pairs",
    {"k": list(KS), "window_rows": list(WINDOW_ROWS), "distances": list(DISTANCES), "kinds": list(KINDS)},
    "skyband calibrate --pairs",
    PairCosts,
)
cache_file, write, read, known_pair_costs = _file.cache_file, _file.write, _file.read, cache(_file.known)
