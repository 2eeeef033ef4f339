"""A grid over the space of the rows. Each cell lists the queries that a row in it may concern."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Floats, Ints
from skyband.problems.subscriptions.algorithms.cells.kernels import by_query, cells_of
from skyband.problems.subscriptions.algorithms.scan.state import Scan
from skyband.problems.subscriptions.drivers.lists import Hits
from skyband.problems.subscriptions.drivers.scoring import Scoring

CELLS = 4096  # a grid has at most so many cells
SPLIT = 3  # cells divide at most so many columns
SAMPLE = 2048  # so many values are sampled to say where cells begin
FULLEST = 16  # a grid is useless if, on average, a query is in the lists of more than one in so many cells
FEW_QUERIES = 16  # if at most one in so many queries is asked, they are asked one by one

Members = npt.NDArray[np.int32]


def resolution_of(columns: int, cells: int = CELLS) -> int:
    """Into how many parts each column is divided.

    >>> [resolution_of(columns) for columns in (1, 2, 3, 10)]
    [512, 64, 16, 16]
    """
    return max(1, min(512, round(cells ** (1 / min(columns, SPLIT)))))


class Grid(NamedTuple):
    """Cells over the first columns, numbered by their parts. One more cell takes the rows outside all others."""

    cuts: Floats  # by column: where its parts begin, and where the last one ends
    starts: Ints  # by cell: where its queries begin in `member`
    member: Members  # the queries of each cell, and room for the queries that every row meets
    known: Floats  # by query: its threshold when the grid was drawn
    outside: float  # the share of rows that lay outside all cells when the grid was drawn


class Cells:
    """The index of `cells`."""

    def __init__(self, scoring: Scoring, resolution: int) -> None:
        self._scoring = scoring
        self._scan = Scan(scoring)
        self._resolution = resolution or resolution_of(len(scoring.score.columns))
        self._grid: Grid | None = None
        self._parameters = np.empty((0, 0))  # those of the queries in the grid
        self._idle, self._pause = 0, 1  # for how many blocks no grid is tried, and for how many the next time
        self._row, self._score, self._query = np.empty(0, np.int64), np.empty(0), np.empty(0, np.int32)

    def arrange(self, parameters: Floats, which: Ints) -> Ints:
        return which

    def lay(self, columns: Floats, first: int, end: int) -> None:
        self._columns, self._first, self._end = columns, first, end
        self._cell: Members = np.empty(0, np.int32) if self._grid is None else self._cells(self._grid.cuts)
        self._scan.lay(columns, first, end)

    def sweep(self, parameters: Floats, threshold: Floats, which: Ints, begin: int, hits: Hits) -> tuple[int, int]:
        if begin == 0 and len(which) * FEW_QUERIES > len(threshold) and self._tend(parameters, threshold):
            found = self._meet(parameters, threshold, which, hits)
            if found >= 0:
                return found, len(which)
        return self._scan.sweep(parameters, threshold, which, begin, hits)

    def _meet(self, parameters: Floats, threshold: Floats, which: Ints, hits: Hits) -> int:
        assert self._grid is not None
        grid, always = self._grid, len(self._grid.member) - len(threshold)
        fallen = np.flatnonzero(threshold < grid.known)
        grid.member[always : always + len(fallen)] = fallen
        asked = np.zeros(len(threshold), np.int8)
        asked[which] = 1
        asked[fallen] *= 2
        if len(self._query) < len(hits.row):
            room = len(hits.row)
            self._row, self._score, self._query = np.empty(room, np.int64), np.empty(room), np.empty(room, np.int32)
        n: int = self._scoring.sweep_cells(
            *(self._columns, self._first, self._end, self._cell, grid.starts, grid.member[: always + len(fallen)]),
            *(always, parameters, threshold, asked, self._row, self._query, self._score),
        )
        if n >= 0:
            by_query(n, self._row, self._query, self._score, which, len(threshold), *hits)
        return n

    # -- the grid --------------------------------------------------------------------------------------------------

    def _tend(self, parameters: Floats, threshold: Floats) -> bool:
        """Draw the grid again if too much has changed. Returns whether there is a grid."""
        if self._grid is not None and self._parameters is parameters and self._holds(self._grid, threshold):
            return True
        if self._idle:
            self._idle -= 1
            return False
        self._parameters, self._grid = parameters, self._drawn(parameters, threshold)
        if self._grid is None:
            self._idle, self._pause = self._pause, min(64, 2 * self._pause)
            return False
        self._pause = 1
        return True

    def _holds(self, grid: Grid, threshold: Floats) -> bool:
        moved, fallen = np.count_nonzero(threshold != grid.known), np.count_nonzero(threshold < grid.known)
        few = bool(4 * moved <= len(threshold)) and 64 * fallen <= len(threshold) + 1024
        return bool(few) and self._outside(grid.starts) <= 2 * grid.outside + 1 / 64

    def _outside(self, starts: Ints) -> float:
        """The share of rows that lie outside all cells."""
        return np.count_nonzero(self._cell == len(starts) - 2) / max(1, len(self._cell))

    def _cells(self, cuts: Floats) -> Members:
        cell: Members = cells_of(self._columns, self._first, self._end, cuts)
        return cell

    def _drawn(self, parameters: Floats, threshold: Floats) -> Grid | None:
        if 16 * np.count_nonzero(threshold == -np.inf) > len(threshold):
            return None
        columns, parts = self._columns[:, self._first : self._end], self._resolution
        split = min(len(columns), SPLIT)
        cuts, low, high = self._cuts(columns, split)
        if cuts is None:
            return None
        cells = parts**split
        ends = np.zeros(cells, np.int64)
        sides = (low, high, *_runs(low, high, parts), cells // parts, parameters, threshold)
        none = np.empty(0, np.int32)
        self._scoring.reach_cells(*sides, ends, none, False)
        total = int(ends.sum())
        if total * FULLEST > cells * len(threshold):
            return None
        starts = np.zeros(cells + 2, np.int64)
        np.cumsum(ends, out=starts[1:-1])
        starts[-1] = total + len(threshold)
        # Behind the queries of cells come all queries, for rows outside, and room for the queries that every row meets.
        member = np.empty(total + 2 * len(threshold), np.int32)
        member[total : total + len(threshold)] = np.arange(len(threshold))
        self._scoring.reach_cells(*sides, starts[:-2].copy(), member, True)
        self._cell = self._cells(cuts)
        return Grid(cuts, starts, member, threshold.copy(), self._outside(starts))

    def _cuts(self, columns: Floats, split: int) -> tuple[Floats | None, Floats, Floats]:
        """Where parts of columns begin, so that all have about the same number of rows; and the bounds of each cell.

        The outermost parts extend beyond the rows by as far as the rows extend. An undivided column is only known to be
        finite.
        """
        parts, n = self._resolution, columns.shape[1]
        none = np.empty((0, 0))
        sample = columns[:split, :: max(1, n // SAMPLE)]
        sample = np.sort(sample[:, np.isfinite(sample).all(axis=0)], axis=1)
        if not sample.shape[1]:
            return None, none, none
        least, most = sample[:, 0], sample[:, -1]
        cuts = np.empty((split, parts + 1))
        cuts[:, 1:-1] = sample[:, np.arange(1, parts) * sample.shape[1] // parts]
        cuts[:, 0], cuts[:, -1] = least - (most - least), most + (most - least)
        if not np.isfinite(cuts).all():
            return None, none, none
        number = np.indices((parts,) * split).reshape(split, -1)  # by column, then by cell: the part
        low, high = np.full((len(columns), number.shape[1]), -np.inf), np.full((len(columns), number.shape[1]), np.inf)
        for c in range(split):
            low[c], high[c] = cuts[c, number[c]], cuts[c, number[c] + 1]
        return cuts, low, high


def _runs(low: Floats, high: Floats, parts: int) -> tuple[Floats, Floats]:
    """The bounds of the runs of cells that share a part of the first column."""
    width = len(low)
    return (
        np.ascontiguousarray(low.reshape(width, parts, -1).min(axis=2)),
        np.ascontiguousarray(high.reshape(width, parts, -1).max(axis=2)),
    )
