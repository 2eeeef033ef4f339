"""The list of a query: rows best first, in a slab of a pool that all queries share.

A list is *complete* down to its edge: it holds every row of the window that ranks before the edge. If an answer is due
with each arrival, it may leave out a row that k better ones in it outlive. It may hold rows behind the edge, which were
emitted and must not be emitted again; they are never part of an answer.
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
        ("every", np.int64),  # how often it is answered, in windows that slide by more than a row
        ("start", np.int64),  # the first arrival that it sees
        ("wanted", np.int64),  # rows in the list after trimming or refilling: k, and enough to last for a while
        ("base", np.int64),  # the same, unless the list ran short soon after it was filled
        # If an answer is due with each arrival: so many rows are best first. The others rank behind them, in no order,
        # and may have expired.
        ("sorted", np.int64),
        ("oldest", np.int64),  # no row of the list is older, or no row of those that are best first
        ("edge_time", np.int64),  # a row whose score is the threshold is in the list from this time on
        ("edge_position", np.int64),
        ("refilled", np.int64),  # when it last had to be filled again
    ]
)
LISTED = np.dtype([(name, ROW[name]) for name in ("score", "time", "position", "flag")])  # as a row; half a cache line
SLACK = 4  # standard deviations of the number of rows near a query, by which a list is longer than k
EVERY_ROW = -1  # as the position of an edge: it lies behind all rows
LATEST = 2 * NEVER - 1  # after every time


def listed(k: Ints, slack: float = SLACK) -> Floats:
    """How many rows a list should have, so that k is `slack` standard deviations fewer.

    >>> listed(np.array([1, 9, 81])).round().tolist()
    [18.0, 31.0, 126.0]
    """
    wanted: Floats = ((slack + np.sqrt(slack**2 + 4 * k)) / 2) ** 2
    return wanted


class Arrivals(NamedTuple):
    """Rows that are taken together, in order of arrival."""

    time: Ints
    position: Ints
    now: Ints  # the clock after each
    before: int  # the clock before all
    consecutive: bool  # each of these grows by one with each row: adding is faster than loading
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
    """Does a row rank before the edge of the list, or is it the edge?"""
    if score != threshold:
        return score > threshold
    if time != query.edge_time:
        return time > query.edge_time
    return position >= query.edge_position


@inlined
def place(rows, base, n, score, time, position):
    """Put a row into its place among the n sorted ones from `base` on; returns its index."""
    x = n
    while x > 0 and trails(row_at(rows, base + x - 1), score, time, position):
        copy_row(rows, base + x, rows, base + x - 1)
        x -= 1
    put(rows, base + x, score, time, position)
    return x


@inlined
def put(rows, x, score, time, position):
    """Write a row that was not emitted yet."""
    row = row_at(rows, x)
    row.score, row.time, row.position, row.flag = score, time, position, 0


@part
def trim(rows, base, n, q, query, threshold, first, end):
    """Cut a list behind as many rows of [first, end) as are wanted; returns its new length. Shown rows stay."""
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
    """Leave out rows that k better ones outlive: they will be in no answer. The rows are best first. Returns how many
    stay. `latest` has room for k times, or for as many as there are rows."""
    kept = 0
    for x in range(n):
        time = rows[base + x].time
        if kept >= k and time <= latest[k - 1]:
            continue
        # The latest times of the rows before, as many as k, in falling order.
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
    """A list that is longer is trimmed."""
    return query.wanted + (query.wanted >> 1) + 8


@kernel
def release(pool, headers, which):
    """Give the slabs of these lists back."""
    for j in range(len(which)):
        give_slab(pool, headers[which[j]])
