"""The compiled loops of the relaxed k-skyband.

Rows of a group are taken in blocks. Within a block only two things change the answer: a row that reaches the worst of
the first k, and the expiry of one of these. Both are found without looking at the other rows one by one, so a block
costs three vectorised passes: copy its scores, look for rows that enter, and at its end, backwards, for those that k
later rows do not outrank. Only these are merged into the group's band.

The scratch array of a block starts with the group's recent rows, which an earlier block left unmerged, because they
were few. Scores of rows that are in the band, or dead, are NaN in it. A row that comes before its predecessor in time
starts a new block, so that times never fall within one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from skyband.operators.objects.arriving import LATE, NEED, NOW, UNRANKED
from skyband.operators.objects.showing import OUT, show
from skyband.structures.compiling import inlined, kernel, part
from skyband.structures.panes import BLOCK, WIDE, exceeding, largest, skip_scores
from skyband.structures.ranking import ROW, SMALL, ZERO, sort_best_first
from skyband.structures.skyband import BAND, first_row, insert, merge, remove
from skyband.structures.slabs import CLASSES, HEADER, reserve
from skyband.windows import FOREVER

FEW = 16  # expiries in a block

# By group code: by count, rows so far; the earliest time among the first k; the length when last pruned; the band.
GROUP = np.dtype([("arrivals", np.int64), ("oldest", np.int64), ("pruned", np.int64), *BAND])
LIST = np.dtype(HEADER)


class Rule(NamedTuple):
    k: int
    size: int
    by_count: bool
    every: int  # by count: show every so many arrivals; 0: not at all
    each: bool  # show with each arrival
    emit: int
    block: int  # rows taken together
    slack: int  # a group is pruned when it holds twice what it held after the last time, and so many rows more


class State(NamedTuple):
    """The arrays of all groups. `recent` rows are in arrival order, `shown` ones are the last answer, best first."""

    groups: npt.NDArray[Any]  # of GROUP
    recent: npt.NDArray[Any]  # of LIST
    shown: npt.NDArray[Any]  # of LIST
    clock: npt.NDArray[np.int64]


class Input(NamedTuple):
    """Rows of a batch. Those of group g are order[start[g]:start[g + 1]]; without groups order is empty."""

    score: npt.NDArray[np.float64]
    time: npt.NDArray[np.int64]  # by value
    now: npt.NDArray[np.int64]  # by value: the largest time up to each row
    position: npt.NDArray[np.int64]  # empty: first, first + 1, …
    first: int
    order: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]


class Work(NamedTuple):
    """Scratch of one block, used anew by each."""

    score: npt.NDArray[np.float64]
    best: npt.NDArray[np.float64]  # the largest scores met so far, looking backwards
    kept: npt.NDArray[np.int64]  # which rows survive
    rows: npt.NDArray[Any]  # of ROW
    heap: npt.NDArray[np.int64]


def new_work(rule: Rule, carried: int) -> Work:
    room = rule.block + carried
    return Work(
        np.empty(room, np.float64),
        np.empty(2 * rule.k + SMALL, np.float64),
        np.empty(room, np.int64),
        np.empty(room, ROW),
        np.empty(rule.k, np.int64),
    )


@inlined
def expired_at(now, size):  # type: ignore[no-untyped-def]
    """Rows with this time or an earlier one have left the window; nothing ever leaves a landmark."""
    return now - size if size != FOREVER else -2 * FOREVER


@kernel
def push(g, j, batch, rule, pool, state, work, out):  # type: ignore[no-untyped-def]
    """Take the rows of group g and those after it, from row j of g on; return where it stopped.

    (number of groups, 0) when all are taken; else something ran short, and row j of that group was not touched.
    """
    groups = state.groups
    while g < len(groups):
        j, end = max(j, batch.start[g]), batch.start[g + 1]
        # By value the clock moves with the rows of other groups too.
        if j < end or (not rule.by_count and groups[g].length > 0):
            j = push_group(g, j, end, batch, rule, pool, state, work, out)
            if j < 0:
                return g, -1 - j
        g, j = g + 1, 0
    return g, 0


@njit(inline="always")
def push_group(g, j, end, batch, rule, pool, state, work, out):  # type: ignore[no-untyped-def]
    """Take rows j to end of group g. Returns end, or -1 - row if it stopped before that row."""
    group, clock = state.groups[g], state.clock
    while True:
        if not enough_room(group.length + state.recent[g].length + min(end - j, rule.block), rule, pool, clock, out):
            return -1 - j
        stop, carried, m = fill(g, j, end, batch, rule, pool, state, work.score)
        # Events up to the next row of this group belong to this block.
        horizon = len(batch.score) if stop == end else row_index(batch, stop)
        x = take_block(g, j, carried, m, horizon, batch, rule, pool, state, work, out)
        taken = x - carried
        if not rule.by_count:
            clock[LATE] += late_rows(batch, j, j + taken, rule.size)
        clock[UNRANKED] += unranked_rows(batch, j, j + taken, rule)
        stopped = clock[NEED] == 0
        slides = rule.every > 0 and (group.arrivals + taken) % rule.every == 0 and taken > 0
        live = live_rows(work.score, m)
        full = stop < end and (not slides or live + rule.block > len(work.score))
        if not stopped and (full or group.length + live > 2 * group.pruned + rule.slack):
            now = group.arrivals + taken - 1 if rule.by_count else batch.now[horizon - 1] if horizon else clock[NOW]
            settle_block(g, j, carried, m, expired_at(now, rule.size), batch, rule, pool, state, work)
        else:
            save_recent(g, j, carried, x, batch, rule, pool, state, work.score)
        group.arrivals += taken if rule.by_count else 0
        j += taken
        if stopped:
            return -1 - j
        if slides:
            show_first(g, group.arrivals, row_index(batch, j - 1), rule, pool, state, out)
        if j == end:
            return end


@part
def enough_room(rows, rule, pool, clock, out):  # type: ignore[no-untyped-def]
    """Is there room to take a block that makes so many rows of the group? If not, clock[NEED] says what is missing."""
    clock[NEED] = 16 * (rows + 2 * rule.k)
    if len(pool.rows) - pool.free[CLASSES] < clock[NEED]:
        return False
    if len(out) - clock[OUT] < 2 * rule.k:
        clock[NEED] = 0
        return False
    return True


@inlined
def row_index(batch, j):  # type: ignore[no-untyped-def]
    return batch.order[j] if len(batch.order) else j


@part
def fill(g, j, end, batch, rule, pool, state, score):  # type: ignore[no-untyped-def]
    """Copy the scores of the recent rows and of the block that starts at row j.

    Returns the block's end, how many recent rows there are, and how many rows in all.
    """
    recent = state.recent[g]
    carried = recent.length
    for x in range(carried):
        score[x] = pool.rows[recent.offset + x].score
    room = min(end - j, rule.block)
    if rule.every > 0:
        room = min(room, rule.every - state.groups[g].arrivals % rule.every)
    if rule.by_count:
        stop = j + room
    else:
        latest = pool.rows[recent.offset + carried - 1].time if carried else -FOREVER
        # A row out of order waits until the recent rows are merged: that is a block of none.
        stop = end_of_order(batch, j, j + room, latest)
    if len(batch.order):
        for x in range(stop - j):
            score[carried + x] = batch.score[batch.order[j + x]]
    else:
        for x in range(stop - j):
            score[carried + x] = batch.score[j + x]
    late = 0 if rule.by_count else late_rows(batch, j, stop, rule.size)
    if late:
        for x in range(stop - j):
            if is_late(batch, j + x, rule.size):
                score[carried + x] = np.nan
    return stop, carried, carried + stop - j


@part
def end_of_order(batch, j, end, latest):  # type: ignore[no-untyped-def]
    """The first of rows j to end of the group that is before its predecessor in time; that of j is at `latest`."""
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
def is_late(batch, j, size):  # type: ignore[no-untyped-def]
    i = row_index(batch, j)
    return batch.time[i] <= expired_at(batch.now[i], size)


@part
def late_rows(batch, j, end, size):  # type: ignore[no-untyped-def]
    late = 0
    if size == FOREVER:
        return late
    if len(batch.order) == 0:
        times, nows = batch.time[j:end], batch.now[j:end]
        for y in range(len(times)):
            late += times[y] <= nows[y] - size
    else:
        for y in range(j, end):
            late += is_late(batch, y, size)
    return late


@part
def unranked_rows(batch, j, end, rule):  # type: ignore[no-untyped-def]
    """How many of the group's rows have no score, those that are late apart."""
    unranked = 0
    if len(batch.order) == 0 and rule.by_count:
        scores = batch.score[j:end]
        for y in range(len(scores)):
            unranked += scores[y] != scores[y]
        return unranked
    for y in range(j, end):
        score = batch.score[row_index(batch, y)]
        unranked += score != score and (rule.by_count or not is_late(batch, y, rule.size))
    return unranked


