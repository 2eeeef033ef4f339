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

import numpy as np

from skyband.operators.options import Count
from skyband.operators.pairs import staircase_kernels as kernels
from skyband.operators.pairs.arriving import Arriving
from skyband.operators.pairs.protocol import ANSWER, PAIR, Pairs, Spec, best_first
from skyband.operators.pairs.rows import SPARE, Rows
from skyband.operators.pairs.scoring import BLOCK, SHORT, TILE
from skyband.operators.pairs.staircase_kernels import CLOCKS, NO_ROW, OLDEST, OUT, SHIFT, SHOWN, TOP
from skyband.operators.protocol import ENTRIES, Arrays, Ints
from skyband.windows import FOREVER

NAME = "staircase"


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
    from skyband.operators.pairs.coloured import Coloured  # which is a staircase itself

    if spec.scoring.same:
        return Coloured(spec, batch=batch, room=room, step=step, share=share, least=least, worth=worth)
    return Staircase(spec, batch=batch, room=room, step=step)


class Staircase(Arriving):
    """`batch`: how many new rows meet the window at once. `room`: for how many candidates there is.

    `step`: the limit of a row that is x rows old is set anew when x / step rows have come.
    """

    def __init__(self, spec: Spec, *, batch: int = 128, room: int = 8192, step: int = 8) -> None:
        super().__init__(spec)
        room = max(min(room, 1 << SHIFT), BLOCK)
        # About 2 sqrt(2k) of a row's pairs pass, in random order; and there is room for the answer of every row.
        self._batch = max(1, min(batch, int(room / (8 + 3 * math.sqrt(2 * spec.k))), 65_536 // spec.k))
        self._step = step
        self._found_row, self._found_other = np.empty(room, np.int64), np.empty(room, np.int64)
        self._found_score = np.empty(room)
        self._slots = np.arange(room)
        self._least = np.empty(TILE // SHORT)
        self._inner = np.empty((self._batch, self._batch))
        self._best_score = np.empty(self._batch)
        self._band = np.empty(0, PAIR)  # [0, _held) is the skyband, youngest older row first
        self._other_band = np.empty(0, PAIR)
        self._held = 0
        self._heap = np.empty(spec.k, PAIR)
        self._top = np.empty(spec.k, PAIR)  # without a slide: the answer, best first
        self._last = np.empty(spec.k, PAIR)  # without a slide, with changes: the answer that was shown last
        self._clock = np.zeros(CLOCKS, np.int64)
        self._clock[OLDEST] = NO_ROW
        self._out = np.empty(0, ANSWER)
        self._merged = 0  # rows so far: says which limits are due
        self._stale = False  # many candidates passed that did not stay
        self._changed = False  # some pair was merged since this was last looked at

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
                    self._take_singly(first + j, window.head, first + j + 1)
            self._merged += part.length

    def _insert(self, row: Rows) -> None:
        at = self._rows.insert(row)
        number = self._rows.base + at
        kernels.renumber(self._band, self._held, number)
        kernels.renumber(self._top, self._clock[TOP], number)
        kernels.renumber(self._last, self._clock[SHOWN], number)
        if len(self._shown):
            kernels.renumber(self._shown, len(self._shown), number)
        self._take_singly(at, self._rows.head, self._rows.tail)
        self._merged += 1

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
        self._clock[SHOWN], self._clock[OLDEST] = len(last), NO_ROW
        self._merged, self._stale = int(state["merged"][0]), bool(state["merged"][1])
        if self.spec.slides_with_each_arrival:
            self._best(self._rows.base + self._rows.head)

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
        """Runs of rows that come in order are taken in batches; others one by one."""
        i = 0
        while i < rows.length:
            n = self._run(rows, i)
            if n:
                self._arrive_in_order(rows.take(slice(i, i + n)))
            else:
                n = 1
                self._arrive_late(rows.take(slice(i, i + 1)))
            i += n

    def _run(self, rows: Rows, i: int) -> int:
        """How many rows from i on come in order, after those of the window; a batch at most."""
        time = rows.time[i : i + self._batch]
        if self._rows.by_count:
            return len(time)
        if self._rows.count and time[0] < self._rows.time[self._rows.tail - 1]:
            return 0
        falls = np.flatnonzero(time[1:] < time[:-1])
        return int(falls[0]) + 1 if len(falls) else len(time)

    def _arrive_in_order(self, rows: Rows) -> None:
        size = self.spec.window.size
        now = np.maximum(rows.time, self._seen)  # rows are in order, so this is the largest time seen
        self._seen = int(now[-1])
        first, heads = self._put(rows)
        window, m = self._rows, rows.length
        if size == FOREVER:
            heads[:] = window.head
        elif window.by_count:
            np.maximum(now - (size - 1 + window.base), window.head, out=heads)
        else:
            heads[:] = window.head + np.searchsorted(window.time[window.head : window.tail], now - size, "right")
        at = now + 1 if window.by_count else now
        n, reached = self._sweep(first, heads, int(heads[0]))
        if reached != first:
            for j in range(m):
                head = int(heads[j])
                self._take_singly(first + j, head, first + j + 1)
                self._refill(head)
                self._show_top(int(at[j]))
        else:
            self._absorb(n, first, heads, at, m)
        self._expire(int(heads[-1]))
        self._merged += m

    def _absorb(self, n: int, first: int, heads: Ints, at: Ints, m: int) -> None:
        """Candidates are found: what do they change in the answer, row by row?"""
        window, spec = self._rows, self.spec
        best = self._best_score[:m]
        kernels.best_scores(self._found_other, self._found_score, n, self._inner, first, best)
        self._reserve_out(2 * spec.k * m)
        low, refilled = 0, False
        while True:
            high = kernels.absorb(
                *(spec.k, spec.emit, low, m, refilled, first, heads, at),
                *(self._found_row, self._found_other, self._found_score, n, self._inner, best),
                *(window.base, window.position, self._top, self._last, self._clock, self._out),
            )
            head = int(heads[min(high, m - 1)])
            if high > low:
                self._merge(n, first, low, high, head)
            self._mark_written()
            if high == m:
                break
            self._refill(head)
            low, refilled = high, True
        self._say()

    def _arrive_late(self, row: Rows) -> None:
        """A late row: it moves no clock, so nothing leaves, and mostly it changes nothing."""
        self._changed = False
        self._insert(row)
        if self._changed:
            self._refill(self._rows.head)
            self._show_top(self._seen)

    def _refill(self, head: int) -> None:
        self._best(self._rows.base + head)

    def _show_top(self, at: int) -> None:
        self._reserve_out(2 * self.spec.k)
        kernels.show_answer(self.spec.emit, at, self._top, self._last, self._clock, self._out)
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
            *(self._least, self._found_row, self._found_other, self._found_score, self._inner),
        )

    def _take_singly(self, at: int, head: int, end: int) -> None:
        """The row at this index with all rows of [head, end), however many pairs pass: they are merged in between."""
        window = self._rows
        heads, start = np.array([head]), head
        while start < at:
            n, start = self._sweep(at, heads, start)
            self._merge_all(n, whole=start < at)
        start = at + 1  # what follows is for late rows only
        while start < end:
            n, start = self.spec.scoring.sweep_younger(
                *(window.columns, window.colours, float(window.limit[at]), at, start, end),
                *(self._found_row, self._found_other, self._found_score),
            )
            self._merge_all(n, whole=start < end)

    def _merge_all(self, n: int, *, whole: bool) -> None:
        """Merge all candidates found; `whole`: and bring all limits up to date."""
        if not n:
            return
        self._changed = True
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
        self._held = kernels.merge(
            *(spec.k, self._band, self._held, keys, self._found_other, self._found_score),
            *(self._inner, first, low, high, head, window.tail, window.base, window.position, window.limit),
            *(refresh, self._heap, self._other_band),
        )
        self._band, self._other_band = self._other_band, self._band

    def _first_due(self, rows: int) -> int:
        """The first row that is due for a new limit, now that so many have come: twice as many rows half as often."""
        after = self._merged + rows
        return max(self._rows.head, self._rows.tail - (self._step << (after ^ self._merged).bit_length()))
