"""The compiled loops that merge rows that come and leave together."""

from __future__ import annotations

import math

import numpy as np

from skyband.kernels.compiling import inlined, kernel
from skyband.kernels.intrinsics import prefetch
from skyband.problems.joins.operator import ADDED, HIGHEST, LOWEST, LOWEST_FLOAT

NONE = -1  # a free place of a hash table
AHEAD = 16  # how many rows ahead places are prefetched
SAMPLE, WORTH = 2048, 0.75  # rows are not merged if, by a sample, more than this share of them would stay


@kernel
def coalesce(start, last, cell, arguments, valid, weight, ways, table):
    """Merge rows, and move the merged rows to the front, in the order of their first rows. Returns their number.

    If a sample shows that merging would save few rows, it changes nothing and returns the number of all rows.
    """
    n, mask, step, count, sampled = len(start), len(table) - 1, max(1, len(start) // SAMPLE), 0, 0
    for i in range(0, n, step):
        at = find(start, last, cell, valid, table, mask, i)
        count += table[at] == NONE
        table[at] = i
        sampled += 1
    if count == sampled:
        return n
    # Estimate the number of kinds of rows from the repeats in the sample, and from it how many rows would stay.
    kinds = sampled * sampled / (2.0 * (sampled - count))
    if kinds * (1.0 - math.exp(-n / kinds)) > WORTH * n:
        return n
    table[:] = NONE
    count = 0
    for i in range(n):
        if i + AHEAD < n:
            prefetch(table, first_place(start[i + AHEAD], cell[i + AHEAD], mask))
        at = find(start, last, cell, valid, table, mask, i)
        j = table[at]
        if j == NONE:
            table[at] = j = count
            count += 1
            if i != j:
                start[j], last[j], cell[j], valid[j], weight[j] = start[i], last[i], cell[i], valid[i], weight[i]
                for a in range(arguments.shape[1]):
                    arguments[j, a] = arguments[i, a]
            continue
        weight[j] += weight[i]
        for a in range(len(ways)):
            arguments[j, a] = as_one(arguments[j, a], arguments[i, a], ways[a])
    return count


@inlined
def as_one(one, other, way):
    """Merge the values of an argument of two rows."""
    if way == ADDED:
        return one + other
    if way == LOWEST:
        return min(one, other)
    if way == HIGHEST:
        return max(one, other)
    # The bits of a float, whose order is turned around below zero.
    mine = one if one >= 0 else one ^ 0x7FFFFFFFFFFFFFFF
    others = other if other >= 0 else other ^ 0x7FFFFFFFFFFFFFFF
    return one if (mine <= others) == (way == LOWEST_FLOAT) else other


@inlined
def first_place(start, cell, mask):
    """The place at which the search for a row begins."""
    mixed = np.uint64(start) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(cell)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(mask))


@inlined
def find(start, last, cell, valid, table, mask, i):
    """The place of row i in the hash table, or the free place where it belongs."""
    at = first_place(start[i], cell[i], mask)
    while True:
        j = table[at]
        if j == NONE or (start[j] == start[i] and cell[j] == cell[i] and last[j] == last[i] and valid[j] == valid[i]):
            return at
        at = (at + 1) & mask
