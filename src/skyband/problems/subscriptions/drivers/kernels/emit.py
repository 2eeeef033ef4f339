"""Turns lines of answers into columns, and emits how the answer of a window differs from the one before."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skyband.core.emit import ENTER, takes_back
from skyband.core.operator import Ints
from skyband.kernels.compiling import allocating, inlined, kernel, part
from skyband.kernels.emit import write, write_differences
from skyband.kernels.intrinsics import copy_row
from skyband.kernels.ranking import ZERO, ranks_before


class Emitted(NamedTuple):
    """Lines of answers, in the order in which they were written."""

    lines: Any
    written: Ints  # its only entry: how many lines were written


@part
def by_key(index, keys, count):
    """Sort indices by their keys, which are below `count`. Indices with equal keys keep their order."""
    following, found = np.zeros(count + 1, np.int64), np.empty(len(index), np.int64)
    for key in keys:
        following[key + 1] += 1
    for key in range(count):
        following[key + 1] += following[key]
    for i in index:
        found[following[keys[i]]] = i
        following[keys[i]] += 1
    return found


@allocating
def in_columns(lines, groups, orders):
    """Turn lines into the columns of an answer, sorted by order and then by group.

    If `groups` or `orders` is 0, the lines are sorted by it already.
    """
    n = len(lines)
    index, keys = np.arange(n), np.empty(n, np.int64)
    if groups > 0:
        for x in range(n):
            keys[x] = lines[x].group
        index = by_key(index, keys, groups)
    if orders > 0:
        for x in range(n):
            keys[x] = lines[x].order
        index = by_key(index, keys, orders)
    at, group, rank = np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n, np.int32)
    score, position, change = np.empty(n), np.empty(n, np.int64), np.empty(n, np.int8)
    for x in range(n):
        line = lines[index[x]]
        at[x], group[x], rank[x], score[x], position[x] = line.at, line.group, line.rank, line.score, line.position
        change[x] = line.change
    return at, group, rank, score, position, change


@kernel
def emit_differences(emit, at, due, first, ends, before, group, rows, emitted, after_ends, after):
    """Compare the rows emitted before with the new ones, whose queries are in `group`, and emit the differences.

    Both are by query, best first. Returns how many rows are kept for the next time.
    """
    kept, begin, a = 0, 0, 0
    for q in range(len(ends)):
        end, stop = ends[q], a
        while stop < len(group) and group[stop] == q:
            stop += 1
        if not due[q]:
            kept = copy_all(after, kept, before, begin, end)
        elif takes_back(emit):
            m, n, lines, written = end - begin, stop - a, emitted.lines, emitted.written
            write_differences(q, at, ZERO, before, begin, m, rows, a, n, written, lines)
            kept = copy_all(after, kept, rows, a, stop)
        else:
            kept = emit_new(at, q, first[q], before, begin, end, rows, a, stop, emitted, after, kept)
        begin, a = end, stop
        after_ends[q] = kept
    return kept


@inlined
def copy_all(to, kept, rows, begin, end):
    """Copy the rows [begin, end) behind the rows kept so far; returns how many are kept then."""
    for x in range(begin, end):
        copy_row(to, kept, rows, x)
        kept += 1
    return kept


@part
def emit_new(at, q, first, before, x, end, rows, a, stop, emitted, after, kept):
    """Emit those of a query's rows [a, stop) that are not among its rows [x, end), which were emitted before.

    Keep the rows of both from the time `first` on: answers may show them again. Returns how many rows are kept then.
    """
    rank = 0
    while a < stop or x < end:
        is_old = x < end and (a == stop or not ranks_before(rows[a], before[x]))
        is_new = a < stop and not (is_old and before[x].position != rows[a].position)
        if is_new:
            rank += 1
            copy_row(after, kept, rows, a)
            if not is_old:
                write(emitted.lines, emitted.written, at, q, rank, rows[a], ENTER, ZERO)
        else:
            copy_row(after, kept, before, x)
        kept += after[kept].time >= first
        a += is_new
        x += is_old
    return kept
