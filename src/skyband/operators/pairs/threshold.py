"""Threshold algorithm: of a new row's pairs, look only at those that may reach the staircase.

Paper:      Shen, Cheema, Lin, Zhang, Wang, TKDE 2014, section 5.2 (TA: Algorithm 5).
Invariant:  that of `staircase`. Rows but for the latest are listed by the value of each column whose distance the score
            depends on; no pair that was not scored could have reached what pairs of listed rows must reach.
Cost:       push sees about n^(d/(d+1)) pairs for d distances; state n rows, their place in d lists, and the skyband.
Choose it:  the score only rises or only falls with each distance |a.x - b.x|, of few columns, and windows are large.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from skyband.operators.options import Count
from skyband.operators.pairs.listing import Listing
from skyband.operators.pairs.protocol import Spec
from skyband.operators.pairs.staircase import expected_rows
from skyband.operators.protocol import Floats, Ints
from skyband.structures.compiling import kernel

__all__ = ["NAME", "Threshold", "expected_rows", "open", "refuses"]

NAME = "threshold"


def refuses(spec: Spec) -> str | None:
    if spec.scoring.score.distances is None:
        return "the score does not only rise or only fall with distances such as abs(a.x - b.x)"
    return None


def open(
    spec: Spec, *, batch: Count = 128, room: Count = 8192, step: Count = 8, share: Count = 8, least: Count = 256
) -> Threshold:
    return Threshold(spec, batch=batch, room=room, step=step, share=share, least=least)


@kernel
def merge_lists(order, value, count, start, more, more_value, out, out_value):  # type: ignore[no-untyped-def]
    """Merge rows into a list ordered by value, without those numbered before `start`; returns how many there are."""
    i, n = 0, 0
    for j in range(len(more) + 1):
        while i < count and (j == len(more) or value[i] <= more_value[j]):
            if order[i] >= start:
                out[n], out_value[n] = order[i], value[i]
                n += 1
            i += 1
        if j < len(more):
            out[n], out_value[n] = more[j], more_value[j]
            n += 1
    return n


class Threshold(Listing):
    """Older rows are listed by value, for each column whose distance the score depends on."""

    def __init__(
        self,
        spec: Spec,
        *,
        batch: int = 128,
        room: int = 8192,
        step: int = 8,
        share: int = 8,
        least: int = 256,
    ) -> None:
        super().__init__(spec, batch=batch, room=room, step=step, share=share, least=least)
        distances = spec.scoring.score.distances
        assert distances is not None
        self._listed_columns = np.array(distances.columns, np.int64)
        self._near = np.array(distances.nearest, np.bool_)
        lists = len(distances.columns)
        self._order = np.empty((lists, 0), np.int64)
        self._value = np.empty((lists, 0))
        self._in_lists = 0
        self._x, self._distance = np.empty(lists), np.empty(lists)
        self._left, self._right = np.empty(lists, np.int64), np.empty(lists, np.int64)

    def _look_up(self, first: int, heads: Ints, boundary: int, n: int) -> int:
        window = self._rows
        reach = float(window.limit[boundary - 1]) if boundary > window.head else np.nan
        return self.spec.scoring.walk(
            *(window.columns, window.colours, window.limit, self._order, self._value, self._in_lists, self._odd),
            *(window.base, first, heads, reach, self._near, self._listed_columns),
            *(self._x, self._left, self._right, self._distance),
            *(self._found_row, self._found_other, self._found_score, n),
        )

    def _renumber_listed(self, number: int) -> None:
        listed = self._order[:, : self._in_lists]
        listed += listed >= number

    def _forget_listed(self) -> None:
        self._in_lists = 0

    def check(self) -> None:
        super().check()
        window = self._rows
        for c, column in enumerate(self._listed_columns):
            order, value = self._order[c, : self._in_lists], self._value[c, : self._in_lists]
            assert (np.diff(value) >= 0).all(), "lists are ordered by value"
            alive = order >= window.base + window.head
            numbers = order[alive]
            assert (window.columns[column, numbers - window.base] == value[alive]).all(), "values are those of the rows"
            odd = self._odd[self._odd >= window.base + window.head]
            expected = np.arange(window.base + window.head, max(self._end, window.base + window.head))
            known = np.sort(np.concatenate([numbers, odd]))
            assert np.array_equal(known, expected), "every row but the latest is listed once, or odd"

    def _list_rows(self, numbers: Ints, start: int) -> Ints:
        window = self._rows
        columns = window.columns[np.ix_(self._listed_columns, numbers - window.base)]
        finite = np.isfinite(columns).all(axis=0)
        self._merge_into_lists(numbers[finite], columns[:, finite], start)
        return numbers[~finite]

    def _merge_into_lists(self, numbers: Ints, columns: Floats, start: int) -> None:
        room = self._in_lists + len(numbers)
        order: npt.NDArray[np.int64] = np.empty((len(columns), room), np.int64)
        value = np.empty((len(columns), room))
        count = 0
        for c, column in enumerate(columns):
            by_value = np.argsort(column, kind="stable")
            more, more_value = numbers[by_value], column[by_value]
            count = merge_lists(
                self._order[c], self._value[c], self._in_lists, start, more, more_value, order[c], value[c]
            )
        self._order, self._value, self._in_lists = order, value, count
