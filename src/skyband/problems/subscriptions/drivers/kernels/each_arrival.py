"""Takes rows into the lists of queries where an answer is due with each arrival."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.core.emit import ENTER, LEAVE, is_once, takes_back
from skyband.core.operator import Floats, Ints
from skyband.kernels.bits import NONE, count_below, delete, fill, insert, last_until, next_from
from skyband.kernels.compiling import inlined, kernel, part
from skyband.kernels.emit import write
from skyband.kernels.intrinsics import copy_row, prefetch, row_at
from skyband.kernels.ranking import trails
from skyband.kernels.slabs import CLASSES, reserve
from skyband.problems.subscriptions.drivers.kernels.lists import (
    EVERY_ROW,
    LATEST,
    clock_after,
    most_rows,
    place,
    position_of,
    put,
    reaches,
    time_of,
    trim,
    without_outlived,
)

MORE = 64  # a short list takes in so many hits at a time
SORTED = 8  # so many rows of a list, beside twice those of an answer, are kept best first
PLACE = 32  # a place in a list has so many bits
LAST_PLACE = (1 << PLACE) - 1


class Room(NamedTuple):
    """Scratch space for one list. Each array has room for the list's rows, old and new."""

    hit: Ints  # the hits that may be in an answer, in order of arrival
    score: Floats  # the scores of these hits
    best: Ints  # indices into `hit`, best first
    place: Ints  # by index into `hit`: its place in the list
    behind: Ints  # the hits that are in no answer yet, in order of arrival
    key: Ints  # when a row leaves the window, and its place in the list, as one number
    leaving: Ints  # the keys, ascending
    alive: Ints  # bits: the places of the rows that are in the window


def room_for_lists(rows: int) -> Room:
    whole = (np.empty(rows, np.int64) for _ in Room._fields[1:])
    return Room(next(whole), np.empty(rows), *whole)


@kernel
def arrive(
    which, swept, begin, stop, hits, arrivals, counted, order, queries, threshold, pool, emit, emitted, failed, room
):
    """Let the queries which[begin:stop] take in their hits one by one, and emit what each hit changes.

    The hits of the query which[j] end at hits.ends[j], and begin where those of the query before end. A query whose
    list would run short is put into `failed` and not changed. Returns the query to go on with if the pool or the lines
    ran out of room, and how many queries failed.
    """
    failures = 0
    for j in range(begin, stop):
        fetch(which, j, stop, queries, threshold, pool)
        q = which[j]
        query = queries[q]
        p, p_end = hits.ends[j - 1] if j > swept else 0, hits.ends[j]
        horizon = arrivals.last_now - query.size  # a row later than this outlives these arrivals
        if p == p_end and query.oldest > horizon:
            continue
        need = query.length + p_end - p
        if len(emitted.lines) - emitted.written[0] < 4 * need or len(pool.rows) - pool.free[CLASSES] < 4 * need + 16:
            return j, failures
        if len(room.hit) < need:
            return j, failures
        near = nearest(pool.rows, query, threshold[q], horizon, arrivals.before - query.size)
        if near < 0 and query.edge_position != EVERY_ROW:
            failed[failures] = j
            failures += 1
            continue
        take_in(query, q, near, p, p_end, hits, arrivals, counted, order, threshold, pool, emit, emitted, room)
    return stop, failures


@inlined
def fetch(which, j, stop, queries, threshold, pool):
    """Prefetch the lists that are needed next: they are scattered over memory."""
    if j + 8 < stop:
        prefetch(queries, which[j + 8])
        prefetch(threshold, which[j + 8])
    if j + 4 < stop:
        following = queries[which[j + 4]]
        for x in range(following.offset, following.offset + min(following.length, 64), 2):  # two are a cache line
            prefetch(pool.rows, x)


@inlined
def nearest(rows, query, threshold, horizon, expired):
    """How many rows, from the best on, contain k that are later than the horizon.

    No row behind these is in an answer before the horizon. Returns -1 if the list has fewer than k such rows before its
    edge.
    """
    near = nearest_sorted(rows, query, threshold, horizon)
    if near < 0 and query.sorted < query.length:
        sort_list(rows, query, expired)
        near = nearest_sorted(rows, query, threshold, horizon)
    return near


@part
def nearest_sorted(rows, query, threshold, horizon):
    """As `nearest`, but only among the rows that are sorted."""
    left, x = query.k, query.offset
    end = query.offset + query.sorted
    while x < end:
        left -= row_at(rows, x).time > horizon
        x += 1
        if left == 0:
            row = row_at(rows, x - 1)
            return x - query.offset if reaches(row.score, row.time, row.position, threshold, query) else -1
    return -1


