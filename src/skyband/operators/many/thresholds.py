"""Many queries on one stream: a threshold for each, and the window's rows once for all.

Paper:      Pripužić, Podnar Žarko, Aberer, TODS 2015, section 6 (a buffer of recent rows that all queries share,
            thresholds that an index is built on); the lists are longer than k, and are filled again when they run
            short, as materialised top-k views are (Yi, Yu, Yang, Xia, Chen, ICDE 2003).
Invariant:  a query's list has every row of its window that ranks before its edge, and at least k of these outlive the
            rows that come next; or it has all rows of the window.
Cost:       a row is put into the lists of about m/n of all queries, m being k and some more, n the rows of a window; to
            find these is the index's affair. State: the rows of the window, once, and about m entries per query.
Choose it:  always, unless all queries ask for the same score.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np

from skyband.operators.many.arriving import arrive, room_for_lists
from skyband.operators.many.lists_kernels import (
    EVERY_ROW,
    LATEST,
    LISTED,
    QUERY,
    SLACK,
    Told,
    arrivals_of,
    close,
    in_columns,
    keep,
    listed,
    release,
)
from skyband.operators.many.protocol import Queries, Spec
from skyband.operators.many.refilling import SAMPLE, best_of, guess, refill
from skyband.operators.many.schedule import Schedule, due_at
from skyband.operators.many.scoring import BLOCK
from skyband.operators.many.store import Store
from skyband.operators.protocol import ANSWER, CHANGES, ENTER, ENTRIES, Answer, Arrays, Floats, Ints
from skyband.structures.ranking import ROW, Rows, best_first
from skyband.structures.slabs import HEADER, grown, grown_pool, new_pool, pack, room_for, unpack
from skyband.windows import FOREVER

BLOCK_ROWS = 16384  # at most, that are taken together
FEW = 64  # rows that are taken together whatever the clock does, if no more are alive
PARTS = 4  # rows taken together move the clock by at most this part of a window
HITS = 1 << 18  # room for hits, to begin with


class Hits(NamedTuple):
    """What a sweep found: by query its rows and their scores, the j-th query's end at ends[j]."""

    row: Ints
    score: Floats
    ends: Ints


class Class(NamedTuple):
    """Queries whose windows are about as long, as the index likes to be asked."""

    which: Ints
    small: int  # the shortest window
    large: int


class Index(Protocol):
    """Finds the rows that reach the thresholds of queries."""

    def arrange(self, parameters: Floats, which: Ints) -> Ints:
        """The same queries, in the order in which they are best swept."""
        ...

    def lay(self, columns: Floats, first: int, end: int) -> None:
        """These are the rows."""
        ...

    def sweep(self, parameters: Floats, threshold: Floats, which: Ints, begin: int, hits: Hits) -> tuple[int, int]:
        """Find the hits of the queries which[begin:]; returns how many there are, and where to go on."""
        ...


