"""The input of join operators: cells and numbers, never rows.

A *cell* is a small whole number for all rows of one input that agree in its join columns, its grouping columns and the
columns that COUNT(DISTINCT x) counts. So rows of a cell match the same rows of other inputs and fall into the same
groups. When a cell is new, the operator is told its meaning: its value of each *join variable* (columns that a join
sets equal share a variable and the codes of its values), its *part* of the group (the code of its grouping columns),
and the codes of the values that COUNT(DISTINCT x) counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from skyband.core.emit import WHOLE_CODE
from skyband.core.operator import Codes, Ints, Operator, ShowsNoRows
from skyband.core.registry import Algorithm
from skyband.errors import InvalidQuery
from skyband.expressions.aggregates import COUNT_DISTINCT

COUNT, SUM, AVG, MIN, MAX, DISTINCT = 0, 1, 2, 3, 4, 5
FUNCTIONS: Final = {"COUNT": COUNT, "SUM": SUM, "AVG": AVG, "MIN": MIN, "MAX": MAX, COUNT_DISTINCT: DISTINCT}
ALL = -1  # in place of an argument: COUNT(*)
NO_VALUE = -1  # in place of the code of a value: it is null, and not counted
UNMATCHED = -1  # in place of a cell: a row that matches nothing, but moves the clock
BEFORE = -(2**62)  # before every time
# What the rows on the left are joined with, of the rows of an input that have the same values of its join variables:
# INNER, all; LEFT, all or, if there are none, a row without values; SEMI, such a row if there are any; ANTI, if none.
INNER, LEFT, SEMI, ANTI = range(4)
HOWS: Final = {"inner": INNER, "left": LEFT, "semi": SEMI, "anti": ANTI}
NO_PARTNER = 0  # the cell of a row without values, in inputs that can have one: it is told before all others
# How the values of an argument are combined when several rows are merged into one.
ADDED, LOWEST, HIGHEST, LOWEST_FLOAT, HIGHEST_FLOAT = range(5)


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a join, in numbers."""

    size: int  # of its window; FOREVER: a landmark window, or a relation
    variables: tuple[int, ...] = ()  # the join variables of its columns
    grouped: bool = False  # has it grouping columns?
    floats: tuple[bool, ...] = ()  # for each argument of an aggregate: is it float64 rather than int64?
    relation: bool = False  # is it a relation, which is complete before the first row of a stream?
    scales: tuple[int, ...] = ()  # the digits behind the point of each argument's int64; empty: no argument has any
    distincts: int = 0  # the number of columns that COUNT(DISTINCT x) counts
    labels: int = 0  # how many of the arguments, the last, are labels (labels.py): equal for all rows of a cell
    how: int = INNER
    absent: tuple[int, ...] = ()  # the arguments of a row without values, which may have some: COALESCE(x, 0)
    absent_valid: int = 0  # bit a: argument a has a value there

    @property
    def is_partner(self) -> bool:
        """Do rows on the left take the place of its own?"""
        return self.how != INNER

    @property
    def is_needed(self) -> bool:
        """Does a window without rows of it have no groups?"""
        return self.how in (INNER, SEMI)

    @property
    def is_hidden(self) -> bool:
        """Does it only matter whether it has rows?"""
        return self.how in (SEMI, ANTI)

    def scale(self, argument: int) -> int:
        return self.scales[argument] if argument < len(self.scales) else 0


class Aggregate(NamedTuple):
    """An aggregate of a query, in numbers."""

    function: int  # COUNT, …
    input: int = ALL
    argument: int = ALL  # the number of the argument in its input; for DISTINCT, of the counted column


