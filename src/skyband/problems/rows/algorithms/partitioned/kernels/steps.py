"""The compiled steps of `partitioned`: a short ranked list that is refilled from sorted partitions of the window.

The ranked list has every live row that ranks at or before a threshold. Rows that rank after it wait in the store
(store.py): closed partitions, each of them sorted, and behind them the filling partition, in order of time. A row that
arrives below the threshold is only added to the end of the store. When so many ranked rows have expired that fewer than
k are left, the threshold is lowered: closed partitions are merged from where it cuts them, and the filling partition is
closed early if its rows are needed, too. When too many rows rank before the threshold, it is raised.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.emit import ENTER, LEAVE, is_once, takes_back
from skyband.kernels.compiling import inlined, part
from skyband.kernels.emit import OUT, put
from skyband.kernels.intrinsics import copy_row
from skyband.kernels.queues import make_room, pop_front, push_back, push_in_order, room_behind
from skyband.kernels.ranking import ZERO, ranks_before
from skyband.kernels.skyband import first_row, insert, rank_of, remove
from skyband.problems.rows.algorithms.partitioned.kernels.arrays import (
    EXPIRY,
    LOWEST,
    PARTS,
    RANKED,
    STORE,
    count_ranked,
    reaches_threshold,
)
from skyband.problems.rows.algorithms.partitioned.kernels.store import (
    close_partition,
    forget_all,
    forget_partitions,
    mark_as_shown,
    put_in_order,
    store_rows,
)
from skyband.problems.rows.drivers.row_kernels import row_index
from skyband.problems.rows.drivers.step_kernels import quiet_until, steps
from skyband.windows import NEVER


class Partitions(NamedTuple):
    """The kind of this algorithm, for `step_kernels.steps`."""

    stores: bool  # is there a store? Without one no row expires, and there is only the ranked list
    forgets: bool  # do rows leave the window?
    slack: int  # the ranked list is filled to k + slack rows, and cut to that when it has more than k + 2 slack
    partition: int  # the fewest rows of a partition
    scores: npt.NDArray[np.float64]  # scratch space for k scores


# -- the steps --------------------------------------------------------------------------------------------------------


@inlined
def take_row(kind, g, score, time, position, config, pool, state):
    group, ranked, expiry = state.groups[g], state.lists[RANKED, g], state.lists[EXPIRY, g]
    changed = False
    if reaches_threshold(group, score, time, position):
        group.entered = 1
        rank = rank_of(pool, ranked, score, time, position)
        insert(pool, ranked, rank, config.k, score, time, position)
        push_in_order(pool, expiry, score, time, position, ZERO)
        group.oldest = pool.rows[first_row(expiry)].time
        changed = rank < config.k
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
            close_partition(kind, g, config, pool, state)
    if ranked.length > config.k + 2 * kind.slack:
        raise_threshold(kind, g, config, pool, state)
    return changed


@inlined
def drop_rows(kind, g, limit, config, pool, state):
    group, ranked, expiry = state.groups[g], state.lists[RANKED, g], state.lists[EXPIRY, g]
    group.limit = limit
    best = ranked.length
    while expiry.length > 0:
        row = pool.rows[first_row(expiry)]
        if row.time >= limit:
            break
        # If scores fall, the oldest row is the best one.
        rank = ZERO
        if pool.rows[first_row(ranked)].position != row.position:
            rank = rank_of(pool, ranked, row.score, row.time, row.position)
        pop_front(expiry, 1)
        remove(pool, ranked, rank)
        best = min(best, rank)
    if ranked.length < config.k and group.threshold_time != LOWEST:
        forget_partitions(g, limit, pool, state)
        lower_threshold(kind, g, config, pool, state)
    if expiry.length == 0:
        forget_all(g, state)
    group.oldest = pool.rows[first_row(expiry)].time if expiry.length > 0 else NEVER
    return best < config.k


@inlined
def skip_rows(kind, g, j, end, batch, config, pool, state, out):
    """Take rows below the threshold while no ranked row expires, and then while only the best row does."""
    group = state.groups[g]
    if j >= end or not batch.score[j] < group.threshold:
        return j
    quiet = quiet_until(group, group.oldest, j, end, batch, config)
    if not kind.stores:
        while j < quiet and batch.score[j] < group.threshold:
            j += 1
        return j
    n = store_rows(g, j, quiet, group.arrivals, batch, config, pool, state)
    if j + n < quiet or not config.numbered or config.ahead:
        return j + n
    j, arrivals = j + n, group.arrivals + n
    n = best_leave(g, end - j, arrivals, config, pool, state, out)
    n = store_rows(g, j, j + n, arrivals, batch, config, pool, state)
    if n > 0:
        drop_best(g, j, n, arrivals, batch, config, pool, state, out)
    return j + n


@inlined
def best_leave(g, n, arrivals, config, pool, state, out):
    """For how many of the next n rows the best row leaves the window, one after the other, while k ranked rows stay.

    If scores fall, that happens with every row. The number is limited by the room in the output.
    """
    ranked, expiry = state.lists[RANKED, g], state.lists[EXPIRY, g]
    n = min(n, ranked.length - config.k)
    if not config.each:
        n = min(n, config.every - 1 - arrivals % config.every)
    elif is_once(config.emit) or (takes_back(config.emit) and room_behind(pool, state.shown[g], config.k)):
        n = min(n, (len(out) - state.clock[OUT]) >> 1)
    else:
        return ZERO
    x = ZERO
    if n > 0:
        best, oldest = pool.rows[first_row(ranked) :][:n], pool.rows[first_row(expiry) :][:n]
        while x < n and oldest[x].position == best[x].position and oldest[x].time == arrivals + x - config.size:
            x += 1
    return x


@inlined
def drop_best(g, j, n, arrivals, batch, config, pool, state, out):
    """Drop the best row with each of n rows from j on; the next ranked row enters the answer."""
    group, ranked, expiry = state.groups[g], state.lists[RANKED, g], state.lists[EXPIRY, g]
    if config.each:
        show_next(g, j, n, arrivals, batch, config, pool, state, out)
    pop_front(ranked, n)
    pop_front(expiry, n)
    group.limit = arrivals + n - config.size
    group.oldest = pool.rows[first_row(expiry)].time


@inlined
def show_next(g, j, n, arrivals, batch, config, pool, state, out):
    """Write the changes of the answer for `drop_best`."""
    start, shown, clock = first_row(state.lists[RANKED, g]), state.shown[g], state.clock
    leaving, entering = pool.rows[start:][:n], pool.rows[start + config.k :][:n]
    written, w, one = out[clock[OUT] :], np.uint64(0), np.uint64(1)
    for x in range(n):
        at, order = arrivals + x + 1, row_index(batch, j + x)
        if takes_back(config.emit):
            put(written[w], at, g, 1, leaving[x], LEAVE, order)
            put(written[w + one], at, g, config.k, entering[x], ENTER, order)
            w += one + one
        elif not entering[x].flag:
            put(written[w], at, g, config.k, entering[x], ENTER, order)
            entering[x].flag = 1
            w += one
    clock[OUT] += np.int64(w)
    if takes_back(config.emit):
        gone = min(n, config.k)
        pop_front(shown, gone)
        for x in range(n - gone, n):
            push_back(pool, shown, entering[x].score, entering[x].time, entering[x].position, ZERO)


steps(Partitions, take_row, drop_rows, skip_rows)


# -- the threshold ----------------------------------------------------------------------------------------------------


@part
def set_threshold(group, row):
    group.threshold, group.threshold_time, group.threshold_position = row.score, row.time, row.position


@part
def raise_threshold(kind, g, config, pool, state):
    """Keep the best k + slack ranked rows. The store has the others, too, if an answer may still show them."""
    group, ranked, expiry, rows = state.groups[g], state.lists[RANKED, g], state.lists[EXPIRY, g], pool.rows
    keep, start = config.k + kind.slack, first_row(ranked)
    group.best = max(group.best, rows[start + keep].score)
    if kind.stores and is_once(config.emit):
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
def lower_threshold(kind, g, config, pool, state):
    """Fill the ranked list to k + slack rows, with the best live rows after the threshold.

    Loop invariant: in every closed partition, the first `position` rows are ranked or expired, and the next row ranks
    after all ranked rows.
    """
    group, ranked, rows = state.groups[g], state.lists[RANKED, g], pool.rows
    wanted, complete = config.k + kind.slack, False
    if group.entered:
        set_cursors(g, pool, state)
    else:
        wanted += kind.slack  # as when scores fall, probably no row will reach the threshold now either
    group.entered = 0
    while ranked.length < wanted:
        part, second = best_two(g, pool, state)
        filling = state.lists[STORE, g].length > group.closed
        if filling and (part < 0 or not rows[next_of(g, part, pool, state)].score > group.best):
            close_partition(kind, g, config, pool, state)
            continue
        if part < 0:
            complete = True
            break
        entry = rows[first_row(state.lists[PARTS, g]) + part]
        first = next_of(g, part, pool, state)
        r, stop = first, first + min(entry.last - entry.position, wanted - ranked.length)
        while (
            r < stop
            and (second < 0 or ranks_before(rows[r], rows[second]))
            and (not filling or rows[r].score > group.best)
        ):
            r += 1
        rank_rows(g, first, r - first, pool, state)
        entry.position += r - first
    if complete:
        group.threshold, group.threshold_time, group.threshold_position = -np.inf, LOWEST, -1
    else:
        set_threshold(group, rows[first_row(ranked) + ranked.length - 1])


@part
def rank_rows(g, first, n, pool, state):
    """Add the live rows among n rows, sorted by rank, behind the ranked rows."""
    ranked, expiry, limit = state.lists[RANKED, g], state.lists[EXPIRY, g], state.groups[g].limit
    make_room(pool, ranked, n)
    make_room(pool, expiry, n)
    rows, start, behind = pool.rows, first_row(ranked) + ranked.length, first_row(expiry) + expiry.length
    latest, x = rows[behind - 1].time if expiry.length > 0 else LOWEST, ZERO
    for r in range(first, first + n):
        time = rows[r].time
        if time >= limit:
            copy_row(rows, start + x, rows, r)
            copy_row(rows, behind + x, rows, r)
            if time < latest:
                put_in_order(rows, first_row(expiry), behind + x)
            else:
                latest = time
            x += 1
    ranked.length += x
    expiry.length += x


@part
def set_cursors(g, pool, state):
    """Count for each closed partition the rows that rank at or before the threshold."""
    parts, at = state.lists[PARTS, g], first_row(state.lists[STORE, g])
    for p in range(first_row(parts), first_row(parts) + parts.length):
        entry = pool.rows[p]
        entry.position = count_ranked(state.groups[g], pool.rows, at, entry.last)
        at += entry.flag


@part
def best_two(g, pool, state):
    """The partition whose next row is best, and the index of the second best of all next rows; -1 if there is none."""
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
def next_of(g, part, pool, state):
    """The index of a partition's next row."""
    start, at = first_row(state.lists[PARTS, g]), first_row(state.lists[STORE, g])
    for p in range(start, start + part):
        at += pool.rows[p].flag
    return at + pool.rows[start + part].position
