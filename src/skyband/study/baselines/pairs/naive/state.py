"""The state of `naive`: the window, and of each row its k best pairs with older rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Arrays, Floats, Ints
from skyband.core.validation import Saved
from skyband.problems.pairs.drivers.row_driver import RowDriver
from skyband.problems.pairs.drivers.window_rows import Rows
from skyband.problems.pairs.operator import PAIR, Pairs, Spec, best_first
from skyband.study.baselines.pairs.naive.kernels import best_partners


class Naive(RowDriver):
    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        k = spec.k
        # By index of a row in the window: its best partners by number, best first, and the scores with them.
        self._partner = np.empty((0, k), np.int64)
        self._score = np.empty((0, k))
        self._known = np.empty(0, np.int64)  # how many of these there are
        self._entered: set[tuple[int, int]] = set()  # with entries: arrivals of pairs that have been shown

    def fill(self, values: Floats) -> None:
        """Fill a window of arrivals with these rows, by column and row, without an answer for each: for benchmarks."""
        position = np.arange(values.shape[1])
        self._append(Rows(values, np.empty((0, len(position))), position, position))
        self._windows.move_to(len(position) - 1, arrivals=len(position))

    # -- what RowDriver asks for ----------------------------------------------------------------------------------

    def _append(self, rows: Rows) -> None:
        for i in range(rows.length):
            before = self._rows.base
            self._rows.append(rows.take(slice(i, i + 1)))
            self._move_down(self._rows.base - before)
            self._find_partners(self._rows.tail - 1)

    def _insert(self, rows: Rows) -> None:
        for i in range(rows.length):
            self._insert_one(rows.take(slice(i, i + 1)))

    def _insert_one(self, row: Rows) -> None:
        before = self._rows.base
        at = int(self._rows.insert(row)[0][0])
        self._move_down(self._rows.base - before)
        number = self._rows.base + at
        tail = self._rows.tail
        for array in (self._partner, self._score, self._known):
            array[at + 1 : tail] = array[at : tail - 1].copy()
        self._partner[self._rows.head : tail] += self._partner[self._rows.head : tail] >= number
        self._renumber(np.array([number]))
        self._find_partners(at)
        scores = self._scores(at, at + 1, tail)
        for i in np.flatnonzero(scores == scores):
            younger = at + 1 + int(i)
            known = int(self._known[younger])
            if known < self.spec.k or scores[i] >= self._score[younger, known - 1]:
                self._find_partners(younger)

    def _expire(self, head: int) -> None:
        window = self._rows
        window.head = head
        live = slice(head, window.tail)
        known = np.arange(self.spec.k) < self._known[live, None]
        lost = (known & (self._partner[live] < window.base + head)).any(axis=1)
        for i in np.flatnonzero(lost):
            self._find_partners(head + int(i))

    def _best(self, start: int) -> Pairs:
        window, k = self._rows, self.spec.k
        low = max(window.head, start - window.base)
        if low > window.head:
            # Some of the best partners are not in this window.
            pairs = self._candidates()
            pairs = pairs[pairs["a"] >= start]
        else:
            rows = np.arange(low, window.tail)
            rows = rows[self._known[rows] > 0]
            if len(rows) > k:
                # The k best pairs are among those of the k rows that have the best ones.
                best = -self._score[rows, 0]
                kth = np.partition(best, k - 1)[k - 1]
                rows = rows[best <= kth]
            pairs = self._pairs_of(rows)
        return pairs[best_first(pairs)[:k]]

    def _mark(self, a: Ints, b: Ints) -> None:
        self._entered |= set(zip(a.tolist(), b.tolist(), strict=True))
        live = set(self._rows.positions().tolist())
        self._entered = {pair for pair in self._entered if live.issuperset(pair)}

    def _candidates(self) -> Pairs:
        """Each row's k best pairs with younger rows: k better ones outlive any other."""
        window, found = self._rows, []
        partner, score = np.empty(self.spec.k, np.int64), np.empty(self.spec.k)
        for at in range(window.head, window.tail):
            scores = self._scores(at, at + 1, window.tail)
            n = best_partners(scores, window.base + at + 1, self.spec.k, partner, score)
            found.append(self._pairs(np.full(n, window.base + at), partner[:n], score[:n]))
        return np.concatenate([np.empty(0, PAIR), *found])

    def _saved(self) -> Arrays:
        live = slice(self._rows.head, self._rows.tail)
        return {
            "partner": self._partner[live].copy(),
            "partner_score": self._score[live].copy(),
            "known": self._known[live].copy(),
            "entered": np.array(sorted(self._entered), np.int64).reshape(-1, 2),
        }

    def validate(self, saved: Saved) -> None:
        super().validate(saved)
        n, base, k = saved["rows_columns"].shape[1], int(saved["rows_base"][0]), self.spec.k
        saved.shape("partner", n, k)
        saved.shape("partner_score", n, k)
        saved.length(n, "known")
        saved.within("known", saved["known"], 0, k)
        known = np.arange(k) < saved["known"][:, None]
        age = base + np.arange(n)[:, None] - saved["partner"]
        oldest = np.broadcast_to(np.arange(n)[:, None], age.shape)
        saved.promise(
            bool(((age >= 1) & (age <= oldest))[known].all()), "'partner' has rows that are not older, or gone"
        )
        saved.numbers("partner_score", saved["partner_score"][known])
        saved.shape("entered", len(saved["entered"]), 2)

    def _restored(self, state: Arrays) -> None:
        self._partner, self._score = state["partner"].copy(), state["partner_score"].copy()
        self._known = state["known"].copy()
        self._entered = {(int(a), int(b)) for a, b in state["entered"]}

    def check(self) -> None:
        super().check()
        window = self._rows
        for at in range(window.head, window.tail):
            known = int(self._known[at])
            partners = self._partner[at, :known]
            older = (partners >= window.base + window.head) & (partners < window.base + at)
            assert older.all(), "partners are older and in the window"
            scores = self._scores(at, window.head, at)
            assert known == min(self.spec.k, (scores == scores).sum()), "there are k partners, or all that there are"
            assert (scores[partners - window.base - window.head] == self._score[at, :known]).all(), "scores are right"

    # -- inside ---------------------------------------------------------------------------------------------------

    def _move_down(self, rows: int) -> None:
        """Move what is known of each row: the window's rows have moved down by so many, or have more room."""
        room = self._rows.columns.shape[1]
        if not rows and len(self._known) == room:
            return
        for name in ("_partner", "_score", "_known"):
            old: npt.NDArray[Any] = getattr(self, name)
            kept = old[rows : rows + self._rows.tail].copy()
            new = old if len(old) == room else np.zeros((room, *old.shape[1:]), old.dtype)
            new[: len(kept)] = kept
            setattr(self, name, new)

    def _scores(self, at: int, start: int, end: int) -> Floats:
        scores = np.empty(max(0, end - start))
        if end > start:
            self.spec.scoring.scores(self._rows.columns, self._rows.colours, at, start, end, scores)
        return scores

    def _find_partners(self, at: int) -> None:
        window = self._rows
        scores = self._scores(at, window.head, at)
        self._known[at] = best_partners(
            scores, window.base + window.head, self.spec.k, self._partner[at], self._score[at]
        )

    def _pairs_of(self, rows: Ints) -> Pairs:
        known = np.arange(self.spec.k) < self._known[rows, None]
        younger = np.repeat(self._rows.base + rows, known.sum(axis=1))
        return self._pairs(self._partner[rows][known], younger, self._score[rows][known])

    def _pairs(self, a: Ints, b: Ints, score: Floats) -> Pairs:
        pairs = np.empty(len(a), PAIR)
        pairs["score"], pairs["a"], pairs["b"], pairs["flag"] = score, a, b, 0
        pairs["a_position"], pairs["b_position"] = self._rows.positions_of(a), self._rows.positions_of(b)
        if self._entered:
            arrivals = zip(pairs["a_position"].tolist(), pairs["b_position"].tolist(), strict=True)
            pairs["flag"] = [pair in self._entered for pair in arrivals]
        return pairs
