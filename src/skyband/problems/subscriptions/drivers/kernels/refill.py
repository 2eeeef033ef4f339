"""Searches the rows of the window, to fill a list that ran short, and to answer an ad-hoc query."""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import allocating, inlined, kernel, part
from skyband.kernels.panes import largest
from skyband.kernels.ranking import ROW, ranks_before, select_best, sort_best_first
from skyband.kernels.slabs import CLASSES, reserve
from skyband.problems.subscriptions.drivers.kernels.lists import EVERY_ROW, LATEST, without_outlived

SAMPLE = 2048  # a threshold is guessed from so many rows
SLICES = 64  # the time of rows that do not last is divided into so many slices


@allocating
def refill(
    which, at, stop, wanted, hits, swept, older, older_swept, split, least, time, position, first, end, alive, clock,
    each, queries, threshold, pool, failed,
):  # fmt: skip
    """Fill the lists of which[at:stop] again, each by `fill_again`.

    The rows are the hits of two sweeps: `hits` has the rows from `split` on, and began with the query `swept`; `older`
    has the rows before, and began with `older_swept`. Queries that found too few rows are put into `failed`.

    Returns where to go on, how much room the pool needs for that, and how many queries failed.
    """
    failures = 0
    for j in range(at, stop):
        begin, older_begin = hits.ends[j - 1] if j > swept else 0, older.ends[j - 1] if j > older_swept else 0
        later, count = hits.ends[j] - begin, hits.ends[j] - begin + older.ends[j] - older_begin
        row, score = np.empty(count, np.int64), np.empty(count)
        row[:later], score[:later] = hits.row[begin : hits.ends[j]] + split, hits.score[begin : hits.ends[j]]
        row[later:], score[later:] = older.row[older_begin : older.ends[j]], older.score[older_begin : older.ends[j]]
        need = fill_again(
            which[j], wanted[j], row, score, least[j] == -np.inf, time, position, first[j], end, alive[j], clock,
            each, queries, threshold, pool,
        )  # fmt: skip
        if need > 0:
            return j, need, failures
        if need < 0:
            failed[failures] = j
            failures += 1
    return stop, 0, failures


@allocating
def outlived_by(which, at, stop, wanted, hits, swept, time, position, first, queries, threshold):
    """Write, by query, the score that a row before `first`, which does not last, must reach to matter.

    The score is known if the hits among the latest rows have as many lasting rows as are wanted.
    """
    for j in range(at, stop):
        begin, query, found = hits.ends[j - 1] if j > swept else 0, queries[which[j]], 0
        lasting = np.empty(hits.ends[j] - begin)
        for x in range(begin, hits.ends[j]):
            i = hits.row[x]
            lasting[found] = hits.score[x]
            found += (time[i] >= first[j]) & (position[i] >= query.start)
        if found >= wanted[j] >= query.k:
            threshold[which[j]] = largest(lasting[:found], query.k - 1)


