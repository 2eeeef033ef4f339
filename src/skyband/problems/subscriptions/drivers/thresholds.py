"""A threshold for each query, and the window's rows, kept once for all: the operator behind every index.

Paper:      Pripužić, Podnar Žarko, Aberer, TODS 2015, section 6 (a buffer of recent rows that all queries share,
            thresholds that an index is built on); the lists are longer than k, and are filled again when they run
            short, as materialised top-k views are (Yi, Yu, Yang, Xia, Chen, ICDE 2003).
Invariant:  a query's list has every row of its window that ranks before its edge, and at least k of these outlive the
            rows that come next; or it has all rows of the window. If an answer is due with each arrival, a list may
            leave out rows that k better ones in it outlive.
Cost:       a row is put into the lists of about m/n of all queries: m is k and some more, n the rows of a window. The
            index finds these queries. State: the rows of the window, once, and about m entries per query.
Choose it:  always, unless all queries ask for the same score.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from skyband.core.emit import takes_back
from skyband.core.operator import Floats, Ints
from skyband.problems.subscriptions.drivers.kernels.each_arrival import arrive, room_for_lists
from skyband.problems.subscriptions.drivers.kernels.lists import LATEST, SLACK, arrivals_of
from skyband.problems.subscriptions.drivers.kernels.sliding import close, keep
from skyband.problems.subscriptions.drivers.lists import Hits, Lists, classes_of
from skyband.problems.subscriptions.operator import Spec

BLOCK_ROWS = 16384  # at most so many rows are taken in together
FEW = 64  # if no more rows than these are alive, they are taken in together whatever the clock does
PARTS = 4  # rows taken in together move the clock by at most one part in so many of a window
HITS = 1 << 18  # there is room for so many hits in the beginning


class Class(NamedTuple):
    """Queries whose windows are about equally long, in the order that the index prefers."""

    which: Ints
    small: int  # the shortest window
    large: int


class Index(Protocol):
    """Finds the rows that reach the thresholds of queries. An algorithm implements these methods."""

    def arrange(self, parameters: Floats, which: Ints) -> Ints:
        """Sort queries into the order in which they are swept fastest."""
        ...

    def lay(self, columns: Floats, first: int, end: int) -> None:
        """Prepare the rows [first, end), which are swept next."""
        ...

    def sweep(self, parameters: Floats, threshold: Floats, which: Ints, begin: int, hits: Hits) -> tuple[int, int]:
        """Find the hits of the queries which[begin:].

        Returns how many hits there are, and the query to go on with if there was no room for all that it may have.
        """
        ...


class Thresholds(Lists):
    """The operator. Algorithms differ only in the index that finds the rows for a query."""

    def __init__(
        self, spec: Spec, index: Index, *, slack: float = SLACK, hits: int = HITS, parts: int = PARTS, few: int = FEW
    ) -> None:
        super().__init__(spec, slack=slack, hits=hits)
        self._index = index
        self._parts, self._few = parts, few
        self._all: Ints = np.empty(0, np.int64)  # all queries, in the order that the index prefers
        self._classes: list[Class] = []  # all queries, split by how long their windows are
        self._room = room_for_lists(1024)
        self._is_arranged = True  # is the order that the index prefers that of the queries?

    def _changed(self) -> None:
        """Group the queries whose windows are about equally long: they are swept together."""
        self._hits = self._hits._replace(ends=np.empty(len(self._queries), np.int64))
        self._failed = np.empty(len(self._queries), np.int64)
        sizes = self._queries["size"]
        classes = classes_of(sizes)
        together = [np.flatnonzero(classes == each) for each in np.unique(classes)]
        self._classes = [
            Class(self._index.arrange(self._parameters, which), int(sizes[which].min()), int(sizes[which].max()))
            for which in together
        ]
        self._all = self._index.arrange(self._parameters, np.arange(len(sizes)))
        self._is_arranged = len(self._classes) < 2 and bool((self._all[1:] > self._all[:-1]).all())

    # -- rows ------------------------------------------------------------------------------------------------------

    def _push_rows(self, columns: Floats, time: Ints, position: Ints, now: Ints) -> None:
        """Take rows in where there is no slide: an answer is due after each row."""
        if self._windows.slides:
            super()._push_rows(columns, time, position, now)
            return
        in_time = self._windows.in_time(time, now)
        if in_time is not None:
            columns, time, position, now = columns[:, in_time], time[in_time], position[in_time], now[in_time]
        size, u = self.spec.window.size, 0
        while u < len(time):
            v = min(len(time), u + BLOCK_ROWS)
            v = u + max(1, int(np.searchsorted(now[u:v], now[u] + size // self._parts, side="right")))
            v = max(v, min(u + self._few, len(time)))
            self._take(columns[:, u:v], time[u:v], position[u:v], now[u:v])
            self._done.append(self._lines(orders=v - u))
            u = v

    def _take(self, columns: Floats, time: Ints, position: Ints, now: Ints) -> None:
        """Take rows in for all queries, in steps as long as their windows allow."""
        if self.endless:
            self._store.count = 0
        self._store.append(columns, time, position, now, self._windows.next_start)
        base = self._store.count - len(time)
        self._in_order = self._is_arranged
        for which, small, large in self._classes:
            u = 0
            while u < len(time):
                v = self._step(u, now, base, small, large)
                self._arrive(which, u, v, base, now)
                u = v
        self._windows.move_to(int(now[-1]))

    def _step(self, u: int, now: Ints, base: int, small: int, large: int) -> int:
        """Where a step that begins with the row `u` ends, for windows between the sizes `small` and `large`."""
        before = int(now[u - 1]) if u else self._now
        v = u + max(1, int(np.searchsorted(now[u:], now[u] + small // self._parts, side="right")))
        if self.endless:
            return min(v, u + max(self._few, self._arrivals // 2))
        sizes, low = (small, large), before - large
        alive = [self._later(before - size, base + u, before, low) for size in sizes]
        if alive[-1] <= self._few:
            return min(u + self._few, len(now))
        v = min(v, u + max(self._few, alive[-1]))
        survive = [self._later(int(now[v - 1]) - size, base + u, before, low) for size in sizes]
        return v if all(self._parts * s >= a for s, a in zip(survive, alive, strict=True)) else u + 1

    def _later(self, than: int, end: int, before: int, low: int) -> int:
        """Count the rows of the store before `end` whose times are later than `than` and at most `before`.

        `than` is not before `low`.
        """
        if self._store.consecutive:
            return max(0, min(before + 1, before - than))
        first = int(np.searchsorted(self._store.now[:end], low, side="right"))
        return int(np.count_nonzero(self._store.time[first:end] > than))

    def _arrive(self, which: Ints, u: int, v: int, base: int, now: Ints) -> None:
        self._index.lay(self._store.columns, base + u, base + v)
        failed = self._sweep(which, u, v, base, now)
        if len(failed):
            self._in_order = False
            single, before = v == u + 1, int(now[u - 1]) if u else self._now
            size = self._queries["size"][failed]
            survives = int(now[v - 1]) - size + 1
            self._refill(failed, base + u, survives, LATEST, survives if single else before - size + 1)
            again = self._sweep(failed, u, v, base, now)
            assert not len(again), "a list that was filled again is long enough"

    def _sweep(self, which: Ints, u: int, v: int, base: int, now: Ints) -> Ints:
        """Put rows into the lists of these queries; returns the queries whose lists are too short for that."""
        time, position = self._store.time[base + u : base + v], self._store.position[base + u : base + v]
        before = int(now[u - 1]) if u else self._now
        arrivals = arrivals_of(time, position, now[u:v], before, self._store.consecutive)
        failed: list[Ints] = []
        begin = 0
        self._make_room_hits(v - u)
        end = (self._worth_closing() or 0) if self._windows.slides else 0
        while begin < len(which):
            _, reached = self._index.sweep(self._parameters, self._threshold, which, begin, self._hits)
            at = begin
            while at < reached:
                if self._windows.slides:
                    at = keep(
                        which, begin, at, reached, self._hits, arrivals, end, self._queries, self._threshold,
                        self._pool,
                    )  # fmt: skip
                else:
                    at, failures = arrive(
                        which, begin, at, reached, self._hits, arrivals, self._windows.arrived(0), u, self._queries,
                        self._threshold, self._pool, self.spec.emit, self._emitted, self._failed, self._room,
                    )  # fmt: skip
                    failed.append(which[self._failed[:failures]])
                if at < reached:
                    length = int(self._queries["length"][which[at]]) + v - u
                    self._make_room(4 * length + 16)
                    self._make_room_out(4 * length)
                    if len(self._room.hit) < length:
                        self._room = room_for_lists(2 * length)
            begin = reached
        return np.concatenate(failed) if failed else np.empty(0, np.int64)

    # -- windows that slide by more than a row ------------------------------------------------------------------------

    def _take_sliding(self, columns: Floats, time: Ints, position: Ints, now: Ints) -> None:
        u = 0
        while u < len(time):
            if self.endless:
                self._store.count = 0
            v = min(len(time), u + BLOCK_ROWS, u + max(self._few, self._store.count))
            self._store.append(columns[:, u:v], time[u:v], position[u:v], now[u:v], self._windows.next_start)
            base = self._store.count - (v - u)
            self._index.lay(self._store.columns, base, base + v - u)
            self._sweep(self._all, 0, v - u, base, now)
            u = v

    def _close_window(self, end: int) -> None:
        self._in_order = True
        failed = self._close(np.flatnonzero(end % self._queries["every"] == 0), end)
        if len(failed):
            self._in_order = False
            first = end - self._queries["size"][failed]
            self._refill(failed, self._store.count, first, end, first)
            again = self._close(failed, end)
            assert not len(again), "a list that was filled again is long enough"
        self._shown = bool(self._previous["length"].any())
        self._done.append(self._lines())

    def _takes_back(self) -> bool:
        return self._shown and takes_back(self.spec.emit)

    def _earliest_live(self) -> int:
        time = self._store.time
        return int(np.min(time, where=time >= self._windows.next_start, initial=LATEST))

    def _close(self, which: Ints, end: int) -> Ints:
        failed: list[Ints] = []
        at = 0
        while at < len(which):
            at, failures = close(
                end, which, at, self._queries, self._threshold, self._pool, self._previous,
                self.spec.emit, self._emitted, self._failed,
            )  # fmt: skip
            failed.append(which[self._failed[:failures]])
            if at < len(which):
                k = int(self._queries["k"][which[at]])
                self._make_room(2 * k + 8)
                self._make_room_out(2 * k)
        return np.concatenate(failed) if failed else np.empty(0, np.int64)
