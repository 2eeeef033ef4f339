"""The compiled steps of strict and relaxed k-skybands, with or without a filter before them.

A filter sees the rows of a buffer: the more recent half of the window, or less. A row is offered to the query's skyband
at most twice: when it arrives, if it is among the best k of the filter; and when it leaves the buffer, if it is among
the best k of the rows that the filter has by then, which are all more recent. So most rows never reach the skyband.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.compiling import inlined, part
from skyband.kernels.heap import push_heap
from skyband.kernels.queues import pop_front, push_back
from skyband.kernels.ranking import ZERO
from skyband.kernels.skyband import first_row, insert, rank_of, remove
from skyband.problems.rows.drivers.row_kernels import position_at, row_index
from skyband.problems.rows.drivers.step_kernels import quiet_until, steps
from skyband.windows import NEVER

NONE, STRICT, RELAXED, PROBABILISTIC = 0, 1, 2, 3

QUERY, BUFFER, FILTER = 0, 1, 2  # the lists of a group


class Filtered(NamedTuple):
    """The kind of these algorithms, for `step_kernels.steps`."""

    query: int  # STRICT or RELAXED
    filter: int  # STRICT, RELAXED, PROBABILISTIC or NONE
    span: int  # how long rows stay in the buffer, in rows or in ticks
    candidates: int  # the most rows that a probabilistic filter holds
    gamma: float  # a relaxed skyband is pruned when it has (1 + gamma) times the candidates left last time


FIELDS: dict[str, int | float] = {
    "limit": -NEVER,  # rows before it have left the window
    "expires": NEVER,  # the earliest time in the query's skyband; if it is relaxed, among its first k
    "latest": -NEVER,  # the largest time that went through the filter
    "query_limit": 0,  # a relaxed query skyband is pruned when it has this many candidates; 0: not known yet
    "filter_limit": 0,  # the same for a relaxed filter
    "threshold": -np.inf,  # no row of a probabilistic filter has a score below it
}


# -- a k-skyband ------------------------------------------------------------------------------------------------------


@part
def take_strict(band, score, time, position, k, pool):
    """Insert a row unless k better rows outlive it, and drop rows for which it is the k-th dominator.

    A row's field `last` counts its dominators. Returns the row's rank; k or more if it was not inserted.
    """
    rank = rank_of(pool, band, score, time, position)
    rows, start, n = pool.rows, first_row(band), band.length
    dominators = 0
    for r in range(start, start + rank):
        dominators += rows[r].time >= time
    if dominators >= k:
        return n + k
    kept = start + rank
    for r in range(start + rank, start + n):
        dominated = rows[r].time <= time
        if rows[r].last + dominated < k:
            rows[r].last += dominated
            if kept != r:
                rows[kept] = rows[r]
            kept += 1
    band.length = kept - start
    insert(pool, band, rank, k, score, time, position)
    pool.rows[first_row(band) + rank].last = dominators
    return rank


@part
def take_relaxed(band, score, time, position, k, limit, gamma, expired, pool, latest):
    """Insert a row, and prune if there are `limit` candidates behind the first k. Returns its rank and the next
    limit."""
    rank = rank_of(pool, band, score, time, position)
    insert(pool, band, rank, k, score, time, position)
    limit = max(limit, 4 * k) if limit == 0 else limit
    if band.length - k >= limit:
        prune(band, k, expired, pool, latest)
        limit = int(np.ceil((1 + gamma) * max(1, band.length - k)))
    return rank, limit


@part
def prune(band, k, expired, pool, latest):
    """Drop candidates behind the first k that have expired or that k better rows outlive."""
    rows, start = pool.rows, first_row(band)
    kept, in_heap = ZERO, ZERO
    for r in range(start, start + band.length):
        time = rows[r].time
        if kept >= k and (time < expired or (in_heap == k and latest[0] >= time)):
            continue
        rows[start + kept] = rows[r]
        in_heap = add_latest(latest, in_heap, k, time)
        kept += 1
    band.length = kept


@inlined
def add_latest(heap, size, k, time):
    """Add a time to a heap of the k latest, the earliest of them on top."""
    return push_heap(heap, size, k, time) if size < k or time > heap[0] else size


@part
def expire(band, scope, limit, pool):
    """Remove expired rows from the first `scope` rows, until none of these has expired.

    Returns the best rank that was removed, or the length if none was, and the earliest time left there.
    """
    rank, best, oldest = 0, band.length, NEVER
    while rank < min(scope, band.length):
        time = pool.rows[first_row(band) + rank].time
        if time < limit:
            remove(pool, band, rank)
            best = min(best, rank)
        else:
            oldest = min(oldest, time)
            rank += 1
    return best, oldest


@inlined
def offer(kind, g, score, time, position, config, pool, state):
    """Offer a row to the query's skyband. Returns whether it is among the first k."""
    group, band = state.groups[g], state.lists[QUERY, g]
    if kind.query == STRICT:
        rank = take_strict(band, score, time, position, config.k, pool)
        group.expires = min(group.expires, time)
        return rank < config.k
    rank, group.query_limit = take_relaxed(
        band, score, time, position, config.k, group.query_limit, kind.gamma, group.limit, pool, state.latest
    )
    if rank >= config.k:
        return False
    # A row that left the first k may have been the oldest. Then `expires` is too early, which does no harm.
    group.expires = min(group.expires, time)
    return True


# -- the steps --------------------------------------------------------------------------------------------------------


