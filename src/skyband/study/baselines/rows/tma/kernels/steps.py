"""The compiled steps of algorithms that keep the whole window: `tma` and `sma`.

A group has three lists: the rows that answers come from, best first; the rows of its window, in order of time; and the
cells of a grid over their scores (score_grid.py). When the first list is too short, it is made anew from the
best cells. A row is put into its cell when it comes, and taken out when it leaves the window.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.core.emit import is_once
from skyband.kernels.compiling import inlined, part
from skyband.kernels.intrinsics import row_at
from skyband.kernels.queues import find, pop_front, push_in_order
from skyband.kernels.ranking import ZERO, select_best, sort_best_first
from skyband.kernels.skyband import first_row, insert, rank_of
from skyband.kernels.slabs import give_slab, size_class, take_slab
from skyband.problems.rows.drivers.row_kernels import position_at, row_index
from skyband.problems.rows.drivers.step_kernels import quiet_until, steps
from skyband.study.baselines.rows.tma.kernels.score_grid import (
    GRID_FIELDS,
    cell_of,
    enter,
    is_outgrown,
    make_grid,
    purge_oldest,
    withdraw_newest,
)
from skyband.windows import NEVER

TOP, WINDOW, GRID = 0, 1, 2  # the lists of a group


class Tma(NamedTuple):
    most: int  # rows in the list: k


WINDOW_FIELDS: dict[str, int | float] = {
    "limit": -NEVER,  # rows before it have left the window
    "expires": NEVER,  # the earliest time in the first list, or an earlier one
    **GRID_FIELDS,
}


# -- the window ------------------------------------------------------------------------------------------------------


@inlined
def remember(g, score, time, position, pool, state):
    """Put a row into the window and the grid. If it is late, the rows behind it get new numbers."""
    group, window, grid = state.groups[g], state.lists[WINDOW, g], state.lists[GRID, g]
    behind = rows_behind(time, position, window, pool)
    if grid.length > 0:
        withdraw_newest(behind, window, grid, group, pool.rows)
    push_in_order(pool, window, score, time, position, ZERO)
    if grid.length > 0:
        end = first_row(window) + window.length
        for i in range(end - 1 - behind, end):
            enter(i, window, grid, group, pool.rows)
    group.oldest = pool.rows[first_row(window)].time


@inlined
def rows_behind(time, position, window, pool):
    """How many rows of the window come after a row that is not in it: mostly none."""
    end = first_row(window) + window.length
    if window.length == 0 or not comes_before(time, position, pool.rows[end - 1]):
        return ZERO
    return end - find(pool, window, time, position)


@inlined
def comes_before(time, position, row):
    return time < row.time or (time == row.time and position < row.position)


@inlined
def drop_expired(kind, g, limit, config, pool, state):
    """Drop rows from the window. They leave the first list when it is shown: others may push them out before."""
    group, window, grid = state.groups[g], state.lists[WINDOW, g], state.lists[GRID, g]
    n = find(pool, window, limit, ZERO) - first_row(window)
    purge_oldest(n, window, grid, group, pool.rows)
    pop_front(window, n)
    group.oldest = NEVER
    if window.length > 0:
        group.oldest = pool.rows[first_row(window)].time
    else:
        give_slab(pool, grid)
        group.made_of = 0
    group.limit = limit
    return group.expires < limit


@inlined
def skip_below(threshold, g, j, end, batch, config, pool, state):
    """Put rows into the window that have a score below the threshold, as long as they come in order and fit."""
    group, window, grid = state.groups[g], state.lists[WINDOW, g], state.lists[GRID, g]
    if window.length == 0 or grid.length == 0:
        return j
    stop = quiet_until(group, group.oldest, j, end, batch, config)
    stop = min(stop, j + window.capacity - window.gap - window.length)
    rows, back, x = pool.rows, first_row(window) + window.length, j
    low, per_score, cells, cell_count = group.low, group.per_score, first_row(grid), grid.length
    first_number, first_arrival = group.left - first_row(window), group.arrivals - j
    while x < stop:
        score = batch.score[x]
        if score >= threshold:
            break
        if score == score:
            i = row_index(batch, x)
            time = first_arrival + x if config.numbered else batch.time[i]
            position = position_at(batch, i)
            if not config.numbered and comes_before(time, position, row_at(rows, back - 1)):
                break
            row, cell = row_at(rows, back), row_at(rows, cells + cell_of(score, low, per_score, cell_count))
            row.score, row.time, row.position, row.last, row.flag = score, time, position, cell.position, 0
            cell.position = first_number + back
            cell.last += 1
            back += 1
        x += 1
    window.length = back - first_row(window)
    return x


@part
def take_best(group, top, window, grid, k, pool):
    """Make `top` the k best rows of the window, best first: those of the best cells that have k in all.

    The loop goes through a cell from its newest row to its oldest. Equal scores are in one cell, so of two equal rows
    the one met first ranks first: once k rows are met, another must have a better score than the k-th. The loop gathers
    2k rows before it looks for the k-th again.
    """
    n, wanted = window.length, min(k, window.length)
    gathered = min(2 * k, n)
    give_slab(pool, top)
    c = size_class(gathered + wanted + 1)
    top.offset, top.capacity = take_slab(pool, c), 1 << c
    top.gap = top.capacity - gathered
    rows, start, first_number = pool.rows, first_row(top), group.left - first_row(window)
    m, met, threshold, cut = 0, 0, -np.inf, False
    at = first_row(grid) + grid.length
    while met < wanted:
        at -= 1
        number = rows[at].position
        for _ in range(rows[at].last):
            i = number - first_number
            number = rows[i].last
            if cut and rows[i].score <= threshold:
                continue
            rows[start + m] = rows[i]
            m += 1
            if m == 2 * k:
                select_best(rows, start, start + m, k)
                m, threshold, cut = k, rows[start + k - 1].score, True
        met += rows[at].last
    if m > wanted:
        select_best(rows, start, start + m, wanted)
    sort_best_first(rows, start, start + wanted)
    top.length = wanted
    # Scores have moved out of the grid's range, or one row far from all others had stretched it.
    if met - wanted > n // 2 and group.left + n - group.made_at >= group.made_of:
        make_grid(window, grid, group, pool)


@part
def earliest_time(top, pool):
    earliest = NEVER
    for r in range(first_row(top), first_row(top) + top.length):
        earliest = min(earliest, pool.rows[r].time)
    return earliest


@part
def remember_shown(top, window, k, pool):
    """With entries, mark in the window that the first k rows are shown: one may leave the list and come back."""
    for r in range(first_row(top), first_row(top) + min(k, top.length)):
        row = pool.rows[r]
        if not row.flag:
            pool.rows[find(pool, window, row.time, row.position)].flag = 1


# -- tma -------------------------------------------------------------------------------------------------------------


@inlined
def tma_take(kind, g, score, time, position, config, pool, state):
    remember(g, score, time, position, pool, state)
    group, top = state.groups[g], state.lists[TOP, g]
    rank = rank_of(pool, top, score, time, position)
    if rank >= kind.most:
        return False
    insert(pool, top, rank, config.k, score, time, position)
    top.length = min(top.length, kind.most)
    group.expires = min(group.expires, time)
    return True


@inlined
def tma_skip(kind, g, j, end, batch, config, pool, state, out):
    top = state.lists[TOP, g]
    if top.length < kind.most:
        return j
    return skip_below(pool.rows[first_row(top) + top.length - 1].score, g, j, end, batch, config, pool, state)


@inlined
def tma_ready(kind, g, at, config, pool, state):
    group, top, window, grid = state.groups[g], state.lists[TOP, g], state.lists[WINDOW, g], state.lists[GRID, g]
    if is_outgrown(window, group):
        make_grid(window, grid, group, pool)
    if group.expires < group.limit:
        group.expires = earliest_time(top, pool)
        if group.expires < group.limit:
            take_best(group, top, window, grid, config.k, pool)
            group.expires = earliest_time(top, pool)
    if is_once(config.emit):
        remember_shown(top, window, config.k, pool)


steps(Tma, tma_take, drop_expired, tma_skip, tma_ready)
