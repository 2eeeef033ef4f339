"""The lists of many queries: rows best first, in slabs of one pool; how they change as rows come and time goes.

A list is *complete* down to its edge: every row of the window that ranks before the edge is in it, or, if an answer is
due with each arrival, k better ones are that outlive it. What ranks behind the edge may be there too (rows that were
shown, which must not be shown again), and is never part of an answer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skyband.core.operator import CHANGES, ENTER, ENTRIES, LEAVE, Floats, Ints
from skyband.kernels.compiling import allocating, inlined, kernel, part
from skyband.kernels.intrinsics import copy_row, move_rows, row_at
from skyband.kernels.ranking import ROW, ranks_before, trails
from skyband.kernels.slabs import CLASSES, HEADER, give_slab, reserve
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
        # If an answer is due with each arrival, this many are best first, and the others all behind them, in no order;
        # of these, some may have expired.
        ("sorted", np.int64),
        ("oldest", np.int64),  # no row of the list is older, or else of those that are best first
        ("edge_time", np.int64),  # of rows whose score is the threshold, those from here on are in the list
        ("edge_position", np.int64),
        ("refilled", np.int64),  # when it last had to be filled again
    ]
)
LISTED = np.dtype([(name, ROW[name]) for name in ("score", "time", "position", "flag")])  # as a row; half a cache line
SLACK = 4  # standard deviations of how many rows near a query are in a window, by which a list is longer than k
FEW = 8  # rows that are moved one by one
EVERY_ROW = -1  # as the position of an edge: behind all rows
LATEST = 2 * FOREVER - 1  # after every time


def listed(k: Ints, slack: float = SLACK) -> Floats:
    """How many rows a list should have: so many that k are `slack` standard deviations fewer.

    >>> listed(np.array([1, 9, 81])).round().tolist()
    [18.0, 31.0, 126.0]
    """
    wanted: Floats = ((slack + np.sqrt(slack**2 + 4 * k)) / 2) ** 2
    return wanted


class Told(NamedTuple):
    """Lines of answers, as they are written."""

    lines: Any
    written: Ints  # how many, in its one entry


class Arrivals(NamedTuple):
    """Rows that are taken together, in order of arrival."""

    time: Ints
    position: Ints
    now: Ints  # the clock after each
    before: int  # the clock before all
    # By count each of these grows by one with each row: to add is faster than to wait for what lies anywhere.
    by_count: bool
    first_time: int
    first_position: int
    first_now: int
    last_now: int


def arrivals_of(time: Ints, position: Ints, now: Ints, before: int, by_count: bool) -> Arrivals:
    return Arrivals(time, position, now, before, by_count, *map(int, (time[0], position[0], now[0], now[-1])))


@inlined
def time_of(arrivals, i):  # type: ignore[no-untyped-def]
    return arrivals.first_time + i if arrivals.by_count else arrivals.time[i]


@inlined
def position_of(arrivals, i):  # type: ignore[no-untyped-def]
    return arrivals.first_position + i if arrivals.by_count else arrivals.position[i]


@inlined
def clock_after(arrivals, i):  # type: ignore[no-untyped-def]
    return arrivals.first_now + i if arrivals.by_count else arrivals.now[i]


@inlined
def reaches(score, time, position, threshold, query):  # type: ignore[no-untyped-def]
    """Does a row with these three rank before the edge of the list, or is it the edge?"""
    if score != threshold:
        return score > threshold
    if time != query.edge_time:
        return time > query.edge_time
    return position >= query.edge_position


@inlined
def shift(rows, to, at, count):  # type: ignore[no-untyped-def]
    """Move so many rows, which may overlap with where they go."""
    if count > FEW:
        move_rows(rows, to, at, count)
    elif to > at:
        for x in range(count - 1, -1, -1):
            copy_row(rows, to + x, rows, at + x)
    else:
        for x in range(count):
            copy_row(rows, to + x, rows, at + x)


@inlined
def place(rows, base, n, score, time, position):  # type: ignore[no-untyped-def]
    """Put a row into its place among the n sorted ones from `base` on; returns its index."""
    x = n
    while x > 0 and trails(row_at(rows, base + x - 1), score, time, position):
        copy_row(rows, base + x, rows, base + x - 1)
        x -= 1
    put(rows, base + x, score, time, position)
    return x


@inlined
def put(rows, x, score, time, position):  # type: ignore[no-untyped-def]
    """A row that nobody has seen yet."""
    row = row_at(rows, x)
    row.score, row.time, row.position, row.flag = score, time, position, 0


@inlined
def say(told, at, q, rank, row, order, change):  # type: ignore[no-untyped-def]
    line = told.lines[told.written[0]]
    line.at, line.group, line.rank, line.order, line.change = at, q, rank, order, change
    line.score, line.position = row.score, row.position
    told.written[0] += 1


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
            copy_row(rows, base + kept, rows, base + y)
            kept += 1
    return kept


@part
def without_outlived(rows, base, n, k, latest):  # type: ignore[no-untyped-def]
    """Of rows that are best first, leave out what k better ones outlive, which will be in no answer; returns how many
    stay. `latest` has room for k times, or for as many as there are rows."""
    kept = 0
    for x in range(n):
        time = rows[base + x].time
        if kept >= k and time <= latest[k - 1]:
            continue
        # The latest times of the rows before, as many as k, in falling order.
        y = min(kept, k - 1)
        while y > 0 and latest[y - 1] < time:
            latest[y] = latest[y - 1]
            y -= 1
        latest[y] = time
        if kept != x:
            copy_row(rows, base + kept, rows, base + x)
        kept += 1
    return kept


@inlined
def most_rows(query):  # type: ignore[no-untyped-def]
    """A list that is longer is trimmed."""
    return query.wanted + (query.wanted >> 1) + 8


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
def keep(which, swept, begin, stop, hits, arrivals, end, queries, threshold, pool):  # type: ignore[no-untyped-def]
    """Rows come, and no window closes before the one that ends at `end`. As `arrive`; returns where to go on."""
    for j in range(begin, stop):
        q = which[j]
        query = queries[q]
        p, p_end = hits.ends[j - 1] if j > swept else 0, hits.ends[j]
        if p == p_end:
            continue
        need = query.length + p_end - p
        if len(pool.rows) - pool.free[CLASSES] < 4 * need + 16:
            return j
        most = most_rows(query)
        reserve(pool, query, min(need, most + 2))
        rows, base, n, due = pool.rows, query.offset, query.length, due_from(end, query.every)
        for h in range(p, p_end):
            score, time = hits.score[h], time_of(arrivals, hits.row[h])
            position = position_of(arrivals, hits.row[h])
            if n == query.capacity:
                query.length = n
                reserve(pool, query, n + 1)
                base = query.offset
            if time >= due - query.size and reaches(score, time, position, threshold[q], query):
                place(rows, base, n, score, time, position)
                n += 1
                query.oldest = min(query.oldest, time)
                if n > most:
                    n = trim(rows, base, n, q, query, threshold, due - query.size, due)
                    most = max(most, 2 * n)
        query.length = n
    return stop


@kernel
def close(end, which, begin, queries, threshold, pool, previous, emit, told, failed):  # type: ignore[no-untyped-def]
    """The window that ends at `end` closes: the answers of which[begin:]. Returns as `arrive` does."""
    failures = 0
    for j in range(begin, len(which)):
        q = which[j]
        query, before = queries[q], previous[q]
        k, rows, base, first = query.k, pool.rows, query.offset, end - query.size
        if len(told.lines) - told.written[0] < 2 * k or len(pool.rows) - pool.free[CLASSES] < 2 * k + 8:
            return j, failures
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
            _leaving(end, first, x, q, query, before, pool, told)
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
                say(told, end, q, rank, row, 0, ENTER)
                if emit == ENTRIES:
                    row.flag = 1
        if emit == CHANGES:
            reserve(pool, before, found)
            before.length = 0
            for y in range(x):
                row = rows[base + y]
                if first <= row.time < end:
                    copy_row(rows, before.offset + before.length, rows, base + y)
                    before.length += 1
        if query.oldest < first + query.every:
            kept, oldest = 0, LATEST
            for y in range(query.length):
                if rows[base + y].time >= first + query.every:
                    if kept != y:
                        copy_row(rows, base + kept, rows, base + y)
                    oldest = min(oldest, rows[base + y].time)
                    kept += 1
            query.length, query.oldest = kept, oldest
    return len(which), failures


@part
def _leaving(end, first, x, q, query, before, pool, told):  # type: ignore[no-untyped-def]
    """Say which rows of the answer before are not among those of [first, end) in the first x of the list."""
    rows, base, y = pool.rows, query.offset, 0
    for old in range(before.length):
        row = rows[before.offset + old]
        while y < x and ranks_before(rows[base + y], row):
            y += 1
        stays = y < x and rows[base + y].position == row.position and first <= row.time < end
        if not stays:
            say(told, end, q, old + 1, row, 0, LEAVE)


@kernel
def release(pool, headers, which):  # type: ignore[no-untyped-def]
    """Give the slabs of these lists back."""
    for j in range(len(which)):
        give_slab(pool, headers[which[j]])
