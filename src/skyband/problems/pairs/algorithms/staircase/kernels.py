"""The compiled steps of the K-skyband of pairs and its staircase.

The skyband lies in one array, ordered by older row, the youngest first, since that is how pairs leave the window. A
pair belongs to it if fewer than k pairs whose older row is as young or younger rank before it. So one pass from the
youngest older row to the oldest, with the k best pairs seen so far in a heap, finds the skyband; and the worst of these
k is what a pair with that older row, or an older one, has to beat: the staircase, one number a row of the window.
"""

from __future__ import annotations

import numpy as np

from skyband.core.operator import CHANGES, ENTER, ENTRIES, LEAVE
from skyband.kernels.compiling import inlined, kernel, part
from skyband.kernels.ranking import ZERO

DROPPED = -1  # as the older row: a pair that was taken in and is dominated after all
FEW = 64  # as k: up to so many it is cheaper to keep the k best in order than in a heap
SHIFT = 20  # keys of candidates: the older row, then where the candidate stands, in so many bits

# What the clock array holds.
OUT = 0  # entries written to the output
TOP = 1  # pairs in the answer and in its reserve: those that follow
SHOWN = 2  # pairs in the answer that was shown last
OLDEST = 3  # the number of the oldest row in the answer, or an older one
COMPLETE = 4  # 1: there are no other pairs than those in the answer and its reserve
WHY = 5  # it stopped: REFILL or FULL
CLOCKS = 6

REFILL = 1  # too few pairs are left in the answer
FULL = 2  # there may be no room for what is to be written

NO_ROW = np.iinfo(np.int64).max


@inlined
def ranks_before(score, a, b, other_score, other_a, other_b):  # type: ignore[no-untyped-def]
    """Does the first pair rank before the second?"""
    if score != other_score:
        return score > other_score
    if a != other_a:
        return a > other_a
    return b > other_b


@inlined
def strictly_above(score, full):  # type: ignore[no-untyped-def]
    """The least number that is above `score`: what reaches it beats it. Nothing beats infinity; NaN is not reached."""
    if not full:
        return -np.inf
    return np.nan if score == np.inf else np.nextafter(score, np.inf)


# -- the heap: the k best pairs so far, the worst of them first ------------------------------------------------------


@part
def sift_down(heap, n, i, score, a, b, slot):  # type: ignore[no-untyped-def]
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
def sift_up(heap, i, score, a, b, slot):  # type: ignore[no-untyped-def]
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
def select(most, band, n, start, heap, top, clock):  # type: ignore[no-untyped-def]
    """The best of the band's pairs whose older row is not before `start`, so many at most, best first, into `top`."""
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
    clock[TOP], clock[OLDEST], clock[COMPLETE] = in_heap, NO_ROW, seen <= most
    for rank in range(in_heap - 1, -1, -1):
        top[rank] = band[heap[0].flag]
        clock[OLDEST] = min(clock[OLDEST], top[rank].a)
        last = heap[rank]
        sift_down(heap, rank, 0, last.score, last.a, last.b, last.flag)


# -- the skyband and the staircase -------------------------------------------------------------------------------------


@inlined
def worst_of(k, in_heap):  # type: ignore[no-untyped-def]
    """Where the worst of the k best stands: few are simply kept in order, best first, and many in a heap."""
    return in_heap - 1 if k <= FEW else 0


@part
def offer(k, heap, in_heap, score, a, b, a_position, b_position, flag, out, n):  # type: ignore[no-untyped-def]
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
def merge(  # type: ignore[no-untyped-def]
    k, band, n_band, keys, other, score, inner, first, low, high, head, tail, base, position, limit, refresh, heap, out,
    new,
):  # fmt: skip
    """Merge candidates into the skyband, without what is expired or dominated, into `out`.

    Returns how many pairs there are, and which of the skyband's follow as they are.

    Candidates are those in `keys`, which are sorted, and the pairs of new rows [first, first + high) in `inner` whose
    younger row is none of the first `low`. The limits of rows from `refresh` on are set anew. The younger row of every
    candidate is numbered `new` or later, of no other pair.
    """
    i, j, t = 0, len(keys) - 1, high - 2
    in_heap, n = 0, 0
    above, was_full, upper = -np.inf, False, tail
    by_count = len(position) == 0
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
        number, arrival = base + a, base + a if by_count else position[a]
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
            b_arrival = base + b if by_count else position[b]
            in_heap, n = offer(k, heap, in_heap, score[c], number, base + b, arrival, b_arrival, ZERO, out, n)
        if t >= 0 and first + t == a:
            for younger in range(max(low, t + 1), high):
                s = inner[younger, t]
                if s == s and (in_heap < k or s >= heap[worst_of(k, in_heap)].score):
                    b = first + younger
                    b_arrival = base + b if by_count else position[b]
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


