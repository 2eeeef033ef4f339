"""Rows without values: what the rows on the left are joined with in place of the rows of an input that is not joined
by an inner join.

    a LEFT JOIN b        a row without values for each key of a that no row of b has, and the rows of b
    a SEMI JOIN b        one for each key of a that a row of b has, and none of the rows of b
    a ANTI JOIN b        one for each key of a that no row of b has, and none of the rows of b

So all of them are inner joins, with other rows. Two counts for each key tell when such a row comes and leaves: those of
the live rows of a and of b.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Codes, Ints
from skyband.problems.joins.algorithms.plans.arrays import NONE, longer
from skyband.problems.joins.algorithms.plans.entries import Keys
from skyband.problems.joins.drivers.lifetimes import Coming, NumberPool
from skyband.problems.joins.drivers.live_rows import Moves
from skyband.problems.joins.operator import SEMI, Cells, Input, Spec


class Absent(NamedTuple):
    """The rows without values that come and leave: slots, and the numbers of moments."""

    slots: Ints
    comes: Ints
    going: Ints
    goes: Ints
    new: Ints  # the slots that had no row before,
    variables: Codes  # and the join variables of their rows


class Partners:
    """The rows without values of one input."""

    def __init__(self, spec: Spec, source: int) -> None:
        given, self.left = spec.inputs[source], spec.left_of(source)
        self.source, self._is_semi = source, given.how == SEMI
        of_left = spec.inputs[self.left].variables
        self._columns = {
            self.left: [of_left.index(variable) for variable in given.variables],
            source: list(range(len(given.variables))),
        }
        self._keys = Keys(len(given.variables))
        self._key_of_cell = {i: np.zeros(0, np.int64) for i in self._columns}
        self._variables = np.zeros((0, len(given.variables)), np.int32)  # [key, variable]
        self._counts = np.zeros((0, 2), np.int64)  # [key, side]: live rows on the left, and of the input
        self._slot = np.zeros(0, np.int64)  # [key]: that of its row without values, or NONE
        self._spare = NumberPool()
        self._numbers = np.zeros(0, np.int64)  # [number of the pool]: a slot
        self._number_of = np.zeros(0, np.int64)  # [key]: of its slot
        self._ended = np.zeros(0, np.int64)  # keys whose rows have left for good

    def add_cells(self, source: int, cells: Cells) -> None:
        if source not in self._columns:
            return
        variables = cells.variables[:, self._columns[source]]
        keys = self._keys.encode(variables.astype(np.int64))
        self._key_of_cell[source] = np.concatenate([self._key_of_cell[source], keys])
        known = len(self._slot)
        if self._keys.count > known:
            room = max(self._keys.count, 2 * known)
            self._variables, self._counts = longer(self._variables, room), longer(self._counts, room)
            self._slot, self._number_of = longer(self._slot, room), longer(self._number_of, room)
            self._slot[known:] = NONE
        self._variables[keys] = variables

    def take(self, moves: Moves, cell_of_slot: Ints, slots: NumberPool) -> Absent:
        """The rows without values that come and leave as rows do."""
        key, moment, change = self._changes(moves, cell_of_slot)
        # One line for each key and moment at which rows of it come or leave.
        order = np.lexsort((moment, key))
        key, moment, change = key[order], moment[order], change[order]
        first = np.flatnonzero(_differs(key) | _differs(moment))
        change = np.add.reduceat(change, first, axis=0) if len(first) else change
        key, moment = key[first], moment[first]
        opens = np.flatnonzero(_differs(key))  # the first line of each key
        lines = np.diff(np.append(opens, len(key)))
        total = np.cumsum(change, axis=0)
        before = np.repeat(self._counts[key[opens]] - (total - change)[opens], lines, axis=0)
        counts = before + total
        wanted = (counts[:, 0] > 0) & ((counts[:, 1] > 0) == self._is_semi)
        was = np.concatenate([[False], wanted[:-1]])[: len(wanted)]
        was[opens] = self._slot[key[opens]] != NONE
        ends = opens + lines - 1
        self._counts[key[ends]] = counts[ends]
        turned = np.flatnonzero(wanted != was)
        new = np.unique(key[turned][self._slot[key[turned]] == NONE])
        self._give_slots(new, slots)
        self._ended = np.unique(key[turned])
        self._ended = self._ended[~wanted[ends][np.searchsorted(key[ends], self._ended)]]
        come, go = turned[wanted[turned]], turned[~wanted[turned]]
        return Absent(
            self._slot[key[come]], moment[come], self._slot[key[go]], moment[go], self._slot[new], self._variables[new]
        )

    def _changes(self, moves: Moves, cell_of_slot: Ints) -> tuple[Ints, Ints, Ints]:
        """The key of each row that comes or leaves, the moment at which it does, and by how much it changes counts."""
        keys, moments, changes = [], [], []
        for side, source in enumerate((self.left, self.source)):
            of_cell = self._key_of_cell[source]
            came, left = of_cell[moves.coming[source].cell], of_cell[cell_of_slot[moves.going[source]]]
            keys += [came, left]
            moments += [moves.comes[source], moves.goes[source]]
            change = np.zeros((len(came) + len(left), 2), np.int64)
            change[: len(came), side], change[len(came) :, side] = 1, -1
            changes.append(change)
        return np.concatenate(keys), np.concatenate(moments), np.concatenate(changes)

    def _give_slots(self, keys: Ints, slots: NumberPool) -> None:
        """Slots of rows that have just left are still in use, so these rows share slots among themselves."""
        numbers = self._spare.take(len(keys))
        if self._spare.limit > len(self._numbers):
            self._numbers = np.concatenate([self._numbers, slots.fresh(self._spare.limit - len(self._numbers))])
        self._number_of[keys], self._slot[keys] = numbers, self._numbers[numbers]

    def ended(self) -> Ints:
        """The slots of the rows that have left for good, which are free from now on."""
        keys, self._ended = self._ended, self._ended[:0]
        slots = self._slot[keys]
        self._spare.give(self._number_of[keys])
        self._slot[keys] = NONE
        return slots

    @property
    def live(self) -> Ints:
        """The slots of all its rows."""
        return self._slot[self._slot != NONE]

    def check(self) -> None:
        counts = self._counts
        assert (counts >= 0).all(), "no more rows leave than came"
        wanted = (counts[:, 0] > 0) & ((counts[:, 1] > 0) == self._is_semi)
        assert (wanted == (self._slot != NONE)).all(), "a key has a row without values if, and only if, it lacks others"


def with_absent(given: Input, rows: Coming) -> Coming:
    """Rows that come, and one without values if it has some after all."""
    if not given.absent_valid:
        return rows
    one = np.zeros(1, np.int64)
    absent = one, one, one, np.array([given.absent], np.int64), one + given.absent_valid, one
    return Coming(*(np.concatenate(pair) for pair in zip(rows, absent, strict=True)))


def _differs(values: Ints) -> npt.NDArray[np.bool_]:
    """Is each of these different from the one before?"""
    return np.concatenate([[True], values[1:] != values[:-1]])[: len(values)]
