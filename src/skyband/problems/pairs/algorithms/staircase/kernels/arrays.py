"""What the arrays of the K-skyband of pairs hold, and how late rows and their pairs are put in order."""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import inlined, kernel

DROPPED = -1  # as the older row: a pair that was taken in and is dominated after all
FEW = 64  # as k: up to so many it is cheaper to keep the k best in order than in a heap
SHIFT = 20  # keys of candidates: the older row, then where the candidate stands, in so many bits

# Numbers that change.
TOP = 0  # pairs in the answer and in its reserve: those that follow
OLDEST = 1  # the number of the oldest row in the answer, or an older one
COMPLETE = 2  # 1: there are no other pairs than those in the answer and its reserve
WHY = 3  # it stopped: REFILL or FULL
NUMBERS = 4

REFILL = 1  # too few pairs are left in the answer
FULL = 2  # there may be no room for what is to be written

NO_ROW = np.iinfo(np.int64).max


@inlined
def arrival_of(index, last, in_order, arrival):
    """Which of the new rows is at this index; -1: none. Those from `last` on are all new."""
    if index >= last:
        return arrival[len(in_order) - (in_order[-1] + 1 - index)]
    low, high = 0, len(in_order)
    while low < high:
        middle = (low + high) >> 1
        if in_order[middle] < index:
            low = middle + 1
        else:
            high = middle
    return arrival[low] if low < len(in_order) and in_order[low] == index else -1


@kernel
def drop_unborn(row, other, score, n, at, in_order, arrival, finder):
    """Drop the pairs of one new row with new rows that come after it; returns how many stay.

    New rows are at the indices `at`, and in order at `in_order`; arrival[i] says which new row is at in_order[i].
    """
    kept, last = 0, in_order[-1] + 1
    for c in range(n):
        partner = row[c] if other[c] == at[finder] else other[c]
        if arrival_of(partner, last, in_order, arrival) > finder:
            continue
        row[kept], other[kept], score[kept] = row[c], other[c], score[c]
        kept += 1
    return kept


@kernel
def by_arrival(row, other, by, score, n, at, last, in_order, arrival, starts, out_row, out_other, out_score):
    """Sort pairs by the arrival of the later row: those of the j-th new row begin at starts[j].

    A new row from index `last` on was found by others, and found none itself. Two new rows before it have found each
    other; the pair counts once.
    """
    m = len(at)
    for j in range(m + 1):
        starts[j] = 0
    for c in range(n):
        finder = by[c]
        partner = row[c] if other[c] == at[finder] else other[c]
        came = arrival_of(partner, last, in_order, arrival)
        if came > finder:
            by[c] = came if max(partner, at[finder]) >= last else -1
        if by[c] >= 0:
            starts[by[c] + 1] += 1
    for j in range(m):
        starts[j + 1] += starts[j]
    for c in range(n):
        j = by[c]
        if j >= 0:
            place = starts[j]
            out_row[place], out_other[place], out_score[place] = row[c], other[c], score[c]
            starts[j] = place + 1
    for j in range(m, 0, -1):
        starts[j] = starts[j - 1]
    starts[0] = 0
    return starts[m]