@inlined
def moved_up(number, numbers):  # type: ignore[no-untyped-def]
    """The number of a row now that others were put in before these, ascending."""
    low, high = 0, len(numbers)
    while low < high:
        middle = (low + high) >> 1
        if numbers[middle] <= number:
            low = middle + 1
        else:
            high = middle
    return number + low


@kernel
def renumber(pairs, n, numbers):  # type: ignore[no-untyped-def]
    """Rows were put in before these numbers, ascending: pairs of the rows behind them are numbered anew."""
    for r in range(n):
        pair = pairs[r]
        pair.a = moved_up(pair.a, numbers)
        pair.b = moved_up(pair.b, numbers)


@inlined
def arrival_of(index, last, in_order, arrival):  # type: ignore[no-untyped-def]
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
def drop_unborn(row, other, by, score, n, at, in_order, arrival, finder):  # type: ignore[no-untyped-def]
    """Of pairs that one new row found, drop those with a new row that comes after it; returns how many stay.

    New rows are at the indices `at`, and in order at `in_order`, of which arrival[i] says which of them it is.
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
def by_arrival(row, other, by, score, n, at, last, in_order, arrival, starts, out_row, out_other, out_score):  # type: ignore[no-untyped-def]
    """Pairs in the order in which the later of their rows comes: those of the j-th new row begin at starts[j].

    New rows from index `last` on were found by others, not the others by them; of two new rows before it each has found
    the other, which counts once.
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


# -- the answer, with each arrival -------------------------------------------------------------------------------------
# The answer is followed by a reserve: the pairs that rank next. While there are k, none that is left out ranks before
# any of these, so pairs may leave the answer without another look at the skyband.


@part
def enter(k, most, top, clock, score, a, b, a_position, b_position):  # type: ignore[no-untyped-def]
    """Put a pair into the answer or its reserve if it belongs there; is it in the answer?"""
    n = clock[TOP]
    follows = n == 0 or not ranks_before(score, a, b, top[n - 1].score, top[n - 1].a, top[n - 1].b)
    if follows and (n == most or clock[COMPLETE] == 0):
        clock[COMPLETE] = 0
        return False
    if n == most:
        n -= 1
        clock[COMPLETE] = 0
    clock[TOP] = n + 1
    while n > 0 and ranks_before(score, a, b, top[n - 1].score, top[n - 1].a, top[n - 1].b):
        top[n] = top[n - 1]
        n -= 1
    pair = top[n]
    pair.score, pair.a, pair.b = score, a, b
    pair.a_position, pair.b_position, pair.flag = a_position, b_position, 0
    clock[OLDEST] = min(clock[OLDEST], a)
    return n < k


@part
def leave(k, top, clock, start):  # type: ignore[no-untyped-def]
    """Pairs whose older row is before `start` leave; was one of them in the answer?"""
    kept, changed, oldest = 0, False, NO_ROW
    for r in range(clock[TOP]):
        if top[r].a < start:
            changed |= r < k
            continue
        oldest = min(oldest, top[r].a)
        if kept < r:
            top[kept] = top[r]
        kept += 1
    clock[TOP], clock[OLDEST] = kept, oldest
    return changed


@inlined
def may_begin(k, top, clock, start, out):  # type: ignore[no-untyped-def]
    """Before a row is taken: is there room to write, and are there enough pairs once those before `start` have left?

    Returns that, and whether the answer has changed.
    """
    clock[WHY] = 0
    if clock[OUT] + 2 * k > len(out):
        clock[WHY] = FULL
        return False, False
    changed = False
    if clock[OLDEST] < start:
        changed = leave(k, top, clock, start)
        if clock[TOP] < k and clock[COMPLETE] == 0:
            clock[WHY] = REFILL
            return False, False
    return True, changed