@inlined
def take_row(kind, g, score, time, position, config, pool, state):
    group = state.groups[g]
    if kind.filter == NONE or time < group.latest:
        # A row out of order does not outlive the rows before it, so the filter does not take it.
        changed = offer(kind, g, score, time, position, config, pool, state)
    else:
        group.latest = time
        buffer, changed = state.lists[BUFFER, g], False
        while buffer.length > 0 and pool.rows[first_row(buffer)].time <= time - kind.span:
            changed |= leave_buffer(kind, g, config, pool, state)
        rank = take_into_filter(kind, g, score, time, position, config, pool, state)
        push_back(pool, buffer, score, time, position, np.int64(rank < config.k))
        if rank < config.k:
            changed |= offer(kind, g, score, time, position, config, pool, state)
    look_ahead(kind, g, config, pool, state)
    return changed


@inlined
def take_into_filter(kind, g, score, time, position, config, pool, state):
    """Offer a row to the filter. Returns its rank there; k or more if at least k rows of the filter are better."""
    group, band = state.groups[g], state.lists[FILTER, g]
    if kind.filter == STRICT:
        return take_strict(band, score, time, position, config.k, pool)
    if kind.filter == RELAXED:
        rank, group.filter_limit = take_relaxed(
            band, score, time, position, config.k, group.filter_limit, kind.gamma, -NEVER, pool, state.latest
        )
        return rank
    if score < group.threshold and band.length >= config.k:
        return band.length
    rank = rank_of(pool, band, score, time, position)
    insert(pool, band, rank, config.k, score, time, position)
    group.threshold = min(group.threshold, score)
    if band.length >= kind.candidates:
        band.length = kind.candidates
        group.threshold = pool.rows[first_row(band) + band.length - 1].score
    return rank


@inlined
def drop_rows(kind, g, limit, config, pool, state):
    group = state.groups[g]
    group.limit = limit
    changed = False
    if kind.filter != NONE:
        buffer = state.lists[BUFFER, g]
        while buffer.length > 0 and pool.rows[first_row(buffer)].time < limit + config.size - kind.span:
            changed |= leave_buffer(kind, g, config, pool, state)
    if group.expires < limit:
        band = state.lists[QUERY, g]
        scope = band.length if kind.query == STRICT else config.k
        best, group.expires = expire(band, scope, limit, pool)
        changed |= best < config.k
    look_ahead(kind, g, config, pool, state)
    return changed


@inlined
def look_ahead(kind, g, config, pool, state):
    """Set `oldest`, the start of the window with which the group must drop a row next."""
    group, buffer = state.groups[g], state.lists[BUFFER, g]
    group.oldest = group.expires
    if kind.filter != NONE and buffer.length > 0:
        group.oldest = min(group.oldest, pool.rows[first_row(buffer)].time + kind.span - config.size)


@inlined
def leave_buffer(kind, g, config, pool, state):
    """Remove the oldest row from the buffer and the filter. Offer it to the skyband if fewer than k rows of the filter
    are better."""
    group, buffer, band = state.groups[g], state.lists[BUFFER, g], state.lists[FILTER, g]
    row = pool.rows[first_row(buffer)]
    score, time, position, offered = row.score, row.time, row.position, row.last
    pop_front(buffer, 1)
    rank = rank_of(pool, band, score, time, position)
    if rank < band.length and pool.rows[first_row(band) + rank].position == position:
        remove(pool, band, rank)
        if kind.filter == PROBABILISTIC and band.length >= 2:
            # Lowered rather than reset, so that few hopeless rows enter.
            last = first_row(band) + band.length - 1
            group.threshold = lowered(group.threshold, pool.rows[last - 1].score - pool.rows[last].score)
    if offered or rank >= config.k:
        return False
    return offer(kind, g, score, time, position, config, pool, state)


@inlined
def lowered(threshold, difference):
    """Lower a threshold by the difference of two scores. Infinite scores have no difference: then it becomes -inf."""
    lower = threshold - difference
    return lower if lower == lower else -np.inf


@inlined
def skip_rows(kind, g, j, end, batch, config, pool, state, out):
    """With a probabilistic filter, pass rows below its threshold: they enter neither it nor, later, the skyband."""
    if kind.filter != PROBABILISTIC or state.lists[FILTER, g].length < config.k:
        return j
    return pass_below(kind, g, j, end, state.groups[g].threshold, True, batch, config, pool, state)


@inlined
def pass_below(kind, g, j, end, threshold, both, batch, config, pool, state):
    """Move rows with scores below the threshold through the buffer; with `both`, only while the rows that leave it are
    below the threshold, too.

    For numbered rows, where one row leaves with each that comes. Returns the first row that it did not move.
    """
    group, buffer = state.groups[g], state.lists[BUFFER, g]
    if not config.numbered or config.ahead:
        return j
    stop = quiet_until(group, group.expires, j, end, batch, config)
    m = min(stop - j, buffer.length, buffer.capacity - buffer.gap - buffer.length)
    rows, start, arrivals = pool.rows, first_row(buffer), group.arrivals
    if m <= 0 or rows[start].time != arrivals - kind.span or rows[start + m - 1].time != arrivals - kind.span + m - 1:
        return j
    # Slices, so that the compiler knows that no index is negative: this makes the loop fast.
    scores, leaving, entering = batch.score[j : j + m], rows[start : start + m], rows[start + buffer.length :][:m]
    x = m
    for y in range(m):
        score = scores[y]
        if not score < threshold or (both and not leaving[y].score < threshold):
            x = y
            break
        i = row_index(batch, j + y)
        row = entering[y]
        row.score, row.time, row.last, row.flag = score, arrivals + y, 0, 0
        row.position = position_at(batch, i)
    if x > 0:
        buffer.gap += x
        group.latest = arrivals + x - 1
        group.limit = max(group.limit, arrivals + x - config.size)
        group.oldest = min(group.expires, rows[first_row(buffer)].time + kind.span - config.size)
    return j + x


steps(Filtered, take_row, drop_rows, skip_rows)
