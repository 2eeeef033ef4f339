"""The compiled steps of `partitioned`: a short ranked list, filled up again from sorted partitions of the window.

The ranked list holds every live row that ranks at or before a threshold. Rows that rank after it wait in the store: the
partition that is filling, in order of time, behind the closed ones, each of them sorted. A row that arrives below the
threshold is put at the end of the store, and that is all. When so many ranked rows have expired that fewer than k are
left, the threshold is lowered: closed partitions are merged from where it cuts them, and the one that is filling is
closed early if its rows are wanted too. When too many rows rank before the threshold, it is raised.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.operators.objects.arriving import NEVER, row_index
from skyband.operators.objects.stepwise_kernels import quiet_until, steps
from skyband.operators.protocol import ENTRIES
from skyband.structures.compiling import inlined, part
from skyband.structures.heap import push_heap
from skyband.structures.queues import pop_front, push_back, push_in_order
from skyband.structures.ranking import ZERO, exceeds, is_best_first, ranks_before, sort_best_first
from skyband.structures.skyband import first_row, insert, rank_of, remove
from skyband.windows import FOREVER

# The lists of a group.
RANKED = 0  # every live row at or before the threshold, best first
EXPIRY = 1  # the same rows in order of time
STORE = 2  # closed partitions, oldest first, each best first, with gaps between them; then the one that is filling
PARTS = 3  # one record for each closed partition, as below

# What the record of a partition holds, in the fields of a row.
#   score     rows that came while it was filling
#   time      the largest time seen when it closed
#   position  how many of its rows rank at or before the threshold (while the ranked list is filled up)
#   last      rows it has
#   flag      rows of the store it takes up: those, and the gap behind them

LOWEST = -2 * NEVER  # the threshold's time when every row ranks before it


class Partitioned(NamedTuple):
    stores: bool  # without: nothing expires, and the ranked list is all there is
    slack: int  # the ranked list is filled up to k + slack rows, and cut to that when there are more than k + 2 slack
    partition: int  # rows of a partition, at least
    scores: npt.NDArray[np.float64]  # scratch for k scores


FIELDS: dict[str, int | float] = {
    "limit": LOWEST,  # rows before it have left the window
    "latest": -NEVER,  # the largest time seen
    "start": -NEVER,  # the largest time seen when the last partition closed
    "closed": 0,  # rows of the store that closed partitions take up
    "came": 0,  # rows that came while these were filling
    "partition": 0,  # the next one is closed when it has so many rows
    "best": -np.inf,  # no live row after the threshold of the partition that is filling has a higher score
    "threshold": -np.inf,  # its score, time and position
    "threshold_time": LOWEST,
    "threshold_position": -1,
}


# -- the steps --------------------------------------------------------------------------------------------------------


@inlined
def take_row(kind, g, score, time, position, rule, pool, state):  # type: ignore[no-untyped-def]
    group, ranked, expiry = state.groups[g], state.lists[RANKED, g], state.lists[EXPIRY, g]
    changed = False
    if reaches_threshold(group, score, time, position):
        rank = rank_of(pool, ranked, score, time, position)
        insert(pool, ranked, rank, rule.k, score, time, position)
        push_in_order(pool, expiry, score, time, position, ZERO)
        group.oldest = pool.rows[first_row(expiry)].time
        changed = rank < rule.k
    else:
        group.best = max(group.best, score)
    if kind.stores:
        store = state.lists[STORE, g]
        i = push_back(pool, store, score, time, position, ZERO)
        if time >= group.latest:
            group.latest = time
        else:
            put_in_order(pool.rows, first_row(store) + group.closed, i)
        if store.length - group.closed >= group.partition:
            close_partition(kind, g, rule, pool, state)
    if ranked.length > rule.k + 2 * kind.slack:
        raise_threshold(kind, g, rule, pool, state)
    return changed


@inlined
def drop_rows(kind, g, limit, rule, pool, state):  # type: ignore[no-untyped-def]
    group, ranked, expiry = state.groups[g], state.lists[RANKED, g], state.lists[EXPIRY, g]
    group.limit = limit
    best = ranked.length
    while expiry.length > 0:
        row = pool.rows[first_row(expiry)]
        if row.time >= limit:
            break
        # When scores fall, the oldest row is the best.
        rank = ZERO
        if pool.rows[first_row(ranked)].position != row.position:
            rank = rank_of(pool, ranked, row.score, row.time, row.position)
        pop_front(expiry, 1)
        remove(pool, ranked, rank)
        best = min(best, rank)
    if ranked.length < rule.k and group.threshold_time != LOWEST:
        forget_partitions(g, limit, pool, state)
        lower_threshold(kind, g, rule, pool, state)
    if expiry.length == 0:
        forget_all(g, state)
    group.oldest = pool.rows[first_row(expiry)].time if expiry.length > 0 else NEVER
    return best < rule.k


@inlined
def skip_rows(kind, g, j, end, batch, rule, pool, state):  # type: ignore[no-untyped-def]
    """Rows below the threshold go to the end of the store, as long as nothing expires and no partition is full."""
    group, store = state.groups[g], state.lists[STORE, g]
    threshold = group.threshold
    if j >= end or not batch.score[j] < threshold:
        return j
    if not kind.stores:
        end = quiet_until(group, group.oldest, j, end, batch, rule)
        while j < end and batch.score[j] < threshold:
            j += 1
        return j
    filling = store.length - group.closed
    room = min(group.partition - filling - 1, store.capacity - store.gap - store.length)
    n = quiet_until(group, group.oldest, j, min(end, j + room), batch, rule) - j
    rows, back, best, latest, x = pool.rows, first_row(store) + store.length, group.best, group.latest, 0
    while x < n:
        score, i = batch.score[j + x], row_index(batch, j + x)
        time = group.arrivals + x if rule.by_count else batch.time[i]
        if not (score < threshold and time >= latest):
            break
        row = rows[back + x]
        row.score, row.time, row.last, row.flag = score, time, 0, 0
        row.position = batch.position[i] if len(batch.position) else batch.first + i
        best, latest = max(best, score), time
        x += 1
    store.length += x
    group.best, group.latest = best, latest
    return j + x


steps(Partitioned, take_row, drop_rows, skip_rows)


# -- the threshold ----------------------------------------------------------------------------------------------------


@inlined
def reaches_threshold(group, score, time, position):  # type: ignore[no-untyped-def]
    """Does the row with these three rank at or before the threshold?"""
    if score != group.threshold:
        return score > group.threshold
    if time != group.threshold_time:
        return time > group.threshold_time
    return position >= group.threshold_position


@part
def set_threshold(group, row):  # type: ignore[no-untyped-def]
    group.threshold, group.threshold_time, group.threshold_position = row.score, row.time, row.position


@part
def raise_threshold(kind, g, rule, pool, state):  # type: ignore[no-untyped-def]
    """Keep the best k + slack ranked rows; the others are in the store anyway, if they can still be shown."""
    group, ranked, expiry, rows = state.groups[g], state.lists[RANKED, g], state.lists[EXPIRY, g], pool.rows
    keep, start = rule.k + kind.slack, first_row(ranked)
    group.best = max(group.best, rows[start + keep].score)
    if kind.stores and rule.emit == ENTRIES:
        for r in range(start + keep, start + ranked.length):
            if rows[r].flag:
                mark_as_shown(g, rows[r], pool, state)
    ranked.length = keep
    set_threshold(group, rows[start + keep - 1])
    low, kept = first_row(expiry), 0
    for r in range(low, low + expiry.length):
        row = rows[r]
        if reaches_threshold(group, row.score, row.time, row.position):
            rows[low + kept] = row
            kept += 1
    expiry.length = kept


@part
def lower_threshold(kind, g, rule, pool, state):  # type: ignore[no-untyped-def]
    """Fill the ranked list up to k + slack rows, with the best live ones after the threshold.

    Loop invariant: of every closed partition, `position` rows are ranked or expired, and the next one ranks after all
    that are ranked.
    """
    group, ranked, expiry, rows = state.groups[g], state.lists[RANKED, g], state.lists[EXPIRY, g], pool.rows
    wanted, complete = rule.k + kind.slack, False
    set_cursors(g, pool, state)
    while ranked.length < wanted:
        part, second = best_two(g, pool, state)
        filling = state.lists[STORE, g].length > group.closed
        if filling and (part < 0 or not rows[next_of(g, part, pool, state)].score > group.best):
            close_partition(kind, g, rule, pool, state)
            continue
        if part < 0:
            complete = True
            break
        entry = rows[first_row(state.lists[PARTS, g]) + part]
        r = next_of(g, part, pool, state)
        stop = r + entry.last - entry.position
        first = r
        while r < stop and ranked.length < wanted:
            row = rows[r]
            if (second >= 0 and not ranks_before(row, rows[second])) or (filling and not row.score > group.best):
                break
            if row.time >= group.limit:
                i = push_back(pool, ranked, row.score, row.time, row.position, ZERO)
                rows[i].flag = row.flag
                push_in_order(pool, expiry, row.score, row.time, row.position, ZERO)
            r += 1
        entry.position += r - first
    if complete:
        group.threshold, group.threshold_time, group.threshold_position = -np.inf, LOWEST, -1
    else:
        set_threshold(group, rows[first_row(ranked) + ranked.length - 1])


@part
def set_cursors(g, pool, state):  # type: ignore[no-untyped-def]
    """Say of each closed partition how many of its rows rank at or before the threshold."""
    parts, at = state.lists[PARTS, g], first_row(state.lists[STORE, g])
    for p in range(first_row(parts), first_row(parts) + parts.length):
        entry = pool.rows[p]
        entry.position = count_ranked(state.groups[g], pool.rows, at, entry.last)
        at += entry.flag


@part
def count_ranked(group, rows, at, n):  # type: ignore[no-untyped-def]
    """How many of the n sorted rows from `at` on rank at or before the threshold."""
    if n == 0 or not reaches_threshold(group, rows[at].score, rows[at].time, rows[at].position):
        return ZERO
    low, high = ZERO + 1, n
    while low < high:
        middle = (low + high) >> 1
        row = rows[at + middle]
        if reaches_threshold(group, row.score, row.time, row.position):
            low = middle + 1
        else:
            high = middle
    return low


@part
def best_two(g, pool, state):  # type: ignore[no-untyped-def]
    """The partition whose next row is best, and the index of the second best of all next rows; -1: there is none."""
    limit, rows = state.groups[g].limit, pool.rows
    parts, at = state.lists[PARTS, g], first_row(state.lists[STORE, g])
    part, best, second = -1, -1, -1
    for p in range(parts.length):
        entry = rows[first_row(parts) + p]
        while entry.position < entry.last and rows[at + entry.position].time < limit:
            entry.position += 1
        r = at + entry.position
        if entry.position < entry.last:
            if best < 0 or ranks_before(rows[r], rows[best]):
                part, best, second = p, r, best
            elif second < 0 or ranks_before(rows[r], rows[second]):
                second = r
        at += entry.flag
    return part, second


@part
def next_of(g, part, pool, state):  # type: ignore[no-untyped-def]
    """The index of a partition's next row."""
    start, at = first_row(state.lists[PARTS, g]), first_row(state.lists[STORE, g])
    for p in range(start, start + part):
        at += pool.rows[p].flag
    return at + pool.rows[start + part].position