@kernel
def absorb(  # type: ignore[no-untyped-def]
    k, most, emit, low, high, refilled, first, heads, at, row, other, score, n, inner, best, base, position,
    top, shown, clock, out,
):  # fmt: skip
    """New rows [low, high) one after the other: what each changes in the answer is written out.

    Stops at a row with which too many pairs leave, for the answer to be filled up from the skyband; `refilled`: that
    has just been done for the first one. Returns where it stopped. best[j] is no less than any score of row j.
    """
    by_count = len(position) == 0
    for j in range(low, high):
        goes_on, changed = may_begin(k, top, clock, base + heads[j], out)
        if not goes_on:
            return j
        changed |= refilled and j == low
        fixed = first + j
        if clock[COMPLETE] == 1 or (clock[TOP] > 0 and best[j] >= top[clock[TOP] - 1].score):
            b_position = base + fixed if by_count else position[fixed]
            for c in range(n):
                if other[c] == fixed:
                    a = row[c]
                    arrival = base + a if by_count else position[a]
                    changed |= enter(k, most, top, clock, score[c], base + a, base + fixed, arrival, b_position)
            for x in range(j):
                s = inner[j, x]
                if s == s:
                    a = first + x
                    arrival = base + a if by_count else position[a]
                    changed |= enter(k, most, top, clock, s, base + a, base + fixed, arrival, b_position)
        if changed:
            show(k, emit, at[j], top, shown, clock, out)
    return high


@kernel
def absorb_late(  # type: ignore[no-untyped-def]
    k, most, emit, low, high, refilled, heads, at, row, other, score, starts, base, position, top, shown, clock, out
):
    """As `absorb` for rows anywhere among the others: the pairs that the j-th found are [starts[j], starts[j + 1])."""
    for j in range(low, high):
        goes_on, changed = may_begin(k, top, clock, base + heads[j], out)
        if not goes_on:
            return j
        changed |= refilled and j == low
        for c in range(starts[j], starts[j + 1]):
            a, b = row[c], other[c]
            changed |= enter(k, most, top, clock, score[c], base + a, base + b, position[a], position[b])
        if changed:
            show(k, emit, at[j], top, shown, clock, out)
    return high


@part
def show(k, emit, at, top, shown, clock, out):  # type: ignore[no-untyped-def]
    """Write how the answer differs from the one shown last: both are best first."""
    n, m = min(clock[TOP], k), clock[SHOWN]
    if emit == CHANGES:
        write_missing(at, shown, m, top, n, LEAVE, clock, out)
        write_missing(at, top, n, shown, m, ENTER, clock, out)
        for r in range(n):
            shown[r] = top[r]
        clock[SHOWN] = n
    else:
        for r in range(n):
            if emit != ENTRIES or top[r].flag == 0:
                write(at, r, top[r], ENTER, clock, out)
                top[r].flag = 1


@part
def write_missing(at, pairs, n, others, m, change, clock, out):  # type: ignore[no-untyped-def]
    """Write those of `pairs` that are not among `others`."""
    i = 0
    for r in range(n):
        pair = pairs[r]
        while i < m and ranks_before(others[i].score, others[i].a, others[i].b, pair.score, pair.a, pair.b):
            i += 1
        if i == m or others[i].a != pair.a or others[i].b != pair.b:
            write(at, r, pair, change, clock, out)


@inlined
def write(at, r, pair, change, clock, out):  # type: ignore[no-untyped-def]
    entry = out[clock[OUT]]
    entry.at, entry.rank, entry.score, entry.change = at, r + 1, pair.score, change
    entry.a, entry.b = pair.a_position, pair.b_position
    clock[OUT] += 1


@kernel
def show_answer(k, emit, at, top, shown, clock, out):  # type: ignore[no-untyped-def]
    """As `show`, when a window closes."""
    show(k, emit, at, top, shown, clock, out)


@kernel
def best_scores(other, score, n, inner, first, best):  # type: ignore[no-untyped-def]
    """For each new row the best score of its candidates."""
    m = len(best)
    for j in range(m):
        best[j] = -np.inf
        for x in range(j):
            if inner[j, x] > best[j]:
                best[j] = inner[j, x]
    for c in range(n):
        j = other[c] - first
        if score[c] > best[j]:
            best[j] = score[c]
