"""The lists of many queries: rows best first, in slabs of one pool; how they change as rows come and time goes.

A list is *complete* down to its edge: every row of the window that ranks before the edge is in it. What ranks behind it
may be there too (rows that were shown, which must not be shown again), and is never part of an answer.
"""

from __future__ import annotations

import numpy as np

from skyband.operators.protocol import CHANGES, ENTER, ENTRIES, LEAVE
from skyband.structures.compiling import allocating, inlined, kernel, part
from skyband.structures.prefetching import prefetch
from skyband.structures.ranking import ranks_before, trails
from skyband.structures.slabs import CLASSES, HEADER, give_slab, reserve
from skyband.windows import FOREVER

QUERY = np.dtype(
    [
        *HEADER,
        ("k", np.int64),
        ("size", np.int64),
        ("every", np.int64),  # how often it is answered, in windows that slide by more than a row
        ("start", np.int64),  # the first arrival that it sees
        ("wanted", np.int64),  # rows in the list after trimming and refilling: k and enough to last for a while
        ("base", np.int64),  # how many these are unless the list ran short soon after it was filled
        ("oldest", np.int64),  # no row of the list is older
        ("edge_time", np.int64),  # of rows whose score is the threshold, those from here on are in the list
        ("edge_position", np.int64),
        ("refilled", np.int64),  # when it last had to be filled again
    ]
)
EVERY_ROW = -1  # as the position of an edge: behind all rows
LATEST = 2 * FOREVER - 1  # after every time


@inlined
def reaches(score, time, position, threshold, query):  # type: ignore[no-untyped-def]
    """Does a row with these three rank before the edge of the list, or is it the edge?"""
    if score != threshold:
        return score > threshold
    if time != query.edge_time:
        return time > query.edge_time
    return position >= query.edge_position


@inlined
def move(rows, to, at):  # type: ignore[no-untyped-def]
    copy(rows, to, rows, at)


@inlined
def copy(rows, to, others, at):  # type: ignore[no-untyped-def]
    """Field by field: what numba makes of copying a whole record depends on where it stands."""
    target, source = rows[to], others[at]
    target.score, target.time, target.position = source.score, source.time, source.position
    target.last, target.flag = source.last, source.flag


@inlined
def place(rows, base, n, score, time, position):  # type: ignore[no-untyped-def]
    """Put a row into its place among the n sorted ones from `base` on; returns its index."""
    x = n
    while x > 0:
        if not trails(rows[base + x - 1], score, time, position):
            break
        move(rows, base + x, base + x - 1)
        x -= 1
    row = rows[base + x]
    row.score, row.time, row.position, row.last, row.flag = score, time, position, 0, 0
    return x


@inlined
def say(out, n, at, q, rank, row, order, change):  # type: ignore[no-untyped-def]
    line = out[n]
    line.at, line.group, line.rank, line.order, line.change = at, q, rank, order, change
    line.score, line.position = row.score, row.position


@part
def trim(rows, base, n, q, query, threshold, first, end):  # type: ignore[no-untyped-def]
    """Cut a list behind as many rows of [first, end) as are wanted; returns its new length. Shown rows stay."""
    found, x = 0, 0
    while x < n:
        row = rows[base + x]
        if not reaches(row.score, row.time, row.position, threshold[q], query):
            return n
        found += (row.time >= first) & (row.time < end)
        if found == query.wanted:
            break
        x += 1
    if x >= n - 1:
        return n
    row = rows[base + x]
    threshold[q], query.edge_time, query.edge_position = row.score, row.time, row.position
    kept = x + 1
    for y in range(x + 1, n):
        if rows[base + y].flag:
            move(rows, base + kept, base + y)
            kept += 1
    return kept