class Thresholds(Schedule):
    """The operator; what it asks of an index is all that is different between its kinds."""

    def __init__(
        self, spec: Spec, index: Index, *, slack: float = SLACK, hits: int = HITS, parts: int = PARTS, few: int = FEW
    ) -> None:
        super().__init__(spec)
        self._index = index
        self._slack, self._parts, self._few = slack, parts, few
        self._store = Store(len(spec.scoring.score.columns), spec.window.by_count)
        self._queries = np.empty(0, QUERY)
        self._threshold = np.empty(0)
        self._parameters = np.empty((len(spec.scoring.score.parameters), 0))
        self._previous = np.empty(0, np.dtype(HEADER))  # with changes and a slide: the answers before
        self._pool = new_pool(1024, LISTED)
        self._all: Ints = np.empty(0, np.int64)  # queries, as the index likes to be asked
        self._classes: list[Class] = []  # the same, apart if their windows are not about as long
        self._hits = Hits(np.empty(hits, np.int64), np.empty(hits), np.empty(0, np.int64))
        self._told = Told(np.empty(1024, ANSWER), np.zeros(1, np.int64))
        self._room = room_for_lists(1024)
        self._scores = np.empty(BLOCK)
        self._sampled = 0, 0, 0  # how many rows the last guess was from, the first and the last of them; and a sample
        self._sample, self._sample_time = np.empty((0, 0)), np.empty(0, np.int64)
        self._is_arranged = True  # is the order in which the index likes to be asked that of the queries,
        self._in_order = True  # and are the lines written in it?
        self._shown = False  # with changes and a slide: did the last answer show something?

    # -- queries ---------------------------------------------------------------------------------------------------

    def add(self, queries: Queries, *, backfill: bool) -> Answer:
        """More queries, which see the rows from now on, or with `backfill` those in the window too: what these show."""
        old, more = len(self._queries), len(queries.k)
        added = np.zeros(more, QUERY)
        added["k"], added["size"], added["every"] = queries.k, queries.size, queries.every
        added["wanted"] = np.ceil(listed(queries.k, self._slack))
        added["oldest"], added["edge_time"], added["edge_position"] = LATEST, -LATEST, EVERY_ROW
        added["base"] = added["wanted"]
        added["start"] = -1 if backfill else self._position
        added["refilled"] = -FOREVER
        self._queries = np.concatenate([self._queries, added])
        self._threshold = np.concatenate([self._threshold, np.full(more, -np.inf)])
        self._parameters = np.ascontiguousarray(np.concatenate([self._parameters, queries.parameters], axis=1))
        self._previous = grown(self._previous, old + more)
        self._sort_by_size()
        if backfill and self._store.count:
            first = (
                due_at(self._next_end(), queries.every) if self.spec.window.every else self._now + 1
            ) - queries.size
            for i, q in enumerate(range(old, old + more)):
                self._refill(q, self._store.count, int(first[i]), LATEST, int(first[i]))
                if not self.spec.window.every:
                    self._show(q)
        return self._answer()

    def _show(self, q: int) -> None:
        """Without a slide: the answer of a query that begins with one."""
        query = self._queries[q]
        rows = self._pool.rows[query["offset"] : query["offset"] + query["length"]][: query["k"]]
        self._make_room_out(len(rows))
        lines = self._told.lines[self._told.written[0] :][: len(rows)]
        lines["at"], lines["group"], lines["order"], lines["change"] = self._now + self._counted, q, 0, ENTER
        lines["rank"] = np.arange(1, len(rows) + 1)
        lines["score"], lines["position"] = rows["score"], rows["position"]
        if self.spec.emit == ENTRIES:
            rows["flag"] = 1
        self._told.written[0] += len(rows)

    def remove(self, kept: Ints) -> None:
        """Query kept[i] becomes query i; the others are forgotten."""
        gone = np.setdiff1d(np.arange(len(self._queries)), kept)
        release(self._pool, self._queries, gone)
        release(self._pool, self._previous, gone)
        self._queries, self._threshold = self._queries[kept], self._threshold[kept]
        self._previous = self._previous[kept]
        self._parameters = np.ascontiguousarray(self._parameters[:, kept])
        self._sort_by_size()

    def forget_rows(self) -> None:
        """Nobody will ask for the rows that have come."""
        self._store.count = 0

    def put(self, column: int, position: Ints, values: Floats) -> None:
        """Rows have other values in a column; what queries have in their lists is as good as before."""
        at = np.minimum(np.searchsorted(self._store.position, position), max(0, self._store.count - 1))
        is_there = self._store.position[at] == position if self._store.count else np.zeros(len(at), np.bool_)
        self._store.columns[column, at[is_there]] = values[is_there]

    def _sort_by_size(self) -> None:
        """Queries whose windows are of like length are taken together."""
        self._hits = self._hits._replace(ends=np.empty(len(self._queries), np.int64))
        self._failed = np.empty(len(self._queries), np.int64)
        sizes = self._queries["size"]
        classes = np.frexp(sizes.astype(np.float64))[1] // 2
        together = [np.flatnonzero(classes == each) for each in np.unique(classes)]
        self._classes = [
            Class(self._index.arrange(self._parameters, which), int(sizes[which].min()), int(sizes[which].max()))
            for which in together
        ]
        self._all = self._index.arrange(self._parameters, np.arange(len(sizes)))
        self._is_arranged = len(self._classes) < 2 and bool((self._all[1:] > self._all[:-1]).all())

    # -- rows ------------------------------------------------------------------------------------------------------

    @property
    def _counted(self) -> int:
        """By count, answers are named by the arrivals so far: one more than the last one's number."""
        return int(self.spec.window.by_count)

    def _push_rows(self, columns: Floats, time: Ints, position: Ints, now: Ints) -> Answer:
        """Without a slide, an answer is due after each row."""
        if self.spec.window.every:
            return self._push_sliding(columns, time, position, now)
        size = self.spec.window.size
        if not self.spec.window.by_count and not self.endless:
            in_time = np.flatnonzero(time > now - size)
            self.late += len(time) - len(in_time)
            columns, time, position, now = columns[:, in_time], time[in_time], position[in_time], now[in_time]
        done: list[Answer] = []
        u = 0
        while u < len(time):
            v = min(len(time), u + BLOCK_ROWS)
            v = u + max(1, int(np.searchsorted(now[u:v], now[u] + size // self._parts, side="right")))
            v = max(v, min(u + self._few, len(time)))
            self._take(columns[:, u:v], time[u:v], position[u:v], now[u:v])
            done.append(self._lines(orders=v - u))
            u = v
        return self._answer(done)

    def _take(self, columns: Floats, time: Ints, position: Ints, now: Ints) -> None:
        """Rows that all queries take in, in steps as long as their windows allow."""
        if self.endless:
            base = self._store.count = 0
        self._store.append(columns, time, position, now, self._now - self.spec.window.size + 1)
        base = self._store.count - len(time)
        self._in_order = self._is_arranged
        for which, small, large in self._classes:
            u = 0
            while u < len(time):
                v = self._step(u, now, base, small, large)
                self._arrive(which, u, v, base, now)
                u = v
        self._now = int(now[-1])

    def _step(self, u: int, now: Ints, base: int, small: int, large: int) -> int:
        """Up to where rows from `u` on are taken together, for windows between these sizes."""
        before = int(now[u - 1]) if u else self._now
        v = u + max(1, int(np.searchsorted(now[u:], now[u] + small // self._parts, side="right")))
        if self.endless:
            return min(v, u + max(self._few, self._arrivals // 2))
        alive = self._later(before - large, base + u, before, before - large)
        if alive <= self._few:
            return min(u + self._few, len(now))
        v = min(v, u + max(self._few, alive))
        survive = self._later(int(now[v - 1]) - small, base + u, before, before - large)
        return v if survive * self._parts >= alive else u + 1

    def _later(self, than: int, end: int, before: int, low: int) -> int:
        """How many of the first rows of the store, up to the time `before`, are later than that, which is `low` or
        later."""
        if self.spec.window.by_count:
            return max(0, min(before + 1, before - than))
        first = int(np.searchsorted(self._store.now[:end], low, side="right"))
        return int(np.count_nonzero(self._store.time[first:end] > than))

    def _arrive(self, which: Ints, u: int, v: int, base: int, now: Ints) -> None:
        self._index.lay(self._store.columns, base + u, base + v)
        failed = self._sweep(which, u, v, base, now)
        if len(failed):
            self._in_order = False
            single, before = v == u + 1, int(now[u - 1]) if u else self._now
            for q in failed.tolist():
                size = int(self._queries["size"][q])
                survives = int(now[v - 1]) - size + 1
                self._refill(q, base + u, survives, LATEST, survives if single else before - size + 1)
            again = self._sweep(failed, u, v, base, now)
            assert not len(again), "a list that was filled again is long enough"

    def _sweep(self, which: Ints, u: int, v: int, base: int, now: Ints) -> Ints:
        """Take rows into the lists of these queries; returns those whose lists are too short for it."""
        time, position = self._store.time[base + u : base + v], self._store.position[base + u : base + v]
        before = int(now[u - 1]) if u else self._now
        arrivals = arrivals_of(time, position, now[u:v], before, self.spec.window.by_count)
        failed: list[Ints] = []
        begin = 0
        self._make_room_hits(v - u)
        end = (self._worth_closing() or 0) if self.spec.window.every else 0
        while begin < len(which):
            _, reached = self._index.sweep(self._parameters, self._threshold, which, begin, self._hits)
            at = begin
            while at < reached:
                if self.spec.window.every:
                    at = keep(
                        which, begin, at, reached, self._hits, arrivals, end, self._queries, self._threshold,
                        self._pool,
                    )  # fmt: skip
                else:
                    at, failures = arrive(
                        which, begin, at, reached, self._hits, arrivals, self._counted, u, self._queries,
                        self._threshold, self._pool, self.spec.emit, self._told, self._failed, self._room,
                    )  # fmt: skip
                    failed.append(which[self._failed[:failures]])
                if at < reached:
                    length = int(self._queries["length"][which[at]]) + v - u
                    self._make_room(4 * length + 16)
                    self._make_room_out(4 * length)
                    self._make_room_lists(length)
            begin = reached
        return np.concatenate(failed) if failed else np.empty(0, np.int64)

    def _refill(self, q: int, visible: int, first: int, end: int, alive: int) -> None:
        """Fill a query's list again from the first `visible` rows of the store; see the kernel."""
        store, query = self._store, self._queries[q]
        begin = int(np.searchsorted(store.now[:visible], alive, side="left"))
        rows = store.time[begin:visible], store.position[begin:visible]
        wanted = max(int(query["wanted"]) // 2, int(query["base"]))
        if self._now - query["refilled"] < query["size"] // 2:  # it ran short soon after it was filled
            wanted = min(2 * int(query["wanted"]), max(visible - begin, int(query["base"])))
        least = self._guess(q, begin, visible, first, end, wanted)
        self._make_room_hits(visible - begin)
        while True:
            self._threshold[q] = least
            n, _ = self.spec.scoring.sweep(
                *(store.columns, begin, visible, self._parameters, self._threshold, np.array([q]), 0),
                *(self._hits.row, self._hits.score, np.empty(1, np.int64), self._scores),
            )
            need = refill(
                q, wanted, self._hits.row[:n], self._hits.score[:n], least == -np.inf, *rows, first, end, alive,
                self._now, self._queries, self._threshold, self._pool,
            )  # fmt: skip
            if need == 0:
                return
            if need < 0:
                least = -np.inf
            else:
                self._make_room(need)

    def _guess(self, q: int, begin: int, visible: int, first: int, end: int, wanted: int) -> float:
        """A score that as many rows of [first, end) as are wanted probably reach, and not many more."""
        n = visible - begin
        if n < 4 * SAMPLE or n < 16 * wanted:
            return -math.inf
        stride, store = n // SAMPLE, self._store
        rows = n, int(store.position[begin]), int(store.position[visible - 1])
        if rows != self._sampled:  # by the query before, which ran short with the same rows
            self._sampled = rows
            self._sample = np.ascontiguousarray(store.columns[:, begin:visible:stride])
            self._sample_time = np.ascontiguousarray(store.time[begin:visible:stride])
        scores = np.empty(len(self._sample_time))
        self.spec.scoring.scores(self._sample, 0, len(scores), self._parameters, q, scores)
        return float(guess(scores, self._sample_time, first, end, wanted / stride))

    # -- windows that slide by more than a row ------------------------------------------------------------------------

    def _take_sliding(self, columns: Floats, time: Ints, position: Ints, now: Ints) -> None:
        u = 0
        while u < len(time):
            if self.endless:
                self._store.count = 0
            v = min(len(time), u + BLOCK_ROWS, u + max(self._few, self._store.count))
            low = self._next_end() - self.spec.window.size
            self._store.append(columns[:, u:v], time[u:v], position[u:v], now[u:v], low)
            base = self._store.count - (v - u)
            self._index.lay(self._store.columns, base, base + v - u)
            self._sweep(self._all, 0, v - u, base, now)
            u = v

    def _close_window(self, end: int, done: list[Answer]) -> None:
        self._in_order = True
        failed = self._close(np.flatnonzero(end % self._queries["every"] == 0), end)
        if len(failed):
            self._in_order = False
            for q in failed.tolist():
                first = end - int(self._queries["size"][q])
                self._refill(q, self._store.count, first, end, first)
            again = self._close(failed, end)
            assert not len(again), "a list that was filled again is long enough"
        self._shown = bool(self._previous["length"].any())
        done.append(self._lines())

    def _is_showing(self) -> bool:
        return self._shown and self.spec.emit == CHANGES

    def _earliest_live(self) -> int:
        time = self._store.time
        return int(np.min(time, where=time >= self._next_end() - self.spec.window.size, initial=LATEST))

    def _close(self, which: Ints, end: int) -> Ints:
        failed: list[Ints] = []
        at = 0
        while at < len(which):
            at, failures = close(
                end, which, at, self._queries, self._threshold, self._pool, self._previous,
                self.spec.emit, self._told, self._failed,
            )  # fmt: skip
            failed.append(which[self._failed[:failures]])
            if at < len(which):
                k = int(self._queries["k"][which[at]])
                self._make_room(2 * k + 8)
                self._make_room_out(2 * k)
        return np.concatenate(failed) if failed else np.empty(0, np.int64)

    # -- room and lines --------------------------------------------------------------------------------------------

    def _make_room(self, more: int) -> None:
        if self._pool.room() < more:
            self._pool = grown_pool(self._pool, more)

    def _make_room_out(self, more: int) -> None:
        lines, written = self._told
        if len(lines) - written[0] < more:
            self._told = Told(grown(lines, max(2 * len(lines), int(written[0]) + more)), written)

    def _make_room_lists(self, rows: int) -> None:
        if len(self._room.hit) < rows:
            self._room = room_for_lists(2 * rows)

    def _make_room_hits(self, rows: int) -> None:
        if len(self._hits.row) <= rows:  # with room for one that is none
            self._hits = Hits(np.empty(rows + 1, np.int64), np.empty(rows + 1), self._hits.ends)

    def _lines(self, *, orders: int = 0) -> Answer:
        """The lines written, in their order: by the row, of so many, that made them known, then by query."""
        lines = self._told.lines[: self._told.written[0]]
        groups = 0 if self._in_order else len(self._queries)
        self._told.written[0] = 0
        return Answer(*in_columns(lines, groups, orders))

    def _answer(self, done: list[Answer] | None = None) -> Answer:
        """What is done, or else what is written."""
        if done is None:
            self._in_order = True
            return self._lines()
        if len(done) == 1:
            return done[0]
        if not done:
            return Answer.of(np.empty(0, ANSWER))
        return Answer(*(np.concatenate(parts) for parts in zip(*done, strict=True)))

    # -- questions -------------------------------------------------------------------------------------------------

    def top(self, k: int | None, size: int | None) -> Answer:
        """The best rows right now for each query: its k or the smaller one given, of its window or the last `size`."""
        window, by_count = self.spec.window, self.spec.window.by_count
        ends, at = np.full(len(self._queries), self._now + 1), np.full(len(self._queries), self._now + self._counted)
        if size is None and window.every:
            closing = self._next_end() if by_count else self._worth_closing()
            if closing is None:
                return Answer.of(np.empty(0, ANSWER))
            ends = at = due_at(closing, self._queries["every"])
        lines, counts = list[Rows](), []
        for q, (query, end) in enumerate(zip(self._queries, ends.tolist(), strict=True)):
            first = -LATEST if self.endless else end - (query["size"] if size is None else min(size, query["size"]))
            best = self._best(q, min(int(query["k"]), k or int(query["k"])), int(first), end)
            lines.append(best)
            counts.append(len(best))
        shown = np.zeros(sum(counts), ANSWER)
        rows = np.concatenate(lines) if lines else np.empty(0, ROW)
        shown["at"], shown["change"] = np.repeat(at, counts), ENTER
        shown["group"] = np.repeat(np.arange(len(counts)), counts)
        shown["rank"] = np.concatenate([np.arange(1, count + 1) for count in counts]) if counts else 0
        shown["score"], shown["position"] = rows["score"], rows["position"]
        return Answer.of(shown)

    def _best(self, q: int, k: int, first: int, end: int) -> Rows:
        query, store = self._queries[q], self._store
        if self.endless:
            rows = self._pool.rows[query["offset"] : query["offset"] + query["length"]]
            rows = rows[rows["time"] < end]
            return rows[best_first(rows)[:k]]
        scores = np.empty(store.count)
        self.spec.scoring.scores(store.columns, 0, store.count, self._parameters, q, scores)
        return best_of(scores, store.time, store.position, first, end, int(query["start"]), k)

    # -- state -----------------------------------------------------------------------------------------------------

    def held(self) -> Ints:
        others = pack(self._pool, self._previous)["position"]
        if self.endless:
            return np.unique(np.concatenate([others, pack(self._pool, self._queries)["position"]]))
        low = self._next_end() if self.spec.window.every else self._now + 1
        live: Ints = self._store.position[self._store.time >= low - self.spec.window.size]  # ascending
        return np.union1d(others, live) if len(others) else live

    def rows_held(self) -> int:
        others = int(self._previous["length"].sum())
        return others + (int(self._queries["length"].sum()) if self.endless else self._store.count)

    def state(self) -> Arrays:
        return {
            "queries": self._queries.copy(),
            "threshold": self._threshold.copy(),
            "parameters": self._parameters.copy(),
            "lists": pack(self._pool, self._queries),
            "previous": self._previous.copy(),
            "shown": pack(self._pool, self._previous),
            "counters": np.array([*self._clocks(), self._shown], np.int64),
            **({} if self.endless else self._store.state()),
        }

    def restore(self, state: Arrays) -> None:
        self._queries, self._threshold, self._previous = state["queries"], state["threshold"], state["previous"]
        self._parameters = state["parameters"]
        lengths = np.concatenate([self._queries["length"], self._previous["length"]])
        self._pool = new_pool(room_for(lengths) + 8, LISTED)
        unpack(self._pool, self._queries, state["lists"])
        unpack(self._pool, self._previous, state["shown"])
        *clocks, shown = state["counters"].tolist()
        self._set_clocks(clocks)
        self._shown = bool(shown)
        if not self.endless:
            self._store.restore(state)
        self._sort_by_size()

    def check(self) -> None:
        """The lists are in order, and have every row of the window that ranks before their edge."""
        ends = np.full(len(self._queries), self._now + 1)
        if self.spec.window.every:
            ends = due_at(self._next_end(), self._queries["every"])
        for q, (query, low) in enumerate(zip(self._queries, ends.tolist(), strict=True)):
            rows = self._pool.rows[query["offset"] : query["offset"] + query["length"]]
            keys = list(zip(rows["score"].tolist(), rows["time"].tolist(), rows["position"].tolist(), strict=True))
            head = len(rows) if self.spec.window.every else int(query["sorted"])
            assert keys[:head] == sorted(keys[:head], reverse=True), "a list is best first"
            assert not head or max(keys[head:], default=keys[head - 1]) <= keys[head - 1], "all others are behind"
            assert head or not keys, "what is in no order is behind something"
            assert len(set(keys)) == len(keys), "no row is in a list twice"
            assert query["oldest"] <= rows["time"][:head].min(initial=LATEST), "no row is older than the oldest"
            if self.endless:
                continue
            scores = np.empty(self._store.count)
            self.spec.scoring.scores(self._store.columns, 0, len(scores), self._parameters, q, scores)
            edge = self._threshold[q], query["edge_time"], query["edge_position"]
            store = zip(scores.tolist(), self._store.time.tolist(), self._store.position.tolist(), strict=True)
            inside = [
                row
                for row in store
                if row >= edge and not math.isnan(row[0]) and row[1] >= low - query["size"] and row[2] >= query["start"]
            ]
            assert set(inside) <= set(keys), "every row of the window that ranks before the edge is in the list"
