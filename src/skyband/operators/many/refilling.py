"""What is found in the rows of a window when a list does not have it: a list filled again, an answer right now."""

from __future__ import annotations

import numpy as np

from skyband.operators.many.lists_kernels import EVERY_ROW, LATEST
from skyband.structures.compiling import allocating, inlined, kernel
from skyband.structures.panes import largest
from skyband.structures.ranking import ROW, ranks_before, select_best, sort_best_first
from skyband.structures.slabs import CLASSES, reserve

SAMPLE = 2048  # rows that a threshold is guessed from


@allocating
def refill(q, wanted, hit, scores, is_all, time, position, first, end, alive, clock, queries, threshold, pool):  # type: ignore[no-untyped-def]
    """Fill a list again from the rows of the window that reach some score: with as many rows of [first, end) as are
    wanted, and all others from `alive` on that rank before the last of these. What was in it stays in it.

    Returns 0; or how much room the pool would need; or -1 if these rows are too few, and not all.
    """
    query, found = queries[q], 0
    lasting = np.empty(len(hit))
    for x in range(len(hit)):
        i = hit[x]
        lasting[found] = scores[x]
        found += (time[i] >= max(first, alive)) & (time[i] < end) & (position[i] >= query.start)
    if found < wanted and not is_all:
        return -1
    # What is worse than the last that is wanted need not be sorted: where rows come in an order, these are many.
    least = largest(lasting[:found], wanted - 1) if found >= wanted else -np.inf
    rows, count = np.empty(len(hit) + query.length, ROW), 0
    for x in range(len(hit)):
        i = hit[x]
        row = rows[count]
        row.score, row.time, row.position, row.last, row.flag = scores[x], time[i], position[i], 0, 0
        count += (time[i] >= alive) & (position[i] >= query.start) & (scores[x] >= least)
    sort_best_first(rows, np.int64(0), count)
    # Cut behind the last that is wanted; without so many, all rows are there and the list is complete whatever comes.
    edge, found = count, 0
    for i in range(count):
        found += (rows[i].time >= first) & (rows[i].time < end)
        if found == wanted:
            edge = i + 1
            break
    total, old = edge, 0
    for x in range(query.offset, query.offset + query.length):
        row = pool.rows[x]
        while old < edge and ranks_before(rows[old], row):
            old += 1
        if old < edge and rows[old].position == row.position:
            rows[old].flag = row.flag
        else:
            copy_fields(rows[total], row)
            total += 1
    if len(pool.rows) - pool.free[CLASSES] < 2 * total + 8:
        return 2 * total + 8
    query.wanted = wanted
    query.refilled = clock
    if found < wanted:
        threshold[q], query.edge_time, query.edge_position = -np.inf, -LATEST, EVERY_ROW
    else:
        threshold[q], query.edge_time, query.edge_position = (
            rows[edge - 1].score,
            rows[edge - 1].time,
            rows[edge - 1].position,
        )
    sort_best_first(rows, np.int64(0), total)
    reserve(pool, query, total)
    query.length, query.sorted, query.oldest = total, total, LATEST
    for x in range(total):
        copy_fields(pool.rows[query.offset + x], rows[x])
        query.oldest = min(query.oldest, rows[x].time)
    return 0


@inlined
def copy_fields(to, row):  # type: ignore[no-untyped-def]
    """Between lists and what is sorted."""
    to.score, to.time, to.position, to.flag = row.score, row.time, row.position, row.flag


@kernel
def guess(scores, time, first, end, expected):  # type: ignore[no-untyped-def]
    """From a sample of rows: a score that somewhat more than the expected number of rows of [first, end) reach, in the
    sample and so elsewhere; -inf: a guess is no use. Reorders the scores."""
    count = 0
    for x in range(len(scores)):
        if scores[x] == scores[x] and first <= time[x] < end:
            scores[count] = scores[x]
            count += 1
    rank = int(expected + 3 * np.sqrt(expected) + 3)
    return largest(scores[:count], rank) if rank < count else -np.inf


@allocating
def best_of(scores, time, position, first, end, start, k):  # type: ignore[no-untyped-def]
    """The k best of the rows in [first, end) from arrival `start` on, best first."""
    rows, n = np.empty(len(scores), ROW), 0
    for i in range(len(scores)):
        if (scores[i] == scores[i]) & (time[i] >= first) & (time[i] < end) & (position[i] >= start):
            row = rows[n]
            row.score, row.time, row.position, row.last, row.flag = scores[i], time[i], position[i], 0, 0
            n += 1
    k = min(k, n)
    if 0 < k < n:
        select_best(rows, np.int64(0), n, k)
    sort_best_first(rows, np.int64(0), k)
    return rows[:k]
