"""One block of rows in the relaxed k-skyband: what enters, what expires, and what of it is kept.

See relaxed_kernels.py.
"""

from __future__ import annotations

import numpy as np

from skyband.core.operator import ENTRIES
from skyband.kernels.compiling import inlined, part
from skyband.kernels.panes import BLOCK, WIDE, exceeding, largest, skip_scores
from skyband.kernels.ranking import SMALL, ZERO, sort_best_first, trails
from skyband.kernels.skyband import first_row, insert, merge, remove
from skyband.kernels.slabs import reserve
from skyband.problems.rows.algorithms.relaxed.state import FEW, expired_at, flag_of, position_of, time_of
from skyband.problems.rows.drivers.emit_kernels import GONE, OUT, show
from skyband.problems.rows.drivers.row_driver import NEED, first_due, row_index
from skyband.windows import FOREVER

MISSED = 2 * GONE  # in the flag of a row that is let go: it belonged in an answer since


@part
def take_block(g, j, carried, m, horizon, batch, rule, pool, state, work, out):  # type: ignore[no-untyped-def]
    """Bring the first k up to date with rows [carried, m) of the scratch; return the first row not taken.

    clock[NEED] = 0 says that it stopped early, for lack of output room, if only before an expiry after the last row.
    """
    group, clock, score = state.groups[g], state.clock, work.score
    x, alive = carried, ZERO  # rows before `alive` have expired
    refills, bound, bounded = 0, -np.inf, 0  # after a FEW: no row before `bounded` has a score above `bound`
    while True:
        expiry = next_expiry(group, j, j + m - carried, horizon, batch, rule)
        limit = min(m, carried + first_from(batch, j, j + m - carried, expiry) - j)
        tail = pool.rows[first_row(group) + rule.k - 1].score if group.length >= rule.k else -np.inf
        x = first_reaching(score, x, limit, tail)
        if x == limit and expiry == horizon:
            return x
        if rule.each and len(out) - clock[OUT] < 2 * rule.k:
            clock[NEED] = 0
            return x
        i = row_index(batch, j + x - carried) if x < limit else expiry
        arrives = x < m and row_index(batch, j + x - carried) == i
        now = time_of(x, j, carried, batch, rule, group, state.recent[g], pool) if rule.by_count else batch.now[i]
        changed = False
        if i == expiry:
            expired = expired_at(now, rule.size)
            first = expire(group, rule.k, expired, pool)
            while alive < x and time_of(alive, j, carried, batch, rule, group, state.recent[g], pool) <= expired:
                alive += 1
            refills += 1
            if refills > FEW:
                # On falling scores every row expires one and none of the scratch replaces it: worth knowing beforehand.
                for y in range(bounded, x):
                    bound = max(bound, score[y]) if score[y] == score[y] else bound
                bounded = x
            limit_score = bound if refills > FEW else np.inf
            while first < rule.k and refill(
                g, first, alive, x, limit_score, j, carried, now, batch, rule, pool, state, score
            ):
                first += 1
            changed = True
        if arrives:
            if score[x] == score[x] and enter(g, x, j, carried, batch, rule, pool, state):
                score[x] = np.nan
                changed = True
            x += 1
        if changed:
            group.oldest = oldest_of(group, rule.k, pool)
            if rule.each:
                at = now + 1 if rule.by_count else now
                show_first(g, at, i, rule, pool, state, out)


@inlined
def next_expiry(group, j, end, horizon, batch, rule):  # type: ignore[no-untyped-def]
    """The number of the batch's row at which one of the first k expires, or the horizon."""
    if group.length == 0 or rule.size == FOREVER:
        return horizon
    due = group.oldest + rule.size
    if rule.by_count:
        ahead = due - group.arrivals  # rows of this group that come before it
        return row_index(batch, j + ahead) if ahead < end - j else horizon
    return first_due(batch.now, due, horizon)


