"""The k-skyband of one group: its rows, best first. The first k are the answer; both ends are cheap to change.

The rows lie in a slab of a pool (slabs.py), with gaps before and behind them. So a row that enters or leaves the first
k moves at most k rows, however many follow. Rows behind the first k may be expired.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import inlined, part
from skyband.kernels.heap import push_heap
from skyband.kernels.ranking import ZERO, exceeds, ranks_before
from skyband.kernels.slabs import HEADER, give_slab, size_class, take_slab

BAND = [("gap", np.int64), *HEADER]  # gap: free entries of the slab before the first row


@inlined
def first_row(band):
    return band.offset + band.gap


@part
def insert(pool, band, rank, k, score, time, position):
    """Insert a row at `rank` (0 is best). It moves the rows before it or those behind it, whichever are fewer."""
    if band.gap == 0 or band.gap + band.length == band.capacity:
        rehouse(pool, band, k)
    rows = pool.rows
    start = band.offset + band.gap
    if 2 * rank <= band.length:
        for j in range(start, start + rank):
            rows[j - 1] = rows[j]
        band.gap -= 1
        start -= 1
    else:
        for j in range(start + band.length, start + rank, -1):
            rows[j] = rows[j - 1]
    band.length += 1
    row = rows[start + rank]
    row.score, row.time, row.position, row.last, row.flag = score, time, position, 0, 0


@part
def remove(pool, band, rank):
    """Remove the row at `rank`. It moves the rows before it or those behind it, whichever are fewer."""
    rows = pool.rows
    start = band.offset + band.gap
    if 2 * rank < band.length:
        for j in range(start + rank, start, -1):
            rows[j] = rows[j - 1]
        band.gap += 1
    else:
        for j in range(start + rank, start + band.length - 1):
            rows[j] = rows[j + 1]
    band.length -= 1


@inlined
def rank_of(pool, band, score, time, position):
    """How many rows of the band rank before a row with this score, time and position."""
    start, low, high = first_row(band), 0, band.length
    while low < high:
        middle = (low + high) >> 1
        if exceeds(pool.rows[start + middle], score, time, position):
            low = middle + 1
        else:
            high = middle
    return low


@part
def rehouse(pool, band, k):
    """Move the rows to a larger slab, with gaps before and behind them."""
    n = band.length
    c = size_class(2 * (n + k))
    new = take_slab(pool, c)
    gap = ((1 << c) - n) >> 1
    start = band.offset + band.gap
    for j in range(n):
        pool.rows[new + gap + j] = pool.rows[start + j]
    give_slab(pool, band)
    band.offset, band.length, band.capacity, band.gap = new, n, 1 << c, gap


@part
def merge(pool, band, others, n, expired, k, heap):
    """Merge n more rows, which come best first, and drop expired and dominated rows: no answer can show them.

    A row is dominated if k better rows have its time or a later one. `heap` has the k latest times of better rows.
    """
    rows = pool.rows
    c = size_class(2 * (band.length + n + k))
    new = take_slab(pool, c)
    gap = ((1 << c) - band.length - n) >> 1
    start, m = band.offset + band.gap, band.length
    i, j, kept, in_heap = ZERO, ZERO, ZERO, ZERO
    while i < m or j < n:
        if j == n or (i < m and ranks_before(rows[start + i], others[j])):
            row = rows[start + i]
            i += 1
        else:
            row = others[j]
            j += 1
        if row.time > expired and not (in_heap == k and heap[0] >= row.time):
            rows[new + gap + kept] = row
            in_heap = push_heap(heap, in_heap, k, row.time)
            kept += 1
    give_slab(pool, band)
    band.offset, band.length, band.capacity, band.gap = new, kept, 1 << c, gap
