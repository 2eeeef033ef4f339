"""How the answer changes with each arrival.

Behind the answer lies a reserve: the pairs that rank next. As long as there are k pairs in all, no other pair ranks
before one of them, so pairs may leave the answer without another look at the skyband.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import inlined, kernel, part
from skyband.problems.pairs.algorithms.staircase.kernels.arrays import COMPLETE, FULL, NO_ROW, OLDEST, REFILL, TOP, WHY
from skyband.problems.pairs.drivers.kernels import OUT, arrival_at, ranks_before, show


@part
def enter(k, most, top, numbers, score, a, b, a_position, b_position):
    """Put a pair into the answer or its reserve, if it belongs there; say whether it is in the answer."""
    n = numbers[TOP]
    follows = n == 0 or not ranks_before(score, a, b, top[n - 1].score, top[n - 1].a, top[n - 1].b)
    if follows and (n == most or numbers[COMPLETE] == 0):
        numbers[COMPLETE] = 0
        return False
    if n == most:
        n -= 1
        numbers[COMPLETE] = 0
    numbers[TOP] = n + 1
    while n > 0 and ranks_before(score, a, b, top[n - 1].score, top[n - 1].a, top[n - 1].b):
        top[n] = top[n - 1]
        n -= 1
    pair = top[n]
    pair.score, pair.a, pair.b = score, a, b
    pair.a_position, pair.b_position, pair.flag = a_position, b_position, 0
    numbers[OLDEST] = min(numbers[OLDEST], a)
    return n < k


@part
def leave(k, top, numbers, start):
    """Drop the pairs whose older row is before `start`; say whether one of them was in the answer."""
    kept, changed, oldest = 0, False, NO_ROW
    for r in range(numbers[TOP]):
        if top[r].a < start:
            changed |= r < k
            continue
        oldest = min(oldest, top[r].a)
        if kept < r:
            top[kept] = top[r]
        kept += 1
    numbers[TOP], numbers[OLDEST] = kept, oldest
    return changed


@inlined
def may_begin(k, top, numbers, start, shown):
    """Before a row is taken: is there room to write, and are there enough pairs once those before `start` have left?

    Returns that, and whether the answer has changed.
    """
    numbers[WHY] = 0
    if shown.numbers[OUT] + 2 * k > len(shown.out):
        numbers[WHY] = FULL
        return False, False
    changed = False
    if numbers[OLDEST] < start:
        changed = leave(k, top, numbers, start)
        if numbers[TOP] < k and numbers[COMPLETE] == 0:
            numbers[WHY] = REFILL
            return False, False
    return True, changed


@kernel
def absorb(
    k, most, emit, low, high, refilled, first, heads, at, row, other, score, n, inner, best, base, position,
    top, numbers, shown,
):  # fmt: skip
    """Take new rows [low, high) one after the other, and write out what each changes in the answer.

    It stops at a row with which too many pairs leave, so that the caller fills the answer up from the skyband;
    `refilled`: the caller has just done so for the first row. Returns where it stopped. No score of row j is above
    best[j].
    """
    for j in range(low, high):
        goes_on, changed = may_begin(k, top, numbers, base + heads[j], shown)
        if not goes_on:
            return j
        changed |= refilled and j == low
        fixed = first + j
        if numbers[COMPLETE] == 1 or (numbers[TOP] > 0 and best[j] >= top[numbers[TOP] - 1].score):
            b_position = arrival_at(fixed, base, position)
            for c in range(n):
                if other[c] == fixed:
                    a = row[c]
                    arrival = arrival_at(a, base, position)
                    changed |= enter(k, most, top, numbers, score[c], base + a, base + fixed, arrival, b_position)
            for x in range(j):
                s = inner[j, x]
                if s == s:
                    a = first + x
                    arrival = arrival_at(a, base, position)
                    changed |= enter(k, most, top, numbers, s, base + a, base + fixed, arrival, b_position)
        if changed:
            show(emit, at[j], top, min(numbers[TOP], k), shown)
    return high


@kernel
def absorb_late(
    k, most, emit, low, high, refilled, heads, at, row, other, score, starts, base, position, top, numbers, shown
):
    """As `absorb` for rows anywhere among the others: the pairs that the j-th found are [starts[j], starts[j + 1])."""
    for j in range(low, high):
        goes_on, changed = may_begin(k, top, numbers, base + heads[j], shown)
        if not goes_on:
            return j
        changed |= refilled and j == low
        for c in range(starts[j], starts[j + 1]):
            a, b = row[c], other[c]
            changed |= enter(k, most, top, numbers, score[c], base + a, base + b, position[a], position[b])
        if changed:
            show(emit, at[j], top, min(numbers[TOP], k), shown)
    return high


@kernel
def best_scores(other, score, n, inner, first, best):
    """Write the best score of each new row's candidates."""
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
