"""A skyband for each score group, the rows that wait for a window to close, and what queries read of both."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from skyband.core.clock import next_due
from skyband.core.emit import ENTER, is_whole
from skyband.core.operator import Answer, Arrays, Floats, Ints
from skyband.core.validation import FARTHEST, Saved
from skyband.errors import InvalidQuery
from skyband.kernels.positions import ascending
from skyband.kernels.ranking import ROW, Rows
from skyband.problems.rows.drivers.row_driver import Change, rescored
from skyband.problems.subscriptions.algorithms.shared.kernels import (
    FROM_THE_START,
    SCORE_GROUP,
    by_score_group,
    pruned,
    read,
)
from skyband.problems.subscriptions.drivers.emit import Before
from skyband.problems.subscriptions.drivers.kernels.lists import LATEST
from skyband.problems.subscriptions.drivers.kernels.score_groups import NONE
from skyband.problems.subscriptions.drivers.score_groups import ScoreGroups
from skyband.problems.subscriptions.drivers.window_driver import WindowDriver
from skyband.problems.subscriptions.operator import Batch, Queries, Spec
from skyband.windows import NEVER

FIELDS = ROW.itemsize // 8
THINNED_AT = 1024  # from so many waiting rows on, it pays to ask which of them matter
ROOM = 1 << 16  # room for at least so many rows that are kept of a batch
ANY_K = 2**62  # the rows held are complete whatever k is
# The rows of `_queries`. START: the first arrival that the query sees; OF: its score group.
K, SIZE, START, EVERY, OF = range(5)
_ONE_START = np.array([FROM_THE_START])


class Shared(WindowDriver):
    """The operator."""

    def __init__(self, spec: Spec, *, thinned_at: int = THINNED_AT, room: int = ROOM) -> None:
        super().__init__(spec)
        self._queries = np.empty((5, 0), np.int64)  # by property (K, SIZE, …), then by query
        self._score_groups = ScoreGroups(spec.scoring.score)
        self._born = np.full(len(self._score_groups), -LATEST)  # by score group: since when its rows are held
        self._know()
        self._band = np.empty(0, ROW)  # rows from before the last window closed: by score group, best first
        self._waiting: list[Rows] = []  # later rows, in batches: they wait for a window to close
        self._count = 0  # how many rows wait
        self._before = Before(spec.emit)
        self._thinned_at, self._thin_next = thinned_at, thinned_at
        # Every row of the window that matters to a k up to this is held. When the rows from before K rose have left the
        # window, that holds for K.
        self._complete = ANY_K
        self._rose = -NEVER
        self._least_room = room
        self._kept = np.empty(0, ROW)  # scratch space

    # -- queries ---------------------------------------------------------------------------------------------------

    def add(self, queries: Queries, *, backfill: bool) -> Answer:
        k, known = int(queries.k.max(initial=1)), len(self._score_groups)
        if backfill and k > self._complete:
            raise InvalidQuery(
                f"backfill=True with k = {k}: the session keeps only the rows that matter to a k up to "
                f"{self._complete}, the largest so far. Add the query without backfill, or begin with the largest k."
            )
        score_groups = self._score_groups.of_queries(queries.parameters)
        born = np.full(len(self._score_groups) - known, self._now + 1 if self._position else -LATEST)
        self._born = np.concatenate([self._born, born])
        if backfill and (self._born[score_groups] > self._windows.next_end - self.spec.window.size).any():
            self._score_groups.compact(np.arange(known))
            self._born = self._born[:known]
            raise InvalidQuery(
                "backfill=True is not possible here: in a part of the window no query had this score, and the session "
                "keeps only the rows that matter to some query. Add the query without backfill, or set backfill=True "
                "when you open the session: TopKForEach(…, backfill=True)."
            )
        if k > self._most:
            self._rose = self._now + 1
        start = FROM_THE_START if backfill or not self._position else self._position
        added = np.stack([queries.k, queries.size, np.full(len(queries.k), start), queries.every, score_groups])
        self._queries = np.concatenate([self._queries, added], axis=1)
        self._before.add(len(queries.k))
        self._know()
        return Answer.joined([])

    def compact(self, kept: Ints) -> None:
        self._queries = np.ascontiguousarray(self._queries[:, kept])
        self._before.compact(kept)
        used, self._queries[OF] = np.unique(self._queries[OF], return_inverse=True)
        if len(used) < len(self._score_groups) and self.spec.scoring.score.parameters:
            self._forget_score_groups_but(used)
        self._know()

    def _forget_score_groups_but(self, used: Ints) -> None:
        number = np.full(len(self._score_groups), NONE)
        number[used] = np.arange(len(used))
        self._score_groups.compact(used)
        self._born = self._born[used]
        for rows in (self._band, *self._waiting):
            rows[SCORE_GROUP] = number[rows[SCORE_GROUP]]
        self._band, *self._waiting = (rows[rows[SCORE_GROUP] != NONE] for rows in (self._band, *self._waiting))
        self._count = sum(map(len, self._waiting))

    def _know(self) -> None:
        """Compute what follows from the queries, after these have changed."""
        self._most = int(self._queries[K].max(initial=self.spec.k or 1))
        self._lines = int(self._queries[K].sum())  # a window shows at most so many
        self._came_late = bool((self._queries[START] != FROM_THE_START).any())
        self._own_slides = bool((self._queries[EVERY] != self.spec.window.every).any())
        self._earliest_first = np.lexsort((-self._queries[SIZE], self._queries[OF]))
        score_groups = len(self._score_groups) if self._score_groups.looked_up else 1
        self._best = np.empty((score_groups, 2 * self._most))  # scratch space for scores, by score group
        self._counts, self._limits = np.empty(score_groups, np.int64), np.empty(score_groups)

    # -- rows ------------------------------------------------------------------------------------------------------

    def push(self, batch: Batch) -> Answer:
        if self._windows.waits:
            return super().push(batch)
        # The driver says where windows end, so the time of each row need not be looked at.
        columns, every, u = np.ascontiguousarray(batch.columns), self.spec.window.every, 0
        while u < columns.shape[1]:
            v = min(columns.shape[1], u + every - self._arrivals % every)
            for rows in self._scored(columns, u, v, self._most):
                rows["time"] += self._arrivals
                rows["position"] += batch.first + u
                self._wait(rows)
            self._windows.move_to(self._arrivals + v - u - 1, arrivals=v - u)
            self._position = batch.first + v
            if self._arrivals % every == 0:
                self._close_until(self._arrivals)
            u = v
        return self._take_answer()

    def _take_sliding(self, columns: Floats, time: Ints, position: Ints, now: Ints) -> None:
        columns = np.ascontiguousarray(columns)
        cuts, k = [0, len(time)], len(time) + 1
        if len(self._starts()) == 1 and (time[1:] >= time[:-1]).all():
            # Rows are sorted, so that the rows of a slide can be compared at once.
            slide = time // self.spec.window.every
            cuts, k = [0, *(np.flatnonzero(slide[1:] != slide[:-1]) + 1).tolist(), len(time)], self._most
        for u, v in pairwise(cuts):
            for rows in self._scored(columns, u, v, k):
                rows["time"], rows["position"] = time[u + rows["time"]], position[u + rows["position"]]
                self._wait(rows)

    def _scored(self, columns: Floats, u: int, v: int, k: int) -> Iterator[Rows]:
        """The rows of [u, v), all of one slide, that may matter to a k. Their numbers stand for time and position.

        If k is larger than the number of rows, these are all rows that have a score.
        """
        rows, score_groups, scoring, begin = v - u, self._score_groups, self.spec.scoring, 0
        if max(rows, self._least_room) > len(self._kept):
            self._kept = np.empty(max(rows, self._least_room), ROW)
        while begin < len(score_groups):
            if score_groups.looked_up:
                of, best = score_groups.of_rows(columns, u, v), (self._best, self._counts, self._limits)
                n, end = scoring.latest_of(columns, u, v, of, k, *best, self._kept), len(score_groups)
                is_all = n == rows
            else:
                asked = score_groups.values, begin, len(score_groups)
                n, end = scoring.latest(columns, u, v, *asked, k, self._best[0], self._kept)
                is_all = n == rows * (end - begin)
            if not is_all:
                self._complete = min(self._complete, max(k, self._most))
            yield self._kept[:n].copy()
            begin = end

    def _wait(self, rows: Rows) -> None:
        self._waiting.append(rows)
        self._count += len(rows)
        if self._count > self._thin_next:
            self._thin()

    def _thin(self) -> None:
        """Drop the waiting rows that K better ones of the same slide outlive."""
        rows = _joined(self._waiting)
        slide = rows["time"] // self.spec.window.every
        none = np.empty(0, ROW)
        self._waiting = [self._pruned(none, rows[slide == each], -LATEST) for each in np.unique(slide)]
        self._count = sum(map(len, self._waiting))
        self._thin_next = max(self._thinned_at, 2 * self._count)

    def _pruned(self, band: Rows, rows: Rows, first: int) -> Rows:
        """Merge rows into the band, and drop those that no longer matter."""
        kept: Rows = pruned(band, rows, first, self._most, self._starts(), len(self._score_groups))
        if len(kept) < len(band) + len(rows):
            self._complete = min(self._complete, self._most)
        return kept

    def _starts(self) -> Ints:
        """The first arrivals that queries see. One is enough if later rows have later times."""
        if self._numbered or not self._came_late:
            return _ONE_START
        return np.unique(np.append(self._queries[START], FROM_THE_START))

    # -- windows ---------------------------------------------------------------------------------------------------

    def _close_window(self, end: int) -> None:
        rows = _joined(self._waiting)
        if not self._windows.waits:
            self._waiting, self._count = [], 0
        else:
            later = rows["time"] >= end
            self._waiting, rows = [rows[later]], rows[~later]
            self._count = len(self._waiting[0])
        self._band = self._pruned(self._band, rows, end - self.spec.window.size)
        if end - self.spec.window.size >= self._rose:
            self._complete = max(self._complete, self._most)
        if self._came_late:
            held = (self._band, *self._waiting)
            earliest = min(int(rows["position"].min(initial=self._position)) for rows in held)
            self._queries[START, self._queries[START] <= earliest] = FROM_THE_START
            self._know()
        due = self._queries[K]
        if self._own_slides:
            due = np.where(end % self._queries[EVERY] == 0, due, 0)
        answer, time = self._read(self._band, due, end - self._queries[SIZE], end)
        if not is_whole(self.spec.emit):
            first = end + self._queries[EVERY] - self._queries[SIZE]
            answer = self._before.emit(end, answer, time, due, first)
        self._done.append(answer)

    def _takes_back(self) -> bool:
        return self._before.takes_back()

    def _read(self, rows: Rows, k: Ints, first: Ints, at: int) -> tuple[Answer, Ints]:
        """Each query's k best of the rows from the time `first` on, and the times of these rows.

        `rows` are by score group, best first.
        """
        room = min(self._lines, len(k) * len(rows))
        answer = Answer(
            np.full(room, at),
            np.empty(room, np.int32),
            np.empty(room, np.int32),
            np.empty(room),
            np.empty(room, np.int64),
            np.full(room, ENTER),
        )
        times = np.empty(room, np.int64)
        n = read(
            *(rows, len(self._score_groups), k, first, self._queries[START], self._queries[OF], self._earliest_first),
            *(answer.group, answer.rank, answer.score, times, answer.position),
        )
        return answer.take(slice(n)), times[:n]

    def _earliest_live(self) -> int:
        low = self._windows.next_end - self.spec.window.size
        live = [rows["time"][rows["time"] >= low] for rows in (self._band, *self._waiting)]
        return min(int(times.min(initial=LATEST)) for times in live)

    def top(self, k: int | None, size: int | None) -> Answer:
        """The best rows right now, from the band and from the waiting rows."""
        ends, later = np.full(self._queries.shape[1], self._now + 1), self._windows.arrived(0) - 1
        if size is None:
            closing = self._windows.answered_at(self.next_held)
            if closing is None:
                return Answer.joined([])
            ends, later = next_due(closing, self._queries[EVERY]), 0
        rows = by_score_group(_joined([self._band, *self._waiting]), len(self._score_groups))
        sizes = self._queries[SIZE] if size is None else np.minimum(self._queries[SIZE], size)
        ks = self._queries[K] if k is None else np.minimum(self._queries[K], k)
        done = [
            self._read(rows[rows["time"] < end], np.where(ends == end, ks, 0), end - sizes, end + later)[0]
            for end in np.unique(ends).tolist()
        ]
        answer = Answer.joined(done)
        return answer.take(np.argsort(answer.group, kind="stable"))

    # -- state -----------------------------------------------------------------------------------------------------

    def held(self) -> Ints:
        return ascending(_joined([self._band, *self._waiting, self._before.rows])["position"])

    def rows_held(self) -> int:
        return len(self._band) + self._count + len(self._before.rows)

    def state(self) -> Arrays:
        return {
            "queries": self._queries.copy(),
            "score_groups": self._score_groups.values.copy(),
            "born": self._born.copy(),
            "band": self._band.copy(),
            "waiting": _joined(self._waiting),
            "counters": np.array([*self._clocks(), self._complete, self._rose], np.int64),
            **self._before.state(),
        }

    def validate(self, saved: Saved) -> None:
        self._validate_clocks(saved, 2)
        queries, groups = saved["queries"], saved["score_groups"].shape[-1]
        saved.shape("queries", len(self._queries), queries.shape[-1])
        saved.shape("score_groups", len(self._score_groups.values), groups)
        saved.promise(len(self._score_groups.values) > 0 or groups == 1, f"there are {groups} score groups")
        saved.length(groups, "born")
        saved.moments("born", saved["born"])
        self._validate_queries(saved, queries[K], queries[SIZE], queries[EVERY])
        saved.within("queries.start", queries[START], FROM_THE_START, FARTHEST)
        saved.indices("queries.of", queries[OF], groups)
        saved.rows("band", "waiting")
        for name in ("band", "waiting"):
            saved.indices(f"{name}.{SCORE_GROUP}", saved[name][SCORE_GROUP], groups)
        saved.ascends(f"band.{SCORE_GROUP}", saved["band"][SCORE_GROUP])
        self._before.validate(saved, queries.shape[-1])

    def restore(self, state: Arrays) -> None:
        self._queries, self._band = state["queries"].copy(), state["band"].copy()
        self._score_groups.restore(state["score_groups"])
        self._born = state["born"].copy()
        self._before.restore(state)
        self._know()
        self._waiting, self._count = [state["waiting"].copy()], len(state["waiting"])
        *clocks, self._complete, self._rose = state["counters"].tolist()
        self._set_clocks(clocks)

    def rescore(self, change: Change) -> None:
        """Replace all scores held by `change(scores)`, which keeps their order."""
        self.restore(rescored(self.state(), change, other=("score_groups",)))

    def check(self) -> None:
        scores, score_groups = self._band["score"], self._band[SCORE_GROUP]
        assert (score_groups[1:] >= score_groups[:-1]).all(), "the band is by score group"
        assert ((scores[1:] <= scores[:-1]) | (score_groups[1:] > score_groups[:-1])).all(), "and best first"
        rows = _joined([self._band, *self._waiting])
        assert len(np.unique(rows[["position", SCORE_GROUP]])) == len(rows), "a score group holds no row twice"
        assert len(rows) == len(self._band) + self._count, "rows are counted"
        assert ((rows[SCORE_GROUP] >= 0) & (rows[SCORE_GROUP] < len(self._score_groups))).all(), (
            "every row is of a score group"
        )
        self._before.check()


def _joined(parts: list[Rows]) -> Rows:
    """Concatenate rows as plain numbers: numpy would copy records field by field."""
    numbers = [np.empty((0, FIELDS), np.int64), *(part.view(np.int64).reshape(-1, FIELDS) for part in parts)]
    return np.concatenate(numbers).reshape(-1).view(ROW)
