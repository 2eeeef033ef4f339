"""Where an answer is due with each arrival: what rows do to the lists of queries, compiled."""

from __future__ import annotations

from skyband.operators.many.lists_kernels import (
    EVERY_ROW,
    LATEST,
    clock_after,
    most_rows,
    place,
    position_of,
    put,
    reaches,
    say,
    shift,
    time_of,
    trim,
)
from skyband.operators.protocol import CHANGES, ENTER, ENTRIES, LEAVE
from skyband.structures.compiling import inlined, kernel, part
from skyband.structures.moving import copy_row, row_at
from skyband.structures.prefetching import prefetch
from skyband.structures.ranking import trails
from skyband.structures.slabs import CLASSES, reserve

MORE = 64  # hits that a short list takes in at a time
SORTED = 8  # rows of a list that are kept best first, beside twice those of an answer


@kernel
def arrive(  # type: ignore[no-untyped-def]
    which, swept, begin, stop, hits, arrivals, counted, order, queries, threshold, pool, emit, told, failed
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
        horizon = arrivals.last_now - query.size  # what is later outlives these rows
        if p == p_end and query.oldest > horizon:
            continue
        need = query.length + p_end - p
        if len(told.lines) - told.written[0] < 4 * need or len(pool.rows) - pool.free[CLASSES] < 4 * need + 16:
            return j, failures
        near = nearest(pool.rows, query, threshold[q], horizon, arrivals.before - query.size)
        if near < 0 and query.edge_position != EVERY_ROW:
            failed[failures] = j
            failures += 1
            continue
        take_in(query, q, near, p, p_end, hits, arrivals, counted, order, threshold, pool, emit, told)
    return stop, failures


@inlined
def fetch(which, j, stop, queries, threshold, pool):  # type: ignore[no-untyped-def]
    """Have the lists on their way that come next: they lie anywhere, and to wait for them would take long."""
    if j + 8 < stop:
        prefetch(queries, which[j + 8])
        prefetch(threshold, which[j + 8])
    if j + 4 < stop:
        following = queries[which[j + 4]]
        for x in range(following.offset, following.offset + min(following.length, 64), 2):  # two are a cache line
            prefetch(pool.rows, x)


@inlined
def nearest(rows, query, threshold, horizon, expired):  # type: ignore[no-untyped-def]
    """Of how many rows from the best on k are later than the horizon: none behind them is in an answer before that
    changes. -1: of those before the edge of the list, fewer are."""
    near = nearest_sorted(rows, query, threshold, horizon)
    if near < 0 and query.sorted < query.length:
        sort_list(rows, query, expired)
        near = nearest_sorted(rows, query, threshold, horizon)
    return near


@part
def nearest_sorted(rows, query, threshold, horizon):  # type: ignore[no-untyped-def]
    """The same of those that are best first."""
    left, x = query.k, query.offset
    while x < query.offset + query.sorted:
        row = row_at(rows, x)
        if not reaches(row.score, row.time, row.position, threshold, query):
            return -1
        x += 1
        left -= row.time > horizon
        if left == 0:
            return x - query.offset
    return -1


@part
def sort_list(rows, query, expired):  # type: ignore[no-untyped-def]
    """Put the rows that are in no order into their places, without those that have expired."""
    head = query.sorted
    for x in range(query.offset + query.sorted, query.offset + query.length):
        row = row_at(rows, x)
        score, time, position, flag = row.score, row.time, row.position, row.flag
        if time > expired:
            at = query.sorted + place(rows, query.offset + query.sorted, head - query.sorted, score, time, position)
            row_at(rows, query.offset + at).flag = flag
            query.oldest = min(query.oldest, time)
            head += 1
    query.length = query.sorted = head


@part
def take_in(query, q, near, p, p_end, hits, arrivals, counted, order, threshold, pool, emit, told):  # type: ignore[no-untyped-def]
    """Rows come to one query, hits [p, p_end), and others leave its window.

    Hits are taken as many at a time as the list has rows, and in between it is trimmed: so it stays short.
    """
    last, begin = len(arrivals.now) - 1, 0
    horizon = arrivals.last_now - query.size  # what is later outlives these rows,
    lasting = horizon + (arrivals.last_now - arrivals.first_now) + 1  # and what is from here on as many more
    while True:
        some = min(p_end, p + max(MORE, query.length))
        stop = hits.row[some] if some < p_end else last + 1
        expired = clock_after(arrivals, stop - 1) - query.size
        reserve(pool, query, query.length + some - p)
        meet(query, q, near, p, some, begin, stop, hits, arrivals, counted, order, threshold, pool.rows, emit, told)
        if query.length > most_rows(query):
            query.length, _ = gather(pool.rows, query.offset, query.sorted, query.sorted, query.length, expired, LATEST)
        if query.length > most_rows(query):
            sort_list(pool.rows, query, expired)
            query.length = trim(pool.rows, query.offset, query.length, q, query, threshold, lasting, LATEST)
            query.sorted = query.length
        query.sorted = min(query.sorted, 2 * query.k + SORTED)
        if some == p_end:
            return
        p, begin = some, stop
        near = nearest(pool.rows, query, threshold[q], horizon, expired)


@inlined
def meet(  # type: ignore[no-untyped-def]
    query, q, near, p, p_end, begin, stop, hits, arrivals, counted, order, threshold, rows, emit, told
):
    """Rows [begin, stop) come to one query, hits [p, p_end), and others leave its window.

    Meanwhile its list is in four parts: in [0, w), best first, the answer and what may yet be in one; in [far, loose),
    best first, what ranks behind the last row of these, which stays where it is; in [loose, old) what is in no order,
    and in [old, n) what comes and is not among the first. If the nearest are not known, all are near.
    """
    k, size, base = query.k, query.size, query.offset
    w, coming, head = query.sorted, p_end - p, query.sorted
    if near >= 0:
        w, coming = near, better(row_at(rows, base + near - 1), p, p_end, hits, arrivals)
    far, loose, old = w + coming, head + coming, query.length + coming
    moved = min(coming, query.length - head)  # rows in no order make way for others
    for x in range(moved):
        copy_row(rows, base + old - moved + x, rows, base + head + x)
    shift(rows, base + far, base + w, head - w)
    n, oldest = old, oldest_of(rows, base, min(k, w))  # of the answer
    by_time = expires(arrivals, oldest, size)
    while True:
        by_hit = hits.row[p] if p < p_end else stop
        i = min(by_hit, by_time)
        if i >= stop:
            break
        at, expired, before = clock_after(arrivals, i) + counted, clock_after(arrivals, i) - size, oldest
        shown, new = min(k, w), k  # rows of the answer that stay; the place of the row that comes, if it is before them
        if by_time == i:
            if emit == CHANGES:
                say_expired(rows, base, shown, expired, told, at, q, order + i)
            w, shown = drop_until(rows, base, w, shown, expired)
            oldest = oldest_of(rows, base, min(k, w))
        if by_hit == i:
            score, time, position = hits.score[p], time_of(arrivals, i), position_of(arrivals, i)
            p += 1
            if near >= 0 and not trails(row_at(rows, base + w - 1), score, time, position):
                put(rows, base + n, score, time, position)
                n += reaches(score, time, position, threshold[q], query)  # if not, it was trimmed since
            elif time > expired:  # if not, it came late
                x = place(rows, base, w, score, time, position)
                w += 1
                oldest = min(oldest, time)
                if x < shown:
                    new = x
                    if shown < k:
                        shown += 1
                    elif emit == CHANGES:
                        say(told, at, q, k, row_at(rows, base + k), order + i, LEAVE)
        if new < k:
            enter(rows, base, new, told, at, q, order + i, emit)
        for x in range(shown, min(k, w)):
            enter(rows, base, x, told, at, q, order + i, emit)
        if oldest != before:
            by_time = expires(arrivals, oldest, size)
    expired = clock_after(arrivals, stop - 1) - size
    w, oldest = gather(rows, base, min(k, w), min(k, w), w, expired, oldest)
    head, oldest = gather(rows, base, w, far, loose, expired, oldest)
    while old < n:
        row = row_at(rows, base + old)
        score, time, position = row.score, row.time, row.position
        if time <= expired:  # it came late
            n -= 1
            copy_row(rows, base + old, rows, base + n)
        elif not trails(row_at(rows, base + head - 1), score, time, position):
            old += 1
        else:
            if head == loose:
                copy_row(rows, base + old, rows, base + loose)
                loose += 1
                old += 1
            else:
                n -= 1
                copy_row(rows, base + old, rows, base + n)
            place(rows, base + w, head - w, score, time, position)
            oldest = min(oldest, time)
            head += 1
    last = min(loose - head, n - loose)  # rows that fill the gap
    for x in range(last):
        copy_row(rows, base + head + x, rows, base + n - last + x)
    query.length, query.sorted, query.oldest = head + n - loose, head, oldest


@inlined
def better(row, p, p_end, hits, arrivals):  # type: ignore[no-untyped-def]
    """How many of the hits [p, p_end) rank before the row."""
    found = 0
    for h in range(p, p_end):
        i = hits.row[h]
        found += trails(row, hits.score[h], time_of(arrivals, i), position_of(arrivals, i))
    return found


@inlined
def enter(rows, base, x, told, at, q, order, emit):  # type: ignore[no-untyped-def]
    """Say that a row is in the answer; of entries only once."""
    row = row_at(rows, base + x)
    if emit == CHANGES or row.flag == 0:
        say(told, at, q, x + 1, row, order, ENTER)
        row.flag = emit == ENTRIES


@inlined
def say_expired(rows, base, t, expired, told, at, q, order):  # type: ignore[no-untyped-def]
    """Say which rows of the answer have expired."""
    for x in range(t):
        if row_at(rows, base + x).time <= expired:
            say(told, at, q, x + 1, row_at(rows, base + x), order, LEAVE)


@inlined
def gather(rows, base, end, begin, stop, expired, oldest):  # type: ignore[no-untyped-def]
    """Move the rows [begin, stop) to the end, without those that have expired; returns the end, and the oldest time."""
    for x in range(begin, stop):  # without a branch, which nobody could guess
        at = row_at(rows, base + x).time
        copy_row(rows, base + end, rows, base + x)
        end += at > expired
        oldest = min(oldest, at if at > expired else oldest)
    return end, oldest


@inlined
def expires(arrivals, oldest, size):  # type: ignore[no-untyped-def]
    """The row with which the oldest one leaves the window; behind the last one if it stays."""
    now = arrivals.now
    if oldest > arrivals.last_now - size:  # so that nothing overflows where there is none
        return len(now)
    if arrivals.by_count:
        return max(0, oldest + size - arrivals.first_now)
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
        oldest = min(oldest, row_at(rows, x).time)
    return oldest


@inlined
def drop_until(rows, base, n, shown, expired):  # type: ignore[no-untyped-def]
    """Drop the rows that have expired. Returns how many are left, and how many of the first ones."""
    x = 0
    while x < n and row_at(rows, base + x).time > expired:
        x += 1
    kept, stay = x, min(x, shown)
    for y in range(x + 1, n):
        copy_row(rows, base + kept, rows, base + y)
        lives = row_at(rows, base + y).time > expired
        kept += lives
        stay += lives & (y < shown)
    return kept, stay
