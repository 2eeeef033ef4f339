"""How many joined rows of each group have each value of a column whose different values are counted."""

from __future__ import annotations

import numpy as np

from skyband.core.operator import Ints
from skyband.problems.joins.algorithms.plans.arrays import NONE, TALLIED, TALLY_WIDTH, Y_OWNER, Y_ROWS
from skyband.problems.joins.algorithms.plans.kernels.distinct import enter


class Tallies:
    """A hash table by owner and value, at most half full. The owner is group * columns + column."""

    def __init__(self, columns: int, counters: Ints) -> None:
        self._columns, self._counters = columns, counters
        self._fill(np.zeros((0, TALLY_WIDTH), np.int64))

    def grow(self) -> None:
        """Make room, and drop the tallies that have come to 0."""
        self._fill(self._live())

    def renumber(self, number: Ints) -> None:
        """Group g is now group number[g]; of groups that are gone, all tallies are 0."""
        lines = self._live()
        group, column = np.divmod(lines[:, Y_OWNER], max(1, self._columns))
        lines[:, Y_OWNER] = number[group] * self._columns + column
        self._fill(lines)

    def check(self, counts: Ints) -> None:
        """`counts`: by group and column, how many values it has."""
        taken = self.lines[self.lines[:, Y_OWNER] != NONE]
        assert len(taken) == self._counters[TALLIED], "tallies are counted"
        assert (taken[:, Y_ROWS] >= 0).all(), "no value has lost more rows than it had"
        found = np.bincount(self._live()[:, Y_OWNER], minlength=counts.size)
        assert (found == counts.ravel()).all(), "a group counts the values that have rows"

    def _live(self) -> Ints:
        return self.lines[(self.lines[:, Y_OWNER] != NONE) & (self.lines[:, Y_ROWS] != 0)]

    def _fill(self, lines: Ints) -> None:
        # A quarter full at most, and with room for one more match.
        size = 1 << (4 * (len(lines) + self._columns)).bit_length()
        self.lines = np.full((size, TALLY_WIDTH), NONE, np.int64)
        enter(self.lines, lines)
        self._counters[TALLIED] = len(lines)
