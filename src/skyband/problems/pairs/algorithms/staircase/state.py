"""The state of the K-staircase of pairs: the skyband, and without a slide the answer and its reserve."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skyband.core.operator import Arrays, Ints
from skyband.problems.pairs.algorithms.staircase.band import PairBand
from skyband.problems.pairs.algorithms.staircase.kernels import answering, merging
from skyband.problems.pairs.algorithms.staircase.kernels.arrays import (
    COMPLETE,
    NO_ROW,
    NUMBERS,
    OLDEST,
    REFILL,
    TOP,
    WHY,
)
from skyband.problems.pairs.drivers.kernels import renumber
from skyband.problems.pairs.drivers.window_rows import Rows
from skyband.problems.pairs.operator import PAIR, Pairs, Spec, best_first

MANY = 4096  # as pairs: from here on numpy's selection, which does not depend on their order, is the faster one


class Staircase(PairBand):
    """The options are those of `PairBand`."""

    def __init__(self, spec: Spec, *, batch: int = 128, room: int = 8192, step: int = 8) -> None:
        super().__init__(spec, batch=batch, room=room, step=step)
        self._best_score = np.empty(self._batch)  # by new row: no pair of it has a higher score
        self._top = np.empty(spec.k, PAIR)  # without a slide: the answer and its reserve, best first
        self._reserve = 0  # how many pairs are kept behind the answer, at most
        self._refilled_at = 0  # rows that had come when the answer was last filled up
        self._numbers = np.zeros(NUMBERS, np.int64)
        self._numbers[OLDEST], self._numbers[COMPLETE] = NO_ROW, 1

    # -- what RowDriver asks for ----------------------------------------------------------------------------------

    def _best(self, start: int) -> Pairs:
        merging.select(self.spec.k, self._band, self._held, start, self._heap, self._top, self._numbers)
        return self._top[: self._numbers[TOP]]

    def _restored(self, state: Arrays) -> None:
        super()._restored(state)
        self._numbers[TOP], self._numbers[OLDEST], self._numbers[COMPLETE] = 0, NO_ROW, 1
        self._refilled_at = self._merged
        if not self._windows.slides:
            self._refill(self._rows.head, self._merged)

    @property
    def nbytes(self) -> int:
        return super().nbytes + self._top.nbytes

    # -- with each arrival ----------------------------------------------------------------------------------------

    def _arrive(self, rows: Rows) -> None:
        """Take rows in batches: a batch whose rows come in order is simpler than one with late rows."""
        i = 0
        while i < rows.length:
            part = rows.take(slice(i, i + self._batch))
            if self._rows.follow(part.time):
                self._arrive_in_order(part)
            else:
                self._arrive_late(part)
            i += part.length

    def _arrive_in_order(self, rows: Rows) -> None:
        now = np.maximum(rows.time, self._windows.now)  # rows are in order, so this is the largest time seen
        self._windows.move_to(int(now[-1]))
        first, heads = self._put(rows)
        heads[:] = self._heads(now)
        m, at = rows.length, self._windows.arrived(now)
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
        """Put all rows in their places at once; then emit what each changes, in the order in which they came."""
        now = self._windows.now_after(rows.time)
        self._windows.move_to(int(now[-1]))
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

    def _absorb(self, n: int, first: int, heads: Ints, at: Ints, m: int) -> None:
        """Emit what the candidates found change in the answer, row by row."""
        window, spec = self._rows, self.spec
        best = self._best_score[:m]
        answering.best_scores(self._found_other, self._found_score, n, self._inner, first, best)

        def absorb(low: int, refilled: bool) -> int:
            return answering.absorb(
                *(spec.k, len(self._top), spec.emit, low, m, refilled, first, heads, at),
                *(self._found_row, self._found_other, self._found_score, n, self._inner, best),
                *(window.base, window.position, self._top, self._numbers, self._shown),
            )

        self._absorb_all(absorb, lambda low, high, head: self._merge(n, first, low, high, head), heads, m)

    def _absorb_late(self, starts: Ints, heads: Ints, at: Ints) -> None:
        """As `_absorb`, for rows that may be late."""
        window, spec, m = self._rows, self.spec, len(at)

        def absorb(low: int, refilled: bool) -> int:
            return answering.absorb_late(
                *(spec.k, len(self._top), spec.emit, low, m, refilled, heads, at),
                *(self._found_row, self._found_other, self._found_score, starts),
                *(window.base, window.position, self._top, self._numbers, self._shown),
            )

        def merge(low: int, high: int, head: int) -> None:
            self._merge_late(int(starts[low]), int(starts[high]), high - low, head)

        self._absorb_all(absorb, merge, heads, m)

    def _absorb_all(
        self, absorb: Callable[[int, bool], int], merge: Callable[[int, int, int], None], heads: Ints, m: int
    ) -> None:
        """Absorb row by row; when too few pairs are left in the answer, merge the candidates and fill it up."""
        room = 2 * self.spec.k + 16_384  # for what one row changes, and mostly for what many do
        self._reserve_out(room)
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
            if self._numbers[WHY] == REFILL:
                self._refill(head, self._merged + high)
                refilled = True
            else:
                self._reserve_out(room)
            low = high

    def _refill(self, head: int, rows: int) -> None:
        """Fill the answer and its reserve up from the skyband, after so many rows.

        This looks at the whole skyband, so the reserve doubles while it is used up soon.
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
            merging.select(most, self._band, self._held, start, self._heap, self._top, self._numbers)
            return
        band = self._band[: self._unexpired(self._band[: self._held], start)]
        count, chosen = min(most, len(band)), band
        if count < len(band):
            score = np.ascontiguousarray(band["score"])
            chosen = band[score >= np.partition(score, len(band) - count)[len(band) - count]]
        self._top[:count] = chosen[best_first(chosen)[:count]]
        oldest = int(self._top["a"][:count].min()) if count else NO_ROW
        self._numbers[TOP], self._numbers[OLDEST], self._numbers[COMPLETE] = count, oldest, count == len(band)

    def _show_top(self, at: int) -> None:
        self._show(at, self._top[: min(self._numbers[TOP], self.spec.k)])

    # -- late rows ------------------------------------------------------------------------------------------------

    def _renumber(self, numbers: Ints) -> None:
        super()._renumber(numbers)
        renumber(self._top, self._numbers[TOP], numbers)
        if self._numbers[OLDEST] != NO_ROW:
            self._numbers[OLDEST] += np.searchsorted(numbers, self._numbers[OLDEST], "right")
