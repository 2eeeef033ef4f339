"""What rows do to the lists of queries whose windows slide by more than a row, and what such a window shows."""

from __future__ import annotations

from skyband.core.emit import ENTER, LEAVE, is_once, takes_back
from skyband.kernels.compiling import inlined, kernel, part
from skyband.kernels.intrinsics import copy_row
from skyband.kernels.ranking import ranks_before
from skyband.kernels.slabs import CLASSES, reserve
from skyband.problems.subscriptions.drivers.kernels.emit import emit_line
from skyband.problems.subscriptions.drivers.kernels.lists import (
    EVERY_ROW,
    LATEST,
    most_rows,
    place,
    position_of,
    reaches,
    time_of,
    trim,
)


@inlined
def due_from(end, every):
    """When a query is due next: at `end` or later."""
    return -(-end // every) * every


@kernel
def keep(which, swept, begin, stop, hits, arrivals, end, queries, threshold, pool):
    """Take the hits of the queries which[begin:stop] into their lists. No window closes before `end`. Returns the query
    to go on with if the pool had no room."""
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
def close(end, which, begin, queries, threshold, pool, previous, emit, emitted, failed):
    """Close the window that ends at `end`: emit the answers of which[begin:]. Returns as `arrive` does."""
    failures = 0
    for j in range(begin, len(which)):
        q = which[j]
        query, before = queries[q], previous[q]
        k, rows, base, first = query.k, pool.rows, query.offset, end - query.size
        if len(emitted.lines) - emitted.written[0] < 2 * k or len(pool.rows) - pool.free[CLASSES] < 2 * k + 8:
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
        if takes_back(emit):
            _leaving(end, first, x, q, query, before, pool, emitted)
        rank, old = 0, 0
        for y in range(x):
            row = rows[base + y]
            if row.time < first or row.time >= end:
                continue
            rank += 1
            if takes_back(emit):
                while old < before.length and ranks_before(rows[before.offset + old], row):
                    old += 1
                if old < before.length and rows[before.offset + old].position == row.position:
                    continue
            if not is_once(emit) or row.flag == 0:
                emit_line(emitted, end, q, rank, row, 0, ENTER)
                if is_once(emit):
                    row.flag = 1
        if takes_back(emit):
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
def _leaving(end, first, x, q, query, before, pool, emitted):
    """Emit that rows leave: those of the answer before that are not among the rows of [first, end) in list[:x]."""
    rows, base, y = pool.rows, query.offset, 0
    for old in range(before.length):
        row = rows[before.offset + old]
        while y < x and ranks_before(rows[base + y], row):
            y += 1
        stays = y < x and rows[base + y].position == row.position and first <= row.time < end
        if not stays:
            emit_line(emitted, end, q, old + 1, row, 0, LEAVE)
