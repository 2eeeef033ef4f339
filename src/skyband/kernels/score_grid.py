"""A grid over the scores of a window: cells of equal width, each with a chain of its rows.

The window is a queue (queues.py) of rows in order of time. They are numbered as they come, so that a number stays that
of its row when the window moves to another slab: the first has the number `left` of its group. A chain leads from the
newest row of a cell to its oldest, each row's field `last` being the number of the one before it. So a row that comes
touches nothing but itself and its cell, and as rows leave in the order in which they came, one that leaves is the end
of its chain: its cell has one row less.

Cells lie in a slab of the pool, worst first; the first and the last take in whatever lies beyond them. In a cell's
field `position` is the number of its newest row, in `last` how many rows it has. A grid without cells is yet to be
made, and rows are not chained until then.
"""

from __future__ import annotations

import math

import numpy as np

from skyband.kernels.compiling import inlined, part
from skyband.kernels.intrinsics import row_at
from skyband.kernels.skyband import first_row
from skyband.kernels.slabs import give_slab, size_class, take_slab

MOST_CELLS = 512  # these stay in the processor's first cache

# By group.
GRID_FIELDS: dict[str, int | float] = {
    "low": 0.0,  # where the first cell starts
    "per_score": 0.0,  # cells per unit of score; 0: all scores lie in the first
    "made_of": 0,  # rows that the window had when the grid was made
    "made_at": 0,  # the number of the row that came next
    "left": 0,  # rows that have left the window
}


@inlined
def cell_of(score, low, per_score, cells):
    """Which of so many cells a score lies in. One that is higher never lies in a lower cell: rounding keeps order."""
    x = (score - low) * per_score
    if x >= cells:
        return cells - 1
    return int(x) if x > 0 else 0  # 0 also of a NaN, which infinity times 0 is


@inlined
def enter(i, window, grid, group, rows):
    """Put the row at index i of the pool, the newest of its cell, into the grid."""
    row = rows[i]
    cell = rows[first_row(grid) + cell_of(row.score, group.low, group.per_score, grid.length)]
    row.last, cell.position = cell.position, group.left + i - first_row(window)
    cell.last += 1


@part
def withdraw_newest(n, window, grid, group, rows):
    """Take the n newest rows of the window out of the grid again."""
    end = first_row(window) + window.length
    for i in range(end - 1, end - 1 - n, -1):
        cell = rows[first_row(grid) + cell_of(rows[i].score, group.low, group.per_score, grid.length)]
        cell.position = rows[i].last
        cell.last -= 1


@part
def purge_oldest(n, window, grid, group, rows):
    """Take the n oldest rows of the window out of the grid, and number the others on. They are still in the window."""
    first, cells, cell_count = first_row(window), first_row(grid), grid.length
    low, per_score = group.low, group.per_score
    group.left += n
    if cell_count > 0:
        for i in range(first, first + n):
            row_at(rows, cells + cell_of(row_at(rows, i).score, low, per_score, cell_count)).last -= 1


@inlined
def is_outgrown(window, group):
    """Has the window so many more rows, or so many fewer, than when its grid was made, that it needs another one?"""
    return window.length > 2 * group.made_of or 4 * window.length < group.made_of


@part
def make_grid(window, grid, group, pool):
    """Make the grid anew, over the range that the window's scores have now.

    Of n rows it has sqrt(n) cells, so that to pass empty cells takes no longer than to look through one that is not;
    of very many rows fewer.
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
