"""The compiled steps of `pretopk`: a predicted answer for each window that a row may be in.

A group's first list is the answer of the window that closed last. Behind it each open window has a list, window w
that in slot w modulo their number. A landmark window has the first list only: all its windows hold the same rows.
"""

from __future__ import annotations

from typing import NamedTuple

from skyband.core.emit import is_once
from skyband.kernels.compiling import inlined, part
from skyband.kernels.skyband import first_row, insert, rank_of
from skyband.problems.rows.drivers.step_kernels import steps

ANSWER = 0  # the first list of a group


class PreTopK(NamedTuple):
    every: int
    windows: int  # how many may be open at once; 0: all windows hold the same rows
    closed: int  # windows with a smaller index have closed, as far as the clock of all groups says


@inlined
def slot(kind, window):
    return 1 + window % kind.windows


@part
def predict(predicted, score, time, position, k, pool):
    """Insert a row into a list of at most k. False: k rows in it are better."""
    if predicted.length == k and score < pool.rows[first_row(predicted) + k - 1].score:
        return False
    rank = rank_of(pool, predicted, score, time, position)
    if rank >= k:
        return False
    insert(pool, predicted, rank, k, score, time, position)
    predicted.length = min(predicted.length, k)
    return True


@inlined
def take_row(kind, g, score, time, position, config, pool, state):
    if kind.windows == 0:
        return predict(state.lists[ANSWER, g], score, time, position, config.k, pool)
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


@inlined
def close_window(kind, g, at, config, pool, state):
    """Make the list predicted for the window that ends here the answer; its slot is free for a later window."""
    if kind.windows == 0:
        return
    window = at // kind.every - 1
    answer, predicted = state.lists[ANSWER, g], state.lists[slot(kind, window), g]
    answer.offset, predicted.offset = predicted.offset, answer.offset
    answer.capacity, predicted.capacity = predicted.capacity, answer.capacity
    answer.gap, predicted.gap = predicted.gap, answer.gap
    answer.length, predicted.length = predicted.length, 0
    if is_once(config.emit):
        for r in range(first_row(answer), first_row(answer) + answer.length):
            if not pool.rows[r].flag:
                remember_shown(kind, g, pool.rows[r], window, config, pool, state)


@part
def remember_shown(kind, g, row, window, config, pool, state):
    """Mark in the lists of later windows that a row of this one is shown."""
    for later in range(window + 1, (row.time + config.size) // kind.every):
        predicted = state.lists[slot(kind, later), g]
        rank = rank_of(pool, predicted, row.score, row.time, row.position)
        if rank == predicted.length or pool.rows[first_row(predicted) + rank].position != row.position:
            # Later lists have a place for every live row that this one has.
            break
        pool.rows[first_row(predicted) + rank].flag = 1


steps(PreTopK, take_row, drop_rows, None, close_window)
