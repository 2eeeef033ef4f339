"""What rows do to the grid and to the lists of queries, compiled once for each score."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np
from numba import njit

from skyband.core.emit import ENTER
from skyband.problems.subscriptions.drivers.scoring import Scoring

NONE: Final = -1


@cache
def step_of(scoring: Scoring) -> Any:
    """The loop over rows, with the score compiled into it."""
    one, most = scoring.one, scoring.most

    def _ranks(score, row, other_score, other_row):
        return score > other_score or (score == other_score and row > other_row)

    ranks: Any = njit(_ranks)

    def _put(lists, q, score, row, skyband):
        """Put a row, the latest of all, into a list: those behind it have one more dominator."""
        k, n = lists.k[q], lists.length[q]
        x = n
        while x > 0 and not ranks(lists.score[q, x - 1], lists.row[q, x - 1], score, row):
            x -= 1
        for y in range(n, x, -1):
            lists.score[q, y], lists.row[q, y] = lists.score[q, y - 1], lists.row[q, y - 1]
            lists.dominators[q, y] = lists.dominators[q, y - 1] + 1
        lists.score[q, x], lists.row[q, x], lists.dominators[q, x] = score, row, 0
        n += 1
        if skyband:
            kept = x + 1
            for y in range(x + 1, n):
                if lists.dominators[q, y] < k:
                    lists.score[q, kept], lists.row[q, kept] = lists.score[q, y], lists.row[q, y]
                    lists.dominators[q, kept] = lists.dominators[q, y]
                    kept += 1
            n = kept
            if n == lists.score.shape[1]:
                n -= 1
                lists.threshold[q] = max(lists.threshold[q], lists.score[q, n - 1])
        elif n > k:
            n = k
        lists.length[q] = n
        if not skyband and n == k:
            lists.threshold[q] = lists.score[q, k - 1]

    put: Any = njit(_put)

    def _register(lists, grid, parameters, q):
        """Tell the cells that a query is interested in what reaches its threshold."""
        lists.indexed[q] = lists.threshold[q]
        for cell in range(len(grid.head)):
            wanted = not (most(grid.low, grid.high, cell, parameters, q) < lists.indexed[q])
            at = lists.place[cell, q]
            if wanted and at == NONE:
                lists.place[cell, q] = lists.members[cell]
                lists.member[cell, lists.members[cell]] = q
                lists.members[cell] += 1
            elif not wanted and at != NONE:
                lists.members[cell] -= 1
                last = lists.member[cell, lists.members[cell]]
                lists.member[cell, at], lists.place[cell, last], lists.place[cell, q] = last, at, NONE

    register: Any = njit(_register)

    def _compute(lists, grid, parameters, q, now, skyband):
        """The k best rows of the window, from the grid: the best cells first, as long as one may hold a better row."""
        k, cells, size = lists.k[q], len(grid.head), grid.columns.shape[1]
        bound = np.empty(cells)
        for cell in range(cells):
            value = most(grid.low, grid.high, cell, parameters, q)
            bound[cell] = value if value == value else np.inf
        lists.length[q] = 0
        for cell in np.argsort(-bound):
            n = lists.length[q]
            if n == k and bound[cell] < lists.score[q, k - 1]:
                break
            slot = grid.head[cell]
            while slot != NONE:
                row = now - (now - slot) % size
                score = one(grid.columns, slot, parameters, q)
                if row >= lists.start[q] and score == score:
                    n = lists.length[q]
                    if n < k or ranks(score, row, lists.score[q, k - 1], lists.row[q, k - 1]):
                        x = min(n, k - 1)
                        while x > 0 and not ranks(lists.score[q, x - 1], lists.row[q, x - 1], score, row):
                            lists.score[q, x], lists.row[q, x] = lists.score[q, x - 1], lists.row[q, x - 1]
                            x -= 1
                        lists.score[q, x], lists.row[q, x] = score, row
                        lists.length[q] = min(n + 1, k)
                slot = grid.following[slot]
        n = lists.length[q]
        for x in range(n):
            lists.dominators[q, x] = 0
            for y in range(x):
                lists.dominators[q, x] += lists.row[q, y] > lists.row[q, x]
        lists.threshold[q] = lists.score[q, k - 1] if n == k else -np.inf
        register(lists, grid, parameters, q)

    compute: Any = njit(_compute)

    def step(columns, begin, offset, arrivals, grid, lists, parameters, skyband, out, written):
        width, size = grid.columns.shape
        queries = len(lists.k)
        room, new = np.sum(lists.k), 0
        for q in range(queries):
            new += lists.indexed[q] == np.inf
        touched, is_touched = np.empty(queries, np.int64), np.zeros(queries, np.bool_)
        for i in range(begin, columns.shape[1]):
            if len(out) - written < room:
                return i, written
            now = arrivals + i
            slot, count = now % size, 0
            cell = grid.cell[slot]
            if cell != NONE:
                # The oldest row leaves its cell, and the lists that it is in.
                a, b = grid.before[slot], grid.following[slot]
                if a == NONE:
                    grid.head[cell] = b
                else:
                    grid.following[a] = b
                if b != NONE:
                    grid.before[b] = a
                for m in range(lists.members[cell]):
                    q = lists.member[cell, m]
                    n = lists.length[q]
                    for x in range(n):
                        if lists.row[q, x] == now - size:
                            for y in range(x, n - 1):
                                lists.score[q, y], lists.row[q, y] = lists.score[q, y + 1], lists.row[q, y + 1]
                                lists.dominators[q, y] = lists.dominators[q, y + 1]
                            lists.length[q] = n - 1
                            if not is_touched[q]:
                                is_touched[q] = True
                                touched[count] = q
                                count += 1
                            break
            if now == size or (now < size and now & (now - 1) == 0):
                # While the window fills, thresholds computed from half as many rows are far too low.
                lists.indexed[:] = np.inf
                new = queries
            for q in range(queries if new else 0):
                if lists.indexed[q] == np.inf:
                    compute(lists, grid, parameters, q, now - 1, skyband)
                    if not is_touched[q]:
                        is_touched[q] = True
                        touched[count] = q
                        count += 1
            new = 0
            cell = 0
            for c in range(width):
                value, part = columns[c, i], 0
                for cut in range(1, grid.cuts.shape[1]):
                    part += value >= grid.cuts[c, cut]
                cell = cell * grid.cuts.shape[1] + part
                grid.columns[c, slot] = value
            grid.cell[slot], grid.before[slot], grid.following[slot] = cell, NONE, grid.head[cell]
            if grid.head[cell] != NONE:
                grid.before[grid.head[cell]] = slot
            grid.head[cell] = slot
            grid.shown[slot, :] = 0
            for m in range(lists.members[cell]):
                q = lists.member[cell, m]
                score = one(grid.columns, slot, parameters, q)
                if score >= lists.threshold[q]:
                    put(lists, q, score, now, skyband)
                    if not is_touched[q]:
                        is_touched[q] = True
                        touched[count] = q
                        count += 1
            for t in range(count):
                q = touched[t]
                is_touched[q] = False
                is_short, is_new = lists.length[q] < lists.k[q], lists.threshold[q] == -np.inf
                if (is_short and not is_new) or (skyband and is_new and not is_short):
                    compute(lists, grid, parameters, q, now, skyband)
            for t in range(count):
                q = touched[t]
                for x in range(min(lists.length[q], lists.k[q])):
                    row = lists.row[q, x]
                    if grid.shown[row % size, q] == 0:
                        grid.shown[row % size, q] = 1
                        line = out[written]
                        line.at, line.group, line.rank, line.order, line.change = now + 1, q, x + 1, 0, ENTER
                        line.score, line.position = lists.score[q, x], row + offset
                        written += 1
        return columns.shape[1], written

    return njit(step)
