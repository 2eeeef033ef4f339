"""The list of a query: its rows, best first, in a slab of a pool that all queries share.

A list is *complete* down to its edge: it holds every row of the window that ranks before the edge. Only if an answer is
due with each arrival, it may lack a row that k better ones in it outlive. A list may also hold rows behind its edge:
they were emitted, must not be emitted again, and are never part of an answer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.core.operator import Floats, Ints
from skyband.kernels.compiling import inlined, kernel, part
from skyband.kernels.intrinsics import copy_row, row_at
from skyband.kernels.ranking import ROW, trails
from skyband.kernels.slabs import HEADER, give_slab
from skyband.windows import NEVER

QUERY = np.dtype(
    [
        *HEADER,
        ("k", np.int64),
        ("size", np.int64),
        ("every", np.int64),  # its slide, if windows slide by more than a row
        ("start", np.int64),  # the first arrival that it sees
        ("wanted", np.int64),  # how many rows trimming and refilling leave: k, and enough to last for a while
        ("base", np.int64),  # the first value of `wanted`, which grows if the list runs short soon after it was filled
        # If an answer is due with each arrival, so many rows are sorted, best first. The others rank behind them, are
        # unsorted, and may have expired.
        ("sorted", np.int64),
        ("oldest", np.int64),  # no row of the list is older, or no sorted row if only a part is sorted
        ("edge_time", np.int64),  # a row whose score equals the threshold is in the list from this time on
        ("edge_position", np.int64),
        ("refilled", np.int64),  # when the list was last filled again
    ]
)
LISTED = np.dtype([(name, ROW[name]) for name in ("score", "time", "position", "flag")])  # a row in half a cache line
SLACK = 4  # a list is longer than k by so many standard deviations of the number of rows near a query
EVERY_ROW = -1  # the position of an edge that lies behind all rows
LATEST = 2 * NEVER - 1  # later than every time


def listed(k: Ints, slack: float = SLACK) -> Floats:
    """How many rows a list should have, so that k is `slack` standard deviations below that.

    >>> listed(np.array([1, 9, 81])).round().tolist()
    [18.0, 31.0, 126.0]
    """
    wanted: Floats = ((slack + np.sqrt(slack**2 + 4 * k)) / 2) ** 2
    return wanted


class Arrivals(NamedTuple):
    """Rows that are taken in together, in order of arrival."""

    time: Ints
    position: Ints
    now: Ints  # the clock after each row
    before: int  # the clock before the first row
    consecutive: bool  # time, position and clock grow by one with each row: to add one is faster than to load them
    first_time: int
    first_position: int
    first_now: int
    last_now: int


def arrivals_of(time: Ints, position: Ints, now: Ints, before: int, consecutive: bool) -> Arrivals:
    return Arrivals(time, position, now, before, consecutive, *map(int, (time[0], position[0], now[0], now[-1])))


@inlined
def time_of(arrivals, i):
    return arrivals.first_time + i if arrivals.consecutive else arrivals.time[i]


@inlined
def position_of(arrivals, i):
    return arrivals.first_position + i if arrivals.consecutive else arrivals.position[i]


@inlined
def clock_after(arrivals, i):
    return arrivals.first_now + i if arrivals.consecutive else arrivals.now[i]


@inlined
def reaches(score, time, position, threshold, query):
    """Does a row rank before the edge of the list, or at it?"""
    if score != threshold:
        return score > threshold
    if time != query.edge_time:
        return time > query.edge_time
    return position >= query.edge_position


@inlined
def place(rows, base, n, score, time, position):
    """Insert a row among the n sorted ones from `base` on; returns its index."""
    x = n
    while x > 0 and trails(row_at(rows, base + x - 1), score, time, position):
        copy_row(rows, base + x, rows, base + x - 1)
        x -= 1
    put(rows, base + x, score, time, position)
    return x


@inlined
def put(rows, x, score, time, position):
    """Write a row, as one that was not emitted yet."""
    row = row_at(rows, x)
    row.score, row.time, row.position, row.flag = score, time, position, 0


@part
def trim(rows, base, n, q, query, threshold, first, end):
    """Cut a list behind as many rows of [first, end) as are wanted; returns its new length. Emitted rows stay."""
    found, x = 0, 0
    while x < n:
        row = rows[base + x]
        if not reaches(row.score, row.time, row.position, threshold[q], query):
            return n
        found += (row.time >= first) & (row.time < end)
        if found == query.wanted:
            break
        x += 1
    if x >= n - 1:
        return n
    row = rows[base + x]
    threshold[q], query.edge_time, query.edge_position = row.score, row.time, row.position
    kept = x + 1
    for y in range(x + 1, n):
        if rows[base + y].flag:
            copy_row(rows, base + kept, rows, base + y)
            kept += 1
    return kept


@part
def without_outlived(rows, base, n, k, latest):
    """Drop rows that k better ones outlive, as they will be in no answer; returns how many stay.

    The rows are sorted, best first. `latest` is scratch space for k times, or for one per row if there are fewer.
    """
    kept = 0
    for x in range(n):
        time = rows[base + x].time
        if kept >= k and time <= latest[k - 1]:
            continue
        # `latest` has the k latest times of the rows before, in descending order.
        y = min(kept, k - 1)
        while y > 0 and latest[y - 1] < time:
            latest[y] = latest[y - 1]
            y -= 1
        latest[y] = time
        if kept != x:
            copy_row(rows, base + kept, rows, base + x)
        kept += 1
    return kept


@inlined
def most_rows(query):
    """The length beyond which a list is trimmed."""
    return query.wanted + (query.wanted >> 1) + 8


@kernel
def release(pool, headers, which):
    """Give the slabs of these lists back."""
    for j in range(len(which)):
        give_slab(pool, headers[which[j]])
