"""Algorithms 1 and 2 of the paper, line by line.

The paper's three balanced trees are three sorted lists here, in flat arrays: what is looked up in one is found by a
binary search. A higher score is better here, so the threshold (`bar`) is lowered where the paper raises it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.compiling import inlined, part
from skyband.kernels.queues import find
from skyband.kernels.ranking import ZERO
from skyband.kernels.skyband import first_row, insert, rank_of, remove
from skyband.problems.rows.algorithms.filtered.kernels import lowered
from skyband.problems.rows.drivers.step_kernels import steps
from skyband.study.baselines.rows.probabilistic.kernels import skip_unlikely
from skyband.windows import NEVER

TOP, CANDIDATES, TIMES = 0, 1, 2  # the lists of a group: the paper's toptree, candtree and timetree


class Published(NamedTuple):
    limit: int  # candidates that have prospects
    additional: int  # more of them, so that the threshold need not be reset as soon as one leaves


@inlined
def place_in_time(pool, times, time, position):
    """How many rows of the list by time are older than the one with these two."""
    return find(pool, times, time, position) - first_row(times)


@part
def move(pool, source, rank, target, k):
    """Move the row at this rank to another list, with what it says of having been shown."""
    row = pool.rows[first_row(source) + rank]
    score, time, position, flag = row.score, row.time, row.position, row.flag
    remove(pool, source, rank)
    place = rank_of(pool, target, score, time, position)
    insert(pool, target, place, k, score, time, position)
    pool.rows[first_row(target) + place].flag = flag


@inlined
def process_incoming(kind, g, score, time, position, config, pool, state):
    """Algorithm 1."""
    group, k = state.groups[g], config.k
    top, candidates, times = state.lists[TOP, g], state.lists[CANDIDATES, g], state.lists[TIMES, g]
    if score < group.bar:
        return False
    rank = rank_of(pool, top, score, time, position)
    if rank < k:
        insert(pool, top, rank, k, score, time, position)
        if top.length > k:
            move(pool, top, k, candidates, k)
    else:
        insert(pool, candidates, rank_of(pool, candidates, score, time, position), k, score, time, position)
    insert(pool, times, place_in_time(pool, times, time, position), k, score, time, position)
    most = kind.limit + kind.additional
    if candidates.length >= most:
        if candidates.length > most:
            tail = pool.rows[first_row(candidates) + most]
            remove(pool, times, place_in_time(pool, times, tail.time, tail.position))
            remove(pool, candidates, most)
        group.bar = pool.rows[first_row(candidates) + most - 1].score
    group.oldest = pool.rows[first_row(times)].time
    return rank < k


@inlined
def remove_dropped(kind, g, limit, config, pool, state):
    """Algorithm 2, for every row that has left the window."""
    group, changed = state.groups[g], False
    top, candidates, times = state.lists[TOP, g], state.lists[CANDIDATES, g], state.lists[TIMES, g]
    while times.length > 0 and pool.rows[first_row(times)].time < limit:
        row = pool.rows[first_row(times)]
        score, time, position = row.score, row.time, row.position
        remove(pool, times, ZERO)
        rank = rank_of(pool, top, score, time, position)
        if rank < top.length:
            remove(pool, top, rank)
            changed = True
            if candidates.length > 0:
                move(pool, candidates, ZERO, top, config.k)
        else:
            remove(pool, candidates, rank_of(pool, candidates, score, time, position))
        last = first_row(candidates) + candidates.length - 1
        if candidates.length < max(kind.limit, 2):  # two, because the threshold is lowered by a difference of two
            group.bar = -np.inf
        else:
            group.bar = lowered(group.bar, (pool.rows[last - 1].score - pool.rows[last].score) / 2)
    group.oldest = pool.rows[first_row(times)].time if times.length > 0 else NEVER
    return changed


steps(Published, process_incoming, remove_dropped, skip_unlikely)
