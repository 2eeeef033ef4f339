"""A list for each query, and the rows of the window, from which lists are filled. An index finds their new rows."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import NamedTuple

import numpy as np

from skyband.core.clock import next_due
from skyband.core.emit import ENTER, is_once
from skyband.core.operator import ANSWER, Answer, Arrays, Floats, Ints
from skyband.core.validation import FARTHEST, Saved
from skyband.kernels.positions import ascending
from skyband.kernels.ranking import ROW, Rows, best_first
from skyband.kernels.slabs import HEADER, grown, grown_pool, new_pool, pack, room_for, unpack
from skyband.problems.subscriptions.drivers.kernels.emit import Emitted, in_columns
from skyband.problems.subscriptions.drivers.kernels.lists import EVERY_ROW, LATEST, LISTED, QUERY, listed, release
from skyband.problems.subscriptions.drivers.kernels.refill import SAMPLE, best_of, guess, outlived_by, refill
from skyband.problems.subscriptions.drivers.row_columns import Store
from skyband.problems.subscriptions.drivers.scoring import BLOCK
from skyband.problems.subscriptions.drivers.window_driver import WindowDriver
from skyband.problems.subscriptions.operator import Queries, Spec
from skyband.windows import NEVER

AT_ONCE = 64  # so many lists are filled again together


class Hits(NamedTuple):
    """What a sweep found: rows and scores, query by query. Those of the j-th query that was swept end at ends[j]."""

    row: Ints
    score: Floats
    ends: Ints


class Lists(WindowDriver):
    """Keeps a list for each query, and the rows of the window."""

    def __init__(self, spec: Spec, *, slack: float, hits: int) -> None:
        super().__init__(spec)
        self._slack = slack
        self._store = Store(len(spec.scoring.score.columns), self._numbered)
        self._queries = np.empty(0, QUERY)
        self._threshold = np.empty(0)
        self._parameters = np.empty((len(spec.scoring.score.parameters), 0))
        self._previous = np.empty(0, np.dtype(HEADER))  # to emit changes with a slide: the answers before
        self._pool = new_pool(1024, LISTED)
        self._hits = Hits(np.empty(hits, np.int64), np.empty(hits), np.empty(0, np.int64))
        self._older = Hits(np.empty(0, np.int64), np.empty(0), np.empty(AT_ONCE, np.int64))  # hits among early rows
        self._scores = np.empty(BLOCK)
        self._failed: Ints = np.empty(0, np.int64)
        self._emitted = Emitted(np.empty(1024, ANSWER), np.zeros(1, np.int64))
        self._in_order = True  # are the lines written in the order of the queries?
        self._shown = False  # to emit changes with a slide: did the last answer show something?

    @abstractmethod
    def _changed(self) -> None:
        """Queries were added or removed. An operator adapts what it derives from them."""

    def _next_ends(self, every: Ints) -> Ints:
        """Where the next windows of queries with these slides end."""
        return (
            next_due(self._windows.next_end, every)
            if self._windows.slides
            else np.full(len(every), self._windows.now + 1)
        )

    # -- queries ---------------------------------------------------------------------------------------------------

    def add(self, queries: Queries, *, backfill: bool) -> Answer:
        """Add queries, which see later rows, and with `backfill` also those in the window; returns their answers."""
        old, more = len(self._queries), len(queries.k)
        added = np.zeros(more, QUERY)
        added["k"], added["size"], added["every"] = queries.k, queries.size, queries.every
        added["wanted"] = np.ceil(listed(queries.k, self._slack))
        added["oldest"], added["edge_time"], added["edge_position"] = LATEST, -LATEST, EVERY_ROW
        added["base"] = added["wanted"]
        added["start"] = -1 if backfill else self._position
        added["refilled"] = -NEVER
        self._queries = np.concatenate([self._queries, added])
        self._threshold = np.concatenate([self._threshold, np.full(more, -np.inf)])
        self._parameters = np.ascontiguousarray(np.concatenate([self._parameters, queries.parameters], axis=1))
        self._previous = grown(self._previous, old + more)
        self._changed()
        if backfill and self._store.count:
            first = self._next_ends(queries.every) - queries.size
            added_now = np.arange(old, old + more)
            self._refill(added_now, self._store.count, first, LATEST, first)
            if not self._windows.slides:
                for q in added_now.tolist():
                    self._show(q)
        self._in_order = True
        return self._lines()

    def _show(self, q: int) -> None:
        """Emit the first answer of a query whose window has no slide."""
        query = self._queries[q]
        rows = self._pool.rows[query["offset"] : query["offset"] + query["length"]][: query["k"]]
        self._make_room_out(len(rows))
        lines = self._emitted.lines[self._emitted.written[0] :][: len(rows)]
        lines["at"], lines["group"], lines["order"], lines["change"] = self._windows.arrived(self._now), q, 0, ENTER
        lines["rank"] = np.arange(1, len(rows) + 1)
        lines["score"], lines["position"] = rows["score"], rows["position"]
        if is_once(self.spec.emit):
            rows["flag"] = 1
        self._emitted.written[0] += len(rows)

    def compact(self, kept: Ints) -> None:
        """Query kept[i] becomes query i; the others are forgotten."""
        gone = np.setdiff1d(np.arange(len(self._queries)), kept)
        release(self._pool, self._queries, gone)
        release(self._pool, self._previous, gone)
        self._queries, self._threshold = self._queries[kept], self._threshold[kept]
        self._previous = self._previous[kept]
        self._parameters = np.ascontiguousarray(self._parameters[:, kept])
        self._changed()

    def forget_rows(self) -> None:
        """Drop the rows of the window: no list will be filled from them."""
        self._store.count = 0

    def put(self, column: int, position: Ints, values: Floats) -> None:
        """Change the values of rows in a column. The lists of queries stay valid."""
        self._store.put(column, position, values)

    # -- lists that run short --------------------------------------------------------------------------------------

    def _refill(self, which: Ints, visible: int, first: Ints, end: int, alive: Ints) -> None:
        """Fill the lists of these queries again from the first `visible` rows of the store.

        `first` and `alive` are by query; `fill_again` says what they mean.
        """
        classes = classes_of(self._queries["size"][which])
        for each in np.unique(classes):
            of_class = np.flatnonzero(classes == each)
            for some in np.split(of_class, range(AT_ONCE, len(of_class), AT_ONCE)):
                self._refill_some(which[some], visible, first[some], end, alive[some])

    def _refill_some(self, which: Ints, visible: int, first: Ints, end: int, alive: Ints) -> None:
        """As `_refill`, for queries whose windows are about equally long."""
        store, queries = self._store, self._queries[which]
        begin = int(np.searchsorted(store.now[:visible], alive.min(), side="left"))
        wanted = np.maximum(queries["wanted"] // 2, queries["base"])
        soon = self._now - queries["refilled"] < queries["size"] // 2  # did it run short soon after it was filled?
        more = np.minimum(2 * queries["wanted"], np.maximum(visible - begin, queries["base"]))
        wanted = np.where(soon, more, wanted)
        least = self._guess(which, begin, visible, first, end, wanted)
        self._make_room_hits(visible - begin)
        if len(self._older.row) <= visible - begin:
            room = visible - begin + 1
            self._older = Hits(np.empty(room, np.int64), np.empty(room), self._older.ends)
        while len(which):
            short = self._fill(which, begin, visible, wanted, least, first, end, alive)
            # Every row reaches this threshold, and all rows are enough for every list.
            which, wanted, first, alive = which[short], wanted[short], first[short], alive[short]
            least = np.full(len(which), -math.inf)

    def _fill(
        self, which: Ints, begin: int, visible: int, wanted: Ints, least: Floats, first: Ints, end: int, alive: Ints
    ) -> Ints:
        """Fill lists with the rows that reach these scores; returns the lists for which these were too few."""
        time, position = self._store.time[begin:visible], self._store.position[begin:visible]
        # No query sees the earliest rows for long. Only the best of them matter, if the list knows which rows last.
        split = 0
        each = not self._windows.slides
        if each:
            split = int(np.searchsorted(self._store.now[begin:visible], first.min(), side="left"))
        threshold = self._threshold.copy()  # filling a list changes its own threshold
        threshold[which] = least
        short: list[Ints] = []
        swept = at = 0
        while at < len(which):
            _, reached = self._scan(begin + split, visible, threshold, which, at, self._hits)
            swept, outlived = at, threshold.copy()
            outlived_by(
                which, at, reached, wanted, self._hits, swept, time[split:], position[split:],
                np.maximum(first, alive), self._queries, outlived,
            )  # fmt: skip
            while at < reached:
                older_swept = at
                _, stop = self._scan(begin, begin + split, outlived, which[:reached], at, self._older)
                while at < stop:
                    at, need, failures = refill(
                        which, at, stop, wanted, self._hits, swept, self._older, older_swept, split, least, time,
                        position, first, end, alive, self._now, each, self._queries, self._threshold,
                        self._pool, self._failed,
                    )  # fmt: skip
                    short.append(self._failed[:failures].copy())
                    self._make_room(need)
        return np.concatenate(short)

    def _scan(self, first: int, end: int, threshold: Floats, which: Ints, begin: int, hits: Hits) -> tuple[int, int]:
        """Sweep the rows [first, end) of the store for the queries which[begin:], as `Index.sweep` does."""
        found: tuple[int, int] = self.spec.scoring.sweep(
            self._store.columns, first, end, self._parameters, threshold, which, begin, *hits, self._scores
        )
        return found

    def _guess(self, which: Ints, begin: int, visible: int, first: Ints, end: int, wanted: Ints) -> Floats:
        """Guess, by query, a score that as many rows of [first, end) as are wanted reach, and not many more."""
        n, found = visible - begin, np.full(len(which), -math.inf)
        likely = np.flatnonzero(n >= 16 * wanted) if n >= 4 * SAMPLE else np.empty(0, np.int64)
        if not len(likely):
            return found
        stride = n // SAMPLE
        sample = np.ascontiguousarray(self._store.columns[:, begin:visible:stride])
        time = np.ascontiguousarray(self._store.time[begin:visible:stride])
        scores, guessed = np.empty((len(likely), len(time))), np.empty(len(likely))
        self.spec.scoring.scores_of_each(sample, 0, len(time), self._parameters, which[likely], scores)
        guess(scores, time, first[likely], end, wanted[likely] / stride, guessed)
        found[likely] = guessed
        return found

    # -- room and lines --------------------------------------------------------------------------------------------

    def _make_room(self, more: int) -> None:
        if self._pool.room() < more:
            self._pool = grown_pool(self._pool, more)

    def _make_room_out(self, more: int) -> None:
        lines, written = self._emitted
        if len(lines) - written[0] < more:
            self._emitted = Emitted(grown(lines, max(2 * len(lines), int(written[0]) + more)), written)

    def _make_room_hits(self, rows: int) -> None:
        if len(self._hits.row) <= rows:  # a sweep needs room for one more row, which need not be a hit
            self._hits = Hits(np.empty(rows + 1, np.int64), np.empty(rows + 1), self._hits.ends)

    def _lines(self, *, orders: int = 0) -> Answer:
        """The lines written, sorted by the row that made them known (one of `orders`), then by query."""
        lines = self._emitted.lines[: self._emitted.written[0]]
        groups = 0 if self._in_order else len(self._queries)
        self._emitted.written[0] = 0
        return Answer(*in_columns(lines, groups, orders))

    # -- questions -------------------------------------------------------------------------------------------------

    def top(self, k: int | None, size: int | None) -> Answer:
        """The best rows right now for each query: its own k or a smaller one, of its window or of the last `size`."""
        ends, at = (
            np.full(len(self._queries), self._now + 1),
            np.full(len(self._queries), self._windows.arrived(self._now)),
        )
        if size is None and self._windows.slides:
            closing = self._windows.answered_at(self.next_held)
            if closing is None:
                return Answer.joined([])
            ends = at = next_due(closing, self._queries["every"])
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
            return ascending(np.concatenate([others, pack(self._pool, self._queries)["position"]]))
        live: Ints = self._store.position[self._store.time >= self._windows.next_start]  # ascending
        return ascending(np.concatenate([others, live])) if len(others) else live

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

    def validate(self, saved: Saved) -> None:
        self._validate_clocks(saved, 1)
        queries, previous = saved["queries"], saved["previous"]
        n, rows = len(queries), 1024 + 4 * (len(saved["lists"]) + len(saved["shown"]))
        saved.length(n, "threshold", "previous")
        saved.shape("parameters", len(self._parameters), n)
        saved.numbers("threshold", saved["threshold"])
        self._validate_queries(saved, queries["k"], queries["size"], queries["every"])
        for headers, name, listed_in in ((queries, "queries", "lists"), (previous, "previous", "shown")):
            saved.parts(headers["length"], len(saved[listed_in]), f"{name}.length", listed_in)
            saved.rows(listed_in)
        saved.promise(bool((previous["length"] <= queries["k"]).all()), "'previous' is longer than k")
        if not self._windows.slides:  # with a slide, lists are sorted whole, and nothing reads this field
            inside = bool((queries["sorted"] <= queries["length"]).all())
            saved.promise(inside, "'queries.sorted' is longer than the list")
        saved.counts("queries.sorted", queries["sorted"])
        base = np.ceil(listed(queries["k"], self._slack)).astype(np.int64)
        saved.promise(np.array_equal(queries["base"], base), "'queries.base' does not follow from k")
        store = 0 if self.endless else saved["store_whole"].shape[-1]
        most = np.maximum(base, 2 * (rows + store))
        saved.promise(
            bool(((queries["wanted"] >= 1) & (queries["wanted"] <= most)).all()), "'queries.wanted' is too much"
        )
        saved.within("queries.start", queries["start"], -1, FARTHEST)
        for name in ("oldest", "edge_time", "edge_position", "refilled"):
            saved.moments(f"queries.{name}", queries[name])
        if not self.endless:
            self._store.validate(saved)

    def restore(self, state: Arrays) -> None:
        names = ("queries", "threshold", "previous", "parameters")
        self._queries, self._threshold, self._previous, self._parameters = (state[name].copy() for name in names)
        lengths = np.concatenate([self._queries["length"], self._previous["length"]])
        self._pool = new_pool(room_for(lengths) + 8, LISTED)
        unpack(self._pool, self._queries, state["lists"])
        unpack(self._pool, self._previous, state["shown"])
        *clocks, shown = state["counters"].tolist()
        self._set_clocks(clocks)
        self._shown = bool(shown)
        if not self.endless:
            self._store.restore(state)
        self._changed()

    def check(self) -> None:
        """Check that each list is sorted, and has every row of the window that ranks before its edge."""
        ends = self._next_ends(self._queries["every"])
        for q, (query, low) in enumerate(zip(self._queries, ends.tolist(), strict=True)):
            rows = self._pool.rows[query["offset"] : query["offset"] + query["length"]]
            keys = list(zip(rows["score"].tolist(), rows["time"].tolist(), rows["position"].tolist(), strict=True))
            head = len(rows) if self._windows.slides else int(query["sorted"])
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
            if not self._windows.slides:
                k = int(query["k"])
                inside = [row for row in inside if sum(x > row and x[1] >= row[1] for x in keys) < k]
            assert set(inside) <= set(keys), "every row that ranks before the edge is in the list, or k that outlive it"


def classes_of(sizes: Ints) -> Ints:
    """The class of each window. Windows of one class are about equally long."""
    classes: Ints = np.frexp(sizes.astype(np.float64))[1] // 2
    return classes
