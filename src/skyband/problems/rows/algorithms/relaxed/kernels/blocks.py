"""One block of rows in the relaxed k-skyband: the rows that enter, expire, and are kept."""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import inlined, part
from skyband.kernels.emit import OUT, show
from skyband.kernels.heap import note_score
from skyband.kernels.panes import BLOCK, WIDE, exceeding, skip_scores
from skyband.kernels.ranking import ZERO, sort_best_first, trails
from skyband.kernels.skyband import first_row, insert, merge, remove
from skyband.kernels.slabs import reserve
from skyband.problems.rows.algorithms.relaxed.kernels.arrays import (
    FEW,
    count_missed,
    expired_at,
    flag_of,
    position_of,
    time_of,
)
from skyband.problems.rows.drivers.row_kernels import NEED, first_due, row_index


@part
def take_block(g, j, carried, m, horizon, batch, config, pool, state, work, out):
    """Bring the first k up to date with rows [carried, m) of the scratch space. Returns the first row not taken.

    It stops early, with clock[NEED] = 0, if the output has no room, even if only for an expiry after the last row.
    """
    group, clock, score = state.groups[g], state.clock, work.score
    x, alive = carried, ZERO  # rows before `alive` have expired
    refills, bound, bounded = 0, -np.inf, 0  # after FEW refills, no row before `bounded` has a score above `bound`
    while True:
        expiry = next_expiry(group, j, j + m - carried, horizon, batch, config)
        limit = min(m, carried + first_from(batch, j, j + m - carried, expiry) - j)
        tail = pool.rows[first_row(group) + config.k - 1].score if group.length >= config.k else -np.inf
        x = first_reaching(score, x, limit, tail)
        if x == limit and expiry == horizon:
            return x
        if config.each and len(out) - clock[OUT] < 2 * config.k:
            clock[NEED] = 0
            return x
        i = row_index(batch, j + x - carried) if x < limit else expiry
        arrives = x < m and row_index(batch, j + x - carried) == i
        now = time_of(x, j, carried, batch, config, group, state.recent[g], pool) if config.numbered else batch.now[i]
        changed = False
        if i == expiry:
            expired = expired_at(now, config)
            first = expire(group, config.k, expired, pool)
            while alive < x and time_of(alive, j, carried, batch, config, group, state.recent[g], pool) <= expired:
                alive += 1
            refills += 1
            if refills > FEW:
                # If scores fall, a row expires with each arrival, and no row of the scratch space replaces it: the
                # bound tells so at once.
                for y in range(bounded, x):
                    bound = max(bound, score[y]) if score[y] == score[y] else bound
                bounded = x
            limit_score = bound if refills > FEW else np.inf
            while first < config.k and refill(
                g, first, alive, x, limit_score, j, carried, now, batch, config, pool, state, score
            ):
                first += 1
            changed = True
        if arrives:
            if score[x] == score[x] and enter(g, x, j, carried, batch, config, pool, state):
                score[x] = np.nan
                changed = True
            x += 1
        if changed:
            group.oldest = oldest_of(group, config.k, pool)
            if config.each:
                at = now + 1 if config.numbered else now
                show_first(g, at, i, config, pool, state, out)


@inlined
def next_expiry(group, j, end, horizon, batch, config):
    """The row of the batch with which one of the first k expires; otherwise the horizon."""
    if group.length == 0 or not config.expires:
        return horizon
    due = group.oldest + config.size
    if config.numbered:
        ahead = due - group.arrivals  # rows of this group that come before it
        return row_index(batch, j + ahead) if ahead < end - j else horizon
    return first_due(batch.now, due, horizon)


@inlined
def first_from(batch, j, end, i):
    """The first of the group's rows [j, end) that is row i of the batch or a later one."""
    if len(batch.order) == 0:
        return min(max(i, j), end)
    low, high = j, end
    while low < high:
        middle = (low + high) >> 1
        if batch.order[middle] >= i:
            high = middle
        else:
            low = middle + 1
    return low


@part
def first_reaching(score, x, end, threshold):
    """The first row of [x, end) whose score reaches the threshold; otherwise `end`."""
    x = skip_scores(score, x, end, threshold)
    while x < end and not score[x] >= threshold:
        x += 1
    return x


@inlined
def expire(group, k, expired, pool):
    """Remove expired rows from the first k. Returns how many of the first k are left."""
    rank, first = ZERO, min(k, group.length)
    while rank < first:
        if pool.rows[first_row(group) + rank].time <= expired:
            remove(pool, group, rank)
            first -= 1
        else:
            rank += 1
    return first