@part
def sort_list(rows, query, expired):
    """Sort the unsorted rows into the others, and drop those that have expired."""
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
def take_in(query, q, near, p, p_end, hits, arrivals, counted, order, threshold, pool, emit, emitted, room):
    """Let one query take in the hits [p, p_end), while rows leave its window.

    It takes as many hits at a time as the list has rows, and trims the list in between to keep it short.
    """
    last, begin = len(arrivals.now) - 1, 0
    horizon = arrivals.last_now - query.size  # a row later than this outlives these arrivals,
    lasting = horizon + (arrivals.last_now - arrivals.first_now) + 1  # and a row from here on as many more
    while True:
        some = min(p_end, p + max(MORE, query.length))
        stop = hits.row[some] if some < p_end else last + 1
        expired = clock_after(arrivals, stop - 1) - query.size
        reserve(pool, query, query.length + some - p)
        meet(
            query, q, near, p, some, begin, stop, hits, arrivals, counted, order, threshold, pool.rows, emit, emitted,
            room,
        )  # fmt: skip
        if query.length > most_rows(query):
            query.length, _ = gather(pool.rows, query.offset, query.sorted, query.sorted, query.length, expired, LATEST)
        if query.length > most_rows(query):
            sort_list(pool.rows, query, expired)
            query.length = trim(pool.rows, query.offset, query.length, q, query, threshold, lasting, LATEST)
            if query.length > most_rows(query):
                query.length = without_outlived(pool.rows, query.offset, query.length, query.k, room.key)
            query.sorted = query.length
        query.sorted = min(query.sorted, 2 * query.k + SORTED)
        if some == p_end:
            return
        p, begin = some, stop
        near = nearest(pool.rows, query, threshold[q], horizon, expired)


@inlined
def meet(query, q, near, p, p_end, begin, stop, hits, arrivals, counted, order, threshold, rows, emit, emitted, room):
    """Let one query take in the hits [p, p_end) among the arrivals [begin, stop), while rows leave its window.

    Meanwhile its list has two parts. [0, m) is sorted, best first: it has the rows that were sorted, and the hits that
    rank before the last of these, whether they have arrived yet or have left. [m, n) is unsorted. The last of the
    `near` rows stays in the window, and no row of an answer ranks behind it. If `near` is not known, all rows are near.
    """
    base, head, n = query.offset, query.sorted, query.length
    expired = clock_after(arrivals, stop - 1) - query.size
    coming, behind = 0, 0
    for h in range(p, p_end):
        i = hits.row[h]
        score, time, position = hits.score[h], time_of(arrivals, i), position_of(arrivals, i)
        if not reaches(score, time, position, threshold[q], query) or time <= clock_after(arrivals, i) - query.size:
            continue  # the list was trimmed after this hit was found, or the hit is late
        is_before = near < 0 or trails(row_at(rows, base + head - 1), score, time, position)
        room.hit[coming], room.score[coming], room.behind[behind] = h, score, h
        coming += is_before
        behind += not is_before
    m, n = head + coming, n + coming
    moved = min(coming, query.length - head)  # so many unsorted rows make way for the coming ones
    for x in range(moved):
        copy_row(rows, base + n - moved + x, rows, base + head + x)
    for y in range(behind):
        h = room.behind[y]
        i = hits.row[h]
        put(rows, base + n + y, hits.score[h], time_of(arrivals, i), position_of(arrivals, i))
    n += behind
    rank(coming, hits, arrivals, room)
    shown = min(query.k, head)
    last, end = merge(rows, base, head, shown, near, coming, hits, arrivals, room)
    # Only hits that rank before the last near row can change an answer.
    met = 0
    for x in range(coming):
        room.hit[met], room.place[met] = room.hit[x], room.place[x]
        met += room.place[x] < end
    leaving = find_leaving(rows, base, end, expired, query.size, arrivals, room)
    if met + leaving > 0:
        fill(room.alive, end)
        for x in range(met):
            delete(room.alive, room.place[x])
        follow(query, q, shown, last, end, met, leaving, hits, arrivals, counted, order, rows, emit, emitted, room)
    head, oldest = gather(rows, base, 0, 0, m, expired, LATEST)
    last = min(m - head, n - m)  # so many rows fill the gap
    for x in range(last):
        copy_row(rows, base + head + x, rows, base + n - last + x)
    query.length, query.sorted, query.oldest = head + n - m, head, oldest


@inlined
def rank(coming, hits, arrivals, room):
    """Sort the hits by counting the better ones of each. That needs no branches, so it is faster for few hits."""
    for number in range(coming):
        score, x, equal = room.score[number], 0, 0
        for other in range(coming):
            x += room.score[other] > score
            equal += room.score[other] == score
        if equal > 1:
            i = hits.row[room.hit[number]]
            time = time_of(arrivals, i)
            for other in range(coming):
                if room.score[other] == score:
                    other_time = time_of(arrivals, hits.row[room.hit[other]])
                    x += other_time > time or (other_time == time and other > number)
        room.best[x] = number