@inlined
def most_rows(query):  # type: ignore[no-untyped-def]
    """A list that is longer is trimmed."""
    return query.wanted + (query.wanted >> 1) + 8


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

    Meanwhile a list is in three parts, each best first: the answer [0, t); the rows [low, n) that were behind it; and,
    in aside[s:s_end], those that came since and are in no answer. All rows of the first rank before all others.
    """
    last, failures = len(now) - 1, 0
    for j in range(begin, stop):
        fetch(which, j, stop, queries, pool)
        q = which[j]
        query = queries[q]
        p, p_end = ends[j - 1] if j > swept else 0, ends[j]
        k, size = query.k, query.size
        horizon = now[last] - size  # what is later outlives these rows
        if p == p_end and query.oldest > horizon:
            continue
        need = query.length + p_end - p
        if len(out) - written < 4 * need or len(pool.rows) - pool.free[CLASSES] < 4 * need + 16:
            return j, written, failures
        rows = pool.rows
        if query.edge_position != EVERY_ROW and not outlasts(rows, query, threshold[q], horizon, k):
            failed[failures] = j
            failures += 1
            continue
        reserve(pool, query, min(need, most_rows(query) + 2))
        base, n = query.offset, query.length
        t = low = min(k, n)
        s = s_end = 0
        oldest = oldest_of(rows, base, t)
        by_time = expires(now, last, oldest, size)
        while True:
            by_hit = hit[p] if p < p_end else last + 1
            i = min(by_hit, by_time)
            if i > last:
                break
            at, expired, new = now[i] + counted, now[i] - size, k
            if by_time == i:
                if emit == CHANGES:
                    for x in range(t):
                        if rows[base + x].time <= expired:
                            say(out, written, at, q, x + 1, rows[base + x], order + i, LEAVE)
                            written += 1
                t = drop_until(rows, base, t, expired)
            if by_hit == i:
                if time[i] > expired and reaches(score[p], time[i], position[i], threshold[q], query):
                    if t > 0 and trails(rows[base + t - 1], score[p], time[i], position[i]):
                        if t == k:
                            t -= 1
                            if emit == CHANGES:
                                say(out, written, at, q, k, rows[base + t], order + i, LEAVE)
                                written += 1
                            if low > k:
                                low -= 1
                                move(rows, base + low, base + t)
                            else:
                                s, s_end = put_first(aside, s, s_end, rows, base + t)
                        new = place(rows, base, t, score[p], time[i], position[i])
                        t += 1
                    else:
                        place(aside, s, s_end - s, score[p], time[i], position[i])
                        s_end += 1
                p += 1
            shown = t
            while t < k:
                while low < n and rows[base + low].time <= expired:
                    low += 1
                while s < s_end and aside[s].time <= expired:
                    s += 1
                if low < n and (s == s_end or ranks_before(rows[base + low], aside[s])):
                    move(rows, base + t, base + low)
                    low += 1
                elif s < s_end:
                    copy(rows, base + t, aside, s)
                    s += 1
                else:
                    break
                t += 1
            if low < t:
                low = n = t  # there is nothing behind the answer
            for x in range(min(new, shown), t):
                if x == new or x >= shown:
                    row = rows[base + x]
                    if emit == CHANGES or row.flag == 0:
                        say(out, written, at, q, x + 1, row, order + i, ENTER)
                        written += 1
                        if emit == ENTRIES:
                            row.flag = 1
            if by_time == i or new < k or shown < t:
                before, oldest = oldest, oldest_of(rows, base, t)
                if oldest != before:
                    by_time = expires(now, last, oldest, size)
            if s_end == len(aside):
                n = together(pool, query, t, low, n, aside, s, s_end, expired)
                n = trimmed(pool.rows, query, n, q, threshold, horizon + (now[last] - now[0]) + 1)
                base, t = query.offset, min(k, n)
                low, s, s_end = t, 0, 0
        n = together(pool, query, t, low, n, aside, s, s_end, horizon)
        query.length = trimmed(rows, query, n, q, threshold, horizon + (now[last] - now[0]) + 1)
        query.oldest = oldest_of(rows, query.offset, query.length)
    return stop, written, failures


@inlined
def fetch(which, j, stop, queries, pool):  # type: ignore[no-untyped-def]
    """Have the lists on their way that come next: they lie anywhere, and to wait for them would take long."""
    if j + 8 < stop:
        prefetch(queries, which[j + 8])
    if j + 4 < stop:
        following = queries[which[j + 4]]
        for x in range(following.offset, following.offset + min(following.length, 16), 2):
            prefetch(pool.rows, x)


@inlined
def outlasts(rows, query, threshold, horizon, k):  # type: ignore[no-untyped-def]
    """Are there k rows before the edge of the list that are later than the horizon?"""
    left = k
    for x in range(query.offset, query.offset + query.length):
        if not reaches(rows[x].score, rows[x].time, rows[x].position, threshold, query):
            return False
        left -= rows[x].time > horizon
        if left == 0:
            return True
    return False


@inlined
def put_first(aside, s, s_end, rows, at):  # type: ignore[no-untyped-def]
    """Set a row aside that ranks before all that are; returns where they begin and end."""
    if s == 0:
        for x in range(s_end, 0, -1):
            move(aside, x, x - 1)
        s, s_end = 1, s_end + 1
    copy(aside, s - 1, rows, at)
    return s - 1, s_end


@part
def together(pool, query, t, low, n, aside, s, s_end, expired):  # type: ignore[no-untyped-def]
    """Put the three parts of a list together, without rows that have expired; returns its length."""
    query.length = n
    reserve(pool, query, t + n - low + s_end - s)
    rows, base, end = pool.rows, query.offset, t
    for x in range(low, n):
        if rows[base + x].time > expired:
            if x != end:
                move(rows, base + end, base + x)
            end += 1
    kept = s
    for x in range(s, s_end):
        if aside[x].time > expired:
            if x != kept:
                move(aside, kept, x)
            kept += 1
    x, to = end - 1, end + kept - s - 1
    for y in range(kept - 1, s - 1, -1):
        while x >= t and ranks_before(aside[y], rows[base + x]):
            move(rows, base + to, base + x)
            x, to = x - 1, to - 1
        copy(rows, base + to, aside, y)
        to -= 1
    return end + kept - s


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
    """Drop the rows that have expired. Returns how many are left."""
    kept = 0
    for x in range(n):
        if rows[base + x].time > expired:
            if x != kept:
                move(rows, base + kept, base + x)
            kept += 1
    return kept


@part
def by_key(index, keys, count):  # type: ignore[no-untyped-def]
    """The same indices, sorted by keys below `count`; those of equal keys stay in their order."""
    following, found = np.zeros(count + 1, np.int64), np.empty(len(index), np.int64)
    for key in keys:
        following[key + 1] += 1
    for key in range(count):
        following[key + 1] += following[key]
    for i in index:
        found[following[keys[i]]] = i
        following[keys[i]] += 1
    return found


@allocating
def in_columns(lines, groups, orders):  # type: ignore[no-untyped-def]
    """Lines as the columns of an answer, sorted by `order` and then by group; 0 of either: they are so already."""
    n = len(lines)
    index, keys = np.arange(n), np.empty(n, np.int64)
    if groups > 0:
        for x in range(n):
            keys[x] = lines[x].group
        index = by_key(index, keys, groups)
    if orders > 0:
        for x in range(n):
            keys[x] = lines[x].order
        index = by_key(index, keys, orders)
    at, group, rank = np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n, np.int32)
    score, position, change = np.empty(n), np.empty(n, np.int64), np.empty(n, np.int8)
    for x in range(n):
        line = lines[index[x]]
        at[x], group[x], rank[x], score[x], position[x] = line.at, line.group, line.rank, line.score, line.position
        change[x] = line.change
    return at, group, rank, score, position, change


@inlined
def due_from(end, every):  # type: ignore[no-untyped-def]
    """When a query is answered next, from the window on that ends at `end`."""
    return -(-end // every) * every


@kernel
def keep(which, swept, begin, stop, ends, hit, score, time, position, end, queries, threshold, pool):  # type: ignore[no-untyped-def]
    """Rows come, and no window closes before the one that ends at `end`. As `arrive`; returns where to go on."""
    for j in range(begin, stop):
        q = which[j]
        query = queries[q]
        p, p_end = ends[j - 1] if j > swept else 0, ends[j]
        if p == p_end:
            continue
        need = query.length + p_end - p
        if len(pool.rows) - pool.free[CLASSES] < 4 * need + 16:
            return j
        most = most_rows(query)
        reserve(pool, query, min(need, most + 2))
        rows, base, n, due = pool.rows, query.offset, query.length, due_from(end, query.every)
        for h in range(p, p_end):
            i = hit[h]
            if n == query.capacity:
                query.length = n
                reserve(pool, query, n + 1)
                base = query.offset
            if time[i] >= due - query.size and reaches(score[h], time[i], position[i], threshold[q], query):
                place(rows, base, n, score[h], time[i], position[i])
                n += 1
                query.oldest = min(query.oldest, time[i])
                if n > most:
                    n = trim(rows, base, n, q, query, threshold, due - query.size, due)
                    most = max(most, 2 * n)
        query.length = n
    return stop


@kernel
def close(end, which, begin, queries, threshold, pool, previous, emit, out, written, failed):  # type: ignore[no-untyped-def]
    """The window that ends at `end` closes: the answers of which[begin:]. Returns as `arrive` does."""
    failures = 0
    for j in range(begin, len(which)):
        q = which[j]
        query, before = queries[q], previous[q]
        k, rows, base, first = query.k, pool.rows, query.offset, end - query.size
        if len(out) - written < 2 * k or len(pool.rows) - pool.free[CLASSES] < 2 * k + 8:
            return j, written, failures
        found, x = 0, 0
        while x < query.length and found < k:
            row = rows[base + x]
            if not reaches(row.score, row.time, row.position, threshold[q], query):
                break
            found += (row.time >= first) & (row.time < end)
            x += 1
        if found < k and query.edge_position != EVERY_ROW:
            failed[failures] = j
            failures += 1
            continue
        if emit == CHANGES:
            written = _leaving(end, first, x, q, query, before, pool, out, written)
        rank, old = 0, 0
        for y in range(x):
            row = rows[base + y]
            if row.time < first or row.time >= end:
                continue
            rank += 1
            if emit == CHANGES:
                while old < before.length and ranks_before(rows[before.offset + old], row):
                    old += 1
                if old < before.length and rows[before.offset + old].position == row.position:
                    continue
            if emit != ENTRIES or row.flag == 0:
                say(out, written, end, q, rank, row, 0, ENTER)
                written += 1
                if emit == ENTRIES:
                    row.flag = 1
        if emit == CHANGES:
            reserve(pool, before, found)
            before.length = 0
            for y in range(x):
                row = rows[base + y]
                if first <= row.time < end:
                    move(rows, before.offset + before.length, base + y)
                    before.length += 1
        if query.oldest < first + query.every:
            kept, oldest = 0, LATEST
            for y in range(query.length):
                if rows[base + y].time >= first + query.every:
                    if kept != y:
                        move(rows, base + kept, base + y)
                    oldest = min(oldest, rows[base + y].time)
                    kept += 1
            query.length, query.oldest = kept, oldest
    return len(which), written, failures


@part
def _leaving(end, first, x, q, query, before, pool, out, written):  # type: ignore[no-untyped-def]
    """Say which rows of the answer before are not among those of [first, end) in the first x of the list."""
    rows, base, y = pool.rows, query.offset, 0
    for old in range(before.length):
        row = rows[before.offset + old]
        while y < x and ranks_before(rows[base + y], row):
            y += 1
        stays = y < x and rows[base + y].position == row.position and first <= row.time < end
        if not stays:
            say(out, written, end, q, old + 1, row, 0, LEAVE)
            written += 1
    return written


@kernel
def release(pool, headers, which):  # type: ignore[no-untyped-def]
    """Give the slabs of these lists back."""
    for j in range(len(which)):
        give_slab(pool, headers[which[j]])
