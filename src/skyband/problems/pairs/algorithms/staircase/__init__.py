"""K-staircase: the K-skyband of all pairs of a window, and for each row what a pair with it must reach.

Paper:      Shen, Cheema, Lin, Zhang, Wang, TKDE 2014, sections 5.1 and 6 (SCase: Algorithms 3 and 4).
Invariant:  every pair is held that fewer than k better pairs outlive. A pair leaves with its older row, so what a pair
            must reach is one number for each older row; it only rises, so an old one still rules nothing out wrongly.
Cost:       push O(n), one vectorised comparison beside the score of each pair; state n rows and, on random order,
            2k (ln n - ln sqrt k) pairs, at most k n.
Choose it:  any score; and whenever `threshold` cannot be used or does not pay.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from skyband.core.operator import ENTRIES, Arrays, Ints
from skyband.core.options import Count
from skyband.core.registry import Algorithm
from skyband.problems.pairs.algorithms.staircase import kernels
from skyband.problems.pairs.algorithms.staircase.kernels import (
    CLOCKS,
    COMPLETE,
    NO_ROW,
    OLDEST,
    OUT,
    REFILL,
    SHIFT,
    SHOWN,
    TOP,
    WHY,
)
from skyband.problems.pairs.drivers.row_driver import Arriving
from skyband.problems.pairs.drivers.scoring import BLOCK, SHORT, TILE
from skyband.problems.pairs.drivers.window_rows import SPARE, Rows
from skyband.problems.pairs.operator import ANSWER, PAIR, Pairs, Spec, best_first
from skyband.windows import FOREVER

NAME = "staircase"

_BYTES = np.dtype((np.void, PAIR.itemsize))
MANY = 4096  # as pairs: from here on numpy's selection, which does not depend on their order, is the faster one


def refuses(spec: Spec) -> str | None:
    return None


def expected_rows(spec: Spec, window_rows: float) -> float:
    return window_rows


def expected_pairs(k: int, rows: float) -> float:
    """The size of the K-skyband of `rows` rows, if scores come in random order.

    >>> round(expected_pairs(20, 10_000), 1)
    308.5
    """
    return max(0.0, min(2 * k * (math.log(max(rows, 1)) - math.log(math.sqrt(k))), rows * (rows - 1) / 2))


def open(
    spec: Spec,
    *,
    batch: Count = 128,
    room: Count = 8192,
    step: Count = 8,
    share: Count = 8,
    least: Count = 256,
    worth: Count = 16,
) -> Staircase:
    """`share`, `least` and `worth` are for pairs of the same colour: see coloured.py."""
    from skyband.problems.pairs.drivers.colours import Coloured  # which is a staircase itself

    if spec.scoring.same:
        return Coloured(spec, batch=batch, room=room, step=step, share=share, least=least, worth=worth)
    return Staircase(spec, batch=batch, room=room, step=step)


class Staircase(Arriving):
    """`batch`: how many new rows meet the window at once. `room`: for how many candidates there is.

    `step`: the limit of a row that is x rows old is set anew when x / step rows have come.
    """

    def __init__(self, spec: Spec, *, batch: int = 128, room: int = 8192, step: int = 8) -> None:
        super().__init__(spec)
        # About 2 sqrt(2k) of a row's pairs pass, in random order.
        room = max(min(int(room * math.sqrt(max(spec.k / 20, 1))), 1 << (SHIFT - 1)), BLOCK)
        self._batch = max(1, min(batch, int(room / (8 + 3 * math.sqrt(2 * spec.k)))))
        self._step = step
        self._room = room
        room += self._batch * self._batch  # of late rows all pairs with one another may pass
        self._found_row, self._found_other, self._found_by = (np.empty(room, np.int64) for _ in range(3))
        self._found_score = np.empty(room)
        # Late rows: the same in the order of the rows that found them.
        self._sorted_row, self._sorted_other = np.empty(room, np.int64), np.empty(room, np.int64)
        self._sorted_score = np.empty(room)
        self._slots = np.arange(room)
        self._least = np.empty(TILE // SHORT)
        self._inner = np.empty((self._batch, self._batch))
        self._best_score = np.empty(self._batch)
        self._band = np.empty(0, PAIR)  # [0, _held) is the skyband, youngest older row first
        self._other_band = np.empty(0, PAIR)
        self._held = 0
        self._heap = np.empty(spec.k, PAIR)
        self._top = np.empty(spec.k, PAIR)  # without a slide: the answer and its reserve, best first
        self._reserve = 0  # how many pairs are kept behind the answer, at most
        self._refilled_at = 0  # rows that had come when the answer was last filled up
        self._last = np.empty(spec.k, PAIR)  # without a slide, with changes: the answer that was shown last
        self._clock = np.zeros(CLOCKS, np.int64)
        self._clock[OLDEST], self._clock[COMPLETE] = NO_ROW, 1
        self._out = np.empty(0, ANSWER)
        self._merged = 0  # rows so far: says which limits are due
        self._stale = False  # many candidates passed that did not stay

    # -- what Arriving asks for -----------------------------------------------------------------------------------

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

    def _best(self, start: int) -> Pairs:
        kernels.select(self.spec.k, self._band, self._held, start, self._heap, self._top, self._clock)
        return self._top[: self._clock[TOP]]

    def _mark(self, pairs: Pairs) -> None:
        self._mark_arrivals(pairs["a_position"], pairs["b_position"])

    def _candidates(self) -> Pairs:
        return self._band[: self._held]

    def _saved(self) -> Arrays:
        return {
            "band": self._band[: self._held].copy(),
            "last": self._last[: self._clock[SHOWN]].copy(),
            "merged": np.array([self._merged, self._stale], np.int64),
        }

    def _restored(self, state: Arrays) -> None:
        self._band, self._held = state["band"].copy(), len(state["band"])
        self._other_band = np.empty(0, PAIR)
        last = state["last"]
        self._last[: len(last)] = last
        self._clock[:] = 0
        self._clock[SHOWN], self._clock[OLDEST], self._clock[COMPLETE] = len(last), NO_ROW, 1
        self._merged, self._stale = int(state["merged"][0]), bool(state["merged"][1])
        self._refilled_at = self._merged
        if self.spec.slides_with_each_arrival:
            self._refill(self._rows.head, self._merged)

    def held(self) -> Ints:
        last = self._last[: self._clock[SHOWN]]
        return np.unique(np.concatenate([super().held(), last["a_position"], last["b_position"]]))

    def rows_held(self) -> int:
        return super().rows_held() + 2 * int(self._clock[SHOWN])

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
        """What is kept, in bytes: the window's rows, pairs, and room to work in."""
        pairs = (self._band, self._other_band, self._heap, self._top, self._last)
        room = (self._found_row, self._found_other, self._found_score, self._slots, self._inner, self._out)
        return self._rows.nbytes + sum(array.nbytes for array in (*pairs, *room))

    def reserve_window(self, rows: int) -> None:
        """Make room for as many rows as will come, and what it takes to let them pass."""
        self._rows.reserve(rows + rows // SPARE)

    # -- with each arrival ------------------------------------------------------------------------------------------

    def _arrive(self, rows: Rows) -> None:
        """Rows are taken in batches; one in which all come in order is simpler than one with late rows."""
        i = 0
        while i < rows.length:
            part = rows.take(slice(i, i + self._batch))
            if self._is_in_order(part.time):
                self._arrive_in_order(part)
            else:
                self._arrive_late(part)
            i += part.length

    def _is_in_order(self, time: Ints) -> bool:
        """Do rows of these times come after those of the window, one after the other?"""
        window = self._rows
        if window.by_count:
            return True
        return bool((not window.count or time[0] >= window.time[window.tail - 1]) and (time[1:] >= time[:-1]).all())

    def _arrive_in_order(self, rows: Rows) -> None:
        now = np.maximum(rows.time, self._seen)  # rows are in order, so this is the largest time seen
        self._seen = int(now[-1])
        first, heads = self._put(rows)
        heads[:] = self._heads(now)
        window, m = self._rows, rows.length
        at = now + 1 if window.by_count else now
        n, reached = self._sweep(first, heads, int(heads[0]))
        if reached != first:
            for j in range(m):
                head = int(heads[j])
                self._take_singly(first + j, head)
                self._refill(head, self._merged + j)
                self._show_top(int(at[j]))
        else:
            self._absorb(n, first, heads, at, m)
        self._expire(int(heads[-1]))
        self._merged += m

    def _arrive_late(self, rows: Rows) -> None:
        """All are put in their places at once; what each changes is then told in the order in which they came."""
        now = np.maximum.accumulate(np.maximum(rows.time, self._seen))
        self._seen = int(now[-1])
        at = self._place(rows)
        heads = self._heads(now)
        starts = self._find_late(at, heads)
        if starts is None:
            for j in range(rows.length):
                self._take_late(at, j, int(heads[j]))
                self._refill(int(heads[j]), self._merged + j)
                self._show_top(int(now[j]))
        else:
            self._absorb_late(starts, heads, now)
        self._expire(int(heads[-1]))
        self._merged += rows.length

    def _heads(self, now: Ints) -> Ints:
        """The index of the first row of the window at each of these times."""
        window, size = self._rows, self.spec.window.size
        if size == FOREVER:
            return np.full(len(now), window.head)
        if window.by_count:
            return np.maximum(now - (size - 1 + window.base), window.head)
        return window.head + np.searchsorted(window.time[window.head : window.tail], now - size, "right")

    def _absorb(self, n: int, first: int, heads: Ints, at: Ints, m: int) -> None:
        """Candidates are found: what do they change in the answer, row by row?"""
        window, spec = self._rows, self.spec
        best = self._best_score[:m]
        kernels.best_scores(self._found_other, self._found_score, n, self._inner, first, best)

        def absorb(low: int, refilled: bool) -> int:
            return kernels.absorb(
                *(spec.k, len(self._top), spec.emit, low, m, refilled, first, heads, at),
                *(self._found_row, self._found_other, self._found_score, n, self._inner, best),
                *(window.base, window.position, self._top, self._last, self._clock, self._out),
            )

        self._absorb_all(absorb, lambda low, high, head: self._merge(n, first, low, high, head), heads, m)

    def _absorb_late(self, starts: Ints, heads: Ints, at: Ints) -> None:
        """The same for rows that may be late."""
        window, spec, m = self._rows, self.spec, len(at)

        def absorb(low: int, refilled: bool) -> int:
            return kernels.absorb_late(
                *(spec.k, len(self._top), spec.emit, low, m, refilled, heads, at),
                *(self._found_row, self._found_other, self._found_score, starts),
                *(window.base, window.position, self._top, self._last, self._clock, self._out),
            )

        def merge(low: int, high: int, head: int) -> None:
            self._merge_late(int(starts[low]), int(starts[high]), high - low, head)

        self._absorb_all(absorb, merge, heads, m)

    def _absorb_all(
        self, absorb: Callable[[int, bool], int], merge: Callable[[int, int, int], None], heads: Ints, m: int
    ) -> None:
        """Row by row, until too few pairs are left in the answer: then what was found is merged, to fill it up."""
        self._reserve_out(2 * self.spec.k + 16_384)
        low, refilled = 0, False
        while True:
            high = absorb(low, refilled)
            head = int(heads[min(high, m - 1)])
            if high > low:
                merge(low, high, head)
                refilled = False
            self._mark_written()
            if high == m:
                break
            if self._clock[WHY] == REFILL:
                self._refill(head, self._merged + high)
                refilled = True
            else:
                self._say()
            low = high
        self._say()

    def _refill(self, head: int, rows: int) -> None:
        """Fill the answer and its reserve up from the skyband; so many rows have come.

        That takes a look at the whole skyband, so the reserve grows while it is needed soon again.
        """
        k, since = self.spec.k, rows - self._refilled_at
        if since < 4 * self._batch:
            self._reserve = min(max(2 * self._reserve, k // 2, 16), max(2048, 2 * k))
        elif since > 64 * self._batch:
            self._reserve //= 2
        self._refilled_at = rows
        most = k + self._reserve
        if len(self._top) != most:
            self._top, self._heap = np.empty(most, PAIR), np.empty(most, PAIR)
        start = self._rows.base + head
        if self._held < MANY:
            kernels.select(most, self._band, self._held, start, self._heap, self._top, self._clock)
            return
        band = self._band[: self._unexpired(self._band[: self._held], start)]
        count, chosen = min(most, len(band)), band
        if count < len(band):
            score = np.ascontiguousarray(band["score"])
            chosen = band[score >= np.partition(score, len(band) - count)[len(band) - count]]
        self._top[:count] = chosen[best_first(chosen)[:count]]
        oldest = int(self._top["a"][:count].min()) if count else NO_ROW
        self._clock[TOP], self._clock[OLDEST], self._clock[COMPLETE] = count, oldest, count == len(band)

    @staticmethod
    def _unexpired(pairs: Pairs, start: int) -> int:
        """How many of these pairs, of which the youngest older row comes first, have none before `start`."""
        return len(pairs) - int(np.searchsorted(pairs["a"][::-1], start, "left"))

    def _show_top(self, at: int) -> None:
        self._reserve_out(2 * self.spec.k)
        kernels.show_answer(self.spec.k, self.spec.emit, at, self._top, self._last, self._clock, self._out)
        self._mark_written()
        self._say()

    def _reserve_out(self, room: int) -> None:
        if len(self._out) < room:
            self._out = np.empty(room, ANSWER)

    def _mark_written(self) -> None:
        """With entries: what has been written is not to be written again."""
        if self.spec.emit == ENTRIES and self._clock[OUT]:
            written = self._out[: self._clock[OUT]]
            self._mark_arrivals(written["a"], written["b"])

    def _mark_arrivals(self, a: Ints, b: Ints) -> None:
        band = self._band[: self._held]
        wanted = set(zip(a.tolist(), b.tolist(), strict=True))
        some = np.flatnonzero(np.isin(band["a_position"], a))
        for r in some[np.isin(band["b_position"][some], b)]:
            if (int(band["a_position"][r]), int(band["b_position"][r])) in wanted:
                band["flag"][r] = 1

    def _say(self) -> None:
        if self._clock[OUT]:
            self._written.append(self._out[: self._clock[OUT]].copy())
            self._clock[OUT] = 0

    # -- sweeping and merging -----------------------------------------------------------------------------------------

    def _put(self, rows: Rows) -> tuple[int, Ints]:
        """New rows behind the others; returns the index of the first, and room for where their partners begin."""
        self._rows.append(rows)
        return self._rows.tail - rows.length, np.empty(rows.length, np.int64)

    def _sweep(self, first: int, heads: Ints, start: int) -> tuple[int, int]:
        window = self._rows
        return self.spec.scoring.sweep(
            *(window.columns, window.colours, window.limit, first, heads, start),
            *(self._least, self._found_row[: self._room], self._found_other, self._found_score, self._inner),
        )

    def _take_singly(self, at: int, head: int) -> None:
        """The row at this index with all older ones, however many pairs pass: they are merged in between."""
        heads, start = np.array([head]), head
        while start < at:
            n, start = self._sweep(at, heads, start)
            self._merge_all(n, whole=start < at)

    # -- late rows ----------------------------------------------------------------------------------------------------

    def _place(self, rows: Rows) -> Ints:
        """Put rows among the others, where their time says; returns where they are. Pairs are numbered anew."""
        at, places = self._rows.insert(rows)
        numbers = self._rows.base + places
        kernels.renumber(self._band, self._held, numbers)
        kernels.renumber(self._top, self._clock[TOP], numbers)
        kernels.renumber(self._last, self._clock[SHOWN], numbers)
        if len(self._shown):
            kernels.renumber(self._shown, len(self._shown), numbers)
        if self._clock[OLDEST] != NO_ROW:
            self._clock[OLDEST] += np.searchsorted(numbers, self._clock[OLDEST], "right")
        return at

    def _find_late(self, at: Ints, heads: Ints) -> Ints | None:
        """Candidates of the new rows at these indices with all that came before, in the order in which they came.

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
        kernels.by_arrival(*found, n, at, last, in_order, order, starts, *sorted_)
        self._found_row, self._found_other, self._found_score = sorted_
        self._sorted_row, self._sorted_other, self._sorted_score = found[0], found[1], found[3]
        return starts

    def _take_late(self, at: Ints, j: int, head: int) -> None:
        """One of these rows, however many pairs pass: they are merged in between."""
        start, heads, order = head, np.array([head]), np.argsort(at)
        while start < self._rows.tail:
            n, start = Staircase._sweep_late(self, at[j : j + 1], heads, start, self._rows.tail)
            n = kernels.drop_unborn(
                *(self._found_row, self._found_other, self._found_by, self._found_score, n),
                *(at, at[order], order, j),
            )
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

    # -- merging ------------------------------------------------------------------------------------------------------

    def _merge_all(self, n: int, *, whole: bool) -> None:
        """Merge all candidates found; `whole`: and bring all limits up to date."""
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
        merged, rest = kernels.merge(
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
        """The first row that is due for a new limit, now that so many have come: twice as many rows half as often."""
        after = self._merged + rows
        return max(self._rows.head, self._rows.tail - (self._step << (after ^ self._merged).bit_length()))


ALGORITHMS = (Algorithm(NAME, open, refuses, expected_rows),)
