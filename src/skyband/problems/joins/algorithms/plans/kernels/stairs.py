"""Staircases: the minimum of values that come and expire, for many owners in one pool.

A value hides another one that is not smaller and does not expire later. The values that are not hidden, a skyband with
k = 1, form a staircase: in order of expiry, they rise. The first step that has not expired is the minimum. An owner's
steps lie in a slab of 2**c steps of the pool. Kernels never grow the pool; they return that it is full. Steps expire at
one end of the slab and mostly come at the other, so no step moves until the slab is used up.

If inputs have clocks of their own, a value expires with the first of several rows, and it is unknown with which. Then a
step has a last moment on each clock, and hides another step if it is later on all clocks. Such steps are in no order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.core.operator import Ints
from skyband.kernels.compiling import inlined, part
from skyband.problems.joins.algorithms.plans.arrays import longer

SMALLEST = 1  # log2 of the smallest slab
CLASSES = 48
NONE = -1

# Columns of a step: its value, and the last moment at which it counts, on each clock. In the first step of a free slab,
# the next free slab takes the place of that moment.
VALUE, UNTIL = 0, 1
# Columns of an owner: its first step, the number of steps, and its slab, which begins at or before that step. Capacity
# 0: no slab.
OFFSET, LENGTH, CAPACITY, SLAB = 0, 1, 2, 3
NEVER = np.iinfo(np.int64).min  # a moment before all others
NEAR = 8  # how many steps are tried one by one before a binary search


class Stairs(NamedTuple):
    """The steps of all owners, and the free slabs."""

    steps: Ints
    owners: Ints
    free: Ints  # by size class: the first free slab, or NONE; last: the first step never used

    def with_owners(self, owners: int) -> Stairs:
        """Make room for at least this many owners; new ones have no slab."""
        return self if owners <= len(self.owners) else self._replace(owners=longer(self.owners, owners))

    def with_more_steps(self) -> Stairs:
        return self._replace(steps=longer(self.steps, 2 * len(self.steps) + 64))


def new_stairs(owners: int, steps: int, clocks: int = 1) -> Stairs:
    free = np.full(CLASSES + 1, NONE, np.int64)
    free[CLASSES] = 0
    return Stairs(np.zeros((steps, UNTIL + clocks), np.int64), np.zeros((owners, 4), np.int64), free)


@part
def clear(stairs, owner):
    """Drop an owner's steps, and free its slab."""
    header = stairs.owners[owner]
    if header[CAPACITY] > 0:
        c = SMALLEST
        while (1 << c) < header[CAPACITY]:
            c += 1
        stairs.steps[header[SLAB], UNTIL] = stairs.free[c]
        stairs.free[c] = header[SLAB]
        header[CAPACITY] = 0
    header[LENGTH] = 0


@part
def _widen(stairs, owner):
    """Move an owner to a slab of twice the size. Returns False if the pool is full."""
    header = stairs.owners[owner]
    c = SMALLEST
    while (1 << c) <= header[CAPACITY]:
        c += 1
    slab = stairs.free[c]
    if slab != NONE:
        stairs.free[c] = stairs.steps[slab, UNTIL]
    else:
        slab = stairs.free[CLASSES]
        if slab + (1 << c) > len(stairs.steps):
            return False
        stairs.free[CLASSES] = slab + (1 << c)
    n, old = header[LENGTH], header[OFFSET]
    for j in range(n):
        _copy(stairs.steps, old + j, slab + j)
    clear(stairs, owner)
    header[OFFSET], header[LENGTH], header[CAPACITY], header[SLAB] = slab, n, 1 << c, slab
    return True


@inlined
def _copy(steps, one, to):
    for c in range(steps.shape[1]):
        steps[to, c] = steps[one, c]


@part
def _move(steps, start, end, by):
    """Move steps up or down, with a single clock."""
    if by > 0:
        for j in range(end - 1, start - 1, -1):
            steps[j + by, UNTIL], steps[j + by, VALUE] = steps[j, UNTIL], steps[j, VALUE]
    elif by < 0:
        for j in range(start, end):
            steps[j + by, UNTIL], steps[j + by, VALUE] = steps[j, UNTIL], steps[j, VALUE]