# -- the store --------------------------------------------------------------------------------------------------------


@inlined
def put_in_order(rows, start, i):  # type: ignore[no-untyped-def]
    """Move row i before those of [start, i) that are later."""
    row = rows[i]
    score, time, position = row.score, row.time, row.position
    while i > start and rows[i - 1].time > time:
        rows[i] = rows[i - 1]
        i -= 1
    row = rows[i]
    row.score, row.time, row.position, row.last, row.flag = score, time, position, 0, 0


@part
def close_partition(kind, g, rule, pool, state):  # type: ignore[no-untyped-def]
    """Sort the partition that is filling, without the rows that k later ones of it outrank."""
    group, store, parts, rows = state.groups[g], state.lists[STORE, g], state.lists[PARTS, g], pool.rows
    low, high = first_row(store) + group.closed, first_row(store) + store.length
    kept = high - low
    if not is_best_first(rows, low, high):  # else scores fall, and no later row outranks another
        kept = keep_skyband(rows, low, high, rule.k, kind.scores)
        sort_best_first(rows, low, low + kept)
    cut_older(rows, low, kept, rule.k, group.start, parts, first_row(store))
    i = push_back(pool, parts, np.float64(high - low), group.latest, count_ranked(group, rows, low, kept), kept)
    rows[i].flag = kept
    store.length = group.closed + kept
    group.closed = store.length
    group.came += high - low
    group.start = group.latest
    group.best = -np.inf
    if rule.size != FOREVER:
        forget_partitions(g, group.latest - rule.size + 1, pool, state)
    close_gaps(g, pool, state)
    group.partition = max(kind.partition, np.int64(2 * np.sqrt(np.float64(rule.k) * group.came)))