@inlined
def first_from(batch, j, end, i):  # type: ignore[no-untyped-def]
    """The first of rows j to end of the group that is row i of the batch or a later one."""
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
def first_reaching(score, x, end, threshold):  # type: ignore[no-untyped-def]
    """The first row of [x, end) whose score reaches the threshold, or end."""
    x = skip_scores(score, x, end, threshold)
    while x < end and not score[x] >= threshold:
        x += 1
    return x


@inlined
def expire(group, k, expired, pool):  # type: ignore[no-untyped-def]
    """Take the expired rows out of the first k; return how many are left of these."""
    rank, first = ZERO, min(k, group.length)
    while rank < first:
        if pool.rows[first_row(group) + rank].time <= expired:
            remove(pool, group, rank)
            first -= 1
        else:
            rank += 1
    return first


@part
def refill(g, first, alive, x, bound, j, carried, now, batch, rule, pool, state, score):  # type: ignore[no-untyped-def]
    """Make the best row behind the first ones, from the band or from rows [alive, x) of the scratch, the next of them.

    No row of these has a score above `bound`. False: there is none to take.
    """
    group, recent, rows = state.groups[g], state.recent[g], pool.rows
    while group.length > first and rows[first_row(group) + first].time <= expired_at(now, rule.size):
        remove(pool, group, first)
    waits = group.length > first
    best, threshold = -1, rows[first_row(group) + first].score if waits else -np.inf
    y = first_reaching(score, alive, x, threshold) if bound >= threshold else x
    while y < x:
        # Times never fall in the scratch, so of equal scores the later one ranks first.
        best, threshold = y, score[y]
        y = first_reaching(score, y + 1, x, threshold)
    if best >= 0:
        time = time_of(best, j, carried, batch, rule, group, recent, pool)
        position = position_of(best, j, carried, batch, recent, pool)
        if not waits or trails(rows[first_row(group) + first], score[best], time, position):
            insert(pool, group, first, rule.k, score[best], time, position)
            pool.rows[first_row(group) + first].flag = flag_of(best, carried, recent, pool)
            score[best] = np.nan
            return True
    return waits


@inlined
def enter(g, x, j, carried, batch, rule, pool, state):  # type: ignore[no-untyped-def]
    """Put row x of the scratch among the first k, if it belongs there."""
    group, recent = state.groups[g], state.recent[g]
    score = batch.score[row_index(batch, j + x - carried)]
    time = time_of(x, j, carried, batch, rule, group, recent, pool)
    position = position_of(x, j, carried, batch, recent, pool)
    low, high = 0, min(rule.k, group.length)
    start = first_row(group)
    while low < high:
        middle = (low + high) >> 1
        if trails(pool.rows[start + middle], score, time, position):
            high = middle
        else:
            low = middle + 1
    if low == rule.k:
        return False
    insert(pool, group, low, rule.k, score, time, position)
    return True


@inlined
def oldest_of(group, k, pool):  # type: ignore[no-untyped-def]
    start = first_row(group)
    oldest = pool.rows[start].time if group.length else 0
    for r in range(start, start + min(k, group.length)):
        oldest = min(oldest, pool.rows[r].time)
    return oldest


# -- the end of a block -----------------------------------------------------------------------------------------------


@part
def live_rows(score, m):  # type: ignore[no-untyped-def]
    live = 0
    for x in range(m):
        live += score[x] == score[x]
    return live


@part
def save_recent(g, j, carried, m, batch, rule, pool, state, score):  # type: ignore[no-untyped-def]
    """Leave the rows of [0, m) that are not in the band as the group's recent rows."""
    recent, group = state.recent[g], state.groups[g]
    reserve(pool, recent, m)
    n = 0
    for x in range(m):
        if score[x] == score[x]:
            time = time_of(x, j, carried, batch, rule, group, recent, pool)
            position = position_of(x, j, carried, batch, recent, pool)
            flag = flag_of(x, carried, recent, pool)
            row = pool.rows[recent.offset + n]
            row.score, row.time, row.position, row.last, row.flag = score[x], time, position, 0, flag
            n += 1
    recent.length = n


