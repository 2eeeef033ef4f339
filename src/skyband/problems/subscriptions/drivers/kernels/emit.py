"""The lines of answers: how loops write them, how they become columns, and how they differ from the answer before."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skyband.core.emit import ENTER, LEAVE, is_once, takes_back
from skyband.core.operator import Ints
from skyband.kernels.compiling import allocating, inlined, kernel, part
from skyband.kernels.intrinsics import copy_row
from skyband.kernels.ranking import ranks_before


class Emitted(NamedTuple):
    """Lines of answers, in the order in which they are written."""

    lines: Any
    written: Ints  # how many, in its one entry


@inlined
def emit_line(emitted, at, q, rank, row, order, change):
    line = emitted.lines[emitted.written[0]]
    line.at, line.group, line.rank, line.order, line.change = at, q, rank, order, change
    line.score, line.position = row.score, row.position
    emitted.written[0] += 1


@part
def by_key(index, keys, count):
    """The same indices, sorted by keys below `count`; equal keys stay in their order."""
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
    """Lines as the columns of an answer, sorted by order and then by group; 0 of either: they are in that order."""
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
    """Merge the rows emitted before with the new ones, whose queries are in `group`, and emit what differs. Both are
    by query, best first. Returns how many rows are kept for the next time."""
    kept, begin, a = 0, 0, 0
    for q in range(len(ends)):
        end, stop, x = ends[q], a, begin
        while stop < len(group) and group[stop] == q:
            stop += 1
        if not due[q]:
            for y in range(begin, end):
                copy_row(after, kept, before, y)
                kept += 1
            x = end
        elif takes_back(emit):  # what leaves comes first
            y = a
            for x in range(begin, end):
                while y < stop and ranks_before(rows[y], before[x]):
                    y += 1
                if y == stop or rows[y].position != before[x].position:
                    emit_line(emitted, at, q, x - begin + 1, before[x], 0, LEAVE)
            x = begin
        rank = 0
        # With changes, a row of the answer before that is not in this one has left; with entries it may come again.
        while a < stop or (x < end and is_once(emit)):
            is_old = x < end and (a == stop or not ranks_before(rows[a], before[x]))
            is_new = a < stop and not (is_old and before[x].position != rows[a].position)
            if is_new:
                rank += 1
                copy_row(after, kept, rows, a)
                if not is_old:
                    emit_line(emitted, at, q, rank, rows[a], 0, ENTER)
            else:
                copy_row(after, kept, before, x)
            kept += is_new if takes_back(emit) else after[kept].time >= first[q]
            a += is_new
            x += is_old
        begin = end
        after_ends[q] = kept
    return kept
