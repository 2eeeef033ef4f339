"""The loop over rows, compiled once for each score: what each row does to the grid and to the lists of queries."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from skyband.core.emit import ENTER
from skyband.core.operator import Floats, Ints
from skyband.problems.subscriptions.drivers.scoring import Scoring
from skyband.study.baselines.subscriptions.indexed.kernels.lists import (
    FILTER,
    FREE,
    LONGEST,
    NONE,
    NOWHERE,
    PROBABILISTIC,
    QUERY,
    RELAXED,
    SHOWN,
    STRICT,
    fill_top,
    lower,
    offer,
    rank_of,
    take_likely,
    take_out,
    take_strict,
    threshold,
)

AT_ONCE = 3  # wrappers that a row may need for each query: in its filter, its list, and for the row that leaves it


class Grid(NamedTuple):
    cuts: Floats  # by column: where cells begin
    low: Floats  # by column, then by cell: where its box begins
    high: Floats  # and where it ends
    member: npt.NDArray[np.int32]  # by cell: the queries that a row in it may concern,
    members: Ints  # how many these are,
    place: npt.NDArray[np.int32]  # and by cell and query, where it is among them, or NOWHERE
    columns: Floats  # by column, then by arrival modulo the buffer: the rows in it,
    cell: Ints  # and their cells


@cache
def step_of(scoring: Scoring) -> Any:
    """The loop, with the score compiled into it."""
    one, most = scoring.one, scoring.most

    def _register(bands, grid, parameters, q, bar):
        """Put a query into the cells that a row may come to which reaches its threshold."""
        bands.indexed[q], bands.vain[q] = bar, 0
        for cell in range(len(grid.members)):
            bound = most(grid.low, grid.high, cell, parameters, q)
            wanted, at = not (bound < bar), grid.place[cell, q]
            if wanted and at == NOWHERE:
                grid.place[cell, q] = grid.members[cell]
                grid.member[cell, grid.members[cell]] = q
                grid.members[cell] += 1
            elif not wanted and at != NOWHERE:
                grid.members[cell] -= 1
                last = grid.member[cell, grid.members[cell]]
                grid.member[cell, at], grid.place[cell, last], grid.place[cell, q] = last, at, NOWHERE

    register: Any = njit(_register)

    def _reindex(bands, wrappers, grid, parameters, kind, q):
        """Move a query to other cells where it must be, and where that has become worth it."""
        bar = threshold(bands, wrappers, kind, q)
        is_first = bands.indexed[q] == -np.inf and bar > -np.inf
        if bar < bands.indexed[q] or is_first or (bar > bands.indexed[q] and bands.vain[q] >= len(grid.members)):
            register(bands, grid, parameters, q, bar)

    reindex: Any = njit(_reindex)

    def _touch(touched, is_touched, count, q):
        if is_touched[q]:
            return count
        is_touched[q], touched[count] = True, q
        return count + 1

    touch: Any = njit(_touch)

    def _leave_window(bands, wrappers, kind, gone, touched, is_touched, count):
        """A row has left the window: so it leaves the lists that have it, as its chain says."""
        head = wrappers.heads[QUERY, gone % wrappers.heads.shape[1]]
        while head != NOWHERE:
            q, score, following = wrappers.all[head].query, wrappers.all[head].score, wrappers.all[head].following
            rank = rank_of(bands, wrappers, QUERY, q, score, gone)
            take_out(bands, wrappers, QUERY, q, rank)
            count = touch(touched, is_touched, count, q)
            if kind.query == RELAXED:
                fill_top(bands, wrappers, q, gone)
            elif kind.query == PROBABILISTIC:
                if bands.length[QUERY, q] - bands.k[q] < max(bands.limit[q], 2):
                    bands.bar[q] = -np.inf
                else:
                    lower(bands, wrappers, QUERY, q, 0.5)
            head = following
        return count

    leave_window: Any = njit(_leave_window)

    def _leave_buffer(bands, wrappers, grid, parameters, kind, row, gone, heap, touched, is_touched, count):
        """The second attempt: a row leaves the buffer, for the queries whose filters have fewer than k better ones."""
        slot = row % kind.buffer
        cell = grid.cell[slot]
        for m in range(grid.members[cell]):
            q = grid.member[cell, m]
            if row < bands.start[q] or row <= gone:
                continue
            score = one(grid.columns, slot, parameters, q)
            if score == score and rank_of(bands, wrappers, FILTER, q, score, row) < bands.k[q]:
                offer(bands, wrappers, kind, q, score, row, gone, heap)
                count = touch(touched, is_touched, count, q)
        head = wrappers.heads[FILTER, row % wrappers.heads.shape[1]]
        while head != NOWHERE:
            q, score, following = wrappers.all[head].query, wrappers.all[head].score, wrappers.all[head].following
            take_out(bands, wrappers, FILTER, q, rank_of(bands, wrappers, FILTER, q, score, row))
            if kind.filter == PROBABILISTIC:
                lower(bands, wrappers, FILTER, q, 1.0)
            count = touch(touched, is_touched, count, q)
            head = following
        return count

    leave_buffer: Any = njit(_leave_buffer)

    def _arrive(bands, wrappers, kind, q, score, row, gone, heap):
        """A row of the query's cells comes. True: the query's list has another row."""
        if kind.filter == STRICT:
            rank = take_strict(bands, wrappers, FILTER, q, score, row)
        elif bands.length[QUERY if kind.filter == NONE else FILTER, q] >= bands.k[q] and score < bands.bar[q]:
            return False
        elif kind.filter == NONE:
            take_likely(bands, wrappers, QUERY, q, score, row, kind.additional)
            return True
        else:
            rank = take_likely(bands, wrappers, FILTER, q, score, row, 0)
        if rank >= bands.k[q]:
            return False
        offer(bands, wrappers, kind, q, score, row, gone, heap)
        return True

    arrive: Any = njit(_arrive)

    def step(columns, begin, offset, arrivals, grid, bands, wrappers, parameters, kind, heap, out, written):
        width, size, queries = len(columns), wrappers.heads.shape[1], len(bands.k)
        room = np.sum(bands.k)
        touched, is_touched = np.empty(queries, np.int64), np.zeros(queries, np.bool_)
        for i in range(begin, columns.shape[1]):
            is_cramped = wrappers.numbers[LONGEST] + AT_ONCE >= bands.members.shape[2]
            if is_cramped or len(out) - written < room or wrappers.numbers[FREE] < AT_ONCE * queries:
                return i, written
            now, count = arrivals + i, 0
            gone = now - size
            if gone >= 0:
                count = leave_window(bands, wrappers, kind, gone, touched, is_touched, count)
            if kind.buffer > 0 and now >= kind.buffer:
                count = leave_buffer(
                    bands, wrappers, grid, parameters, kind, now - kind.buffer, gone, heap, touched, is_touched, count
                )
            for t in range(count):
                reindex(bands, wrappers, grid, parameters, kind, touched[t])
            cell = 0
            for c in range(width):
                value, within = columns[c, i], 0
                for cut in range(1, grid.cuts.shape[1]):
                    within += value >= grid.cuts[c, cut]
                cell = cell * grid.cuts.shape[1] + within
                if kind.buffer > 0:
                    grid.columns[c, now % kind.buffer] = value
            if kind.buffer > 0:
                grid.cell[now % kind.buffer] = cell
            entered = count
            for m in range(grid.members[cell]):
                q = grid.member[cell, m]
                score = one(columns, i, parameters, q)
                if score == score and arrive(bands, wrappers, kind, q, score, now, gone, heap):
                    entered = touch(touched, is_touched, entered, q)
                elif bands.vain[q] < len(grid.members):
                    bands.vain[q] += 1
                    if bands.vain[q] == len(grid.members):
                        entered = touch(touched, is_touched, entered, q)
            for t in range(entered):
                q = touched[t]
                is_touched[q] = False
                reindex(bands, wrappers, grid, parameters, kind, q)
                for x in range(min(bands.length[QUERY, q], bands.k[q])):
                    wrapper = wrappers.all[bands.members[QUERY, q, x]]
                    if not wrapper.flags & SHOWN:
                        wrapper.flags |= SHOWN
                        line = out[written]
                        line.at, line.group, line.rank, line.order, line.change = now + 1, q, x + 1, 0, ENTER
                        line.score, line.position = wrapper.score, wrapper.row + offset
                        written += 1
        return columns.shape[1], written

    return njit(step), register
