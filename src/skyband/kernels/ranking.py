"""Rows as kernels see them, the order in which they rank, and selection and sorting in place.

The higher score ranks first; among equal scores, the later time; among equal times, the later arrival. Positions
differ, so no two rows are equal, and every algorithm that sorts gives the same result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.kernels.compiling import allocating, inlined, part

ROW = np.dtype(
    [
        ("score", np.float64),  # never NaN
        ("time", np.int64),  # what the window measures; by count, the number of earlier rows of the group
        ("position", np.int64),  # the row's arrival
        ("last", np.int64),  # with panes: the last window that holds the row
        ("flag", np.int64),  # shown in the last answer (changes), or in any (entries); `budgeted` has bits of its own
    ]
)
Rows = npt.NDArray[Any]  # of dtype ROW

ZERO = np.int64(0)  # for arguments: a literal 0 would make numba compile a second version of the function called
SMALL = 16  # below this, insertion beats partitioning


@inlined
def ranks_before(a, b):
    """Does row a rank before row b?"""
    if a.score != b.score:
        return a.score > b.score
    if a.time != b.time:
        return a.time > b.time
    return a.position > b.position


@inlined
def exceeds(row, score, time, position):
    """Does `row` rank before a row with this score, time and position? These are in registers, and usually the score
    decides."""
    if row.score != score:
        return row.score > score
    if row.time != time:
        return row.time > time
    return row.position > position


@inlined
def trails(row, score, time, position):
    """Does `row` rank after a row with this score, time and position?"""
    if row.score != score:
        return row.score < score
    if row.time != time:
        return row.time < time
    return row.position < position


@inlined
def _swap(a, b):
    a.score, b.score = b.score, a.score
    a.time, b.time = b.time, a.time
    a.position, b.position = b.position, a.position
    a.last, b.last = b.last, a.last
    a.flag, b.flag = b.flag, a.flag


@part
def _partition(rows, low, high):
    """Split [low, high) in two parts, neither empty, so that all of the first rank before all of the second; return
    where the second begins."""
    # With the median of three, sorted and reversed input, both common in streams, are not the worst case.
    a, b, c = rows[low], rows[(low + high) >> 1], rows[high - 1]
    if ranks_before(b, a):
        _swap(a, b)
    if ranks_before(c, b):
        _swap(b, c)
        if ranks_before(b, a):
            _swap(a, b)
    score, time, position = b.score, b.time, b.position
    i, j = low, high - 1
    while True:
        # Everything before i is better than the pivot or is it; everything after j is worse or is it.
        i += 1
        while exceeds(rows[i], score, time, position):
            i += 1
        j -= 1
        while trails(rows[j], score, time, position):
            j -= 1
        if i >= j:
            return j + 1
        _swap(rows[i], rows[j])


@inlined
def settle(rows, low, i):
    """Move row i to its place among the sorted rows [low, i)."""
    row = rows[i]
    score, time, position, last, flag = row.score, row.time, row.position, row.last, row.flag
    while i > low and not exceeds(rows[i - 1], score, time, position):
        rows[i] = rows[i - 1]
        i -= 1
    row = rows[i]
    row.score, row.time, row.position, row.last, row.flag = score, time, position, last, flag


@part
def _insertion_sort(rows, low, high):
    for i in range(low + 1, high):
        settle(rows, low, i)


@part
def is_best_first(rows, low, high):
    """Is [low, high) sorted by rank?"""
    r = low + 1
    while r < high and ranks_before(rows[r - 1], rows[r]):
        r += 1
    return r >= high


@allocating
def select_best(rows, low, high, k):
    """Rearrange [low, high) so that its k best rows come first, and the worst of these is the k-th."""
    wanted = low + k - 1
    while high - low > SMALL:
        split = _partition(rows, low, high)
        if split <= wanted:
            low = split
        else:
            high = split
    _insertion_sort(rows, low, high)


@allocating
def sort_best_first(rows, low, high):
    """Sort [low, high) by rank."""
    if high - low <= SMALL:
        _insertion_sort(rows, low, high)
        return
    stack = np.empty((64, 2), np.int64)
    depth = 0
    while True:
        while high - low > SMALL:
            split = _partition(rows, low, high)
            # The larger side waits on the stack, so the stack stays logarithmic.
            if split - low > high - split:
                stack[depth, 0], stack[depth, 1] = low, split
                low = split
            else:
                stack[depth, 0], stack[depth, 1] = split, high
                high = split
            depth += 1
        _insertion_sort(rows, low, high)
        if depth == 0:
            return
        depth -= 1
        low, high = stack[depth, 0], stack[depth, 1]


def best_first(rows: Rows) -> npt.NDArray[np.intp]:
    """The indices that sort rows by rank."""
    return np.lexsort((-rows["position"], -rows["time"], -rows["score"]))


def joined(parts: Sequence[Rows]) -> Rows:
    """Concatenate rows."""
    # As plain numbers, because numpy copies records field by field, which takes five times as long.
    return np.concatenate([part.view(np.int64) for part in parts]).view(ROW)