@part
def refill(g, first, alive, x, bound, j, carried, now, batch, config, pool, state, score):
    """Put the best other row, from the band or from rows [alive, x) of the scratch space, behind the `first` rows.

    No such row of the scratch space has a score above `bound`. Returns False if there is no other row.
    """
    group, recent, rows = state.groups[g], state.recent[g], pool.rows
    while group.length > first and rows[first_row(group) + first].time <= expired_at(now, config):
        remove(pool, group, first)
    waits = group.length > first
    best, threshold = -1, rows[first_row(group) + first].score if waits else -np.inf
    y = first_reaching(score, alive, x, threshold) if bound >= threshold else x
    while y < x:
        # Times never fall in the scratch space, so among equal scores the later row ranks first.
        best, threshold = y, score[y]
        y = first_reaching(score, y + 1, x, threshold)
    if best >= 0:
        time = time_of(best, j, carried, batch, config, group, recent, pool)
        position = position_of(best, j, carried, batch, recent, pool)
        if not waits or trails(rows[first_row(group) + first], score[best], time, position):
            insert(pool, group, first, config.k, score[best], time, position)
            pool.rows[first_row(group) + first].flag = flag_of(best, carried, recent, pool)
            score[best] = np.nan
            return True
    return waits


@inlined
def enter(g, x, j, carried, batch, config, pool, state):
    """Put row x of the scratch space among the first k, if it belongs there."""
    group, recent = state.groups[g], state.recent[g]
    score = batch.score[row_index(batch, j + x - carried)]
    time = time_of(x, j, carried, batch, config, group, recent, pool)
    position = position_of(x, j, carried, batch, recent, pool)
    low, high = 0, min(config.k, group.length)
    start = first_row(group)
    while low < high:
        middle = (low + high) >> 1
        if trails(pool.rows[start + middle], score, time, position):
            high = middle
        else:
            low = middle + 1
    if low == config.k:
        return False
    insert(pool, group, low, config.k, score, time, position)
    return True


@inlined
def oldest_of(group, k, pool):
    start = first_row(group)
    oldest = pool.rows[start].time if group.length else 0
    for r in range(start, start + min(k, group.length)):
        oldest = min(oldest, pool.rows[r].time)
    return oldest


# -- the end of a block -----------------------------------------------------------------------------------------------


@part
def live_rows(score, m):
    live = 0
    for x in range(m):
        live += score[x] == score[x]
    return live


@part
def save_recent(g, j, carried, m, batch, config, pool, state, score):
    """Make the rows of [0, m) that are not in the band the group's recent rows."""
    recent, group = state.recent[g], state.groups[g]
    reserve(pool, recent, m)
    n = 0
    for x in range(m):
        if score[x] == score[x]:
            time = time_of(x, j, carried, batch, config, group, recent, pool)
            position = position_of(x, j, carried, batch, recent, pool)
            flag = flag_of(x, carried, recent, pool)
            row = pool.rows[recent.offset + n]
            row.score, row.time, row.position, row.last, row.flag = score[x], time, position, 0, flag
            n += 1
    recent.length = n


@part
def settle_block(g, j, carried, m, expired, batch, config, pool, state, work):
    """Merge the rows of [0, m) that fewer than k later rows outrank into the band."""
    recent, group = state.recent[g], state.groups[g]
    n = survivors(work.score, m, config.k, work.best, work.kept)
    for i in range(n):
        x = work.kept[i]
        row = work.rows[i]
        row.score = work.score[x]
        row.time = time_of(x, j, carried, batch, config, group, recent, pool)
        row.position = position_of(x, j, carried, batch, recent, pool)
        row.last, row.flag = 0, flag_of(x, carried, recent, pool)
    sort_best_first(work.rows, ZERO, n)
    merge(pool, group, work.rows, n, expired, config.k, work.heap)
    group.pruned = group.length
    recent.length = 0


@part
def survivors(score, m, k, best, kept):
    """Find the rows of [0, m) that fewer than k later rows outrank or equal, and perhaps some others; latest first.

    `best` has the k largest scores so far, going backwards, and up to k more until they are sorted out.
    """
    n, count, threshold = ZERO, ZERO, -np.inf
    for wide in range((m - 1) // WIDE, -1, -1):
        top = min(m, (wide + 1) * WIDE)
        if count >= k and exceeding(score[wide * WIDE : top], threshold) == 0:
            continue
        for narrow in range((top - 1) // BLOCK, wide * WIDE // BLOCK - 1, -1):
            low, high = narrow * BLOCK, min(top, (narrow + 1) * BLOCK)
            if count >= k and exceeding(score[low:high], threshold) == 0:
                continue
            for x in range(high - 1, low - 1, -1):
                if score[x] > threshold or (count < k and score[x] == score[x]):
                    kept[n] = x
                    n += 1
                    count, threshold = note_score(best, count, k, score[x], threshold)
    return n


@inlined
def show_first(g, at, order, config, pool, state, out):
    """Show the first k rows of group g. There is room for 2k entries."""
    group = state.groups[g]
    n = min(config.k, group.length)
    if config.error > 0:
        count_missed(g, n, config, pool, state)
    show(g, at, order, first_row(group), n, config.emit, pool, state.shown[g], state.clock, out)