@inlined
def time_of(x, j, carried, batch, rule, group, recent, pool):  # type: ignore[no-untyped-def]
    """The time of row x of the scratch."""
    if x < carried:
        return pool.rows[recent.offset + x].time
    if rule.by_count:
        return group.arrivals + x - carried
    return batch.time[row_index(batch, j + x - carried)]


@inlined
def position_of(x, j, carried, batch, recent, pool):  # type: ignore[no-untyped-def]
    if x < carried:
        return pool.rows[recent.offset + x].position
    i = row_index(batch, j + x - carried)
    return batch.position[i] if len(batch.position) else batch.first + i


@inlined
def flag_of(x, carried, recent, pool):  # type: ignore[no-untyped-def]
    return pool.rows[recent.offset + x].flag if x < carried else 0


# -- one block: what enters and what expires -------------------------------------------------------------------------


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
    low, high = 0, horizon
    while low < high:
        middle = (low + high) >> 1
        if batch.now[middle] >= due:
            high = middle
        else:
            low = middle + 1
    return low


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
        if not waits or outranks(score[best], time, position, rows[first_row(group) + first]):
            insert(pool, group, first, rule.k, score[best], time, position)
            pool.rows[first_row(group) + first].flag = flag_of(best, carried, recent, pool)
            score[best] = np.nan
            return True
    return waits


