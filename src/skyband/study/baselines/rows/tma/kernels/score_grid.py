"""A grid over the scores of a window: cells of equal width, each with a chain of its rows.

The window is a queue (queues.py) of rows in order of time. Rows are numbered as they come, so that a row keeps its
number when the window moves to another slab; the first row in the window has the number `left` of its group. A chain
leads from the newest row of a cell to its oldest: each row's field `last` has the number of the row before it. So a new
row touches only itself and its cell. Rows leave in the order in which they came, so a row that leaves is the end of its
chain, and only the count of its cell changes.

Cells lie in a slab of the pool, worst first; the first and the last also take the scores beyond them. A cell's field
`position` has the number of its newest row, and `last` the number of its rows. While a grid has no cells, rows are not
chained.
"""

from __future__ import annotations

import math

import numpy as np

from skyband.kernels.compiling import inlined, part
from skyband.kernels.intrinsics import row_at
from skyband.kernels.skyband import first_row
from skyband.kernels.slabs import give_slab, size_class, take_slab

MOST_CELLS = 512  # so many stay in the processor's first cache

# The fields of each group.
GRID_FIELDS: dict[str, int | float] = {
    "low": 0.0,  # where the first cell begins
    "per_score": 0.0,  # cells per unit of score; 0: all scores are in the first cell
    "made_of": 0,  # how many rows the window had when the grid was made
    "made_at": 0,  # the number of the next row when the grid was made
    "left": 0,  # how many rows have left the window
}


@inlined
def cell_of(score, low, per_score, cells):
    """The cell of a score. A higher score is never in a lower cell, because rounding keeps the order."""
    x = (score - low) * per_score
    if x >= cells:
        return cells - 1
    return int(x) if x > 0 else 0  # 0 also of a NaN, which infinity times 0 is


@inlined
def enter(i, window, grid, group, rows):
    """Add the row at index i of the pool to the grid, as the newest of its cell."""
    row = rows[i]
    cell = rows[first_row(grid) + cell_of(row.score, group.low, group.per_score, grid.length)]
    row.last, cell.position = cell.position, group.left + i - first_row(window)
    cell.last += 1


@part
def withdraw_newest(n, window, grid, group, rows):
    """Remove the n newest rows of the window from the grid."""
    end = first_row(window) + window.length
    for i in range(end - 1, end - 1 - n, -1):
        cell = rows[first_row(grid) + cell_of(rows[i].score, group.low, group.per_score, grid.length)]
        cell.position = rows[i].last
        cell.last -= 1


@part
def purge_oldest(n, window, grid, group, rows):
    """Remove the n oldest rows of the window from the grid, and advance `left`. The window still has them."""
    first, cells, cell_count = first_row(window), first_row(grid), grid.length
    low, per_score = group.low, group.per_score
    group.left += n
    if cell_count > 0:
        for i in range(first, first + n):
            row_at(rows, cells + cell_of(row_at(rows, i).score, low, per_score, cell_count)).last -= 1


@inlined
def is_outgrown(window, group):
    """Has the window more than twice, or less than a quarter of, the rows that it had when its grid was made?"""
    return window.length > 2 * group.made_of or 4 * window.length < group.made_of


@part
def make_grid(window, grid, group, pool):
    """Make a new grid over the present range of the window's scores.

    For n rows it has sqrt(n) cells, so that passing empty cells takes no longer than searching a full one; for very
    many rows it has fewer.
    """
    rows, first, n = pool.rows, first_row(window), window.length
    low, high = np.inf, -np.inf
    for i in range(first, first + n):
        score = rows[i].score
        if -np.inf < score < np.inf:
            low, high = min(low, score), max(high, score)
    cells = min(int(math.sqrt(n)), MOST_CELLS)
    give_slab(pool, grid)
    if cells > 0:
        c = size_class(cells)
        grid.offset, grid.capacity, grid.gap, grid.length = take_slab(pool, c), 1 << c, 0, cells
    for cell in range(grid.offset, grid.offset + grid.length):
        row = rows[cell]
        row.score, row.time, row.position, row.last, row.flag = 0.0, 0, 0, 0, 0
    group.low = low if low < high else 0.0
    group.per_score = cells / (high - low) if low < high else 0.0
    group.made_of, group.made_at = n, group.left + n
    for i in range(first, first + n):
        enter(i, window, grid, group, rows)