@dataclass(frozen=True, slots=True)
class Spec:
    """A join query in numbers."""

    inputs: tuple[Input, ...]
    aggregates: tuple[Aggregate, ...]
    every: int  # 0: an answer with each arrival
    emit: int = WHOLE_CODE
    lateness: int = 0  # FOREVER: rows do not move the watermark
    by_count: bool = False  # does each window count the arrivals of its own input?
    top: int = 0  # show only this many best groups, and those that tie with the last of them; 0: all groups
    top_by: int = 0  # the aggregate that ranks groups
    ascending: bool = False  # are the smallest best?

    @property
    def waits(self) -> bool:
        """Does the watermark close windows?"""
        return self.every > 0 and not self.by_count

    @property
    def counts_apart(self) -> bool:
        """Do several streams count their own arrivals? Then it is unknown which of two rows will leave first."""
        return self.by_count and sum(not source.relation for source in self.inputs) > 1

    def left_of(self, source: int) -> int:
        """The input whose rows a partner is joined with: it has all join variables of that one."""
        wanted = set(self.inputs[source].variables)
        return next(i for i, each in enumerate(self.inputs) if not each.is_partner and wanted.issubset(each.variables))

    @property
    def partners(self) -> tuple[int, ...]:
        return tuple(i for i, source in enumerate(self.inputs) if source.is_partner)

    @property
    def grouped_inputs(self) -> tuple[int, ...]:
        return tuple(i for i, source in enumerate(self.inputs) if source.grouped)

    @property
    def linear(self) -> bool:
        """Can a row that leaves be subtracted from every aggregate?"""
        return not any(aggregate.function in (MIN, MAX) for aggregate in self.aggregates)

    def as_one(self, source: int) -> tuple[int, ...] | None:
        """How each argument is combined when rows that come and go together are merged into one row with a weight.

        None: rows cannot be merged, because a sum of floats would be rounded, or because two aggregates need an
        argument combined in different ways.
        """
        found, of_cells = [], len(self.inputs[source].floats) - self.inputs[source].labels
        for argument, is_float in enumerate(self.inputs[source].floats):
            if argument >= of_cells:
                found.append(LOWEST)
                continue
            wanted = self._asked_of(source, argument)
            if wanted <= {COUNT, MIN}:
                found.append(LOWEST_FLOAT if is_float else LOWEST)
            elif wanted <= {COUNT, MAX}:
                found.append(HIGHEST_FLOAT if is_float else HIGHEST)
            elif wanted <= {COUNT, SUM, AVG} and not is_float:
                found.append(ADDED)
            else:
                return None
        return tuple(found)

    def _asked_of(self, source: int, argument: int) -> set[int]:
        return {
            each.function
            for each in self.aggregates
            if (each.input, each.argument) == (source, argument) and each.function != DISTINCT
        }

    @property
    def distincts(self) -> tuple[tuple[int, int], ...]:
        """The columns that COUNT(DISTINCT x) counts, as (input, number of the column in it)."""
        return tuple((i, d) for i, source in enumerate(self.inputs) for d in range(source.distincts))


class Plan(NamedTuple):
    """How a join runs."""

    early: tuple[bool, ...]  # for each input: are its rows aggregated before the join?
    multiply: bool = False  # are all changes of a cell in a slide joined at once?


class Moved(NamedTuple):
    """New labels for old ones."""

    old: Ints  # in ascending order
    new: Ints

    def of(self, labels: Ints) -> Ints:
        """The new labels of these."""
        return self.new[np.searchsorted(self.old, labels)]

    def renew(self, arguments: Ints, valid: Ints, argument: int) -> None:
        """Replace the labels of rows in this argument, where they have one."""
        there = valid >> argument & 1 != 0
        arguments[there, argument] = self.of(arguments[there, argument])


class Cells(NamedTuple):
    """New cells of an input; the first has the input's next code."""

    variables: Codes  # [cell, variable of the input]
    part: Codes  # 0 if the input has no grouping columns
    distinct: Codes  # [cell, column of COUNT(DISTINCT x)]: the value's code, or NO_VALUE

    @classmethod
    def none(cls, variables: int, distincts: int) -> Cells:
        """No cells."""
        return cls(np.zeros((0, variables), np.int32), np.zeros(0, np.int32), np.zeros((0, distincts), np.int32))


