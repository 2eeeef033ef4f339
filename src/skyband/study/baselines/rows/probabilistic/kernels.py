"""The compiled steps of the probabilistic k-skyband: a ranked list of limited length, and what a row needs to enter."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.compiling import inlined
from skyband.kernels.panes import skip_scores
from skyband.kernels.skyband import first_row, insert, rank_of, remove
from skyband.problems.rows.algorithms.filtered.kernels import lowered
from skyband.problems.rows.drivers.step_kernels import quiet_until, steps
from skyband.windows import NEVER

BAND = 0  # the only list of a group: ranked, best first


class Probabilistic(NamedTuple):
    limit: int  # candidates behind the first k that have prospects
    additional: int  # more of them, so that the threshold need not be reset as soon as one leaves


FIELDS: dict[str, int | float] = {
    "bar": -np.inf  # a row with a lower score has no prospects
}


@inlined
def take_likely(kind, g, score, time, position, config, pool, state):
    """Algorithm 1 of the paper."""
    group, band = state.groups[g], state.lists[BAND, g]
    if score < group.bar:
        return False
    rank = rank_of(pool, band, score, time, position)
    insert(pool, band, rank, config.k, score, time, position)
    most = config.k + kind.limit + kind.additional
    if band.length >= most:
        band.length = most
        group.bar = pool.rows[first_row(band) + most - 1].score
    group.oldest = min(group.oldest, time)
    return rank < config.k


@inlined
def expire_likely(kind, g, limit, config, pool, state):
    """Algorithm 2 of the paper, for every row that has left the window. Returns the earliest time that is left."""
    group, band = state.groups[g], state.lists[BAND, g]
    changed = False
    rank, oldest, following = two_oldest(pool, band)
    while oldest < limit:
        remove(pool, band, rank)
        changed |= rank < config.k
        last = first_row(band) + band.length - 1
        if band.length - config.k < max(kind.limit, 2):
            group.bar = -np.inf
        else:
            group.bar = lowered(group.bar, (pool.rows[last - 1].score - pool.rows[last].score) / 2)
        oldest = following
        if following < limit:
            rank, oldest, following = two_oldest(pool, band)
    return changed, oldest


@inlined
def two_oldest(pool, band):
    """The rank of the oldest row, its time, and the time of the next oldest; NEVER where there is none."""
    rows, rank, oldest, following = pool.rows[first_row(band) :][: band.length], 0, NEVER, NEVER
    for r in range(len(rows)):
        time = rows[r].time
        # Both times without a branch; the rank changes seldom.
        following = min(following, max(oldest, time))
        if time < oldest:
            rank, oldest = r, time
    return rank, oldest, following


@inlined
def drop_likely(kind, g, limit, config, pool, state):
    changed, state.groups[g].oldest = expire_likely(kind, g, limit, config, pool, state)
    return changed


@inlined
def skip_unlikely(kind, g, j, end, batch, config, pool, state, out):
    group = state.groups[g]
    stop = quiet_until(group, group.oldest, j, end, batch, config)
    if group.bar == -np.inf:
        return j
    j = skip_scores(batch.score, j, stop, group.bar)
    while j < stop and not batch.score[j] >= group.bar:
        j += 1
    return j


steps(Probabilistic, take_likely, drop_likely, skip_unlikely)
