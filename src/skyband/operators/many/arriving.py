"""Where an answer is due with each arrival: what rows do to the lists of queries, compiled."""

from __future__ import annotations

from skyband.operators.many.lists_kernels import EVERY_ROW, LATEST, most_rows, place, reaches, say, shift, trim
from skyband.operators.protocol import CHANGES, ENTER, ENTRIES, LEAVE
from skyband.structures.compiling import inlined, kernel, part
from skyband.structures.moving import copy_row
from skyband.structures.prefetching import prefetch
from skyband.structures.ranking import ranks_before, trails
from skyband.structures.slabs import CLASSES, reserve


@kernel
def arrive(  # type: ignore[no-untyped-def]
    which,
    swept,
    begin,
    stop,
    ends,
    hit,
    score,
    time,
    position,
    now,
    counted,
    order,
    queries,
    threshold,
    pool,
    emit,
    out,
    written,
    failed,
    aside,
):
    """Rows come, one by one, and after each the answer is due: the hits of the queries which[begin:stop].

    The hits of the j-th end at ends[j], and begin where those of the one before end. `now` is the clock after each row.
    Queries of whose lists too little would be left are put into `failed`, and are as before. Returns the query to go on
    with if there was no room in the pool or in `out`, the lines written, and how many failed.
    """
    last, failures = len(now) - 1, 0
    for j in range(begin, stop):
        fetch(which, j, stop, queries, pool)
        q = which[j]
        query = queries[q]
        p, p_end = ends[j - 1] if j > swept else 0, ends[j]
        horizon = now[last] - query.size  # what is later outlives these rows
        if p == p_end and query.oldest > horizon:
            continue
        need = query.length + p_end - p
        if len(out) - written < 4 * need or len(pool.rows) - pool.free[CLASSES] < 4 * need + 16:
            return j, written, failures
        if query.edge_position != EVERY_ROW and not outlasts(pool.rows, query, threshold[q], horizon):
            failed[failures] = j
            failures += 1
            continue
        written = take_in(
            query, q, p, p_end, hit, score, time, position, now, counted, order, threshold, pool, emit, out, written,
            aside,
        )  # fmt: skip
    return stop, written, failures


@part
def take_in(  # type: ignore[no-untyped-def]
    query, q, p, p_end, hit, score, time, position, now, counted, order, threshold, pool, emit, out, written, aside
):
    """Rows come to one query, hits [p, p_end), and others leave its window; returns the lines written.

    Meanwhile its list is in three parts, each best first: the answer [0, t); the rows [low, n) that were behind it;
    and, in aside[s:s_end], those that came since and are in no answer. All rows of the first rank before all others.
    """
    last, k, size = len(now) - 1, query.k, query.size
    horizon = now[last] - size  # what is later outlives these rows,
    lasting = horizon + (now[last] - now[0]) + 1  # and what is from here on as many more
    reserve(pool, query, min(query.length + p_end - p, most_rows(query) + 2))
    rows, base, n = pool.rows, query.offset, query.length
    t = low = min(k, n)
    s = s_end = 0
    oldest = oldest_of(rows, base, t)  # of the answer
    by_time = expires(now, last, oldest, size)
    while True:
        by_hit = hit[p] if p < p_end else last + 1
        i = min(by_hit, by_time)
        if i > last:
            break
        at, expired, before = now[i] + counted, now[i] - size, oldest
        new = k  # the place of the row in the answer, if it has one there
        if by_time == i:
            if emit == CHANGES:
                written = say_expired(rows, base, t, expired, out, written, at, q, order + i)
            t, oldest = drop_until(rows, base, t, expired)
        if by_hit == i:
            if time[i] > expired and reaches(score[p], time[i], position[i], threshold[q], query):
                if t == 0 or not trails(rows[base + t - 1], score[p], time[i], position[i]):
                    place(aside, s, s_end - s, score[p], time[i], position[i])
                    s_end += 1
                else:
                    if t == k:
                        t -= 1
                        if emit == CHANGES:
                            say(out, written, at, q, k, rows[base + t], order + i, LEAVE)
                            written += 1
                        low, s, s_end = put_behind(rows, base, t, low, aside, s, s_end)
                        if rows[base + t].time <= oldest:
                            oldest = oldest_of(rows, base, t)
                    new = place(rows, base, t, score[p], time[i], position[i])
                    oldest = min(oldest, time[i])
                    t += 1
            p += 1
        shown = t
        if t < k:
            t, low, s, oldest = fill_up(rows, base, t, k, low, n, aside, s, s_end, expired, oldest)
        if low < t:
            low = n = t  # there is nothing behind the answer
        for x in range(min(new, shown), t):
            if (x == new or x >= shown) and (emit == CHANGES or rows[base + x].flag == 0):
                say(out, written, at, q, x + 1, rows[base + x], order + i, ENTER)
                written += 1
                rows[base + x].flag = emit == ENTRIES
        if oldest != before:
            by_time = expires(now, last, oldest, size)
        if s_end == len(aside):
            n, _ = together(pool, query, t, low, n, aside, s, s_end, expired, oldest)
            n = trimmed(rows, query, n, q, threshold, lasting)
            base, t = query.offset, min(k, n)
            low, s, s_end = t, 0, 0
    n, query.oldest = together(pool, query, t, low, n, aside, s, s_end, horizon, oldest)
    query.length = trimmed(rows, query, n, q, threshold, lasting)
    return written


@inlined
def fetch(which, j, stop, queries, pool):  # type: ignore[no-untyped-def]
    """Have the lists on their way that come next: they lie anywhere, and to wait for them would take long."""
    if j + 8 < stop:
        prefetch(queries, which[j + 8])
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
def say_expired(rows, base, t, expired, out, written, at, q, order):  # type: ignore[no-untyped-def]
    """Say which rows of the answer have expired; returns the lines written."""
    for x in range(t):
        if rows[base + x].time <= expired:
            say(out, written, at, q, x + 1, rows[base + x], order, LEAVE)
            written += 1
    return written


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
def expires(now, last, oldest, size):  # type: ignore[no-untyped-def]
    """The row with which the oldest one leaves the window; behind the last one if it stays."""
    if oldest > now[last] - size:  # so that nothing overflows where there is none
        return last + 1
    at = oldest + size
    # By count, and where a row comes with each tick, it is known at once.
    guess = at - now[0]
    if 0 < guess <= last and now[guess] >= at and now[guess - 1] < at:
        return guess
    low, high = 0, last
    while low < high:
        middle = (low + high) >> 1
        if now[middle] >= at:
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