class KeptCells(NamedTuple):
    """The cells of an input after renumbering: cell old[c] becomes cell c. Other cells are forgotten.

    `cells` has their meanings again, because codes of variables and parts change, too. Groups get other codes.
    """

    old: Ints
    cells: Cells


class Rows(NamedTuple):
    """Rows of one input, in order of arrival."""

    time: Ints
    cell: Codes  # or UNMATCHED
    arguments: Ints  # [row, argument]: the value, or the bits of a float64
    valid: Ints  # bit a: argument a has a value
    weight: Ints | None = None  # how many merged rows each stands for; None: one

    def part(self, which: slice | Ints | npt.NDArray[np.bool_]) -> Rows:
        weight = None if self.weight is None else self.weight[which]
        return Rows(self.time[which], self.cell[which], self.arguments[which], self.valid[which], weight)


class Batch(NamedTuple):
    """Rows that arrive together."""

    rows: tuple[Rows | None, ...]  # by input
    cells: tuple[Cells | None, ...]  # by input: the new cells of these rows
    order: Codes | None = None  # the input of each arrival; None: the rows of one input after those of another


class Answer(NamedTuple):
    """One entry for each group that is shown or has changed, in order of time; at equal times in no order."""

    at: Ints  # the window's end; with each arrival, now: the largest time seen, or arrivals so far
    turn: Ints  # the number of the moment: entries of the same moment have the same turn
    group: Ints  # a code; until the next call, `JoinOperator.parts` has its parts
    live: npt.NDArray[np.bool_]  # False: the group is gone
    values: Ints  # [entry, aggregate]: the value, or the bits of a float64
    valid: Ints  # bit a: aggregate a has a value

    def chosen(self, lines: Ints) -> Answer:
        """Select these entries, in this order."""
        at, turn, group, live, values, valid = self
        return Answer(at[lines], turn[lines], group[lines], live[lines], values[lines], valid[lines])


class Known(NamedTuple):
    """What a running operator has observed of an input."""

    came: float  # recent rows; older ones count less
    rows: int  # live rows
    cells: int
    keys: int  # different values of its join variables
    groups: int  # different parts of groups


class ShowsGroups(ShowsNoRows):
    """Mixin for operators of joins: there is no `top`."""

    def next_held(self) -> int | None:
        return None  # there is no `top` to be about it

    def top(self, k: int, size: int | None) -> Answer:
        raise InvalidQuery("A join has no `top`: Skyband emits its groups when windows close or when they change.")


class JoinOperator(Operator[Batch, Answer, Sequence[KeptCells]], Protocol):
    """A running algorithm for aggregates over joins."""

    def parts(self, groups: Ints) -> Codes:
        """The parts of these groups: [group, grouped input]."""
        ...

    def last_end(self) -> int:
        """The end of the last window that would close if the input ended now; BEFORE if none would."""
        ...

    def groups_live(self) -> int:
        """The number of groups that have rows."""
        ...

    def known(self) -> tuple[Known, ...]:
        """The observations about each input, for the planner."""
        ...

    @property
    def moments(self) -> float:
        """The number of recent moments at which rows came; older ones count less. 0: no row has come to a window."""
        ...

    def age(self) -> None:
        """Halve the weight of everything observed so far."""
        ...

    def relabel(self, moved: Mapping[tuple[int, int], Moved]) -> None:
        """Replace the labels of values, by input and argument. Their order stays the same, and so do all answers."""
        ...

    def live_codes(self) -> tuple[npt.NDArray[np.bool_], ...]:
        """For each input and cell: has it rows, live or waiting?"""
        ...


JoinAlgorithm = Algorithm[Spec, JoinOperator]


def is_float(spec: Spec, aggregate: Aggregate) -> bool:
    """Are the values of this aggregate float64?"""
    if aggregate.function in (COUNT, DISTINCT):
        return False
    return aggregate.function == AVG or spec.inputs[aggregate.input].floats[aggregate.argument]