@inlined
def merge(rows, base, n, shown, near, coming, hits, arrivals, room):
    """Merge the hits into the first n rows, from the last place backwards, and note the place of each.

    Returns where the last of the first `shown` rows is now, and where the near rows end.
    """
    x, to, last, end = n - 1, n + coming - 1, shown - 1, near
    for y in range(coming - 1, -1, -1):
        number = room.best[y]
        h = room.hit[number]
        i = hits.row[h]
        score, time, position = hits.score[h], time_of(arrivals, i), position_of(arrivals, i)
        while x >= 0 and trails(row_at(rows, base + x), score, time, position):
            copy_row(rows, base + to, rows, base + x)
            x -= 1
            to -= 1
        put(rows, base + to, score, time, position)
        last += x < shown - 1
        end += x < near - 1
        room.place[number] = to
        to -= 1
    return last, end if near >= 0 else n + coming


@inlined
def find_leaving(rows, base, m, expired, size, arrivals, room):
    """Find which of the first m rows leave the window: when each leaves, and its place, as one number; ascending."""
    found = 0
    for x in range(m):
        room.leaving[found] = x
        found += row_at(rows, base + x).time <= expired
    for y in range(found):
        x = room.leaving[y]
        room.key[y] = (expires(arrivals, row_at(rows, base + x).time, size) << PLACE) + x
    for y in range(found):
        key, z = room.key[y], 0
        for other in range(found):
            z += room.key[other] < key
        room.leaving[z] = key
    return found


@inlined
def follow(query, q, shown, last, m, coming, leaving, hits, arrivals, counted, order, rows, emit, emitted, room):
    """Emit how the answer changes with each row that enters or leaves the window.

    All these rows are sorted, best first, and `alive` has the places of those in the window. Loop invariant: the answer
    is the first `shown` of the rows alive, which are k or all, up to the place `last`.
    """
    k, base, alive = query.k, query.offset, room.alive
    h, y = 0, 0
    while h < coming or y < leaving:
        by_hit = hits.row[room.hit[h]] if h < coming else LATEST
        i = min(by_hit, room.leaving[y] >> PLACE if y < leaving else LATEST)
        at = clock_after(arrivals, i) + counted
        if takes_back(emit):
            for z in range(y, leaving):  # all leave at once: their ranks are those before any of them left
                x = room.leaving[z] & LAST_PLACE
                if room.leaving[z] >> PLACE > i or x > last:
                    break
                write(
                    emitted.lines,
                    emitted.written,
                    at,
                    q,
                    count_below(alive, x) + 1,
                    row_at(rows, base + x),
                    LEAVE,
                    order + i,
                )
        while y < leaving and room.leaving[y] >> PLACE <= i:
            x = room.leaving[y] & LAST_PLACE
            delete(alive, x)
            shown -= x <= last
            y += 1
        last = last_until(alive, last)
        if by_hit == i:
            x = room.place[h]
            h += 1
            insert(alive, x)
            if x < last:
                if shown < k:
                    shown += 1
                else:
                    if takes_back(emit):
                        write(emitted.lines, emitted.written, at, q, k, row_at(rows, base + last), LEAVE, order + i)
                    last = last_until(alive, last - 1)
                enter(rows, base, x, count_below(alive, x) + 1, emitted, at, q, order + i, emit)
        while shown < k:
            following = next_from(alive, last + 1, m)
            if following == NONE:
                break
            last = following
            shown += 1
            enter(rows, base, last, shown, emitted, at, q, order + i, emit)


@inlined
def enter(rows, base, x, rank, emitted, at, q, order, emit):
    """Emit that a row enters the answer. A query that emits entries emits it only once."""
    row = row_at(rows, base + x)
    if takes_back(emit) or row.flag == 0:
        write(emitted.lines, emitted.written, at, q, rank, row, ENTER, order)
        row.flag = is_once(emit)


@inlined
def gather(rows, base, end, begin, stop, expired, oldest):
    """Move the rows [begin, stop) to `end`, without the expired ones; returns the new end, and the oldest time."""
    for x in range(begin, stop):  # there is no branch, since no processor could predict it
        at = row_at(rows, base + x).time
        copy_row(rows, base + end, rows, base + x)
        end += at > expired
        oldest = min(oldest, at if at > expired else oldest)
    return end, oldest


@inlined
def expires(arrivals, oldest, size):
    """The arrival with which the oldest row leaves the window; behind the last arrival if the row stays."""
    now = arrivals.now
    if oldest > arrivals.last_now - size:  # checked first, so that nothing overflows if there is no oldest row
        return len(now)
    if arrivals.consecutive:
        return max(0, oldest + size - arrivals.first_now)
    low, high = 0, len(now) - 1
    while low < high:
        middle = (low + high) >> 1
        if now[middle] >= oldest + size:
            high = middle
        else:
            low = middle + 1
    return low
