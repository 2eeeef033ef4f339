"""One skyband for all queries that ask for the same score, whatever their k and how far they look back.

Paper:      Shen, Cheema, Lin, Zhang, Wang, TKDE 2014, sections 4.1 and 6.3: one K-skyband answers every k up to K and
            every window up to the largest; Yang et al., EDBT 2011, name sharing between queries as future work.
Invariant:  when a window closes, every row of it that fewer than K better ones outlive is in the band, K being
            the largest k; the band answers all queries in one pass over its rows.
Cost:       a row is scored once, and compared once when its window closes. State: the rows of the window, so that
            queries may come later, and about K (1 + ln(n/K)) rows in the band.
Choose it:  the score reads nothing of the query, and windows slide.
"""

from __future__ import annotations

import numpy as np

from skyband.operators.many.lists_kernels import LATEST
from skyband.operators.many.protocol import Queries, Spec
from skyband.operators.many.scan import Scan
from skyband.operators.many.thresholds import Thresholds
from skyband.operators.objects.asking import Asked, Held
from skyband.operators.objects.relaxed_blocks import survivors
from skyband.operators.protocol import ANSWER, ENTER, WINDOWS, Answer, Arrays, Floats, Ints
from skyband.structures.compiling import allocating
from skyband.structures.heap import push_heap
from skyband.structures.ranking import ROW, Rows, sort_best_first
from skyband.windows import FOREVER

NAME = "shared"


def refuses(spec: Spec) -> str | None:
    if not spec.scoring.score.is_shared:
        return "queries have scores of their own"
    if not spec.window.every or spec.window.size == FOREVER or spec.emit != WINDOWS:
        return "it answers when windows close that slide and end, and gives windows"
    return None


def expected_rows(spec: Spec, window_rows: float) -> float:
    """The rows of the window, once for all queries."""
    return window_rows


def open(spec: Spec) -> Shared:
    return Shared(spec, Scan(spec.scoring))


class Shared(Thresholds):
    """Rows are kept as for other queries; instead of a list for each query there is one band for all."""

    _pending: list[Rows]  # rows whose first window has not closed
    _band: Rows | None = None  # best first; None: to be made anew from the rows kept

    def add(self, queries: Queries, *, backfill: bool) -> Answer:
        super().add(Queries(queries.k, queries.size, queries.parameters), backfill=False)
        if backfill:
            self._queries["start"][len(self._queries) - len(queries.k) :] = -1
        self._band = None
        return self._answer()

    def _sweep(self, which: Ints, u: int, v: int, base: int, now: Ints) -> Ints:
        """Rows come: they are scored, and wait for their window to close."""
        if self._band is not None:
            self._pending.append(self._rows(base + u, base + v))
        return np.empty(0, np.int64)

    def _rows(self, begin: int, end: int) -> Rows:
        """Rows of the store that have a score, and may be shown: few of those that are in the same windows."""
        scores = np.empty(end - begin)
        self.spec.scoring.scores(self._store.columns, begin, end, self._parameters, 0, scores)
        time, position = self._store.time[begin:end], self._store.position[begin:end]
        if self.spec.window.by_count and begin:
            kept = np.sort(latest_best(scores, self._most()))
        else:
            kept = np.flatnonzero(~np.isnan(scores))
        rows = np.zeros(len(kept), ROW)
        rows["score"], rows["time"], rows["position"] = scores[kept], time[kept], position[kept]
        return rows

    def _most(self) -> int:
        return int(self._queries["k"].max(initial=1))

    def _close(self, which: Ints, end: int) -> Ints:
        first = end - self.spec.window.size
        if self._band is None:
            self._band, self._pending = np.empty(0, ROW), [self._rows(0, self._store.count)]
        pending = np.concatenate([np.empty(0, ROW), *self._pending])
        closing = pending["time"] < end
        new, self._pending = pending[closing], [pending[~closing]]
        if (np.diff(new["time"]) < 0).any():
            new = new[np.lexsort((new["position"], new["time"]))]
        k = self._most()
        latest = new[latest_best(np.ascontiguousarray(new["score"]), k)]
        self._band = pruned(np.concatenate([self._band, latest]), first, k)
        # A query that has not seen the whole window is asked of the rows that it has seen.
        whole = self._queries["start"] <= 0
        if not whole.all():
            live = self._store.position[self._store.time >= first]
            whole = self._queries["start"] <= live.min(initial=LATEST)
        self._show_all(np.flatnonzero(whole), end)
        for q in np.flatnonzero(~whole).tolist():
            begin = end - int(self._queries["size"][q])
            self._write(q, end, self._best(q, int(self._queries["k"][q]), begin, end))
        self._in_order = bool(whole.all())
        return np.empty(0, np.int64)

    def _show_all(self, which: Ints, end: int) -> None:
        """The answers of these queries, from one pass over the band."""
        assert self._band is not None
        if not len(which) or not len(self._band):
            return
        k, start = self._queries["k"][which], end - self._queries["size"][which]
        asked = Asked(start[np.newaxis], np.full((1, len(which)), end), np.full((1, len(which)), end))
        found, ends = Held(np.zeros(len(self._band), np.int64), self._band).best_of_many(k, asked)
        lines = np.zeros(len(found.at), ANSWER)
        lines["at"], lines["rank"], lines["change"] = end, found.rank, ENTER
        lines["group"] = np.repeat(which, np.diff(ends))
        lines["score"], lines["position"] = found.score, found.position
        self._put(lines)

    def _write(self, q: int, end: int, best: Rows) -> None:
        lines = np.zeros(len(best), ANSWER)
        lines["at"], lines["group"], lines["rank"], lines["change"] = end, q, np.arange(1, len(best) + 1), ENTER
        lines["score"], lines["position"] = best["score"], best["position"]
        self._put(lines)

    def _put(self, lines: Rows) -> None:
        self._make_room_out(len(lines))
        self._out[self._written : self._written + len(lines)] = lines
        self._written += len(lines)

    def restore(self, state: Arrays) -> None:
        super().restore(state)
        self._band = None

    def check(self) -> None:
        if self._band is not None:
            scores: Floats = self._band["score"]
            assert (scores[1:] <= scores[:-1]).all(), "the band is best first"
            rows = np.concatenate([self._band, *self._pending])
            assert len(np.unique(rows["position"])) == len(rows), "no row is held twice"


@allocating
def latest_best(score, k):  # type: ignore[no-untyped-def]
    """Which of these rows, in order of time, fewer than k later ones outrank, and perhaps some others."""
    kept, best = np.empty(len(score), np.int64), np.empty(2 * k)
    n = survivors(score, len(score), k, best, kept) if len(score) else 0
    return kept[:n]


@allocating
def pruned(rows, first, k):  # type: ignore[no-untyped-def]
    """The rows from `first` on that fewer than k better ones outlive, best first."""
    sort_best_first(rows, np.int64(0), len(rows))
    heap, in_heap, kept = np.empty(k, np.int64), np.int64(0), 0
    for x in range(len(rows)):
        row = rows[x]
        if row.time >= first and not (in_heap == k and heap[0] >= row.time):
            in_heap = push_heap(heap, in_heap, k, row.time)
            rows[kept] = row
            kept += 1
    return rows[:kept].copy()
