"""Bands of rows by score group, best first: which rows still matter, and what queries read."""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import allocating, part
from skyband.kernels.heap import push_heap
from skyband.kernels.intrinsics import copy_row
from skyband.kernels.panes import exceeding
from skyband.kernels.ranking import ranks_before, sort_best_first
from skyband.problems.subscriptions.drivers.kernels.lists import LATEST
from skyband.problems.subscriptions.drivers.kernels.score_groups import NONE

SCORE_GROUP = "last"  # the field of a row that holds its score group: there are no panes here
FROM_THE_START = -1  # the first arrival that a query sees, if it sees all
COUNTED = 256  # up to so many rows of a score group are sorted by counting


@allocating
def by_score_group(rows, score_groups):
    """Sort rows by score group, best first."""
    n, ends, found = len(rows), np.zeros(score_groups + 1, np.int64), np.empty_like(rows)
    number, score, place = np.empty(n, np.int64), np.empty(n), np.empty(n, np.int64)
    for x in range(n):
        ends[rows[x].last + 1] += 1
    for t in range(score_groups):
        ends[t + 1] += ends[t]
    for x in range(n):
        t = rows[x].last
        number[ends[t]], score[ends[t]] = x, rows[x].score
        ends[t] += 1
    begin = np.int64(0)
    for t in range(score_groups):
        some, best = slice(begin, ends[t]), found[begin : ends[t]]
        if len(best) > COUNTED or not put_by_counting(rows, number[some], score[some], place, best):
            for x in range(begin, ends[t]):
                copy_row(found, x, rows, number[x])
            sort_best_first(found, begin, ends[t])
        begin = ends[t]
    return found


@part
def put_by_counting(rows, number, score, place, found):
    """Sort the rows with these numbers into `found`: as many rows come before each as are better.

    No step branches, so this sorts few rows faster. Returns False if two scores are equal.
    """
    n = len(number)
    for x in range(n):
        place[x] = NONE
    for x in range(n):
        place[exceeding(score, score[x])] = number[x]
    for x in range(n):
        if place[x] == NONE:
            return False
        copy_row(found, x, rows, place[x])
    return True


@allocating
def merged(band, rows):
    """Merge two bands; both are by score group, best first."""
    found, a, b = np.empty(len(band) + len(rows), band.dtype), 0, 0
    for x in range(len(found)):
        takes = b == len(rows)
        if a < len(band) and b < len(rows):
            takes = band[a].last < rows[b].last if band[a].last != rows[b].last else ranks_before(band[a], rows[b])
        if takes:
            copy_row(found, x, band, a)
            a += 1
        else:
            copy_row(found, x, rows, b)
            b += 1
    return found


@allocating
def pruned(band, more, first, k, starts, score_groups):
    """Merge rows into a band, and keep those from `first` on that fewer than k better ones of their group outlive.

    Each query sees the rows from one of the arrivals `starts` on, which ascend. A better row counts only if every query
    that sees the row also sees the better one.
    """
    rows = merged(band, by_score_group(more, score_groups))
    n = len(rows)
    k = min(k, n + 1)
    heap, keeps, count = np.empty(k, np.int64), np.zeros(n, np.bool_), 0
    for e in range(len(starts)):
        in_heap, score_group = np.int64(0), np.int64(NONE)
        until = starts[e + 1] if e + 1 < len(starts) else LATEST
        for x in range(n):
            row = rows[x]
            if row.last != score_group:
                in_heap, score_group = np.int64(0), row.last
            if row.time < first or row.position < starts[e] or (in_heap == k and heap[0] >= row.time):
                continue
            in_heap = push_heap(heap, in_heap, k, row.time)
            if row.position < until:
                keeps[x] = True
                count += 1
    kept, to = np.empty(count, rows.dtype), 0
    for x in range(n):
        if keeps[x]:
            copy_row(kept, to, rows, x)
            to += 1
    return kept


@allocating
def read(
    rows, score_groups, k, first, start, score_group, earliest_first,
    out_group, out_rank, out_score, out_time, out_position,
):  # fmt: skip
    """Write the k best rows of each query from the band of its score group; returns how many rows it wrote.

    If a score group has many queries, those whose windows begin between the same two rows read the same list.
    `earliest_first` has the queries by score group, sorted by the beginnings of their windows.
    """
    most, n, lists = 1, 0, 0
    starts, queries = np.zeros(score_groups + 1, np.int64), np.zeros(score_groups, np.int64)
    for x in range(len(rows)):
        starts[rows[x].last + 1] += 1
    for t in range(score_groups):
        starts[t + 1] += starts[t]
    for q in range(len(k)):
        most = max(most, k[q])
        queries[score_group[q]] += 1
    most = min(most, len(rows))
    times, too_old, before, old = np.empty(len(rows), np.int64), np.empty(len(k), np.int64), -1, 0
    for q in earliest_first:
        t = score_group[q]
        if queries[t] <= starts[t + 1] - starts[t]:
            continue
        if t != before:
            before, old = t, starts[t]
            for x in range(starts[t], starts[t + 1]):
                times[x] = rows[x].time
            times[starts[t] : starts[t + 1]].sort()
        while old < starts[t + 1] and times[old] < first[q]:
            old += 1
        too_old[q] = old
    # For each score group, one list per number of rows that are too old: one more than it has rows.
    list_of = np.full(len(rows) + score_groups, -1, np.int64)
    own = min(len(k), len(list_of))
    length, listed_score = np.empty(own + 1, np.int64), np.empty((own + 1, most))
    listed_time, listed_position = np.empty((own + 1, most), np.int64), np.empty((own + 1, most), np.int64)
    for q in range(len(k)):
        if k[q] == 0:  # this query is not asked
            continue
        t, at, wanted = score_group[q], own, k[q]
        if queries[t] > starts[t + 1] - starts[t] and start[q] == FROM_THE_START:
            at = list_of[too_old[q] + t]
            wanted = most
        if at < 0 or at == own:
            if at < 0:
                at = list_of[too_old[q] + t] = lists
                lists += 1
            some = rows[starts[t] : starts[t + 1]]
            length[at] = seen(some, first[q], start[q], wanted, listed_score[at], listed_time[at], listed_position[at])
        score, time, position = listed_score[at], listed_time[at], listed_position[at]
        for rank in range(min(k[q], length[at])):
            out_group[n + rank], out_rank[n + rank] = q, rank + 1
            out_score[n + rank], out_time[n + rank], out_position[n + rank] = score[rank], time[rank], position[rank]
        n += min(k[q], length[at])
    return n


@part
def seen(rows, first, start, wanted, score, time, position):
    """List the best rows that a query sees, at most as many as are wanted; returns how many."""
    n = 0
    for x in range(len(rows)):
        if n == min(wanted, len(score)):
            break
        row = rows[x]
        if row.time >= first and row.position >= start:
            score[n], time[n], position[n] = row.score, row.time, row.position
            n += 1
    return n
