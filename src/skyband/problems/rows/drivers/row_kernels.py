"""The rows that a driver gives to compiled loops, and the counts that these loops keep."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.kernels.compiling import allocating, inlined, kernel
from skyband.windows import NEVER

# The entries of an algorithm's clock array, besides OUT. An algorithm adds its own entries from CLOCKS on.
NOW = 1  # the largest time seen
LATE = 2  # rows dropped because they were older than the window
NEED = 3  # the pool entries that the last call needed and did not have; 0: room for the output
UNRANKED = 4  # rows without a score
START = 5  # the group whose row is being taken needs no row before this time
CLOCKS = 6


class Input(NamedTuple):
    """Rows of a batch. Those of group g are order[start[g]:start[g + 1]]; without groups `order` is empty.

    All kernels share this class: with a second class of the same name and types, numba would need a fraction of a
    millisecond at every call to tell the two apart.
    """

    score: npt.NDArray[np.float64]  # in order of arrival, or already group after group
    time: npt.NDArray[np.int64]  # empty where rows are numbered
    now: npt.NDArray[np.int64]  # the largest time up to each row; empty where rows are numbered
    position: npt.NDArray[np.int64]  # empty: first, first + 1, …
    first: int
    order: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]


@inlined
def row_index(batch, j):
    """The row of the batch that is number j if rows are taken group after group."""
    return batch.order[j] if len(batch.order) else j


@inlined
def position_at(batch, i):
    """The position of row i of the batch."""
    return batch.position[i] if len(batch.position) else batch.first + i


@inlined
def first_due(now, due, end):
    """The first row of the batch at which `now` has reached this time; `end` if none before it has."""
    low, high = 0, end
    while low < high:
        middle = (low + high) >> 1
        if now[middle] >= due:
            high = middle
        else:
            low = middle + 1
    return low


@allocating
def running_maximum(time, now):
    latest = np.empty(len(time), np.int64)
    for i in range(len(time)):
        now = max(now, time[i])
        latest[i] = now
    return latest


@kernel
def earliest_from(start, end, pool, headers):
    """The earliest time from `start` on of the rows in these lists; any time before `end` will do. NEVER: none."""
    earliest = NEVER
    for g in range(len(headers)):
        for r in range(headers[g].offset, headers[g].offset + headers[g].length):
            time = pool.rows[r].time
            if start <= time < earliest:
                earliest = time
                if earliest < end:
                    return earliest
    return earliest
