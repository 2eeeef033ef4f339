"""A regular grid with the rows of the window, and a list for each query."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.operator import ANSWER, Answer, Arrays, Floats, Ints
from skyband.core.validation import Saved
from skyband.errors import InvalidQuery
from skyband.problems.subscriptions.operator import Batch, Queries, Spec
from skyband.problems.subscriptions.query import MOST_ROWS
from skyband.study.baselines.subscriptions.grids.kernels import NONE, step_of


class Grid(NamedTuple):
    """Rows of the window by their number modulo its size, in lists by cell."""

    columns: Floats  # by column, then by row
    cell: Ints  # by row: its cell, or NONE
    following: Ints  # by row: the next one in the list of its cell, or NONE
    before: Ints  # and the one before
    head: Ints  # by cell: the first row of its list, or NONE
    low: Floats  # by column, then by cell: where its box begins
    high: Floats  # and where it ends
    cuts: Floats  # by column: where cells begin
    shown: npt.NDArray[np.uint8]  # by row, then by query


class Lists(NamedTuple):
    """By query: its rows, best first."""

    score: Floats  # best first
    row: Ints  # the same rows by number of arrival
    dominators: Ints  # and how many later rows of the list rank before each
    length: Ints  # how many rows the list has
    threshold: Floats  # a row has to reach it to get into the list
    indexed: Floats  # the threshold that the cells know
    k: Ints
    size: Ints
    start: Ints  # the first arrival that the query sees
    member: npt.NDArray[np.int32]  # by cell: the queries that a row in it may concern,
    members: Ints  # how many these are,
    place: npt.NDArray[np.int32]  # and by cell and query, where it is among them, or NONE


def draw_cells(columns: Floats, cuts: Floats, low: Floats, high: Floats) -> None:
    """Cells of equal size over the range of these rows; those at the border reach as far as need be."""
    width, parts = cuts.shape
    for c in range(width):
        finite = columns[c][np.isfinite(columns[c])]
        least, most = (finite.min(), finite.max()) if len(finite) else (0.0, 1.0)
        cuts[c] = least + (most - least) * np.arange(parts) / parts
    rest = np.arange(parts**width)
    for c in range(width - 1, -1, -1):
        rest, part = np.divmod(rest, parts)
        low[c] = np.where(part > 0, cuts[c][part], -np.inf)
        high[c] = np.where(part + 1 < parts, cuts[c][np.minimum(part + 1, parts - 1)], np.inf)


_SAVED_GRID = ("columns", "cell", "low", "high", "cuts", "shown")
_SAVED_LISTS = ("k", "size", "start")


class Passive:
    """What an operator says that answers with each arrival, closes no window, and is only compared with."""

    def advance(self, watermark: int) -> Answer:
        return Answer.joined([])

    def finish(self) -> Answer:
        return Answer.joined([])

    def next_close(self) -> int | None:
        return None

    def next_held(self) -> int | None:
        return None

    def top(self, k: int | None, size: int | None) -> Answer:
        raise InvalidQuery("The algorithms that are compared with cannot be asked.")


class GridOperator(Passive):
    """CPM/w, or with `skyband` SNN."""

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
        return Answer.joined([])

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
            draw_cells(batch.columns, self._grid.cuts, self._grid.low, self._grid.high)
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

    # -- state -----------------------------------------------------------------------------------------------------

    def held(self) -> Ints:
        return np.arange(max(0, self._arrivals - self.spec.window.size), self._arrivals)

    def rows_held(self) -> int:
        return min(self._arrivals, self.spec.window.size)

    def state(self) -> Arrays:
        """The rows and the queries. The lists of both follow from these, as when a query comes."""
        parts = {f"grid {name}": getattr(self._grid, name).copy() for name in _SAVED_GRID}
        parts |= {f"lists {name}": getattr(self._lists, name).copy() for name in _SAVED_LISTS}
        return {**parts, "parameters": self._parameters.copy(), "arrivals": np.array([self._arrivals])}

    def validate(self, saved: Saved) -> None:
        grid, queries = self._grid, len(saved["lists k"])
        for name in ("columns", "cell", "low", "high", "cuts"):
            saved.shape(f"grid {name}", *getattr(grid, name).shape)
        saved.shape("grid shown", len(grid.shown), queries)
        saved.length(queries, "lists size", "lists start")
        saved.shape("parameters", len(self._parameters), queries)
        saved.length(1, "arrivals")
        saved.counts("arrivals", saved["arrivals"])
        cell = saved["grid cell"]
        saved.within("grid cell", cell, NONE, len(grid.head) - 1)
        come = np.arange(len(cell)) < saved["arrivals"][0]
        saved.promise(bool((cell[~come] == NONE).all()), "'grid cell' has rows that have not come")
        saved.within("lists k", saved["lists k"], 1, MOST_ROWS)
        saved.within("lists size", saved["lists size"], self.spec.window.size, self.spec.window.size)
        saved.counts("lists start", saved["lists start"])

    def restore(self, state: Arrays) -> None:
        self._grid = self._grid._replace(**{name: state[f"grid {name}"].copy() for name in _SAVED_GRID})
        self._parameters = state["parameters"].copy()
        self._arrivals = int(state["arrivals"][0])
        self._chain()
        self._rebuild(*(state[f"lists {name}"].copy() for name in _SAVED_LISTS))

    def _chain(self) -> None:
        """Make the lists of the cells anew."""
        grid = self._grid
        for links in (grid.following, grid.before, grid.head):
            links[:] = NONE
        rows = np.flatnonzero(grid.cell != NONE)
        rows = rows[np.argsort(grid.cell[rows], kind="stable")]
        same = grid.cell[rows][1:] == grid.cell[rows][:-1]
        grid.following[rows[:-1][same]], grid.before[rows[1:][same]] = rows[1:][same], rows[:-1][same]
        first = rows[np.append(True, ~same)] if len(rows) else rows
        grid.head[grid.cell[first]] = first

    def check(self) -> None:
        for q in range(len(self._lists.k)):
            scores = self._lists.score[q, : self._lists.length[q]]
            assert (scores[1:] <= scores[:-1]).all(), "a list is best first"