@inlined
def outranks(score, time, position, row):  # type: ignore[no-untyped-def]
    if score != row.score:
        return score > row.score
    if time != row.time:
        return time > row.time
    return position > row.position


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
        if outranks(score, time, position, pool.rows[start + middle]):
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


# -- all groups at once ----------------------------------------------------------------------------------------------


@inlined
def show_first(g, at, order, rule, pool, state, out):  # type: ignore[no-untyped-def]
    """Show the first k rows of group g. There is room for 2k entries."""
    group = state.groups[g]
    n = min(rule.k, group.length)
    show(g, at, order, first_row(group), n, rule.emit, pool, state.shown[g], state.clock, out)


@kernel
def expire_all(expired, g, rule, pool, state, work):  # type: ignore[no-untyped-def]
    """Merge every group's recent rows and drop what is at `expired` or before. Returns a group it stopped at."""
    groups, recent = state.groups, state.recent
    while g < len(groups):
        m = recent[g].length
        if groups[g].length + m > 0:
            state.clock[NEED] = 16 * (groups[g].length + m + 2 * rule.k)
            if len(pool.rows) - pool.free[CLASSES] < state.clock[NEED]:
                return g
            for x in range(m):
                work.rows[x] = pool.rows[recent[g].offset + x]
            sort_best_first(work.rows, ZERO, m)
            merge(pool, groups[g], work.rows, m, expired, rule.k, work.heap)
            groups[g].pruned = groups[g].length
            recent[g].length = 0
            groups[g].oldest = oldest_of(groups[g], rule.k, pool)
        g += 1
    return g


@kernel
def show_all(at, g, rule, pool, state, out):  # type: ignore[no-untyped-def]
    """Show every group's answer. Returns a group it stopped at for lack of room."""
    while g < len(state.groups):
        short = len(pool.rows) - pool.free[CLASSES] < 4 * rule.k + 8
        if short or len(out) - state.clock[OUT] < 2 * rule.k:
            state.clock[NEED] = 4 * rule.k + 8 if short else 0
            return g
        show_first(g, at, ZERO, rule, pool, state, out)
        g += 1
    return g


@kernel
def find_oldest(groups, k, pool):  # type: ignore[no-untyped-def]
    """Set `oldest` of every group; for restoring."""
    for g in range(len(groups)):
        groups[g].oldest = oldest_of(groups[g], k, pool)
