"""One skyband for all queries that ask for the same score, whatever their k and how far they look back.

Paper:      Shen, Cheema, Lin, Zhang, Wang, TKDE 2014, sections 4.1 and 6.3: one K-skyband answers every k up to K and
            every window up to the largest; Yang et al., EDBT 2011, name sharing between queries as future work.
Invariant:  when a window closes, every row of it that fewer than K better ones outlive is in the band, K being the
            largest k; and of the rows after it, every one that fewer than K better ones of its slide outlive waits.
Cost:       a row is scored once and compared once; when a window closes, each query reads the band, best first, until
            it has its k. State: about K (1 + ln(n/K)) rows, and by value the rows of a slide while they come.
Choose it:  the score reads nothing of the query, and windows slide.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from skyband.errors import InvalidQuery
from skyband.operators.many.lists_kernels import LATEST
from skyband.operators.many.protocol import Batch, Queries, Spec
from skyband.operators.many.schedule import Schedule, due_at
from skyband.operators.protocol import ANSWER, ENTER, WINDOWS, Answer, Arrays, Floats, Ints
from skyband.structures.compiling import allocating, part
from skyband.structures.heap import push_heap
from skyband.structures.ranking import ROW, Rows, sort_best_first
from skyband.windows import FOREVER

NAME = "shared"

FIELDS = ROW.itemsize // 8
FROM_THE_START = -1  # as the first arrival that a query sees
THINNED_AT = 1024  # rows wait, before it is worth asking which of them matter
_ONE_START = np.array([FROM_THE_START])


def refuses(spec: Spec) -> str | None:
    if not spec.scoring.score.is_shared:
        return "queries have scores of their own"
    if not spec.window.every or spec.window.size == FOREVER or spec.emit != WINDOWS:
        return "it answers when windows close that slide and end, and gives windows"
    if spec.backfill and spec.k is None:
        return "with backfill, what it keeps depends on the largest k that will come"
    return None


def expected_rows(spec: Spec, window_rows: float) -> float:
    """As a k-skyband, for the ten that are assumed where k is not known."""
    return min(window_rows, 10 * (1 + float(np.log(max(1.0, window_rows / 10)))))


def open(spec: Spec, *, thinned_at: int = THINNED_AT) -> Shared:
    return Shared(spec, thinned_at=thinned_at)


class Shared(Schedule):
    def __init__(self, spec: Spec, *, thinned_at: int = THINNED_AT) -> None:
        super().__init__(spec)
        self._queries = np.empty((4, 0), np.int64)  # k, size, the first arrival that is seen, slide; by query
        self._know()
        self._band = np.empty(0, ROW)  # of windows that have closed, best first
        self._waiting: list[Rows] = []  # of windows that have not
        self._count = 0  # of rows waiting
        self._thinned_at, self._thin_next = thinned_at, thinned_at
        # Of the rows in the window, those are there that matter to a k up to this; up to K, once rows that came before
        # K rose have left.
        self._complete = FOREVER
        self._rose = -FOREVER
        self._kept, self._kept_score = np.empty(0, np.int64), np.empty(0)  # room

    # -- queries ---------------------------------------------------------------------------------------------------

    def add(self, queries: Queries, *, backfill: bool) -> Answer:
        k = int(queries.k.max(initial=1))
        if backfill and k > self._complete:
            raise InvalidQuery(
                f"backfill=True with k = {k}: of the rows in the window those are kept that matter to a k up to "
                f"{self._complete}, the largest so far. Add it without backfill, or begin with the largest k."
            )
        if k > self._most:
            self._rose = self._now + 1
        start = FROM_THE_START if backfill or not self._position else self._position
        added = np.stack([queries.k, queries.size, np.full(len(queries.k), start), queries.every])
        self._queries = np.concatenate([self._queries, added], axis=1)
        self._know()
        return self._answer()

    def remove(self, kept: Ints) -> None:
        self._queries = np.ascontiguousarray(self._queries[:, kept])
        self._know()

    def _know(self) -> None:
        """What follows from the queries."""
        self._most = int(self._queries[0].max(initial=self.spec.k or 1))
        self._lines = int(self._queries[0].sum())  # that a window shows at most
        self._came_late = bool((self._queries[2] != FROM_THE_START).any())
        self._own_slides = bool((self._queries[3] != self.spec.window.every).any())
        self._longest_first = np.argsort(-self._queries[1], kind="stable")

    # -- rows ------------------------------------------------------------------------------------------------------

    def push(self, batch: Batch) -> Answer:
        if not self.spec.window.by_count:
            return super().push(batch)
        # By count it is known where windows end without looking at each row.
        columns, every, u = np.ascontiguousarray(batch.columns), self.spec.window.every, 0
        done: list[Answer] = []
        while u < columns.shape[1]:
            v = min(columns.shape[1], u + every - self._arrivals % every)
            chosen, scores = self._scored(columns, u, v, self._most)
            self._wait(scores, chosen + (self._arrivals - u), chosen + batch.first)
            self._arrivals += v - u
            self._position = batch.first + v
            self._now = self._arrivals - 1
            if self._arrivals % every == 0:
                self._close_until(self._arrivals, done)
            u = v
        return self._answer(done)

    def _take_sliding(self, columns: Floats, time: Ints, position: Ints, now: Ints) -> None:
        columns = np.ascontiguousarray(columns)
        cuts, k = [0, len(time)], len(time) + 1
        if len(self._starts()) == 1 and (time[1:] >= time[:-1]).all():
            # In order, so that rows of a slide can be compared at once.
            slide = time // self.spec.window.every
            cuts, k = [0, *(np.flatnonzero(slide[1:] != slide[:-1]) + 1).tolist(), len(time)], self._most
        for u, v in pairwise(cuts):
            chosen, scores = self._scored(columns, u, v, k)
            self._wait(scores, time[chosen], position[chosen])

    def _scored(self, columns: Floats, u: int, v: int, k: int) -> tuple[Ints, Floats]:
        """Which of the rows [u, v), all of one slide, may matter to a k, and their scores."""
        if v - u > len(self._kept):
            self._kept, self._kept_score = np.empty(v - u, np.int64), np.empty(v - u)
        best = np.empty(2 * min(k, v - u + 1))
        n = self.spec.scoring.latest(columns, u, v, k, best, self._kept, self._kept_score)
        if n < v - u:
            self._complete = min(self._complete, max(k, self._most))
        return self._kept[:n] + u, self._kept_score[:n]

    def _wait(self, scores: Floats, time: Ints, position: Ints) -> None:
        rows = np.zeros(len(scores), ROW)
        rows["score"], rows["time"], rows["position"] = scores, time, position
        self._waiting.append(rows)
        self._count += len(rows)
        if self._count > self._thin_next:
            self._thin()

    def _thin(self) -> None:
        """Of the rows that wait, drop those that enough better ones of the same slide outlive."""
        rows = _joined(self._waiting)
        slide = rows["time"] // self.spec.window.every
        self._waiting = [self._pruned(rows[slide == each], -LATEST) for each in np.unique(slide)]
        self._count = sum(map(len, self._waiting))
        self._thin_next = max(self._thinned_at, 2 * self._count)

    def _pruned(self, rows: Rows, first: int) -> Rows:
        kept: Rows = pruned(rows, first, self._most, self._starts())
        if len(kept) < len(rows):
            self._complete = min(self._complete, self._most)
        return kept

    def _starts(self) -> Ints:
        """The first arrivals that queries see; one is enough where later rows have later times."""
        if self.spec.window.by_count or not self._came_late:
            return _ONE_START
        return np.unique(np.append(self._queries[2], FROM_THE_START))

    # -- windows ---------------------------------------------------------------------------------------------------

    def _close_window(self, end: int, done: list[Answer]) -> None:
        rows = _joined([self._band, *self._waiting])
        if self.spec.window.by_count:
            self._waiting, self._count = [], 0
        else:
            later = rows["time"] >= end
            self._waiting, rows = [rows[later]], rows[~later]
            self._count = len(self._waiting[0])
        self._band = self._pruned(rows, end - self.spec.window.size)
        if end - self.spec.window.size >= self._rose:
            self._complete = max(self._complete, self._most)
        if self._came_late:
            held = (self._band, *self._waiting)
            earliest = min(int(rows["position"].min(initial=self._position)) for rows in held)
            self._queries[2, self._queries[2] <= earliest] = FROM_THE_START
            self._know()
        due = self._queries[0]
        if self._own_slides:
            due = np.where(end % self._queries[3] == 0, due, 0)
        done.append(self._read(self._band, due, end - self._queries[1], end))

    def _read(self, rows: Rows, k: Ints, first: Ints, at: int) -> Answer:
        """For each query its k best of the rows, which are best first, from the time `first` on."""
        room = min(self._lines, len(k) * len(rows))
        answer = Answer(
            np.full(room, at),
            np.empty(room, np.int32),
            np.empty(room, np.int32),
            np.empty(room),
            np.empty(room, np.int64),
            np.full(room, ENTER),
        )
        n = read(
            *(np.ascontiguousarray(rows[name]) for name in ("score", "time", "position")),
            *(k, first, self._queries[2], self._longest_first),
            *(answer.group, answer.rank, answer.score, answer.position),
        )
        cut: list[Any] = [column[:n] for column in answer]
        return Answer(*cut)

    def _earliest_live(self) -> int:
        low = self._next_end() - self.spec.window.size
        live = [rows["time"][rows["time"] >= low] for rows in (self._band, *self._waiting)]
        return min(int(times.min(initial=LATEST)) for times in live)

    def _answer(self, done: list[Answer] | None = None) -> Answer:
        if not done:
            return Answer.of(np.empty(0, ANSWER))
        return done[0] if len(done) == 1 else Answer(*(np.concatenate(parts) for parts in zip(*done, strict=True)))

    def top(self, k: int | None, size: int | None) -> Answer:
        """From the band and the rows that wait."""
        by_count = self.spec.window.by_count
        ends, later = np.full(self._queries.shape[1], self._now + 1), int(by_count) - 1
        if size is None:
            closing = self._next_end() if by_count else self._worth_closing()
            if closing is None:
                return self._answer()
            ends, later = due_at(closing, self._queries[3]), 0
        rows = _joined([self._band, *self._waiting])
        sort_rows(rows)
        sizes = self._queries[1] if size is None else np.minimum(self._queries[1], size)
        ks = self._queries[0] if k is None else np.minimum(self._queries[0], k)
        done = [
            self._read(rows[rows["time"] < end], np.where(ends == end, ks, 0), end - sizes, end + later)
            for end in np.unique(ends).tolist()
        ]
        answer = self._answer(done)
        in_order: list[Any] = [column[np.argsort(answer.group, kind="stable")] for column in answer]
        return Answer(*in_order)

    # -- state -----------------------------------------------------------------------------------------------------

    def held(self) -> Ints:
        return np.sort(_joined([self._band, *self._waiting])["position"])

    def rows_held(self) -> int:
        return len(self._band) + self._count

    def state(self) -> Arrays:
        return {
            "queries": self._queries.copy(),
            "band": self._band.copy(),
            "waiting": _joined(self._waiting),
            "counters": np.array([*self._clocks(), self._complete, self._rose], np.int64),
        }

    def restore(self, state: Arrays) -> None:
        self._queries, self._band = state["queries"], state["band"]
        self._know()
        self._waiting, self._count = [state["waiting"]], len(state["waiting"])
        *clocks, self._complete, self._rose = state["counters"].tolist()
        self._set_clocks(clocks)

    def check(self) -> None:
        scores: Floats = self._band["score"]
        assert (scores[1:] <= scores[:-1]).all(), "the band is best first"
        rows = _joined([self._band, *self._waiting])
        assert len(np.unique(rows["position"])) == len(rows), "no row is held twice"
        assert len(rows) == self.rows_held(), "rows are counted"


def _joined(parts: list[Rows]) -> Rows:
    """All these rows. As plain numbers: numpy puts records together one field of one at a time."""
    numbers = [np.empty((0, FIELDS), np.int64), *(part.view(np.int64).reshape(-1, FIELDS) for part in parts)]
    return np.concatenate(numbers).reshape(-1).view(ROW)


# -- compiled ----------------------------------------------------------------------------------------------------------


@allocating
def pruned(rows, first, k, starts):  # type: ignore[no-untyped-def]
    """The rows from `first` on that fewer than k better ones outlive, best first.

    A query sees rows from one of the arrivals `starts` on, ascending: for a row, only those count that all queries see
    which see the row itself.
    """
    n = len(rows)
    sort_best_first(rows, np.int64(0), n)
    k = min(k, n + 1)
    heap, keeps, count = np.empty(k, np.int64), np.zeros(n, np.bool_), 0
    for e in range(len(starts)):
        in_heap = np.int64(0)
        until = starts[e + 1] if e + 1 < len(starts) else LATEST
        for x in range(n):
            row = rows[x]
            if row.time < first or row.position < starts[e] or (in_heap == k and heap[0] >= row.time):
                continue
            in_heap = push_heap(heap, in_heap, k, row.time)
            if row.position < until:
                keeps[x] = True
                count += 1
    kept, to = np.empty(count, rows.dtype), 0
    for x in range(n):
        if keeps[x]:
            row, target = rows[x], kept[to]
            target.score, target.time, target.position = row.score, row.time, row.position
            target.last, target.flag = row.last, row.flag
            to += 1
    return kept


@allocating
def sort_rows(rows):  # type: ignore[no-untyped-def]
    sort_best_first(rows, np.int64(0), len(rows))


@allocating
def read(score, time, position, k, first, start, by_first, out_group, out_rank, out_score, out_position):  # type: ignore[no-untyped-def]
    """Write each query's k best of the rows, which are best first; returns how many rows these are.

    Queries whose windows begin between the same two rows read the same list. `by_first`: queries, earliest first.
    """
    rows, most, n, lists = len(score), 1, 0, 0
    for q in range(len(k)):
        most = max(most, k[q])
    most = min(most, rows)
    times = np.sort(time)
    list_of = np.full(rows + 1, -1, np.int64)  # by the number of rows that are too old
    own = min(len(k), rows + 1)
    listed_score, listed_position = np.empty((own + 1, most)), np.empty((own + 1, most), np.int64)
    length = np.empty(own + 1, np.int64)
    too_old, old = np.empty(len(k), np.int64), 0
    for q in by_first:
        while old < rows and times[old] < first[q]:
            old += 1
        too_old[q] = old
    for q in range(len(k)):
        if k[q] == 0:  # it is not asked
            continue
        old = too_old[q]
        at = list_of[old] if start[q] == FROM_THE_START else own
        if at < 0 or at == own:
            if at < 0:
                at = list_of[old] = lists
                lists += 1
            length[at] = seen(score, time, position, first[q], start[q], listed_score[at], listed_position[at])
        best_score, best_position = listed_score[at], listed_position[at]
        for rank in range(min(k[q], length[at])):
            out_group[n + rank], out_rank[n + rank] = q, rank + 1
            out_score[n + rank], out_position[n + rank] = best_score[rank], best_position[rank]
        n += min(k[q], length[at])
    return n


@part
def seen(score, time, position, first, start, listed_score, listed_position):  # type: ignore[no-untyped-def]
    """List the first rows that a query sees, as many as there is room for; returns how many these are."""
    n = 0
    for x in range(len(time)):
        if n == len(listed_score):
            break
        if time[x] >= first and position[x] >= start:
            listed_score[n], listed_position[n] = score[x], position[x]
            n += 1
    return n
