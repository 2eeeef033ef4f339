"""Where an answer is due with each arrival: what rows do to the lists of queries, compiled."""

from __future__ import annotations

from skyband.operators.many.lists_kernels import (
    EVERY_ROW,
    LATEST,
    clock_after,
    most_rows,
    place,
    position_of,
    reaches,
    say,
    shift,
    time_of,
    trim,
)
from skyband.operators.protocol import CHANGES, ENTER, ENTRIES, LEAVE
from skyband.structures.compiling import inlined, kernel, part
from skyband.structures.moving import copy_row
from skyband.structures.prefetching import prefetch
from skyband.structures.ranking import ranks_before, trails
from skyband.structures.slabs import CLASSES, reserve


@kernel
def arrive(  # type: ignore[no-untyped-def]
    which, swept, begin, stop, hits, arrivals, counted, order, queries, threshold, pool, emit, told, failed, aside
):
    """Rows come, one by one, and after each the answer is due: the hits of the queries which[begin:stop].

    The hits of the j-th end at hits.ends[j], and begin where those of the one before end. Queries of whose lists too
    little would be left are put into `failed`, and are as before. Returns the query to go on with if there was no room
    in the pool or for lines, and how many failed.
    """
    failures = 0
    for j in range(begin, stop):
        fetch(which, j, stop, queries, threshold, pool)
        q = which[j]
        query = queries[q]
        p, p_end = hits.ends[j - 1] if j > swept else 0, hits.ends[j]
        horizon = arrivals.now[-1] - query.size  # what is later outlives these rows
        if p == p_end and query.oldest > horizon:
            continue
        need = query.length + p_end - p
        if len(told.lines) - told.written[0] < 4 * need or len(pool.rows) - pool.free[CLASSES] < 4 * need + 16:
            return j, failures
        if query.edge_position != EVERY_ROW and not outlasts(pool.rows, query, threshold[q], horizon):
            failed[failures] = j
            failures += 1
            continue
        take_in(query, q, p, p_end, hits, arrivals, counted, order, threshold, pool, emit, told, aside)
    return stop, failures


@part
def take_in(query, q, p, p_end, hits, arrivals, counted, order, threshold, pool, emit, told, aside):  # type: ignore[no-untyped-def]
    """Rows come to one query, hits [p, p_end), and others leave its window.

    Meanwhile its list is in three parts, each best first: the answer [0, t); the rows [low, n) that were behind it;
    and, in aside[s:s_end], those that came since and are in no answer. All rows of the first rank before all others.
    """
    k, size, last = query.k, query.size, len(arrivals.now) - 1
    horizon = arrivals.now[last] - size  # what is later outlives these rows,
    lasting = horizon + (arrivals.now[last] - arrivals.now[0]) + 1  # and what is from here on as many more
    reserve(pool, query, min(query.length + p_end - p, most_rows(query) + 2))
    rows, base, n = pool.rows, query.offset, query.length
    t = low = min(k, n)
    s = s_end = 0
    oldest = oldest_of(rows, base, t)  # of the answer
    by_time = expires(arrivals, oldest, size)
    while True:
        by_hit = hits.row[p] if p < p_end else last + 1
        i = min(by_hit, by_time)
        if i > last:
            break
        at, expired, before = clock_after(arrivals, i) + counted, clock_after(arrivals, i) - size, oldest
        new = k  # the place of the row in the answer, if it has one there
        if by_time == i:
            if emit == CHANGES:
                say_expired(rows, base, t, expired, told, at, q, order + i)
            t, oldest = drop_until(rows, base, t, expired)
        if by_hit == i:
            score, time, position = hits.score[p], time_of(arrivals, i), position_of(arrivals, i)
            p += 1
            if time <= expired or not reaches(score, time, position, threshold[q], query):
                pass  # it came late, or the list has been trimmed since it was found
            elif t == 0 or not trails(rows[base + t - 1], score, time, position):
                place(aside, s, s_end - s, score, time, position)
                s_end += 1
            else:
                if t == k:
                    t -= 1
                    if emit == CHANGES:
                        say(told, at, q, k, rows[base + t], order + i, LEAVE)
                    low, s, s_end = put_behind(rows, base, t, low, aside, s, s_end)
                    if rows[base + t].time <= oldest:
                        oldest = oldest_of(rows, base, t)
                new = place(rows, base, t, score, time, position)
                oldest = min(oldest, time)
                t += 1
        shown = t
        if t < k:
            t, low, s, oldest = fill_up(rows, base, t, k, low, n, aside, s, s_end, expired, oldest)
        if low < t:
            low = n = t  # there is nothing behind the answer
        for x in range(min(new, shown), t):
            if (x == new or x >= shown) and (emit == CHANGES or rows[base + x].flag == 0):
                say(told, at, q, x + 1, rows[base + x], order + i, ENTER)
                rows[base + x].flag = emit == ENTRIES
        if oldest != before:
            by_time = expires(arrivals, oldest, size)
        if s_end == len(aside):
            n, _ = together(pool, query, t, low, n, aside, s, s_end, expired, oldest)
            n = trimmed(rows, query, n, q, threshold, lasting)
            base, t = query.offset, min(k, n)
            low, s, s_end = t, 0, 0
    n, query.oldest = together(pool, query, t, low, n, aside, s, s_end, horizon, oldest)
    query.length = trimmed(rows, query, n, q, threshold, lasting)


