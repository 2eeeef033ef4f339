"""The K-skyband of pairs and its staircase: how new rows find candidates, and how these are merged.

A new row meets every older row of the window. A pair that reaches what its older row asks for is a candidate; few are.
Candidates are merged into the skyband batch by batch, and the staircase is then set anew as far as it is due.
"""

from __future__ import annotations

import math

import numpy as np

from skyband.core.operator import Arrays, Ints
from skyband.core.validation import Saved
from skyband.problems.pairs.algorithms.staircase.kernels import arrays, merging
from skyband.problems.pairs.algorithms.staircase.kernels.arrays import NO_ROW, SHIFT
from skyband.problems.pairs.drivers.kernels import renumber
from skyband.problems.pairs.drivers.loop_texts import BLOCK, SHORT, TILE
from skyband.problems.pairs.drivers.row_driver import RowDriver
from skyband.problems.pairs.drivers.window_rows import SPARE, Rows, validate_pairs
from skyband.problems.pairs.operator import PAIR, Pairs, Spec, best_first

_BYTES = np.dtype((np.void, PAIR.itemsize))


class PairBand(RowDriver):
    """`batch`: how many new rows meet the window at once. `room`: how many candidates there is room for.

    `step`: the limit of a row that is x rows old is set anew when x / step rows have come.
    """

    def __init__(self, spec: Spec, *, batch: int, room: int, step: int) -> None:
        super().__init__(spec)
        # About 2 sqrt(2k) of a row's pairs pass, in random order.
        room = max(min(int(room * math.sqrt(max(spec.k / 20, 1))), 1 << (SHIFT - 1)), BLOCK)
        self._batch = max(1, min(batch, int(room / (8 + 3 * math.sqrt(2 * spec.k)))))
        self._step = step
        self._room = room
        room += self._batch * self._batch  # of late rows all pairs with one another may pass
        # Candidates, in the order in which they were found: the older row, the other, who found it, and the score.
        self._found_row, self._found_other, self._found_by = (np.empty(room, np.int64) for _ in range(3))
        self._found_score = np.empty(room)
        # Of late rows the same, in the order of the rows that found them.
        self._sorted_row, self._sorted_other = np.empty(room, np.int64), np.empty(room, np.int64)
        self._sorted_score = np.empty(room)
        self._slots = np.arange(room)
        self._least = np.empty(TILE // SHORT)  # by block of a tile: the least limit of its rows
        self._inner = np.empty((self._batch, self._batch))  # [j, i < j]: the score of new rows i and j, or NaN
        self._band = np.empty(0, PAIR)  # [0, _held) is the skyband, youngest older row first
        self._other_band = np.empty(0, PAIR)  # where the next one is written
        self._held = 0
        self._heap = np.empty(spec.k, PAIR)
        self._merged = 0  # rows so far: says which limits are due
        self._stale = False  # many candidates passed that did not stay

    # -- what RowDriver asks for ----------------------------------------------------------------------------------

    def _append(self, rows: Rows) -> None:
        window = self._rows
        for i in range(0, rows.length, self._batch):
            part = rows.take(slice(i, i + self._batch))
            first, heads = self._put(part)
            heads[:] = window.head
            n, reached = self._sweep(first, heads, window.head)
            if reached == first:
                self._merge(n, first, 0, part.length, window.head)
            else:
                for j in range(part.length):
                    self._take_singly(first + j, window.head)
            self._merged += part.length

    def _insert(self, rows: Rows) -> None:
        window = self._rows
        for i in range(0, rows.length, self._batch):
            at = self._place(rows.take(slice(i, i + self._batch)))
            heads = np.full(len(at), window.head)
            starts = self._find_late(at, heads)
            if starts is None:
                for j in range(len(at)):
                    self._take_late(at, j, window.head)
            else:
                self._merge_late(0, int(starts[-1]), len(at), window.head)
            self._merged += len(at)

    def _expire(self, head: int) -> None:
        self._rows.head = head
        # Pairs that leave with their older row come last.
        start = self._rows.base + head
        while self._held and self._band[self._held - 1]["a"] < start:
            self._held -= 1

    def _mark(self, a: Ints, b: Ints) -> None:
        band = self._band[: self._held]
        wanted = set(zip(a.tolist(), b.tolist(), strict=True))
        some = np.flatnonzero(np.isin(band["a_position"], a))
        for r in some[np.isin(band["b_position"][some], b)]:
            if (int(band["a_position"][r]), int(band["b_position"][r])) in wanted:
                band["flag"][r] = 1

    def _candidates(self) -> Pairs:
        return self._band[: self._held]

    def _saved(self) -> Arrays:
        return {"band": self._band[: self._held].copy(), "merged": np.array([self._merged, self._stale], np.int64)}

    def validate(self, saved: Saved) -> None:
        super().validate(saved)
        saved.length(2, "merged")
        saved.counts("merged", saved["merged"])
        validate_pairs(saved, "band", timed=self._rows.timed)
        saved.ascends("band.a", -saved["band"]["a"])

    def _restored(self, state: Arrays) -> None:
        self._band, self._held = state["band"].copy(), len(state["band"])
        self._other_band = np.empty(0, PAIR)
        self._merged, self._stale = int(state["merged"][0]), bool(state["merged"][1])

    def check(self) -> None:
        super().check()
        window, k = self._rows, self.spec.k
        band = self._band[: self._held]
        assert (band["score"] == band["score"]).all(), "every pair held has a score"
        assert (band["a"] < band["b"]).all(), "a is the older row"
        assert (np.diff(band["a"]) <= 0).all(), "pairs are ordered by their older row, the youngest first"
        live = (band["a"] >= window.base + window.head) & (band["b"] < window.base + window.tail)
        assert live.all(), "both rows of a pair are in the window"
        keys = set(zip(band["a"].tolist(), band["b"].tolist(), strict=True))
        assert len(keys) == len(band), "a pair is held once"
        ranked = band[best_first(band)]
        for r, pair in enumerate(ranked):
            better = (ranked["a"][:r] >= pair["a"]).sum()
            assert better < k, "fewer than k better pairs outlive a pair that is held"
        for i in range(window.head, window.tail):
            outliving = ranked[ranked["a"] >= window.base + i]
            limit = window.limit[i]
            if len(outliving) < k:
                assert limit == -np.inf, "while fewer than k pairs outlive a row, any pair with it may be shown"
            else:
                worst = outliving["score"][k - 1]
                # A limit may be out of date, which rules out less.
                assert limit != limit or limit <= worst or limit == np.nextafter(worst, np.inf), (
                    "limits are not too high"
                )
                assert limit == limit or worst == np.inf, "only infinity cannot be exceeded"

    @property
    def nbytes(self) -> int:
        """The bytes it keeps: the window's rows, pairs, and room to work in."""
        pairs = (self._band, self._other_band, self._heap, self._shown.pairs, self._shown.out)
        room = (self._found_row, self._found_other, self._found_score, self._slots, self._inner)
        return self._rows.nbytes + sum(array.nbytes for array in (*pairs, *room))

    def reserve_window(self, rows: int) -> None:
        """Make room for so many rows, and for the spare ones that let rows pass."""
        self._rows.reserve(rows + rows // SPARE)

    # -- in order of time -----------------------------------------------------------------------------------------

    def _put(self, rows: Rows) -> tuple[int, Ints]:
        """Put new rows behind the others; returns the index of the first, and room for where their partners begin."""
        self._rows.append(rows)
        return self._rows.tail - rows.length, np.empty(rows.length, np.int64)

    def _sweep(self, first: int, heads: Ints, start: int) -> tuple[int, int]:
        window = self._rows
        return self.spec.scoring.sweep(
            *(window.columns, window.colours, window.limit, first, heads, start),
            *(self._least, self._found_row[: self._room], self._found_other, self._found_score, self._inner),
        )

    def _take_singly(self, at: int, head: int) -> None:
        """Take the row at this index with all older ones. However many pairs pass, it merges them in between."""
        heads, start = np.array([head]), head
        while start < at:
            n, start = self._sweep(at, heads, start)
            self._merge_all(n, whole=start < at)

    # -- late rows ------------------------------------------------------------------------------------------------

    def _place(self, rows: Rows) -> Ints:
        """Put rows among the others, where their time says; returns where they are. Pairs are numbered anew."""
        at, places = self._rows.insert(rows)
        self._renumber(self._rows.base + places)
        return at

    def _renumber(self, numbers: Ints) -> None:
        super()._renumber(numbers)
        renumber(self._band, self._held, numbers)

    def _find_late(self, at: Ints, heads: Ints) -> Ints | None:
        """Find the candidates of the new rows at these indices, in the order in which the rows came.

        Returns where those of each row start, and the last ones end; None: there is no room for so many.
        """
        order = np.argsort(at)
        in_order = at[order]
        # The new rows that are the latest of all find each other, and are found by none: all their pairs may pass.
        gaps = np.flatnonzero(in_order != np.arange(self._rows.tail - len(at), self._rows.tail))
        last = int(self._rows.tail) - len(at) + (int(gaps[-1]) + 1 if len(gaps) else 0)
        n, reached = self._sweep_late(at, heads, int(heads.min()), last)
        if reached != self._rows.tail:
            return None
        starts = np.empty(len(at) + 1, np.int64)
        found = self._found_row, self._found_other, self._found_by, self._found_score
        sorted_ = self._sorted_row, self._sorted_other, self._sorted_score
        arrays.by_arrival(*found, n, at, last, in_order, order, starts, *sorted_)
        self._found_row, self._found_other, self._found_score = sorted_
        self._sorted_row, self._sorted_other, self._sorted_score = found[0], found[1], found[3]
        return starts

    def _take_late(self, at: Ints, j: int, head: int) -> None:
        """Take one of these rows. However many pairs pass, it merges them in between."""
        start, heads, order = head, np.array([head]), np.argsort(at)
        while start < self._rows.tail:
            n, start = PairBand._sweep_late(self, at[j : j + 1], heads, start, self._rows.tail)
            found = self._found_row, self._found_other, self._found_score
            n = arrays.drop_unborn(*found, n, at, at[order], order, j)
            self._merge_all(n, whole=start < self._rows.tail)

    def _sweep_late(self, at: Ints, heads: Ints, start: int, last: int) -> tuple[int, int]:
        window = self._rows
        return self.spec.scoring.sweep_late(
            *(window.columns, window.colours, window.limit, at, heads, start, window.tail, last),
            *(self._least, self._found_row, self._found_other, self._found_by, self._found_score),
        )

    def _merge_late(self, start: int, stop: int, rows: int, head: int) -> None:
        """Merge the candidates [start, stop), which so many rows found."""
        keys = (self._found_row[start:stop] << SHIFT) | self._slots[start:stop]
        refresh = self._rows.head if self._stale else self._first_due(rows)
        self._merge_keys(keys, self._rows.tail, 0, 0, head, refresh)
        self._stale = stop - start > 256 + 12 * rows * math.isqrt(self.spec.k)

    # -- merging --------------------------------------------------------------------------------------------------

    def _merge_all(self, n: int, *, whole: bool) -> None:
        """Merge all candidates found; with `whole`, bring all limits up to date too."""
        if not n:
            return
        keys = (self._found_row[:n] << SHIFT) | self._slots[:n]
        window = self._rows
        self._merge_keys(keys, window.tail, 0, 0, window.head, window.head if whole else self._first_due(1))

    def _merge(self, n: int, first: int, low: int, high: int, head: int) -> None:
        """Merge the candidates found whose new row is one of [low, high), and the pairs of these rows."""
        keys = (self._found_row[:n] << SHIFT) | self._slots[:n]
        if low > 0 or first + high < self._rows.tail:
            other = self._found_other[:n]
            keys = keys[(other >= first + low) & (other < first + high)]
        refresh = self._rows.head if self._stale else self._first_due(high - low)
        self._merge_keys(keys, first, low, high, head, refresh)
        # Many more than are expected: limits are out of date.
        self._stale = n > 256 + 12 * (high - low) * math.isqrt(self.spec.k)

    def _merge_keys(self, keys: Ints, first: int, low: int, high: int, head: int, refresh: int) -> None:
        window, spec = self._rows, self.spec
        keys.sort()
        room = self._held + len(keys) + high * (high - 1) // 2
        if len(self._other_band) < room:
            self._other_band = np.empty(2 * room, PAIR)
        merged, rest = merging.merge(
            *(spec.k, self._band, self._held, keys, self._found_other, self._found_score),
            *(self._inner, first, low, high, head, window.tail, window.base, window.position, window.limit),
            *(refresh, self._heap, self._other_band, window.base + first + low if high else -NO_ROW),
        )
        if rest < self._held:
            unchanged = self._band[rest : rest + self._unexpired(self._band[rest : self._held], window.base + head)]
            # As bytes: numpy would copy field by field.
            self._other_band[merged : merged + len(unchanged)].view(_BYTES)[:] = unchanged.view(_BYTES)
            merged += len(unchanged)
        self._held = merged
        self._band, self._other_band = self._other_band, self._band

    def _first_due(self, rows: int) -> int:
        """The first row that is due for a new limit after so many rows: one twice as old is due half as often."""
        after = self._merged + rows
        return max(self._rows.head, self._rows.tail - (self._step << (after ^ self._merged).bit_length()))

    @staticmethod
    def _unexpired(pairs: Pairs, start: int) -> int:
        """How many of these pairs have no row before `start`; those with the youngest older row come first."""
        return len(pairs) - int(np.searchsorted(pairs["a"][::-1], start, "left"))
