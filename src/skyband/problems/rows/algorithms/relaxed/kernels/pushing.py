"""The compiled loops of the relaxed k-skyband.

The loop takes the rows of a group in blocks. Within a block only two things change the answer: a row that reaches the
worst of the first k, and the expiry of one of the first k. The loop finds both without looking at the other rows one by
one. A block costs three vectorised passes: one copies its scores, one looks for rows that enter, and one looks
backwards, at the block's end, for rows that fewer than k later ones outrank. Only these join the group's band.

The scratch array of a block starts with the group's recent rows, which an earlier block left unmerged, because they
were few. Scores of rows that are in the band, or dead, are NaN in it. A row that comes before its predecessor in time
starts a new block, so that times never fall within one.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from skyband.kernels.compiling import inlined, kernel, part
from skyband.kernels.emit import OUT
from skyband.kernels.panes import WIDE
from skyband.kernels.ranking import ZERO, sort_best_first
from skyband.kernels.skyband import merge
from skyband.kernels.slabs import CLASSES
from skyband.problems.rows.algorithms.relaxed.kernels.arrays import expired_at, let_go
from skyband.problems.rows.algorithms.relaxed.kernels.blocks import (
    live_rows,
    oldest_of,
    save_recent,
    settle_block,
    show_first,
    take_block,
)
from skyband.problems.rows.drivers.row_kernels import LATE, NEED, NOW, UNRANKED, row_index
from skyband.windows import NEVER


@kernel
def push(g, j, batch, config, pool, state, work, out):
    """Take the rows of group g from j on, and those of all later groups.

    Returns (number of groups, 0) when all are taken. Otherwise room ran short: then it returns the group and the row at
    which it stopped, before touching it.
    """
    groups = state.groups
    while g < len(groups):
        j, end = max(j, batch.start[g]), batch.start[g + 1]
        # Unless rows are numbered, the clock moves with the rows of other groups, too.
        if j < end or (not config.numbered and groups[g].length > 0):
            j = push_group(g, j, end, batch, config, pool, state, work, out)
            if j < 0:
                return g, -1 - j
        g, j = g + 1, 0
    return g, 0


@njit(inline="always")
def push_group(g, j, end, batch, config, pool, state, work, out):
    """Take rows [j, end) of group g. Returns `end`, or -1 - row if it stopped before that row."""
    group, clock = state.groups[g], state.clock
    while True:
        rows = group.length + state.recent[g].length + min(end - j, config.block)
        if not enough_room(rows, config, pool, clock, out):
            return -1 - j
        stop, carried, m = fill(g, j, end, batch, config, pool, state, work.score)
        # Expiries up to the next row of this group belong to this block.
        horizon = len(batch.score) if stop == end else row_index(batch, stop)
        x = take_block(g, j, carried, m, horizon, batch, config, pool, state, work, out)
        taken = x - carried
        if not config.numbered:
            clock[LATE] += late_rows(batch, j, j + taken, config)
        clock[UNRANKED] += unranked_rows(batch, j, j + taken, config)
        stopped = clock[NEED] == 0
        slides = config.every > 0 and (group.arrivals + taken) % config.every == 0 and taken > 0
        full = stop < end and not slides
        if not (full or stopped):
            live = live_rows(work.score, m)
            full = (stop < end and live + config.block > len(work.score)) or (
                group.length + live > 2 * group.pruned + config.slack
            )
        if full and not stopped:
            now = group.arrivals + taken - 1 if config.numbered else batch.now[horizon - 1] if horizon else clock[NOW]
            settle_block(g, j, carried, m, expired_at(now, config), batch, config, pool, state, work)
        else:
            save_recent(g, j, carried, x, batch, config, pool, state, work.score)
        group.arrivals += taken if config.numbered else 0
        j += taken
        if config.error > 0 and full and not stopped:
            let_go(g, config, pool, state)
        if stopped:
            return -1 - j
        if slides:
            show_first(g, group.arrivals, row_index(batch, j - 1), config, pool, state, out)
        if j == end:
            return end


@part
def enough_room(rows, config, pool, clock, out):
    """Is there room for a block that brings the group to this many rows? If not, clock[NEED] has the entries needed."""
    clock[NEED] = 16 * (rows + 2 * config.k)
    if len(pool.rows) - pool.free[CLASSES] < clock[NEED]:
        return False
    if len(out) - clock[OUT] < 2 * config.k:
        clock[NEED] = 0
        return False
    return True


@part
def fill(g, j, end, batch, config, pool, state, score):
    """Copy the scores of the recent rows and of the block that starts at row j.

    Returns the block's end, the number of recent rows, and the number of all rows.
    """
    recent = state.recent[g]
    carried = recent.length
    for x in range(carried):
        score[x] = pool.rows[recent.offset + x].score
    room = min(end - j, config.block)
    if config.every > 0:
        room = min(room, config.every - state.groups[g].arrivals % config.every)
    if config.numbered:
        stop = j + room
    else:
        latest = pool.rows[recent.offset + carried - 1].time if carried else -NEVER
        # A row out of order waits until the recent rows are merged, so this block may be empty.
        stop = end_of_order(batch, j, j + room, latest)
    if len(batch.order):
        for x in range(stop - j):
            score[carried + x] = batch.score[batch.order[j + x]]
    else:
        source, target = batch.score[j:stop], score[carried : carried + stop - j]
        for x in range(len(target)):
            target[x] = source[x]
    late = 0 if config.numbered else late_rows(batch, j, stop, config)
    if late:
        for x in range(stop - j):
            if is_late(batch, j + x, config):
                score[carried + x] = np.nan
    return stop, carried, carried + stop - j


@part
def end_of_order(batch, j, end, latest):
    """The first of the group's rows [j, end) that is earlier than its predecessor; that of row j has time `latest`."""
    while j < end:
        if len(batch.order) == 0 and j + WIDE < end and batch.time[j] >= latest:
            times, falls = batch.time[j : j + WIDE + 1], 0
            for y in range(WIDE):
                falls += times[y + 1] < times[y]
            if falls == 0:
                j += WIDE
                latest = times[WIDE]
                continue
        time = batch.time[row_index(batch, j)]
        if time < latest:
            break
        latest = time
        j += 1
    return j