@part
def settle_block(g, j, carried, m, expired, batch, rule, pool, state, work):  # type: ignore[no-untyped-def]
    """Merge the rows of [0, m) that fewer than k later ones outrank into the band."""
    recent, group = state.recent[g], state.groups[g]
    n = survivors(work.score, m, rule.k, work.best, work.kept)
    for i in range(n):
        x = work.kept[i]
        row = work.rows[i]
        row.score = work.score[x]
        row.time = time_of(x, j, carried, batch, rule, group, recent, pool)
        row.position = position_of(x, j, carried, batch, recent, pool)
        row.last, row.flag = 0, flag_of(x, carried, recent, pool)
    sort_best_first(work.rows, ZERO, n)
    merge(pool, group, work.rows, n, expired, rule.k, work.heap)
    group.pruned = group.length
    recent.length = 0


@part
def survivors(score, m, k, best, kept):  # type: ignore[no-untyped-def]
    """The rows of [0, m) that fewer than k later ones outrank or equal, and perhaps some others; latest first.

    `best` holds the k largest scores met so far, looking backwards, and up to k more before they are sorted out.
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
                    count, threshold = note(best, count, k, score[x], threshold)
    return n


@inlined
def note(best, count, k, s, threshold):  # type: ignore[no-untyped-def]
    """Add a score to the best ones; return how many there are and what a score has to exceed."""
    if k <= SMALL:
        i = min(count, k - 1) if count < k else k - 1
        while i > 0 and best[i - 1] < s:
            best[i] = best[i - 1]
            i -= 1
        best[i] = s
        count = min(count + 1, k)
        return count, best[k - 1] if count == k else -np.inf
    best[count] = s
    count += 1
    if count == k or count == 2 * k:
        return k, largest(best[:count], k - 1)
    return count, threshold


@inlined
def show_first(g, at, order, rule, pool, state, out):  # type: ignore[no-untyped-def]
    """Show the first k rows of group g. There is room for 2k entries."""
    group = state.groups[g]
    n = min(rule.k, group.length)
    if rule.error > 0:
        count_missed(g, n, rule, pool, state)
    show(g, at, order, first_row(group), n, rule.emit, pool, state.shown[g], state.clock, out)


# -- rows whose columns are let go (budgeted.py) -----------------------------------------------------------------------


@part
def let_go(g, rule, pool, state):  # type: ignore[no-untyped-def]
    """Right after the band was pruned: mark its worst rows as gone, as many as may still be missed.

    Every row of the band may be shown one day, so each that is gone counts as if it were missed, until it is dominated.
    Where scores fall most of them are shown: no more are let go then.
    """
    group, spent, rows = state.groups[g], state.spent[g], pool.rows
    allowed = np.int64(rule.error * group.arrivals / rule.size) - spent.missed
    allowed = allowed if group.length <= rule.usual else 0
    if allowed <= 0 and spent.gone == 0:
        return
    start, gone, best = first_row(group), 0, -np.inf
    for r in range(start, start + group.length):
        if rows[r].flag >= GONE and rows[r].flag < MISSED:
            best = rows[r].score if gone == 0 else best
            gone += 1
    r = start + group.length - 1
    while r >= start + rule.candidates and gone < allowed:
        if rows[r].flag < GONE:
            rows[r].flag += GONE
            best = max(best, rows[r].score)
            gone += 1
        r -= 1
    spent.gone, spent.best = gone, best


@inlined
def count_missed(g, n, rule, pool, state):  # type: ignore[no-untyped-def]
    """Before the first n rows are shown: which of these are gone is known, and so is every miss as it happens."""
    group, spent, rows = state.groups[g], state.spent[g], pool.rows
    start = first_row(group)
    if spent.gone == 0 or (n == rule.k and rows[start + n - 1].score > spent.best):
        return
    for r in range(start, start + n):
        flag = rows[r].flag
        if flag >= GONE and flag < MISSED and not (rule.emit == ENTRIES and flag & 1):
            rows[r].flag += MISSED
            spent.gone -= 1
            spent.missed += 1