@part
def expire(stairs, owner, now):
    """Drop the steps that have expired."""
    header, steps = stairs.owners[owner], stairs.steps
    start, n, gone = header[OFFSET], header[LENGTH], 0
    while gone < n and steps[start + gone, UNTIL] < now:
        gone += 1
    header[OFFSET] = start + gone if gone < n else header[SLAB]
    header[LENGTH] = n - gone


@part
def _make_room(stairs, owner):
    """Make room for a step behind the last. Returns False if the pool is full.

    Steps move down only if a quarter of the slab before them is free, so at most three steps move for each that comes.
    """
    header = stairs.owners[owner]
    start, n, slab, capacity = header[OFFSET], header[LENGTH], header[SLAB], header[CAPACITY]
    if start + n < slab + capacity:
        return True
    if 4 * n >= 3 * capacity:
        return _widen(stairs, owner)
    _move(stairs.steps, start, start + n, slab - start)
    header[OFFSET] = slab
    return True


@inlined
def expiring_before(steps, start, n, until):
    """How many of the n steps from `start` on expire before `until`. Usually nearly all do."""
    high = n
    while high > 0 and n - high < NEAR and steps[start + high - 1, UNTIL] >= until:
        high -= 1
    if high == 0 or steps[start + high - 1, UNTIL] < until:
        return high
    low = 0
    # Invariant: steps before `low` expire before `until`, and none from `high` on does.
    while low < high:
        middle = (low + high) >> 1
        if steps[start + middle, UNTIL] < until:
            low = middle + 1
        else:
            high = middle
    return high


@part
def insert(stairs, owner, until, value):
    """Add a value that counts until a moment. Adding it twice changes nothing. Returns False, without a change, if the
    pool is full."""
    header, steps = stairs.owners[owner], stairs.steps
    n, start = header[LENGTH], header[OFFSET]
    behind = expiring_before(steps, start, n, until)
    if behind < n and steps[start + behind, VALUE] <= value:
        return True
    first = behind
    while first > 0 and steps[start + first - 1, VALUE] >= value:
        first -= 1
    if behind < n and steps[start + behind, UNTIL] == until:
        behind += 1
    if first == behind:
        if not _make_room(stairs, owner):
            return False
        start = header[OFFSET]
    _move(steps, start + behind, start + n, 1 + first - behind)
    header[LENGTH] = n + 1 + first - behind
    steps[start + first, UNTIL], steps[start + first, VALUE] = until, value
    return True


# -- with a clock for each input ---------------------------------------------------------------------------------------


@part
def expire_apart(stairs, owner, now):
    """Drop the steps that have expired at `now`, which has each clock. Returns the step with the smallest value, or
    NONE."""
    header, steps, lowest = stairs.owners[owner], stairs.steps, NONE
    start, kept = header[OFFSET], header[OFFSET]
    for j in range(start, start + header[LENGTH]):
        if _lasts(steps, j, now):
            _copy(steps, j, kept)
            if lowest == NONE or steps[kept, VALUE] < steps[lowest, VALUE]:
                lowest = kept
            kept += 1
    header[LENGTH] = kept - start
    return lowest


@inlined
def _lasts(steps, j, until):
    """Does a step count until these moments, on every clock?"""
    lasts = True
    for u in range(steps.shape[1] - UNTIL):
        lasts &= steps[j, UNTIL + u] >= until[u]
    return lasts


@part
def insert_apart(stairs, owner, until, value):
    """`insert` for a value that counts until the first of these moments, each on its own clock."""
    header, steps = stairs.owners[owner], stairs.steps
    start, clocks = header[OFFSET], steps.shape[1] - UNTIL
    for j in range(start, start + header[LENGTH]):
        if steps[j, VALUE] <= value and _lasts(steps, j, until):
            return True
    kept = start
    # Invariant: [start, kept) has the steps before j that the new step does not hide.
    for j in range(start, start + header[LENGTH]):
        hidden = value <= steps[j, VALUE]
        for u in range(clocks):
            hidden &= steps[j, UNTIL + u] <= until[u]
        if not hidden:
            _copy(steps, j, kept)
            kept += 1
    header[LENGTH] = kept - start
    if header[LENGTH] == header[CAPACITY]:
        if not _widen(stairs, owner):
            return False
        start = header[OFFSET]
    to = start + header[LENGTH]
    steps[to, VALUE] = value
    for u in range(clocks):
        steps[to, UNTIL + u] = until[u]
    header[LENGTH] += 1
    return True