@inlined
def fetch(which, j, stop, queries, threshold, pool):  # type: ignore[no-untyped-def]
    """Have the lists on their way that come next: they lie anywhere, and to wait for them would take long."""
    if j + 8 < stop:
        prefetch(queries, which[j + 8])
        prefetch(threshold, which[j + 8])
    if j + 4 < stop:
        following = queries[which[j + 4]]
        for x in range(following.offset, following.offset + min(following.length, 48)):
            prefetch(pool.rows, x)


@inlined
def outlasts(rows, query, threshold, horizon):  # type: ignore[no-untyped-def]
    """Are there k rows before the edge of the list that are later than the horizon?"""
    left = query.k
    for x in range(query.offset, query.offset + query.length):
        if not reaches(rows[x].score, rows[x].time, rows[x].position, threshold, query):
            return False
        left -= rows[x].time > horizon
        if left == 0:
            return True
    return False


@inlined
def say_expired(rows, base, t, expired, told, at, q, order):  # type: ignore[no-untyped-def]
    """Say which rows of the answer have expired."""
    for x in range(t):
        if rows[base + x].time <= expired:
            say(told, at, q, x + 1, rows[base + x], order, LEAVE)


@inlined
def put_behind(rows, base, t, low, aside, s, s_end):  # type: ignore[no-untyped-def]
    """Put the row at t, which ranks before all behind the answer, there: where one has gone into the answer, or aside.

    Returns where the other two parts of the list begin, and where the last one ends.
    """
    if low > t + 1:
        copy_row(rows, base + low - 1, rows, base + t)
        return low - 1, s, s_end
    if s == 0:
        shift(aside, 1, 0, s_end)
        s, s_end = 1, s_end + 1
    copy_row(aside, s - 1, rows, base + t)
    return low, s - 1, s_end


@part
def fill_up(rows, base, t, k, low, n, aside, s, s_end, expired, oldest):  # type: ignore[no-untyped-def]
    """Take the best rows behind the answer that have not expired into it, until it has k.

    Returns its length, where the other two parts begin, and the oldest time in it.
    """
    while t < k:
        while low < n and rows[base + low].time <= expired:
            low += 1
        while s < s_end and aside[s].time <= expired:
            s += 1
        if low < n and (s == s_end or ranks_before(rows[base + low], aside[s])):
            copy_row(rows, base + t, rows, base + low)
            low += 1
        elif s < s_end:
            copy_row(rows, base + t, aside, s)
            s += 1
        else:
            break
        oldest = min(oldest, rows[base + t].time)
        t += 1
    return t, low, s, oldest


@part
def together(pool, query, t, low, n, aside, s, s_end, expired, oldest):  # type: ignore[no-untyped-def]
    """Put the three parts of a list together, without rows that have expired; returns its length, and the oldest time
    in it, which in the first part is given."""
    query.length = n
    reserve(pool, query, t + n - low + s_end - s)
    rows, base, end, kept = pool.rows, query.offset, t, s
    for x in range(low, n):  # without a branch, which nobody could guess
        at = rows[base + x].time
        copy_row(rows, base + end, rows, base + x)
        end += at > expired
        oldest = min(oldest, at if at > expired else oldest)
    for x in range(s, s_end):
        at = aside[x].time
        copy_row(aside, kept, aside, x)
        kept += at > expired
        oldest = min(oldest, at if at > expired else oldest)
    behind = end  # rows from here on are in their places
    for y in range(kept - 1, s - 1, -1):
        x = behind
        while x > t and ranks_before(aside[y], rows[base + x - 1]):
            x -= 1
        shift(rows, base + x + (y - s + 1), base + x, behind - x)
        copy_row(rows, base + x + (y - s), aside, y)
        behind = x
    return end + kept - s, oldest


@inlined
def trimmed(rows, query, n, q, threshold, first):  # type: ignore[no-untyped-def]
    """Trim a list that is too long to rows of which as many as are wanted are from `first` on."""
    return trim(rows, query.offset, n, q, query, threshold, first, LATEST) if n > most_rows(query) else n


@inlined
def expires(arrivals, oldest, size):  # type: ignore[no-untyped-def]
    """The row with which the oldest one leaves the window; behind the last one if it stays."""
    now = arrivals.now
    if oldest > now[-1] - size:  # so that nothing overflows where there is none
        return len(now)
    if arrivals.by_count:
        return max(0, oldest + size - now[0])
    low, high = 0, len(now) - 1
    while low < high:
        middle = (low + high) >> 1
        if now[middle] >= oldest + size:
            high = middle
        else:
            low = middle + 1
    return low


@inlined
def oldest_of(rows, base, n):  # type: ignore[no-untyped-def]
    oldest = LATEST
    for x in range(base, base + n):
        oldest = min(oldest, rows[x].time)
    return oldest


@inlined
def drop_until(rows, base, n, expired):  # type: ignore[no-untyped-def]
    """Drop the rows that have expired. Returns how many are left, and the oldest time among these."""
    kept, begin, oldest = 0, 0, LATEST
    for x in range(n):
        at = rows[base + x].time
        if at > expired:
            oldest = min(oldest, at)
        else:
            shift(rows, base + kept, base + begin, x - begin)
            kept += x - begin
            begin = x + 1
    shift(rows, base + kept, base + begin, n - begin)
    return kept + n - begin, oldest