@part
def fill_again(
    q, wanted, hit, scores, is_all, time, position, first, end, alive, clock, each, queries, threshold, pool
):
    """Fill a list again from the rows of the window that reach some score.

    It gets as many rows of [first, end) as are wanted, and all other rows from `alive` on that rank before the last of
    these. Rows that were in the list stay in it.

    If an answer is due with `each` arrival, rows that k better ones outlive are left out: if rows arrive sorted, those
    near a query leave its window together, and most of the list no longer matters.

    Returns 0 if it is done, or how much room the pool would need, or -1 if these rows are too few and not all rows.
    """
    query, found = queries[q], 0
    lasting = np.empty(len(hit))
    for x in range(len(hit)):
        i = hit[x]
        lasting[found] = scores[x]
        found += (time[i] >= max(first, alive)) & (time[i] < end) & (position[i] >= query.start)
    if found < wanted and not is_all:
        return -1
    # Rows worse than the last wanted one need not be sorted. If rows arrive sorted, these are many.
    least = largest(lasting[:found], wanted - 1) if found >= wanted else -np.inf
    outlived = least  # a worse row that does not last is not needed
    if each and found >= wanted >= query.k:
        outlived = largest(lasting[:wanted], query.k - 1)
    rows, count, early = np.empty(len(hit) + query.length, ROW), 0, 0
    for x in range(len(hit)):
        i = hit[x]
        row = rows[count]
        row.score, row.time, row.position, row.last, row.flag = scores[x], time[i], position[i], 0, 0
        lasts = (time[i] >= first) | (not each)
        seen = (time[i] >= alive) & (position[i] >= query.start)
        count += seen & lasts & (scores[x] >= least)
        hit[early], scores[early] = i, scores[x]
        early += seen & (not lasts) & (scores[x] >= outlived)
    if early > 0:
        best = np.full(query.k, -np.inf)
        if outlived > -np.inf:
            best[:] = lasting[: query.k]
            best[::-1].sort()
        count = take_early(rows, count, hit[:early], scores[:early], time, position, alive, first, best)
    sort_best_first(rows, np.int64(0), count)
    # Cut behind the last wanted row. If there are fewer rows, the list has all of them, and is complete.
    edge, found = count, 0
    for i in range(count):
        found += (rows[i].time >= first) & (rows[i].time < end)
        if found == wanted:
            edge = i + 1
            break
    total, old, is_sorted = edge, 0, True
    for x in range(query.offset, query.offset + query.length):
        row = pool.rows[x]
        while old < edge and ranks_before(rows[old], row):
            old += 1
        if old < edge and rows[old].position == row.position:
            rows[old].flag = row.flag
        elif old == edge or row.time < alive or not each:  # any other row was left out because it is not needed
            copy_fields(rows[total], row)
            total += 1
            is_sorted &= old == edge
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
    if not is_sorted:
        sort_best_first(rows, np.int64(0), total)
    if each:
        total = without_outlived(rows, 0, total, query.k, np.empty(min(query.k, total), np.int64))
    reserve(pool, query, total)
    query.length, query.sorted, query.oldest = total, total, LATEST
    for x in range(total):
        copy_fields(pool.rows[query.offset + x], rows[x])
        query.oldest = min(query.oldest, rows[x].time)
    return 0


@part
def take_early(rows, count, hit, scores, time, position, alive, first, best):
    """Append the hits before `first` to the first rows; returns how many rows there are then.

    Rows that k better ones outlive are left out, as far as SLICES of time tell. `best` has the k best scores of later
    rows.
    """
    k, width = len(best), (first - alive) // SLICES + 1
    ends, order = np.zeros(SLICES + 1, np.int64), np.empty(len(hit), np.int64)
    for x in range(len(hit)):
        ends[(first - 1 - time[hit[x]]) // width + 1] += 1
    for y in range(SLICES):
        ends[y + 1] += ends[y]
    for x in range(len(hit)):
        y = (first - 1 - time[hit[x]]) // width
        order[ends[y]] = x
        ends[y] += 1
    begin = 0
    for y in range(SLICES):  # from the latest slice to the earliest
        limit, kept = best[k - 1], count
        for z in range(begin, ends[y]):
            x, i = order[z], hit[order[z]]
            row = rows[count]
            row.score, row.time, row.position, row.last, row.flag = scores[x], time[i], position[i], 0, 0
            count += (scores[x] > limit) | (limit == -np.inf)
        begin = ends[y]
        for x in range(kept, count):
            score, z = rows[x].score, k - 1
            if score > best[z]:
                while z > 0 and best[z - 1] < score:
                    best[z] = best[z - 1]
                    z -= 1
                best[z] = score
    return count


@inlined
def copy_fields(to, row):
    """Copy a row between a list and the rows that are being sorted."""
    to.score, to.time, to.position, to.flag = row.score, row.time, row.position, row.flag


@kernel
def guess(scores, time, first, end, expected, found):
    """Guess, by query, a score that somewhat more than the expected number of rows of [first, end) reach.

    The guess comes from the scores of a sample, which are reordered. It is -inf if there is no good guess.
    """
    for j in range(len(scores)):
        rank, count = int(expected[j] + 3 * np.sqrt(expected[j]) + 3), 0
        for x in range(scores.shape[1]):
            score = scores[j, x]
            if count > rank and not score > scores[j, rank]:
                continue
            if score == score and first[j] <= time[x] < end:
                # The best scores so far, one more than the rank, are sorted where other scores have been read.
                y = min(count, rank)
                while y > 0 and scores[j, y - 1] < score:
                    scores[j, y] = scores[j, y - 1]
                    y -= 1
                scores[j, y] = score
                count += 1
        found[j] = scores[j, rank] if count > rank else -np.inf


@allocating
def best_of(scores, time, position, first, end, start, k):
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
