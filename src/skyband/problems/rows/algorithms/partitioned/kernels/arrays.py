"""The arrays of `partitioned`: the lists and the fields of a group, and the threshold between them."""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import inlined, part
from skyband.kernels.ranking import ZERO
from skyband.windows import NEVER

# The lists of a group.
RANKED = 0  # every live row at or before the threshold, best first
EXPIRY = 1  # the same rows in order of time
STORE = 2  # closed partitions, oldest first, each best first, with gaps between them; then the one that is filling
PARTS = 3  # one record for each closed partition, as below

# The record of a closed partition, in the fields of a row.
#   score     how many rows came while it was filling
#   time      the largest time seen when it closed
#   position  how many of its rows ranked at or before the threshold when that was last lowered, or when it closed
#   last      the number of its rows
#   flag      the entries of the store that it occupies: its rows, and the gap behind them

LOWEST = -2 * NEVER  # the threshold's time if every row ranks before it

FIELDS: dict[str, int | float] = {
    "limit": LOWEST,  # rows before it have left the window
    "latest": -NEVER,  # the largest time seen
    "start": -NEVER,  # the largest time seen when the last partition closed
    "closed": 0,  # the entries of the store that closed partitions occupy
    "came": 0,  # how many rows came while these were filling
    "partition": 0,  # the filling partition is closed when it has this many rows
    "best": -np.inf,  # an upper bound of the scores of live rows of the filling partition that rank after the threshold
    "entered": 1,  # has a row reached the threshold since it was last lowered? If not, `position` is still valid
    "threshold": -np.inf,  # its score, time and position
    "threshold_time": LOWEST,
    "threshold_position": -1,
}


@inlined
def reaches_threshold(group, score, time, position):
    """Does a row with this score, time and position rank at or before the threshold?"""
    if score != group.threshold:
        return score > group.threshold
    if time != group.threshold_time:
        return time > group.threshold_time
    return position >= group.threshold_position


@part
def count_ranked(group, rows, at, n):
    """How many of the n sorted rows from `at` on rank at or before the threshold."""
    if n == 0 or not reaches_threshold(group, rows[at].score, rows[at].time, rows[at].position):
        return ZERO
    low, high = ZERO + 1, n
    while low < high:
        middle = (low + high) >> 1
        row = rows[at + middle]
        if reaches_threshold(group, row.score, row.time, row.position):
            low = middle + 1
        else:
            high = middle
    return low
