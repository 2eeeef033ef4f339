"""What compiled loops know of the rows that a driver gives them, and of when each of them is due."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.kernels.compiling import allocating, inlined, kernel
from skyband.windows import NEVER

# What the clock array of an algorithm holds, beside OUT. An algorithm adds entries of its own, from CLOCKS on.
NOW = 1  # the largest time seen
LATE = 2  # rows dropped because they were older than the window
NEED = 3  # pool entries that the last call was short of
UNRANKED = 4  # rows without a score
START = 5  # rows before this are of no use to the group whose row is being taken
CLOCKS = 6

EARLIEST = -2 * NEVER  # before every time


class Input(NamedTuple):
    """Rows of a batch. Those of group g are order[start[g]:start[g + 1]]; without groups order is empty.

    One class for all kernels: of two with the same name and the same types numba knows one, and takes a fraction of a
    millisecond to find the other, with every call.
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
    """Which row of the batch is row j, group after group."""
    return batch.order[j] if len(batch.order) else j


@inlined
def position_at(batch, i):
    """The position of the batch's row i."""
    return batch.position[i] if len(batch.position) else batch.first + i


@inlined
def first_due(now, due, end):
    """The first of the batch's rows before `end` by which this time is reached, or `end`."""
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
    """The earliest time of these lists' rows that is not before `start`, or the first before `end`; NEVER: none."""
    earliest = NEVER
    for g in range(len(headers)):
        for r in range(headers[g].offset, headers[g].offset + headers[g].length):
            time = pool.rows[r].time
            if start <= time < earliest:
                earliest = time
                if earliest < end:
                    return earliest
    return earliest
