"""The compiled steps of the K-skyband of pairs and its staircase.

The skyband lies in one array, ordered by older row, the youngest first, because pairs leave the window in that order. A
pair belongs to it if fewer than k pairs whose older row is as young or younger rank before it. So one pass from the
youngest older row to the oldest, with the k best pairs so far in a heap, finds the skyband. A pair with the present
older row, or an older one, has to beat the worst of these k: that is the staircase, one number a row of the window.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import inlined, kernel, part
from skyband.kernels.ranking import ZERO
from skyband.problems.pairs.algorithms.staircase.kernels.arrays import (
    COMPLETE,
    DROPPED,
    FEW,
    NO_ROW,
    OLDEST,
    SHIFT,
    TOP,
)
from skyband.problems.pairs.drivers.kernels import arrival_at, ranks_before


@inlined
def strictly_above(score, full):
    """The least number that is above `score`: what reaches it beats it. Nothing beats infinity; NaN is not reached."""
    if not full:
        return -np.inf
    return np.nan if score == np.inf else np.nextafter(score, np.inf)


# -- the heap: the k best pairs so far, the worst of them first ------------------------------------------------------


@part
def sift_down(heap, n, i, score, a, b, slot):
    """Put a pair in at i, or below it, so that no pair ranks after the one above it."""
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        if child + 1 < n:
            x, y = heap[child], heap[child + 1]
            if ranks_before(x.score, x.a, x.b, y.score, y.a, y.b):
                child += 1
        worse = heap[child]
        if not ranks_before(score, a, b, worse.score, worse.a, worse.b):
            break
        heap[i] = worse
        i = child
    entry = heap[i]
    entry.score, entry.a, entry.b, entry.flag = score, a, b, slot


@part
def sift_up(heap, i, score, a, b, slot):
    """Put a pair in at i, or above it."""
    while i > 0:
        parent = (i - 1) >> 1
        above = heap[parent]
        if not ranks_before(above.score, above.a, above.b, score, a, b):
            break
        heap[i] = above
        i = parent
    entry = heap[i]
    entry.score, entry.a, entry.b, entry.flag = score, a, b, slot


@kernel
def select(most, band, n, start, heap, top, numbers):
    """Write to `top`, best first, the best pairs of the band whose older row is not before `start`, at most so many."""
    in_heap, seen = 0, 0
    for r in range(n):
        pair = band[r]
        if pair.a < start:
            break
        seen += 1
        if in_heap < most:
            sift_up(heap, in_heap, pair.score, pair.a, pair.b, r)
            in_heap += 1
        elif ranks_before(pair.score, pair.a, pair.b, heap[0].score, heap[0].a, heap[0].b):
            sift_down(heap, most, 0, pair.score, pair.a, pair.b, r)
    numbers[TOP], numbers[OLDEST], numbers[COMPLETE] = in_heap, NO_ROW, seen <= most
    for rank in range(in_heap - 1, -1, -1):
        top[rank] = band[heap[0].flag]
        numbers[OLDEST] = min(numbers[OLDEST], top[rank].a)
        last = heap[rank]
        sift_down(heap, rank, 0, last.score, last.a, last.b, last.flag)


# -- the skyband and the staircase -------------------------------------------------------------------------------------


@inlined
def worst_of(k, in_heap):
    """Where the worst of the k best stands: a few are kept in order, best first, and many in a heap."""
    return in_heap - 1 if k <= FEW else 0


@part
def offer(k, heap, in_heap, score, a, b, a_position, b_position, flag, out, n):
    """Take a pair in unless k pairs rank before it; returns how many are in the heap, and in `out`."""
    if in_heap == k:
        worst = heap[worst_of(k, in_heap)]
        if not ranks_before(score, a, b, worst.score, worst.a, worst.b):
            return in_heap, n
        if worst.a == a:
            # k pairs with this older row, or a younger one, rank before it.
            out[worst.flag].a = DROPPED
    if k <= FEW:
        i = in_heap if in_heap < k else k - 1
        while i > 0 and ranks_before(score, a, b, heap[i - 1].score, heap[i - 1].a, heap[i - 1].b):
            heap[i] = heap[i - 1]
            i -= 1
        entry = heap[i]
        entry.score, entry.a, entry.b, entry.flag = score, a, b, n
    elif in_heap < k:
        sift_up(heap, in_heap, score, a, b, n)
    else:
        sift_down(heap, k, 0, score, a, b, n)
    pair = out[n]
    pair.score, pair.a, pair.b = score, a, b
    pair.a_position, pair.b_position, pair.flag = a_position, b_position, flag
    return min(in_heap + 1, k), n + 1


@kernel
def merge(
    k, band, n_band, keys, other, score, inner, first, low, high, head, tail, base, position, limit, refresh, heap, out,
    new,
):  # fmt: skip
    """Merge candidates into the skyband, without what is expired or dominated, into `out`.

    Returns how many pairs there are, and which of the skyband's follow as they are.

    Candidates are those in `keys`, which are sorted, and the pairs of new rows [first, first + high) in `inner` whose
    younger row is none of the first `low`. The loop sets the limits of rows from `refresh` on anew. The younger row of
    a candidate has the number `new` or a later one, that of any other pair an earlier one.
    """
    i, j, t = 0, len(keys) - 1, high - 2
    in_heap, n = 0, 0
    above, was_full, upper = -np.inf, False, tail
    mask = (1 << SHIFT) - 1
    groups, look = 0, 1
    while True:
        # All pairs with a younger older row than `a` have been offered.
        a = -1
        if i < n_band:
            a = band[i].a - base
        if j >= 0:
            a = max(a, keys[j] >> SHIFT)
        if t >= 0:
            a = max(a, first + t)
        if a < head:
            break
        group = n
        number, arrival = base + a, arrival_at(a, base, position)
        while i < n_band and band[i].a == number:
            pair = band[i]
            in_heap, n = offer(
                k, heap, in_heap, pair.score, number, pair.b, pair.a_position, pair.b_position, pair.flag, out, n
            )
            i += 1
        while j >= 0 and keys[j] >> SHIFT == a:
            c = keys[j] & mask
            j -= 1
            # Most candidates fail here, and cost no more than this.
            if in_heap == k and score[c] < heap[worst_of(k, in_heap)].score:
                continue
            b = other[c]
            b_arrival = arrival_at(b, base, position)
            in_heap, n = offer(k, heap, in_heap, score[c], number, base + b, arrival, b_arrival, ZERO, out, n)
        if t >= 0 and first + t == a:
            for younger in range(max(low, t + 1), high):
                s = inner[younger, t]
                if s == s and (in_heap < k or s >= heap[worst_of(k, in_heap)].score):
                    b = first + younger
                    b_arrival = arrival_at(b, base, position)
                    in_heap, n = offer(k, heap, in_heap, s, number, base + b, arrival, b_arrival, ZERO, out, n)
            t -= 1
        kept = group
        for r in range(group, n):
            if out[r].a != DROPPED:
                out[kept] = out[r]
                kept += 1
        n = kept
        # Set the limits of the rows between the group before and this one, and of its older row.
        full = in_heap == k
        worst = heap[worst_of(k, in_heap)].score if full else -np.inf
        between = strictly_above(above, was_full)
        for r in range(max(a + 1, refresh), upper):
            limit[r] = between
        if a >= refresh:
            # A pair that ties with the k-th ranks before it if that has the same older row and an older other.
            limit[a] = worst if not was_full or worst > above else strictly_above(worst, full)
        above, was_full, upper = worst, full, a
        if j < 0 and t < 0 and full and a <= refresh:
            # Where no candidate is among the k best, older pairs meet the same k as before: nothing changes for them.
            groups += 1
            if groups == look:
                look *= 2
                fresh = 0
                for r in range(k):
                    fresh += heap[r].b >= new
                if fresh == 0:
                    return n, i
    between = strictly_above(above, was_full)
    for r in range(max(head, refresh), upper):
        limit[r] = between
    return n, n_band
