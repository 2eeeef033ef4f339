"""The compiled steps of the k-skyband with its k-staircase.

The skyband has the staircase in it. A row's field `last` is its stair: the k-th latest time among the row and those
that ranked before it when the staircase was last built. Stairs rise from the best row to the worst. A new row that
ranks behind a stair and is not later than it is dominated: k better rows outlive it. A row inserted since then gets the
stair of the row before it, which is not too late for it either.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.compiling import allocating, inlined, kernel, part
from skyband.kernels.queues import push_back
from skyband.kernels.ranking import ZERO, ranks_before, sort_best_first
from skyband.kernels.skyband import first_row, insert, rank_of
from skyband.kernels.slabs import give_slab, size_class, take_slab
from skyband.problems.rows.algorithms.filtered.kernels import add_latest, expire
from skyband.problems.rows.drivers.row_kernels import NOW, START
from skyband.problems.rows.drivers.step_kernels import steps, window_start
from skyband.windows import NEVER

BAND, GATHERED = 0, 1  # the lists of a group

NO_STAIR = -2 * NEVER  # the stair if there are fewer than k rows up to here: no row is dominated


class Staircase(NamedTuple):
    """The kind of this algorithm, for `step_kernels.steps`."""

    growth: float  # the skyband is rebuilt when this many times its rows have been added


FIELDS: dict[str, int | float] = {
    "limit": -2 * NEVER,  # rows before it have left the window
    "built": 0,  # the size of the skyband when it was last built
    "best": -np.inf,  # the highest score of the gathered rows
}


@inlined
def take_row(kind, g, score, time, position, config, pool, state):
    group, band = state.groups[g], state.lists[BAND, g]
    rows, start, n = pool.rows, first_row(band), band.length
    # A margin between the answer and the gathered rows: k rows must expire before a gathered row can be in the answer.
    near = 2 * config.k
    if n > near and score < rows[start + near].score and time > rows[start + n - 1].last:
        rank = n  # any rank behind `near` will do; the row is later than all stairs
    else:
        rank = rank_of(pool, band, score, time, position)
        stair = rows[start + rank - 1].last if rank > 0 else NO_STAIR
        if time <= stair:
            return False
        if rank < near:
            insert(pool, band, rank, config.k, score, time, position)
            pool.rows[first_row(band) + rank].last = stair
    if rank < config.k:
        # A row that left the first k may have been the oldest. Then `oldest` is too early, which does no harm.
        group.oldest = min(group.oldest, time)
    elif rank >= near:
        push_back(pool, state.lists[GATHERED, g], score, time, position, ZERO)
        group.best = max(group.best, score)
    gathered = state.lists[GATHERED, g].length
    if band.length + gathered > group.built + max(1, np.int64(np.ceil(kind.growth * group.built))):
        build(g, max(group.limit, state.clock[START]), config, pool, state)
    return rank < config.k


@inlined
def drop_rows(kind, g, limit, config, pool, state):
    group, band = state.groups[g], state.lists[BAND, g]
    group.limit = limit
    best, group.oldest = expire(band, config.k, limit, pool)
    if state.lists[GATHERED, g].length > 0 and (
        band.length < config.k or pool.rows[first_row(band) + config.k - 1].score <= group.best
    ):
        build(g, limit, config, pool, state)
        group.oldest = oldest_of(band, config.k, pool)
    return best < config.k


@part
def oldest_of(band, k, pool):
    """The earliest time among the first k."""
    oldest, start = NEVER, first_row(band)
    for r in range(start, start + min(k, band.length)):
        oldest = min(oldest, pool.rows[r].time)
    return oldest


@allocating
def build(g, limit, config, pool, state):
    """Algorithm 4: merge the gathered rows into the skyband, drop expired and dominated rows, and set all stairs."""
    group, band, gathered = state.groups[g], state.lists[BAND, g], state.lists[GATHERED, g]
    rows, k, latest = pool.rows, config.k, state.latest
    m, n = band.length, gathered.length
    i, j = first_row(band), first_row(gathered)
    end_i, end_j = i + m, j + n
    sort_best_first(rows, j, end_j)
    c = size_class(2 * (m + n + k))
    offset = take_slab(pool, c)
    gap = ((1 << c) - m - n) >> 1
    kept, in_heap = ZERO, ZERO
    while i < end_i or j < end_j:
        # `latest` has the k latest times of the rows kept so far, which are those that may dominate the next one.
        if j == end_j or (i < end_i and ranks_before(rows[i], rows[j])):
            row = rows[i]
            i += 1
        else:
            row = rows[j]
            j += 1
        if row.time < limit or (in_heap == k and latest[0] >= row.time):
            continue
        in_heap = add_latest(latest, in_heap, k, row.time)
        rows[offset + gap + kept] = row
        rows[offset + gap + kept].last = latest[0] if in_heap == k else NO_STAIR
        kept += 1
    give_slab(pool, band)
    band.offset, band.length, band.capacity, band.gap = offset, kept, 1 << c, gap
    gathered.length = gathered.gap = 0
    group.built, group.best = kept, -np.inf


@kernel
def build_all(g, config, pool, state):
    """Build the skybands of group g and later ones that have gathered rows. Returns the group at which room ran short,
    or the number of groups."""
    while g < len(state.groups):
        group, gathered = state.groups[g], state.lists[GATHERED, g].length
        if gathered > 0:
            if len(pool.rows) - pool.free[-1] < 4 * (state.lists[BAND, g].length + gathered + config.k + 8):
                return g
            limit = window_start(group.arrivals - 1 if config.numbered else state.clock[NOW], config)
            build(g, max(limit, group.limit), config, pool, state)
        g += 1
    return g


steps(Staircase, take_row, drop_rows)
