"""The compiled steps of SMA: the skyband of the rows that rank as high as a threshold, beside the whole window."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.emit import is_once
from skyband.kernels.compiling import inlined, part
from skyband.kernels.ranking import exceeds
from skyband.kernels.skyband import first_row
from skyband.problems.rows.algorithms.filtered.kernels import take_strict
from skyband.problems.rows.drivers.step_kernels import steps
from skyband.study.baselines.rows.tma.kernels.score_grid import is_outgrown, make_grid
from skyband.study.baselines.rows.tma.kernels.steps import (
    GRID,
    TOP,
    WINDOW,
    WINDOW_FIELDS,
    drop_expired,
    earliest_time,
    remember,
    remember_shown,
    skip_below,
    take_best,
)
from skyband.windows import NEVER


class Sma(NamedTuple):
    most: int  # a skyband of more rows is cut back to its first k
    tight: bool  # it is, after each answer
    scratch: npt.NDArray[np.int64]  # for 2k numbers


# The threshold: the row that was k-th when the skyband was last made anew or cut back; at first, one before all others.
SMA_FIELDS: dict[str, int | float] = {
    **WINDOW_FIELDS,
    "score": np.inf,
    "time": NEVER,
    "position": NEVER,
    "answered": 0,  # how often the skyband was looked at,
    "recomputed": 0,  # and made anew, since it was too short
}


@inlined
def sma_take(kind, g, score, time, position, config, pool, state):
    remember(g, score, time, position, pool, state)
    group, band, window = state.groups[g], state.lists[TOP, g], state.lists[WINDOW, g]
    rank = config.k
    if not exceeds(group, score, time, position):
        rank = take_strict(band, score, time, position, config.k, pool)
        group.expires = min(group.expires, time)
        if band.length > kind.most:
            purge(band, group, pool)
        if band.length > kind.most:
            band.length = config.k
            set_threshold(band, group, pool)
    return rank < config.k or band.length < min(config.k, window.length)


@inlined
def sma_skip(kind, g, j, end, batch, config, pool, state, out):
    return skip_below(state.groups[g].score, g, j, end, batch, config, pool, state)


@inlined
def sma_ready(kind, g, at, config, pool, state):
    group, band, window, grid = state.groups[g], state.lists[TOP, g], state.lists[WINDOW, g], state.lists[GRID, g]
    if is_outgrown(window, group):
        make_grid(window, grid, group, pool)
    purge(band, group, pool)
    group.answered += 1
    if band.length < min(config.k, window.length):
        group.recomputed += 1
        take_best(group, band, window, grid, config.k, pool)
        count_outliving(pool.rows, first_row(band), band.length, kind.scratch)
        group.expires = earliest_time(band, pool)
        if band.length == config.k:
            set_threshold(band, group, pool)
        else:
            group.score, group.time, group.position = -np.inf, -NEVER, -1
    elif kind.tight and band.length > config.k:
        band.length = config.k
        set_threshold(band, group, pool)
    if is_once(config.emit):
        remember_shown(band, window, config.k, pool)


@inlined
def set_threshold(band, group, pool):
    row = pool.rows[first_row(band) + band.length - 1]
    group.score, group.time, group.position = row.score, row.time, row.position


@part
def purge(band, group, pool):
    """Drop expired rows from the skyband. They outlive no other row, so no count changes."""
    if group.expires >= group.limit:
        return
    rows, start = pool.rows, first_row(band)
    kept, earliest = start, NEVER
    for r in range(start, start + band.length):
        time = rows[r].time
        if time >= group.limit:
            if kept != r:
                rows[kept] = rows[r]
            kept += 1
            earliest = min(earliest, time)
    band.length, group.expires = kept - start, earliest


@part
def count_outliving(rows, start, n, scratch):
    """In the field `last` of each of n ranked rows: how many of those before it have its time or a later one.

    It merges runs of 1, 2, 4, … rows, the latest first, in pairs: when a row of the second run is next, the rows of the
    first run that went before it are those that outlive it. O(n log n).
    """
    for r in range(n):
        rows[start + r].last = 0
        scratch[r] = r
    source, target, run = 0, n, 1
    while run < n:
        for low in range(0, n, 2 * run):
            middle, high = min(low + run, n), min(low + 2 * run, n)
            i, j = low, middle
            for place in range(target + low, target + high):
                if j == high or (
                    i < middle and rows[start + scratch[source + i]].time >= rows[start + scratch[source + j]].time
                ):
                    scratch[place] = scratch[source + i]
                    i += 1
                else:
                    scratch[place] = scratch[source + j]
                    rows[start + scratch[source + j]].last += i - low
                    j += 1
        source, target, run = target, source, 2 * run


steps(Sma, sma_take, drop_expired, sma_skip, sma_ready)
