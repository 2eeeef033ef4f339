"""The queries in a grid, their lists and filters, the buffer that they share, and the wrappers of rows."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from skyband.core.operator import ANSWER, Answer, Arrays, Ints
from skyband.core.validation import FARTHEST, Saved
from skyband.errors import InvalidQuery
from skyband.problems.rows.algorithms.filtered.candidate_bound import candidates
from skyband.problems.subscriptions.operator import Batch, Queries, Spec
from skyband.problems.subscriptions.query import MOST_ROWS
from skyband.study.baselines.subscriptions.grids.state import Passive, draw_cells
from skyband.study.baselines.subscriptions.indexed.kernels import (
    NOWHERE,
    PROBABILISTIC,
    RELAXED,
    STRICT,
    WRAPPER,
    Bands,
    Grid,
    Kind,
    Wrappers,
    step_of,
)
from skyband.study.baselines.subscriptions.indexed.kernels.lists import (
    FILTER,
    FREE,
    LINKED,
    LONGEST,
    ROLES,
    SHOWN,
    link_all,
    thresholds,
)
from skyband.study.baselines.subscriptions.indexed.kernels.rows import AT_ONCE

_OF_QUERIES: Final = ("bar", "indexed", "vain", "prune_at", "limit", "k", "start")  # of Bands, by query
_OF_ROWS: Final = ("score", "row", "dominators", "flags")  # of WRAPPER; the rest follows from the lists
_OF_GRID: Final = ("cuts", "low", "high", "columns", "cell")


class Indexed(Passive):
    """PA, SASF or RAPF for many queries."""

    def __init__(self, spec: Spec, kind: Kind, resolution: int, sigma: float, limit: int | None, room: int) -> None:
        self.spec = spec
        self.late = 0
        self.unranked = 0
        self._kind, self._sigma, self._limit, self._room = kind, sigma, limit, room
        self._step, self._register = step_of(spec.scoring)
        width = len(spec.scoring.score.columns)
        cells = resolution**width
        self._grid = Grid(
            np.empty((width, resolution)), np.empty((width, cells)), np.empty((width, cells)),
            np.empty((cells, 0), np.int32), np.zeros(cells, np.int64), np.empty((cells, 0), np.int32),
            np.zeros((width, kind.buffer)), np.zeros(kind.buffer, np.int64),
        )  # fmt: skip
        self._parameters = np.empty((len(spec.scoring.score.parameters), 0))
        self._arrivals = 0
        self._offset = 0
        none = np.empty(0, np.int64)
        self._lay_out(self._no_queries(none), np.zeros((ROLES, 0), np.int64), np.empty(0, WRAPPER))

    # -- lists and wrappers, from rows in flat arrays ----------------------------------------------------------------

    def _no_queries(self, k: Ints) -> Arrays:
        """What is known of queries that have just come."""
        n = len(k)
        bounds = [self._limit or candidates(self._rows_of(), int(each), self._sigma) for each in k]
        return {
            "bar": np.full(n, -np.inf),
            "indexed": np.full(n, -np.inf),
            "vain": np.zeros(n, np.int64),
            "prune_at": np.zeros(n, np.int64),
            "limit": np.array(bounds, np.int64),
            "k": k,
            "start": np.full(n, self._arrivals),
        }

    def _rows_of(self) -> int:
        """The rows that a probabilistic list is about."""
        return self._kind.buffer if self._kind.filter == PROBABILISTIC else self.spec.window.size

    def _lay_out(self, queries: Arrays, lengths: Ints, rows: Any) -> None:
        """Make the lists, of these lengths by role and query, of rows that lie one list after the other."""
        n, count = lengths.shape[1], len(rows["score"])
        longest = int(lengths.max(initial=0))
        room = max(self._room, longest + AT_ONCE + 1)
        members = np.full((ROLES, n, room), NOWHERE, np.int64)
        members[np.arange(room) < lengths[:, :, None]] = np.arange(count)
        total = count + max(self._room, AT_ONCE * n)
        wrappers = np.zeros(total, WRAPPER)
        for name in _OF_ROWS:
            wrappers[name][:count] = rows[name]
        wrappers["query"][:count] = np.repeat(np.tile(np.arange(n), ROLES), lengths.ravel())
        free = np.arange(total - 1, -1, -1)
        heads = np.full((ROLES, self.spec.window.size), NOWHERE, np.int64)
        self._wrappers = Wrappers(wrappers, free, heads, np.array([total - count, longest]))
        self._bands = Bands(members, lengths.copy(), *(queries[name].copy() for name in _OF_QUERIES))
        roles = np.repeat(np.arange(ROLES), lengths.sum(axis=1))
        link_all(self._wrappers, roles)
        cells = len(self._grid.members)
        self._grid = self._grid._replace(
            member=np.empty((cells, n), np.int32),
            members=np.zeros(cells, np.int64),
            place=np.full((cells, n), NOWHERE, np.int32),
        )
        self._fresh = True  # no cell knows a query
        self._heap = np.empty(int(self._bands.k.max(initial=1)), np.int64)

    def _laid_out(self) -> tuple[Arrays, Ints, npt.NDArray[Any]]:
        """The same, as they are now."""
        bands = self._bands
        queries = {name: getattr(bands, name).copy() for name in _OF_QUERIES}
        listed = bands.members[np.arange(bands.members.shape[2]) < bands.length[:, :, None]]
        return queries, bands.length.copy(), self._wrappers.all[listed]

    # -- queries -----------------------------------------------------------------------------------------------------

    def add(self, queries: Queries, *, backfill: bool) -> Answer:
        if backfill:
            raise InvalidQuery("backfill is not for the algorithms that are compared with.")
        if (queries.size != self.spec.window.size).any():
            raise InvalidQuery("Windows of several sizes are not for the algorithms that are compared with.")
        known, lengths, rows = self._laid_out()
        new = self._no_queries(queries.k)
        self._parameters = np.ascontiguousarray(np.concatenate([self._parameters, queries.parameters], axis=1))
        more = np.zeros((ROLES, len(queries.k)), np.int64)
        together = {name: np.concatenate([known[name], new[name]]) for name in _OF_QUERIES}
        self._lay_out(together, np.concatenate([lengths, more], axis=1), rows)
        return Answer.joined([])

    def compact(self, kept: Ints) -> None:
        known, lengths, rows = self._laid_out()
        stays = np.isin(np.repeat(np.tile(np.arange(lengths.shape[1]), ROLES), lengths.ravel()), kept)
        self._parameters = np.ascontiguousarray(self._parameters[:, kept])
        self._lay_out({name: known[name][kept] for name in _OF_QUERIES}, lengths[:, kept], rows[stays])

    # -- rows --------------------------------------------------------------------------------------------------------

    def push(self, batch: Batch) -> Answer:
        n = batch.columns.shape[1]
        if not n:
            return Answer.joined([])
        if self._arrivals == 0:
            draw_cells(batch.columns, self._grid.cuts, self._grid.low, self._grid.high)
        if self._fresh:
            vain = self._bands.vain.copy()
            for q, bar in enumerate(self._bands.indexed.tolist()):
                self._register(self._bands, self._grid, self._parameters, q, bar)
            self._bands.vain[:] = vain
            self._fresh = False
        self._offset = batch.first - self._arrivals
        out = np.empty(max(1024, n), ANSWER)
        first, written = 0, 0
        while True:
            first, written = self._step(
                batch.columns, first, self._offset, self._arrivals, self._grid, self._bands, self._wrappers,
                self._parameters, self._kind, self._heap, out, written,
            )  # fmt: skip
            if first == n:
                break
            if len(out) - written < self._bands.k.sum():
                out = np.concatenate([out, np.empty(len(out) + int(self._bands.k.sum()), ANSWER)])
            self._grow()
        self._arrivals += n
        return Answer.of(out[:written])

    def _grow(self) -> None:
        """Make room where there is too little of it for a row."""
        bands, wrappers = self._bands, self._wrappers
        wrappers.numbers[LONGEST] = bands.length.max(initial=0)
        room = bands.members.shape[2]
        if wrappers.numbers[LONGEST] + AT_ONCE >= room:
            more = np.full((*bands.length.shape, room), NOWHERE, np.int64)
            self._bands = bands._replace(members=np.concatenate([bands.members, more], axis=2))
        if wrappers.numbers[FREE] < AT_ONCE * len(bands.k):
            old, count = len(wrappers.all), int(wrappers.numbers[FREE])
            more = np.arange(2 * old + AT_ONCE * len(bands.k) - 1, old - 1, -1)
            free = np.concatenate([wrappers.free[:count], more, np.zeros(old - count, np.int64)])
            grown = np.concatenate([wrappers.all, np.zeros(len(more), WRAPPER)])
            wrappers.numbers[FREE] += len(more)
            self._wrappers = wrappers._replace(all=grown, free=free)

    # -- state -------------------------------------------------------------------------------------------------------

    def held(self) -> Ints:
        """The rows of the buffer, and those that a query or filter refers to and that are in the window."""
        buffered = np.arange(max(0, self._arrivals - self._kind.buffer), self._arrivals)
        rows = np.union1d(buffered, self._laid_out()[2]["row"])
        return rows[rows >= self._arrivals - self.spec.window.size] + self._offset

    def rows_held(self) -> int:
        return len(self.held())

    def references(self) -> int:
        """How many wrappers there are: what the paper calls references to objects."""
        return int(self._bands.length.sum())

    def state(self) -> Arrays:
        queries, lengths, rows = self._laid_out()
        return {
            **{f"queries {name}": each for name, each in queries.items()},
            **{f"grid {name}": getattr(self._grid, name).copy() for name in _OF_GRID},
            **{f"rows {name}": rows[name].copy() for name in _OF_ROWS},
            "lengths": lengths,
            "parameters": self._parameters.copy(),
            "arrivals": np.array([self._arrivals, self._offset]),
        }

    def validate(self, saved: Saved) -> None:
        n, count, size = len(saved["queries k"]), len(saved["rows score"]), self.spec.window.size
        saved.length(n, *(f"queries {name}" for name in _OF_QUERIES))
        saved.length(count, *(f"rows {name}" for name in _OF_ROWS))
        saved.length(2, "arrivals")
        saved.counts("arrivals", saved["arrivals"])
        saved.shape("lengths", ROLES, n)
        saved.shape("parameters", len(self._parameters), n)
        saved.parts(saved["lengths"].ravel(), count, "lengths", "rows score")
        for name in _OF_GRID:
            saved.shape(f"grid {name}", *getattr(self._grid, name).shape)
        saved.indices("grid cell", saved["grid cell"], len(self._grid.members))
        saved.within("queries k", saved["queries k"], 1, MOST_ROWS)
        for name in ("vain", "prune_at", "start", "limit"):
            saved.within(f"queries {name}", saved[f"queries {name}"], 0, FARTHEST)
        for name in ("bar", "indexed"):
            saved.numbers(f"queries {name}", saved[f"queries {name}"])
        scores, rows, arrivals = saved["rows score"], saved["rows row"], int(saved["arrivals"][0])
        saved.numbers("rows score", scores)
        saved.within("rows row", rows, 0, arrivals - 1)
        saved.within("rows dominators", saved["rows dominators"], 0, FARTHEST)
        saved.within("rows flags", saved["rows flags"], 0, SHOWN | LINKED)
        lists = np.repeat(np.arange(ROLES * n), saved["lengths"].ravel())
        ranked = (scores[:-1] > scores[1:]) | ((scores[:-1] == scores[1:]) & (rows[:-1] > rows[1:]))
        saved.promise(bool((ranked | (lists[:-1] != lists[1:])).all()), "'rows' are not ranked, best first")
        linked, roles = (saved["rows flags"] & LINKED) > 0, lists // max(1, n)
        oldest = np.array([arrivals - size, max(0, arrivals - self._kind.buffer)])[roles]
        saved.promise(bool((rows >= oldest)[linked].all()), "'rows' has one that should have left")
        ranks = np.arange(count) - (np.cumsum(saved["lengths"].ravel()) - saved["lengths"].ravel())[lists]
        has_to = (self._kind.query != RELAXED) | (roles == FILTER) | (ranks < np.tile(saved["queries k"], ROLES)[lists])
        saved.promise(np.array_equal(linked, has_to), "'rows' are not in the list by time as they should be")

    def restore(self, state: Arrays) -> None:
        self._arrivals, self._offset = (int(each) for each in state["arrivals"])
        self._grid = self._grid._replace(**{name: state[f"grid {name}"].copy() for name in _OF_GRID})
        self._parameters = np.ascontiguousarray(state["parameters"])
        rows = {name: state[f"rows {name}"] for name in _OF_ROWS}
        self._lay_out(
            {name: state[f"queries {name}"] for name in _OF_QUERIES}, state["lengths"].reshape(ROLES, -1), rows
        )

    def check(self) -> None:
        bands, wrappers, kind = self._bands, self._wrappers.all, self._kind
        chained = [_chain(self._wrappers, role) for role in range(ROLES)]
        linked: list[set[int]] = [set(), set()]
        for role in range(ROLES):
            for q in range(len(bands.k)):
                rows = wrappers[bands.members[role, q, : bands.length[role, q]]]
                keys = list(zip(rows["score"].tolist(), rows["row"].tolist(), strict=True))
                assert keys == sorted(set(keys), reverse=True), "a list is best first, and has no row twice"
                assert (rows["query"] == q).all(), "a wrapper knows its query"
                whole = role == FILTER or kind.query != RELAXED
                timed = rows if whole else rows[: bands.k[q]]
                assert (timed["flags"] & LINKED).all(), "a row that leaves a list does so through the list by time"
                first = self._arrivals - (kind.buffer if role == FILTER else self.spec.window.size)
                assert (timed["row"] >= first).all(), "no row stays when it should have left"
                linked[role] |= set(bands.members[role, q, : len(timed)].tolist())
                if (kind.filter if role == FILTER else kind.query) == STRICT:
                    outlived = [sum(b > a for b in rows["row"][:x]) for x, a in enumerate(rows["row"])]
                    assert all(count < bands.k[q] for count in outlived), "k better rows outlive none of a k-skyband"
        assert chained == linked, "the list by time has each row that is in a list, once for each"
        used = self._wrappers.numbers[FREE] + bands.length.sum()
        assert used == len(wrappers), "a wrapper is in one list, or free"
        if self._fresh:
            return
        bars = np.empty(len(bands.k))
        thresholds(bands, self._wrappers, kind, bars)
        assert (bands.indexed <= bars).all(), "cells know every query that a row in them may concern"


def _chain(wrappers: Wrappers, role: int) -> set[int]:
    """All wrappers in the list by time."""
    found: set[int] = set()
    for head in wrappers.heads[role].tolist():
        while head != NOWHERE:
            assert head not in found, "a chain ends"
            found.add(head)
            head = int(wrappers.all["following"][head])
    return found
