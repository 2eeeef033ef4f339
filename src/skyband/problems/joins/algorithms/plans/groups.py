"""The groups of the output: their sums, the values last emitted, and the hash table that finds them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skyband.core.operator import Codes, Ints
from skyband.errors import TooManyGroups
from skyband.problems.joins.algorithms.plans import arrays
from skyband.problems.joins.algorithms.plans.arrays import GROUPS, LIVING, table
from skyband.problems.joins.algorithms.plans.config import Config, Term, moved
from skyband.problems.joins.algorithms.plans.kernels.distinct import enter
from skyband.problems.joins.algorithms.plans.kernels.matching import fill_table
from skyband.problems.joins.algorithms.plans.kernels.stairs import new_stairs
from skyband.problems.joins.operator import Spec


class Tallies:
    """For COUNT(DISTINCT x): how many joined rows of each group have each value.

    It is a hash table by owner and value, at most half full. The owner is group * columns + column.
    """

    def __init__(self, columns: int, counters: Ints) -> None:
        self._columns, self._counters = columns, counters
        self._fill(np.zeros((0, arrays.TALLY_WIDTH), np.int64))

    def grow(self) -> None:
        """Make room, and drop tallies that have become 0."""
        self._fill(self._live())

    def compact(self, number: Ints) -> None:
        """Renumber groups: group g becomes number[g]. Groups that are gone have no tallies other than 0."""
        lines = self._live()
        group, column = np.divmod(lines[:, arrays.Y_OWNER], max(1, self._columns))
        lines[:, arrays.Y_OWNER] = number[group] * self._columns + column
        self._fill(lines)

    def check(self, counts: Ints) -> None:
        """`counts` has the number of values, by group and column."""
        taken = self.lines[self.lines[:, arrays.Y_OWNER] != arrays.NONE]
        assert len(taken) == self._counters[arrays.TALLIED], "tallies are counted"
        assert (taken[:, arrays.Y_ROWS] >= 0).all(), "no value has lost more rows than it had"
        found = np.bincount(self._live()[:, arrays.Y_OWNER], minlength=counts.size)
        assert (found == counts.ravel()).all(), "a group counts the values that have rows"

    def _live(self) -> Ints:
        return self.lines[(self.lines[:, arrays.Y_OWNER] != arrays.NONE) & (self.lines[:, arrays.Y_ROWS] != 0)]

    def _fill(self, lines: Ints) -> None:
        # At most a quarter full, with room for one more match.
        size = 1 << (4 * (len(lines) + self._columns)).bit_length()
        self.lines = np.full((size, arrays.TALLY_WIDTH), arrays.NONE, np.int64)
        enter(self.lines, lines)
        self._counters[arrays.TALLIED] = len(lines)


class GroupTable:
    """The groups, and lists and staircases of groups."""

    def __init__(self, spec: Spec, config: Config, counters: Ints, room: int, most: int, forget_at: int) -> None:
        self._spec, self._config, self._counters = spec, config, counters
        self._room, self._most, self._forget_at = room, most, forget_at
        counters[GROUPS] = 0 if spec.grouped_inputs else 1
        self.rows = self._new_rows(room)  # [0, GROUPS), by code: see arrays.py
        self.lists = np.zeros((arrays.GROUP_LISTS, room + 1), np.int64)  # for each list: codes, in no order
        self.table = np.full(_table_size(room), arrays.NONE, np.int64)  # by the hash of the parts: a code, or NONE
        clocks = len(spec.inputs) if spec.counts_apart else 1
        # Group g has STAIRS owners, from g * STAIRS on.
        self.stairs = new_stairs(room * config.of(arrays.STAIRS), room, clocks)
        self.tallies = Tallies(len(spec.distincts), counters)

    def parts(self, groups: Ints) -> Codes:
        """The parts of these groups: [group, grouped input]."""
        grouped = len(self._spec.grouped_inputs)
        if grouped == 1:
            return groups.astype(np.int32)[:, None]
        first = self._config.of(arrays.GROUP_PARTS)
        return self.rows[groups, first : first + grouped].astype(np.int32)

    def take_parts(self, parts: Codes) -> None:
        """Make room for these groups. With one grouped input, the code of a group is its part."""
        self._counters[GROUPS] = max(self._counters[GROUPS], int(parts.max()) + 1)
        self._reserve(int(self._counters[GROUPS]))

    def grow(self) -> None:
        self._reserve(len(self.rows) + 1)

    def grow_stairs(self) -> None:
        self.stairs = self.stairs.with_more_steps()

    def forget(self) -> None:
        """Drop groups that are gone, if most are: new combinations of parts may come without end."""
        counters = self._counters
        if len(self._spec.grouped_inputs) < 2 or counters[GROUPS] < max(self._forget_at, 4 * counters[LIVING]):
            return
        kept = np.flatnonzero((self.rows[:, arrays.IS_LIVE] | self.rows[:, arrays.IN_RESERVE]) != 0)
        number = np.zeros(len(self.rows), np.int64)
        number[kept] = np.arange(len(kept))
        old, self.rows = self.rows, self._new_rows(max(2 * len(kept), self._room))
        self.rows[: len(kept)] = old[kept]
        lists = np.zeros((arrays.GROUP_LISTS, len(self.rows) + 1), np.int64)
        for which, count in ((arrays.L_LIVING, counters[LIVING]), (arrays.L_RESERVE, counters[arrays.RESERVE])):
            lists[which, :count] = number[self.lists[which, :count]]
        self.lists = lists
        if wide := self._config.of(arrays.STAIRS):
            owners = np.zeros((len(self.rows) * wide, self.stairs.owners.shape[1]), np.int64)
            owners[: len(kept) * wide] = self.stairs.owners[(kept[:, None] * wide + np.arange(wide)).ravel()]
            self.stairs = self.stairs._replace(owners=owners)
        counters[GROUPS] = len(kept)
        self._fill_table()
        self.tallies.compact(number)

    def lay_out_anew(self, config: Config, before: Sequence[Term], after: Sequence[Term]) -> None:
        """Make sums wide enough for other terms."""
        self._config = config
        start = config.of(arrays.GROUP_SUMS)
        self.rows = np.concatenate([self.rows[:, :start], moved(self.rows[:, start:], before, after)], axis=1)

    def check(self) -> None:
        counters, rows = self._counters, self.rows
        assert counters[arrays.TOUCHED] == 0, "nothing is left undone"
        assert not rows[:, arrays.IS_TOUCHED].any()
        sums = rows[:, self._config.of(arrays.GROUP_SUMS) :]
        count = sums[:, 0]
        self.tallies.check(rows[:, self._config.of(arrays.GROUP_DISTINCT) : self._config.of(arrays.GROUP_SUMS)])
        assert (count >= 0).all(), "no group has lost more rows than it had"
        assert ((count > 0) == (rows[:, arrays.IS_LIVE] != 0)).all(), "a group lives while it has rows"
        living = self.lists[arrays.L_LIVING, : counters[LIVING]]
        assert (np.sort(living) == np.flatnonzero(count > 0)).all(), "living groups are listed, once each"
        assert not sums[count == 0].any(), "where all rows have gone, all sums are zero"
        if self._spec.top and counters[arrays.RESERVE] > 0:
            outside = living[rows[living, arrays.IN_RESERVE] == 0]
            assert (rows[outside, arrays.SCORE] <= counters[arrays.TAU]).all(), "what may be emitted is in the reserve"

    def _new_rows(self, count: int) -> Ints:
        return table(count, self._config.of(arrays.GROUP_WIDTH))

    def _reserve(self, count: int) -> None:
        have = len(self.rows)
        if count <= have:
            return
        if count > self._most:
            raise TooManyGroups(
                f"The join gives more than {self._most:,} groups. No plan holds fewer: each has to be shown. "
                "Group by fewer columns, filter an input with where=, or use smaller windows."
            )
        count = max(count, min(2 * have, self._most))
        larger = self._new_rows(count)
        larger[:have] = self.rows
        self.rows = larger
        lists = np.zeros((arrays.GROUP_LISTS, count + 1), np.int64)
        lists[:, : have + 1] = self.lists
        self.lists = lists
        if len(self._spec.grouped_inputs) > 1:
            self._fill_table()
        self.stairs = self.stairs.with_owners(count * self._config.of(arrays.STAIRS))

    def _fill_table(self) -> None:
        self.table = np.full(_table_size(len(self.rows)), arrays.NONE, np.int64)
        first, parts = self._config.of(arrays.GROUP_PARTS), len(self._spec.grouped_inputs)
        fill_table(self.table, self.rows, first, parts, int(self._counters[GROUPS]))


def _table_size(groups: int) -> int:
    """The size of a hash table that is at most half full with this many groups."""
    return 1 << (2 * groups - 1).bit_length()
