"""Puts the rows of a block into boxes, and finds the least and largest values in each box."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.core.operator import Floats, Ints
from skyband.kernels.compiling import kernel, part
from skyband.problems.subscriptions.drivers.scoring import BLOCK

TOO_FULL = -1  # returned instead of the number of runs


class Laid(NamedTuple):
    """Rows in boxes. The arrays may be longer than the part in use."""

    columns: Floats  # by column, then by row, box after box
    order: Ints  # by row: its number in the block
    starts: Ints  # by box: its first row; one more entry says where the last box ends
    low: Floats  # by column, then by box: the least value; NaN if the last box has the rows that are not finite
    high: Floats  # by column, then by box: the largest value
    runs: Ints  # by run: its first box; one more entry says where the last run ends
    low_run: Floats  # by column, then by run: the least value
    high_run: Floats  # by column, then by run: the largest value


class Room(NamedTuple):
    """Scratch space for putting rows into boxes."""

    box: Ints  # by row: its box
    size: Ints  # by box: how many rows it has
    number: Ints  # by box: how many boxes before it have rows
    following: Ints  # by box with rows: where its next row goes


@kernel
def lay_boxes(columns, first, end, cuts, parts, most, laid, room):
    """Put rows into parts ** len(cuts) boxes, divided at the cuts, and rows that are not finite into one more.

    Boxes that share a part of the first column form a run. Empty boxes are left out. Returns how many runs there are,
    or TOO_FULL if a box would have more than `most` rows.
    """
    n, width, split = end - first, len(columns), len(cuts)
    boxes = parts**split
    find_boxes(columns, first, end, cuts, parts, room.box)
    room.size[: boxes + 1] = 0
    for i in range(n):
        room.size[room.box[i]] += 1
    for b in range(boxes):
        if room.size[b] > most:
            return TOO_FULL
    # From here on, only boxes with rows count.
    used, rows, runs, run_before = 0, 0, 0, -1
    for b in range(boxes + 1):
        room.number[b] = used
        if room.size[b] > 0:
            run = b * parts // boxes
            if run != run_before:
                laid.runs[runs] = used
                runs += 1
                run_before = run
            laid.starts[used] = room.following[used] = rows
            rows += room.size[b]
            used += 1
    laid.starts[used], laid.runs[runs] = rows, used
    for i in range(n):
        b = room.number[room.box[i]]
        laid.order[room.following[b]] = i
        room.following[b] += 1
    for c in range(width):
        for i in range(n):
            laid.columns[c, i] = columns[c, first + laid.order[i]]
        ends_of(laid.columns[c], laid.starts, used, laid.low[c], laid.high[c])
        if room.size[boxes] > 0:
            laid.low[c, used - 1] = laid.high[c, used - 1] = np.nan
        for r in range(runs):
            b = laid.runs[r]
            laid.low_run[c, r], laid.high_run[c, r] = laid.low[c, b], laid.high[c, b]  # a run with NaN has one box
            for b in range(laid.runs[r] + 1, laid.runs[r + 1]):
                laid.low_run[c, r] = min(laid.low_run[c, r], laid.low[c, b])
                laid.high_run[c, r] = max(laid.high_run[c, r], laid.high[c, b])
    return runs


@part
def find_boxes(columns, first, end, cuts, parts, box):
    """Write the number of each row's box. Rows that are not finite get the number behind the last box."""
    n, split = end - first, len(cuts)
    for begin in range(0, n, BLOCK):
        some = box[begin : min(n, begin + BLOCK)]
        some[:] = 0
        for c in range(split):
            values = columns[c, first + begin : first + begin + len(some)]
            for i in range(len(some)):
                some[i] *= parts
            for cut in range(0, cuts.shape[1], 4):  # four at a time, since writing the sums takes longest
                a, b, x, y = cuts[c, cut], cuts[c, cut + 1], cuts[c, cut + 2], cuts[c, cut + 3]
                for i in range(len(some)):
                    value = values[i]
                    some[i] += (value >= a) + (value >= b) + (value >= x) + (value >= y)
    for c in range(len(columns)):
        values = columns[c, first:end]
        outside = 0
        for i in range(n):
            outside += not abs(values[i]) < np.inf
        if outside > 0:
            for i in range(n):
                if not abs(values[i]) < np.inf:
                    box[i] = parts**split


@part
def ends_of(values, starts, boxes, low, high):
    """Write the least and the largest value of each box. Two values at a time do not wait for each other."""
    for b in range(boxes):
        begin, end = starts[b], starts[b + 1]
        least = most = other_least = other_most = values[begin]
        for i in range(begin + 1, end - 1, 2):
            value, other = values[i], values[i + 1]
            least = value if value < least else least
            most = value if value > most else most
            other_least = other if other < other_least else other_least
            other_most = other if other > other_most else other_most
        value = values[end - 1]  # the pairs may have missed the last value
        least, most = min(least, value), max(most, value)
        low[b], high[b] = min(least, other_least), max(most, other_most)
