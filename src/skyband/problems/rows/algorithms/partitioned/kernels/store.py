"""The store of `partitioned`: the sorted partitions of the window, and the filling partition."""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import inlined, part
from skyband.kernels.heap import push_heap
from skyband.kernels.queues import pop_front, push_back
from skyband.kernels.ranking import ZERO, exceeds, is_best_first, ranks_before, sort_best_first
from skyband.kernels.skyband import first_row
from skyband.problems.rows.algorithms.partitioned.kernels.arrays import PARTS, STORE, count_ranked
from skyband.problems.rows.drivers.row_kernels import position_at, row_index

# -- the store --------------------------------------------------------------------------------------------------------


@inlined
def store_rows(g, j, end, arrivals, batch, config, pool, state):
    """Add rows from j on to the end of the store, up to the first that is not below the threshold.

    It stops if there is no room, or before the filling partition is full. Returns the number of rows added.
    """
    group, store = state.groups[g], state.lists[STORE, g]
    back = first_row(store) + store.length
    room = min(group.partition - 1 - (store.length - group.closed), store.offset + store.capacity - back)
    n = min(end - j, room)
    if n <= 0:
        return ZERO
    # Slices, so that the compiler knows that no index is negative: this makes the loop fast.
    scores, rows = batch.score[j : j + n], pool.rows[back : back + n]
    threshold, best, latest = group.threshold, group.best, group.latest
    x = n
    for y in range(n):
        score, i = scores[y], row_index(batch, j + y)
        time = arrivals + y if config.numbered else batch.time[i]
        if not (score < threshold and time >= latest):
            x = y
            break
        row = rows[y]
        row.score, row.time, row.last, row.flag = score, time, 0, 0
        row.position = position_at(batch, i)
        best, latest = max(best, score), time
    store.length += x
    group.best, group.latest = best, latest
    return ZERO + x


@inlined
def put_in_order(rows, start, i):
    """Move row i before the rows of [start, i) that are later."""
    row = rows[i]
    score, time, position = row.score, row.time, row.position
    while i > start and rows[i - 1].time > time:
        rows[i] = rows[i - 1]
        i -= 1
    row = rows[i]
    row.score, row.time, row.position, row.last, row.flag = score, time, position, 0, 0


@part
def close_partition(kind, g, config, pool, state):
    """Close the filling partition: drop the rows that k later rows of it outrank, and sort the others."""
    group, store, parts, rows = state.groups[g], state.lists[STORE, g], state.lists[PARTS, g], pool.rows
    low, high = first_row(store) + group.closed, first_row(store) + store.length
    kept = high - low
    if not is_best_first(rows, low, high):  # otherwise scores fall, and no later row outranks an earlier one
        kept = keep_skyband(rows, low, high, config.k, kind.scores)
        sort_best_first(rows, low, low + kept)
    cut_older(rows, low, kept, config.k, group.start, parts, first_row(store))
    i = push_back(pool, parts, np.float64(high - low), group.latest, count_ranked(group, rows, low, kept), kept)
    rows[i].flag = kept
    store.length = group.closed + kept
    group.closed = store.length
    group.came += high - low
    group.start = group.latest
    group.best = -np.inf
    if kind.forgets:
        forget_partitions(g, group.latest - config.size + 1, pool, state)
    close_gaps(g, pool, state)
    group.partition = max(kind.partition, np.int64(2 * np.sqrt(np.float64(config.k) * group.came)))


@part
def keep_skyband(rows, low, high, k, scores):
    """Keep the rows that fewer than k later rows outrank, in order of time, from `low` on. Returns their number."""
    in_heap, kept = ZERO, high
    for r in range(high - 1, low - 1, -1):
        score = rows[r].score
        # The later of two rows with equal scores ranks first.
        if in_heap == k and scores[0] >= score:
            continue
        in_heap = push_heap(scores, in_heap, k, score)
        kept -= 1
        if kept != r:
            rows[kept] = rows[r]
    if kept > low:
        for r in range(kept, high):
            rows[low + r - kept] = rows[r]
    return high - kept


@part
def cut_older(rows, low, n, k, start, parts, at):
    """Drop the rows of closed partitions that k of the n sorted rows at `low` outrank and outlive.

    A row outlives all closed partitions if its time is not before `start`, when the last of them closed.
    """
    found, r = 0, low
    while r < low + n:
        found += rows[r].time >= start
        if found == k:
            break
        r += 1
    if found < k:
        return
    score, time, position = rows[r].score, rows[r].time, rows[r].position
    for p in range(first_row(parts), first_row(parts) + parts.length):
        entry = rows[p]
        if entry.last > 0 and not exceeds(rows[at + entry.last - 1], score, time, position):
            first, last = ZERO, entry.last
            while first < last:
                middle = (first + last) >> 1
                if exceeds(rows[at + middle], score, time, position):
                    first = middle + 1
                else:
                    last = middle
            entry.last = first
        at += entry.flag


@part
def close_gaps(g, pool, state):
    """Move closed partitions together if gaps are a fifth of them. The filling partition must be empty."""
    group, store, parts, rows = state.groups[g], state.lists[STORE, g], state.lists[PARTS, g], pool.rows
    used, start = ZERO, first_row(parts)
    for p in range(start, start + parts.length):
        used += rows[p].last
    if 4 * group.closed <= 5 * used:
        return
    read = write = first_row(store)
    for p in range(start, start + parts.length):
        entry = rows[p]
        if read != write:
            for r in range(entry.last):
                rows[write + r] = rows[read + r]
        read += entry.flag
        write += entry.last
        entry.flag = entry.last
        entry.position = min(entry.position, entry.last)
    store.length = group.closed = used


@part
def forget_partitions(g, limit, pool, state):
    """Drop the oldest partitions whose rows are all before `limit`."""
    group, store, parts = state.groups[g], state.lists[STORE, g], state.lists[PARTS, g]
    while parts.length > 0:
        entry = pool.rows[first_row(parts)]
        if entry.time >= limit:
            return
        group.closed -= entry.flag
        group.came -= np.int64(entry.score)
        pop_front(store, entry.flag)
        pop_front(parts, 1)


@part
def forget_all(g, state):
    """Drop every row of the store: none is live."""
    group = state.groups[g]
    state.lists[STORE, g].length = state.lists[PARTS, g].length = 0
    group.closed = group.came = 0
    group.best = -np.inf


@part
def mark_as_shown(g, shown, pool, state):
    """Set the flag of this row in the store, if the store has it."""
    store, parts, rows = state.lists[STORE, g], state.lists[PARTS, g], pool.rows
    at = first_row(store)
    for p in range(first_row(parts), first_row(parts) + parts.length):
        low, high = at, at + rows[p].last
        while low < high:
            middle = (low + high) >> 1
            if ranks_before(rows[middle], shown):
                low = middle + 1
            else:
                high = middle
        if low < at + rows[p].last and rows[low].position == shown.position:
            rows[low].flag = 1
            return
        at += rows[p].flag
    low, high = at, first_row(store) + store.length
    while low < high:
        middle = (low + high) >> 1
        if rows[middle].time < shown.time:
            low = middle + 1
        else:
            high = middle
    while low < first_row(store) + store.length and rows[low].time == shown.time:
        if rows[low].position == shown.position:
            rows[low].flag = 1
            return
        low += 1
