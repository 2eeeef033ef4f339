"""Late rows: their pairs are taken in the order in which the rows came."""

from __future__ import annotations

from skyband.kernels.compiling import inlined, kernel


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
