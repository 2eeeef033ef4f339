"""How the answer changes with each arrival.

Behind the answer lies a reserve: the pairs that rank next. As long as there are k pairs in all, no other pair ranks
before one of them, so pairs may leave the answer without another look at the skyband.
"""

from __future__ import annotations

import numpy as np

from skyband.core.emit import ENTER, LEAVE, is_once, takes_back
from skyband.kernels.compiling import inlined, kernel, part
from skyband.problems.pairs.algorithms.staircase.kernels.arrays import (
    COMPLETE,
    FULL,
    NO_ROW,
    OLDEST,
    OUT,
    REFILL,
    SHOWN,
    TOP,
    WHY,
    ranks_before,
)


@part
def enter(k, most, top, clock, score, a, b, a_position, b_position):
    """Put a pair into the answer or its reserve, if it belongs there; say whether it is in the answer."""
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
def leave(k, top, clock, start):
    """Drop the pairs whose older row is before `start`; say whether one of them was in the answer."""
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
def may_begin(k, top, clock, start, out):
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
def absorb(
    k, most, emit, low, high, refilled, first, heads, at, row, other, score, n, inner, best, base, position,
    top, shown, clock, out,
):  # fmt: skip
    """Take new rows [low, high) one after the other, and write out what each changes in the answer.

    It stops at a row with which too many pairs leave, so that the caller fills the answer up from the skyband;
    `refilled`: the caller has just done so for the first row. Returns where it stopped. No score of row j is above
    best[j].
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
def absorb_late(
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
def show(k, emit, at, top, shown, clock, out):
    """Write how the answer differs from the one shown last: both are best first."""
    n, m = min(clock[TOP], k), clock[SHOWN]
    if takes_back(emit):
        write_missing(at, shown, m, top, n, LEAVE, clock, out)
        write_missing(at, top, n, shown, m, ENTER, clock, out)
        for r in range(n):
            shown[r] = top[r]
        clock[SHOWN] = n
    else:
        for r in range(n):
            if not is_once(emit) or top[r].flag == 0:
                write(at, r, top[r], ENTER, clock, out)
                top[r].flag = 1


@part
def write_missing(at, pairs, n, others, m, change, clock, out):
    """Write those of `pairs` that are not among `others`."""
    i = 0
    for r in range(n):
        pair = pairs[r]
        while i < m and ranks_before(others[i].score, others[i].a, others[i].b, pair.score, pair.a, pair.b):
            i += 1
        if i == m or others[i].a != pair.a or others[i].b != pair.b:
            write(at, r, pair, change, clock, out)


@inlined
def write(at, r, pair, change, clock, out):
    entry = out[clock[OUT]]
    entry.at, entry.rank, entry.score, entry.change = at, r + 1, pair.score, change
    entry.a, entry.b = pair.a_position, pair.b_position
    clock[OUT] += 1


@kernel
def show_answer(k, emit, at, top, shown, clock, out):
    """As `show`, when a window closes."""
    show(k, emit, at, top, shown, clock, out)


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