@inlined
def is_late(batch, j, config):
    i = row_index(batch, j)
    return batch.time[i] <= expired_at(batch.now[i], config)


@part
def late_rows(batch, j, end, config):
    late = 0
    if not config.expires:
        return late
    if len(batch.order) == 0:
        times, nows = batch.time[j:end], batch.now[j:end]
        for y in range(len(times)):
            late += times[y] <= nows[y] - config.size
    else:
        for y in range(j, end):
            late += is_late(batch, y, config)
    return late


@part
def unranked_rows(batch, j, end, config):
    """How many of the group's rows have no score, without late ones."""
    unranked = 0
    if len(batch.order) == 0 and config.numbered:
        scores = batch.score[j:end]
        for y in range(len(scores)):
            unranked += scores[y] != scores[y]
        return unranked
    for y in range(j, end):
        score = batch.score[row_index(batch, y)]
        unranked += score != score and (config.numbered or not is_late(batch, y, config))
    return unranked


# -- all groups at once ----------------------------------------------------------------------------------------------


@kernel
def expire_all(expired, g, config, pool, state, work):
    """Merge the recent rows of group g and all later ones, and drop rows up to the time `expired`. Returns the group at
    which room ran short, or the number of groups."""
    groups, recent = state.groups, state.recent
    while g < len(groups):
        m = recent[g].length
        if groups[g].length + m > 0:
            state.clock[NEED] = 16 * (groups[g].length + m + 2 * config.k)
            if len(pool.rows) - pool.free[CLASSES] < state.clock[NEED]:
                return g
            for x in range(m):
                work.rows[x] = pool.rows[recent[g].offset + x]
            sort_best_first(work.rows, ZERO, m)
            merge(pool, groups[g], work.rows, m, expired, config.k, work.heap)
            groups[g].pruned = groups[g].length
            recent[g].length = 0
            groups[g].oldest = oldest_of(groups[g], config.k, pool)
        g += 1
    return g


@kernel
def show_all(at, g, config, pool, state, out):
    """Show the answers of group g and all later ones. Returns the group at which room ran short, or the number of
    groups."""
    while g < len(state.groups):
        short = len(pool.rows) - pool.free[CLASSES] < 4 * config.k + 8
        if short or len(out) - state.clock[OUT] < 2 * config.k:
            state.clock[NEED] = 4 * config.k + 8 if short else 0
            return g
        show_first(g, at, ZERO, config, pool, state, out)
        g += 1
    return g


@kernel
def find_oldest(groups, k, pool):
    """Set `oldest` of every group, after a restore."""
    for g in range(len(groups)):
        groups[g].oldest = oldest_of(groups[g], k, pool)
