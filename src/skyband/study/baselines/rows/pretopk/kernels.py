"""The compiled steps of `pretopk`: a predicted answer for each window that a row may be in.

A group's first list is the answer of the window that closed last, best first. Behind it each open window has a list,
window w that in slot w modulo their number: a heap with the worst row at its top. All windows of a landmark hold the
same rows, so they share one heap.
"""

from __future__ import annotations

from typing import NamedTuple

from skyband.core.emit import is_once
from skyband.kernels.compiling import inlined, part
from skyband.kernels.ranking import exceeds, ranks_before, trails
from skyband.kernels.skyband import first_row, rank_of
from skyband.kernels.slabs import reserve
from skyband.problems.rows.drivers.step_kernels import steps
from skyband.windows import NEVER

ANSWER = 0  # the first list of a group


class PredictedHeaps(NamedTuple):
    every: int
    windows: int  # how many may be open at once; 0: all windows hold the same rows
    closed: int  # windows with a smaller index have closed, as far as the clock of all groups says


@inlined
def slot(kind, window):
    return 1 + window % max(1, kind.windows)


@inlined
def write_row(row, score, time, position, flag):
    row.score, row.time, row.position, row.last, row.flag = score, time, position, 0, flag


@part
def sift_down(rows, start, n, score, time, position, flag):
    """Put a row at the top of the heap of n rows from `start` on, and let it sink to its place."""
    i, child = 0, 1
    while child < n:
        if child + 1 < n and ranks_before(rows[start + child], rows[start + child + 1]):
            child += 1  # the worse of the two
        if not trails(rows[start + child], score, time, position):
            break
        rows[start + i] = rows[start + child]
        i, child = child, 2 * child + 1
    write_row(rows[start + i], score, time, position, flag)


@part
def predict(predicted, score, time, position, k, pool):
    """Put a row into a heap of at most k. False: k rows in it are better. O(log k)."""
    if predicted.length == k:
        if exceeds(pool.rows[predicted.offset], score, time, position):
            return False
        sift_down(pool.rows, predicted.offset, k, score, time, position, 0)
        return True
    reserve(pool, predicted, predicted.length + 1)
    rows, start, i = pool.rows, predicted.offset, predicted.length
    predicted.length += 1
    while i > 0 and exceeds(rows[start + ((i - 1) >> 1)], score, time, position):
        rows[start + i] = rows[start + ((i - 1) >> 1)]
        i = (i - 1) >> 1
    write_row(rows[start + i], score, time, position, 0)
    return True


@inlined
def take_row(kind, g, score, time, position, config, pool, state):
    if kind.windows == 0:
        predict(state.lists[slot(kind, 0), g], score, time, position, config.k, pool)
        return False
    first, last = max(time // kind.every, kind.closed), (time + config.size) // kind.every - 1
    # So far an earlier window holds every row that a later one does, so a later one turns away what this one does.
    for window in range(last, first - 1, -1):
        if not predict(state.lists[slot(kind, window), g], score, time, position, config.k, pool):
            break
    return False


@inlined
def drop_rows(kind, g, limit, config, pool, state):
    """Nothing expires: a window that closes takes its list with it."""
    return False


@part
def sort_heap(rows, start, n):
    """Best first: the worst of those that are left goes to their end, again and again."""
    for end in range(n - 1, 0, -1):
        row = rows[start + end]
        score, time, position, flag = row.score, row.time, row.position, row.flag
        rows[start + end] = rows[start]
        sift_down(rows, start, end, score, time, position, flag)


@inlined
def close_window(kind, g, at, config, pool, state):
    """Make the list predicted for the window that ends here the answer; its slot is free for a later window."""
    window = at // kind.every - 1
    answer, predicted = state.lists[ANSWER, g], state.lists[slot(kind, window), g]
    if kind.windows == 0:
        copy_list(answer, predicted, pool)
    else:
        answer.offset, predicted.offset = predicted.offset, answer.offset
        answer.capacity, predicted.capacity = predicted.capacity, answer.capacity
        answer.length, predicted.length = predicted.length, 0
    sort_heap(pool.rows, answer.offset, answer.length)
    if is_once(config.emit) and kind.windows > 0:
        remember_shown(kind, g, answer, window, config, pool, state)


@part
def copy_list(answer, predicted, pool):
    """The rows of a landmark stay in their heap, where they are marked as shown from now on."""
    reserve(pool, answer, predicted.length)
    answer.length = predicted.length
    for r in range(predicted.length):
        pool.rows[answer.offset + r] = pool.rows[predicted.offset + r]
        pool.rows[predicted.offset + r].flag = 1


@part
def remember_shown(kind, g, answer, window, config, pool, state):
    """Mark in the lists of later windows the rows that this one is the first to show."""
    rows, latest = pool.rows, -NEVER
    for r in range(answer.offset, answer.offset + answer.length):
        if not rows[r].flag:
            latest = max(latest, rows[r].time)
    if latest == -NEVER:
        return
    for later in range(window + 1, (latest + config.size) // kind.every):
        predicted = state.lists[slot(kind, later), g]
        for r in range(predicted.offset, predicted.offset + predicted.length):
            row = rows[r]
            if not row.flag:
                rank = rank_of(pool, answer, row.score, row.time, row.position)
                row.flag = rank < answer.length and rows[first_row(answer) + rank].position == row.position


steps(PredictedHeaps, take_row, drop_rows, None, close_window)
