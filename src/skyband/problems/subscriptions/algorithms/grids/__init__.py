"""The published competitors: rows in a regular grid, from which a query's answer is computed when it runs short.

Paper:      Mouratidis and Papadias, TKDE 2007, CPM/w (`cpmw`) and SNN (`snn`), as Pripužić, Podnar Žarko, Aberer, TODS
            2015, describe them in section 2 and compare with them in section 8.
Invariant:  `cpmw` keeps the k best rows of each query; `snn` the k-skyband of the rows that reach its threshold, the
            k-th score when it was last computed. A cell knows the queries that a row in it may concern.
Cost:       a row is scored for the queries of its cell; when a list has fewer than k rows, all cells are ranked for the
            query, and the rows of the best ones scored until no other cell can hold a better one. State: all n rows.
Choose it:  never; for comparing. Windows of arrivals, an answer with each arrival, entries.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from skyband.core.operator import ANSWER, ENTER, ENTRIES, Answer, Arrays, Floats, Ints
from skyband.core.options import Parts
from skyband.core.registry import Algorithm
from skyband.errors import InvalidQuery
from skyband.problems.subscriptions.algorithms import per_query as each
from skyband.problems.subscriptions.drivers.scoring import Scoring
from skyband.problems.subscriptions.operator import Batch, Queries, Spec
from skyband.windows import FOREVER

NAMES: Final = ("cpmw", "snn")
NONE: Final = -1
MOST_CELLS: Final = 1_000_000


def refuses(spec: Spec) -> str | None:
    window, score = spec.window, spec.scoring.score
    if not window.by_count or window.every or window.size == FOREVER or spec.emit != ENTRIES:
        return "it is here for comparing: a window of arrivals that slides with each, and entries"
    if refused := each.refuses(spec):
        return refused
    if not score.columns or score.bound is None:
        return "a grid needs to know what a score can be in a cell"
    return None


def expected_rows(spec: Spec, window_rows: float) -> float:
    """All rows of the window."""
    return window_rows


def opener(name: str) -> Callable[..., Gridded]:
    """How the one of that name is opened."""

    def open_grid(spec: Spec, *, resolution: Parts = 10) -> Gridded:
        columns = len(spec.scoring.score.columns)
        if (cells := resolution**columns) > MOST_CELLS:
            raise InvalidQuery(
                f"{name!r}: {columns} columns, each in resolution={resolution} parts, make {cells:,} cells. "
                f"Up to {MOST_CELLS:,} are possible."
            )
        return Gridded(spec, name == "snn", resolution)

    return open_grid


class Grid(NamedTuple):
    """Rows of the window by their number modulo its size, in lists by cell."""

    columns: Floats
    cell: Ints  # of each row
    following: Ints  # in its cell's list, or NONE
    before: Ints
    head: Ints  # by cell
    low: Floats  # by column, then by cell: its box
    high: Floats
    cuts: Floats  # by column: where cells begin
    shown: npt.NDArray[np.uint8]  # by row, then by query


class Lists(NamedTuple):
    """By query: its rows, best first."""

    score: Floats
    row: Ints  # numbers of arrival
    dominators: Ints
    length: Ints
    threshold: Floats  # a row has to reach it to get into the list
    indexed: Floats  # the threshold that the cells know
    k: Ints
    size: Ints
    start: Ints
    member: npt.NDArray[np.int32]  # by cell: the queries that a row in it may concern,
    members: Ints  # how many these are,
    place: npt.NDArray[np.int32]  # and by cell and query, where it is among them, or NONE


class Gridded:
    def __init__(self, spec: Spec, skyband: bool, resolution: int) -> None:
        self.spec = spec
        self.late = 0
        self.unranked = 0
        self._skyband = skyband
        self._resolution = resolution
        width, n = len(spec.scoring.score.columns), spec.window.size
        cells = resolution**width
        self._step = step_of(spec.scoring)
        none = np.full(n, NONE, np.int64)
        self._grid = Grid(
            np.empty((width, n)), none, none.copy(), none.copy(), np.full(cells, NONE, np.int64),
            np.empty((width, cells)), np.empty((width, cells)), np.empty((width, resolution)),
            np.empty((n, 0), np.uint8),
        )  # fmt: skip
        self._parameters = np.empty((len(spec.scoring.score.parameters), 0))
        self._lists = self._new_lists(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))
        self._arrivals = 0

    def _new_lists(self, k: Ints, size: Ints, start: Ints) -> Lists:
        q, cells = len(k), len(self._grid.head)
        room = (q, 8 * int(k.max(initial=1)) + 64)
        return Lists(
            np.empty(room), np.empty(room, np.int64), np.zeros(room, np.int64), np.zeros(q, np.int64),
            np.full(q, -np.inf), np.full(q, np.inf), k, size, start,
            np.empty((cells, q), np.int32), np.zeros(cells, np.int64), np.full((cells, q), NONE, np.int32),
        )  # fmt: skip

    # -- queries: for comparing, lists are computed anew whenever they come or go --------------------------------------

    def add(self, queries: Queries, *, backfill: bool) -> Answer:
        if backfill:
            raise InvalidQuery("backfill is not for the algorithms that are compared with.")
        old, more = self._lists, len(queries.k)
        self._parameters = np.ascontiguousarray(np.concatenate([self._parameters, queries.parameters], axis=1))
        shown = np.concatenate([self._grid.shown, np.zeros((len(self._grid.shown), more), np.uint8)], axis=1)
        self._grid = self._grid._replace(shown=np.ascontiguousarray(shown))
        start = np.concatenate([old.start, np.full(more, self._arrivals)])
        self._rebuild(np.concatenate([old.k, queries.k]), np.concatenate([old.size, queries.size]), start)
        return Answer.of(np.empty(0, ANSWER))

    def compact(self, kept: Ints) -> None:
        self._parameters = np.ascontiguousarray(self._parameters[:, kept])
        self._grid = self._grid._replace(shown=np.ascontiguousarray(self._grid.shown[:, kept]))
        self._rebuild(self._lists.k[kept], self._lists.size[kept], self._lists.start[kept])

    def _rebuild(self, k: Ints, size: Ints, start: Ints) -> None:
        if (size != self.spec.window.size).any():
            raise InvalidQuery("Windows of several sizes are not for the algorithms that are compared with.")
        self._lists = self._new_lists(k, size, start)

    # -- rows ------------------------------------------------------------------------------------------------------

    def push(self, batch: Batch) -> Answer:
        n = batch.columns.shape[1]
        if self._arrivals == 0 and n:
            self._draw_grid(batch.columns)
        out = np.empty(max(1024, n), ANSWER)
        first, written = 0, 0
        while True:
            first, written = self._step(
                batch.columns, first, batch.first - self._arrivals, self._arrivals, self._grid, self._lists,
                self._parameters, self._skyband, out, written,
            )  # fmt: skip
            if first == n:
                break
            out = np.concatenate([out, np.empty(len(out) + int(self._lists.k.sum()), ANSWER)])
        self._arrivals += n
        return Answer.of(out[:written])

    def _draw_grid(self, columns: Floats) -> None:
        """Cells of equal size over the range of the first rows; those at the border reach as far as need be."""
        parts, width = self._resolution, len(columns)
        for c in range(width):
            finite = columns[c][np.isfinite(columns[c])]
            least, most = (finite.min(), finite.max()) if len(finite) else (0.0, 1.0)
            self._grid.cuts[c] = least + (most - least) * np.arange(parts) / parts
        for cell in range(parts**width):
            rest = cell
            for c in range(width - 1, -1, -1):
                rest, part = divmod(rest, parts)
                self._grid.low[c, cell] = self._grid.cuts[c, part] if part else -np.inf
                self._grid.high[c, cell] = self._grid.cuts[c, part + 1] if part + 1 < parts else np.inf

    def advance(self, watermark: int) -> Answer:
        return Answer.of(np.empty(0, ANSWER))

    def finish(self) -> Answer:
        return Answer.of(np.empty(0, ANSWER))

    def next_close(self) -> int | None:
        return None

    def top(self, k: int | None, size: int | None) -> Answer:
        raise InvalidQuery("The algorithms that are compared with cannot be asked.")

    # -- state -----------------------------------------------------------------------------------------------------

    def held(self) -> Ints:
        return np.arange(max(0, self._arrivals - self.spec.window.size), self._arrivals)

    def rows_held(self) -> int:
        return min(self._arrivals, self.spec.window.size)

    def state(self) -> Arrays:
        parts = {f"grid {name}": array.copy() for name, array in self._grid._asdict().items()}
        parts |= {f"lists {name}": array.copy() for name, array in self._lists._asdict().items()}
        return {**parts, "parameters": self._parameters.copy(), "arrivals": np.array([self._arrivals])}

    def restore(self, state: Arrays) -> None:
        self._grid = Grid(*(state[f"grid {name}"] for name in Grid._fields))
        self._lists = Lists(*(state[f"lists {name}"] for name in Lists._fields))
        self._parameters = state["parameters"]
        self._arrivals = int(state["arrivals"][0])

    def check(self) -> None:
        for q in range(len(self._lists.k)):
            scores = self._lists.score[q, : self._lists.length[q]]
            assert (scores[1:] <= scores[:-1]).all(), "a list is best first"


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


ALGORITHMS = tuple(Algorithm(name, opener(name), refuses, expected_rows, for_comparing=True) for name in NAMES)
