"""The state of `threshold`: that of the staircase, and for each distance a list of older rows ordered by value."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Floats, Ints
from skyband.kernels.whole_scores import NULL, distances_from
from skyband.problems.pairs.algorithms.staircase.listing import LONGEST, TOO_MANY, ColourList, Listing
from skyband.problems.pairs.algorithms.threshold.kernels import merge_lists
from skyband.problems.pairs.operator import Spec

DEAR = 3  # a step along a list costs as much as looking up so many rows by colour: the next row may be anywhere


class Threshold(Listing):
    """Older rows are listed by value, for each column whose distance the score depends on; with `same` by colour, too.

    Values of whole numbers are listed as their distances from one of them, which are floats; those too far are odd.
    """

    def __init__(self, spec: Spec, **options: int) -> None:
        super().__init__(spec, **options)
        distances = spec.scoring.score.distances
        assert distances is not None
        self._listed_columns = np.array(distances.columns, np.int64)
        self._near = np.array(distances.nearest, np.bool_)
        lists = len(distances.columns)
        self._order = np.empty((lists, 0), np.int64)
        self._value = np.empty((lists, 0))
        self._in_lists = 0
        self._whole = np.array(distances.whole, np.bool_)
        self._origin = np.zeros(lists, np.int64)  # of whole numbers: from where the listed distances are
        self._colours = ColourList() if spec.scoring.same else None
        self._walks_again = 0  # with `same`: batches until the lists by value are tried again
        self._seen_rows = np.zeros(1, np.int64)
        self._x, self._distance = np.empty(lists), np.empty(lists)
        self._left, self._right = np.empty(lists, np.int64), np.empty(lists, np.int64)

    def _look_up(self, at: Ints, heads: Ints, boundary: int, n: int, most: int) -> int:
        colours = self._colours
        if colours is None:
            return self._walk(at, heads, boundary, n, most)
        # Rows of the colour are the alternative to those of near values: whichever are fewer.
        partners = self._partners(colours, len(at))
        self._walks_again = max(self._walks_again - 1, 0)
        if not self._walks_again:
            found = self._walk(at, heads, boundary, n, min(most, partners))
            if found != TOO_MANY:
                return found
            self._walks_again = LONGEST
        return TOO_MANY if partners > most else self._meet(colours, at, heads, n)

    def _walk(self, at: Ints, heads: Ints, boundary: int, n: int, most: int) -> int:
        window = self._rows
        reach = float(window.limit[boundary - 1]) if boundary > window.head else np.nan
        self._seen_rows[0] = 0
        return self.spec.scoring.walk(
            *(window.columns, window.colours, window.limit, self._order, self._value, self._in_lists, self._odd),
            *(window.base, at, heads, reach, self._near, self._listed_columns, self._whole, self._origin, most // DEAR),
            *(self._seen_rows, self._x, self._left, self._right, self._distance),
            *(self._found_row, self._found_other, self._found_by, self._found_score, n),
        )

    def _move_listed(self, shift: Ints) -> None:
        base, listed = self._rows.base, self._order[:, : self._in_lists]
        alive = listed >= base
        listed[alive] += shift[listed[alive] - base]
        if self._colours is not None:
            self._colours.move(shift, base)

    def _forget_listed(self) -> None:
        self._in_lists = 0
        if self._colours is not None:
            self._colours.forget()

    def check(self) -> None:
        super().check()
        window = self._rows
        for c, column in enumerate(self._listed_columns):
            order, value = self._order[c, : self._in_lists], self._value[c, : self._in_lists]
            assert (np.diff(value) >= 0).all(), "lists are ordered by value"
            alive = order >= window.base + window.head
            held = self._values(c, window.columns[column, order[alive] - window.base])
            assert (held == value[alive]).all(), "values are those of the rows"
            self._check_listed(order)
        if self._colours is not None:
            self._colours.check(window)

    def _list_rows(self, numbers: Ints, start: int) -> Ints:
        columns = self._listed_values(numbers)
        finite = np.isfinite(columns).all(axis=0)
        if self._whole.any() and 2 * finite.sum() < len(numbers):
            # Whole numbers have gone far from where they were: all are listed anew, from where they are now.
            listed = self._order[0, : self._in_lists]
            numbers = np.sort(np.concatenate([listed[listed >= start], numbers]))
            self._forget_listed()
            self._set_origin(numbers)
            columns = self._listed_values(numbers)
            finite = np.isfinite(columns).all(axis=0)
        self._merge_into_lists(numbers[finite], columns[:, finite], start)
        if self._colours is not None:
            self._colours.add(self._rows, numbers[finite], start)
        return numbers[~finite]

    def _listed_values(self, numbers: Ints) -> Floats:
        window = self._rows
        columns = window.columns[np.ix_(self._listed_columns, numbers - window.base)]
        return np.array([self._values(c, column) for c, column in enumerate(columns)]).reshape(columns.shape)

    def _values(self, c: int, column: Floats) -> Floats:
        """What is listed of values of a column."""
        if not self._whole[c]:
            return column
        out = np.empty(len(column))
        distances_from(np.ascontiguousarray(column), int(self._origin[c]), out)
        return out

    def _set_origin(self, numbers: Ints) -> None:
        window = self._rows
        for c in np.flatnonzero(self._whole):
            values = window.columns[self._listed_columns[c], numbers - window.base].view(np.int64)
            known = values[values != NULL]
            if len(known):
                self._origin[c] = known[-1]

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