@part
def keep_skyband(rows, low, high, k, scores):  # type: ignore[no-untyped-def]
    """Of rows in order of time, keep those that fewer than k later ones outrank, from `low` on; return how many."""
    in_heap, kept = ZERO, high
    for r in range(high - 1, low - 1, -1):
        score = rows[r].score
        # Of equal scores the later row ranks before.
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
def cut_older(rows, low, n, k, start, parts, at):  # type: ignore[no-untyped-def]
    """Take from the closed partitions what k rows outrank of the n sorted ones at `low`, and outlive: those that are
    not before `start`, when the last of these partitions closed."""
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
def close_gaps(g, pool, state):  # type: ignore[no-untyped-def]
    """When gaps are a fifth of the closed partitions, move these together. None is filling."""
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
def forget_partitions(g, limit, pool, state):  # type: ignore[no-untyped-def]
    """Drop the oldest partitions as far as all their rows are before `limit`."""
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
def forget_all(g, state):  # type: ignore[no-untyped-def]
    """No row is live."""
    group = state.groups[g]
    state.lists[STORE, g].length = state.lists[PARTS, g].length = 0
    group.closed = group.came = 0
    group.best = -np.inf


@part
def mark_as_shown(g, shown, pool, state):  # type: ignore[no-untyped-def]
    """Set the flag of this row in the store, if it is there."""
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
    for r in range(at, first_row(store) + store.length):
        if rows[r].position == shown.position:
            rows[r].flag = 1
            return
