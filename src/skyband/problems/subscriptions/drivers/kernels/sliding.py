"""Takes rows into the lists of queries whose windows slide by more than a row, and emits what windows show."""

from __future__ import annotations

from skyband.core.emit import ENTER, is_once, takes_back
from skyband.kernels.compiling import inlined, kernel, part
from skyband.kernels.emit import write, write_differences
from skyband.kernels.intrinsics import copy_row
from skyband.kernels.ranking import ZERO
from skyband.kernels.slabs import CLASSES, give_slab, reserve, size_class, take_slab
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
    """When a query is due next, at `end` or later."""
    return -(-end // every) * every


@kernel
def keep(which, swept, begin, stop, hits, arrivals, end, queries, threshold, pool):
    """Put the hits of the queries which[begin:stop] into their lists. No window closes before `end`.

    Returns the query to go on with if the pool ran out of room.
    """
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
    """Close the window that ends at `end`: emit the answers of which[begin:]. Returns what `arrive` returns."""
    failures = 0
    for j in range(begin, len(which)):
        q = which[j]
        query, k = queries[q], queries[q].k
        rows, base, first = pool.rows, query.offset, end - query.size
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
            emit_changes(end, first, found, base, base + x, q, previous[q], pool, emitted)
        else:
            emit_rows(end, first, base, base + x, q, rows, emit, emitted)
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
def emit_rows(end, first, x, stop, q, rows, emit, emitted):
    """Emit the rows [x, stop) of a list that are in the window [first, end); to emit entries, each only once."""
    rank = 0
    for y in range(x, stop):
        row = rows[y]
        if first <= row.time < end:
            rank += 1
            if not is_once(emit) or row.flag == 0:
                write(emitted.lines, emitted.written, end, q, rank, row, ENTER, ZERO)
                row.flag = is_once(emit)


@part
def emit_changes(end, first, found, x, stop, q, before, pool, emitted):
    """Emit how an answer differs from the one before, and keep it in place of that one.

    The answer is the `found` rows among [x, stop) in the window [first, end).
    """
    if found == 0 and before.length == 0:
        return
    c = size_class(found)
    new = take_slab(pool, c)
    n = new
    for y in range(x, stop):
        if first <= pool.rows[y].time < end:
            copy_row(pool.rows, n, pool.rows, y)
            n += 1
    lines, written, rows = emitted.lines, emitted.written, pool.rows
    write_differences(q, end, ZERO, rows, before.offset, before.length, rows, new, found, written, lines)
    give_slab(pool, before)
    before.offset, before.length, before.capacity = new, found, 1 << c
