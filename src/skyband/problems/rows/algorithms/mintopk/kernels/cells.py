"""The open panes of a group. Each is a cell; the loops find one, make one, and admit rows to it."""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import inlined, part
from skyband.kernels.ranking import SMALL, select_best, settle
from skyband.kernels.slabs import NONE, reserve
from skyband.problems.rows.algorithms.mintopk.kernels.arrays import FREE_CELL, TOTAL


@part
def tighten(cell, config, pool, clock):
    """Cut the cell to its k best rows. From now on a row must reach the worst of them."""
    clock[TOTAL] -= cell.length - config.k
    select_best(pool.rows, cell.offset, cell.offset + cell.length, config.k)
    cell.length = config.k
    cell.threshold = pool.rows[cell.offset + config.k - 1].score


@inlined
def find_cell(g, pane, groups, cells):
    cell = groups[g].cell
    while cell != NONE and cells[cell].pane != pane:
        cell = cells[cell].following
    return cell


@part
def new_cell(g, pane, groups, cells, clock):
    """Make an empty cell, the first of its group: rows mostly come in order, so most need the newest pane."""
    cell = clock[FREE_CELL]
    clock[FREE_CELL] = cells[cell].following
    cells[cell].group = g
    cells[cell].pane = pane
    cells[cell].threshold = -np.inf
    cells[cell].following = groups[g].cell
    groups[g].cell = cell
    return cell


@inlined
def admit(cell, score, time, position, config, pool, clock):
    """Add a row that reaches the cell's threshold."""
    n = cell.length
    if n == cell.capacity:
        reserve(pool, cell, n + 1)
    row = pool.rows[cell.offset + n]
    row.score = score
    row.time = time
    row.position = position
    row.last = row.flag = 0  # known when the cell is merged
    cell.length = n + 1
    clock[TOTAL] += 1
    if config.k <= SMALL:
        settle(pool.rows, cell.offset, cell.offset + n)
        if n + 1 >= config.k:
            clock[TOTAL] -= n + 1 - config.k
            cell.length = config.k
            cell.threshold = pool.rows[cell.offset + config.k - 1].score
    elif n + 1 == config.k or n + 1 == config.limit:
        tighten(cell, config, pool, clock)
