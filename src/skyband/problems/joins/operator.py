"""The input of join operators: cells and numbers, never rows.

A *cell* is a small whole number for all rows of one input that agree in the columns of its joins and of the grouping:
rows of a cell match the same rows of other inputs and fall into the same groups. An operator gets the meaning of a cell
once, when it is new: its value of each join variable (columns that a join sets equal share a variable, and the codes of
its values), its *part* of the group, the code of its grouping columns, and the codes of the values that COUNT(DISTINCT
x) counts: rows of a cell agree in those columns, too.
"""

from __future__ import annotations

from collections.abc import Sequence
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
# What becomes of an argument when several rows are made one.
ADDED, LOWEST, HIGHEST, LOWEST_FLOAT, HIGHEST_FLOAT = range(5)


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a join, in numbers."""

    size: int  # of its window; FOREVER: from the start, or a relation
    variables: tuple[int, ...] = ()  # the join variables that its cells have a value of
    grouped: bool = False  # some columns of the grouping are its
    floats: tuple[bool, ...] = ()  # for each argument of an aggregate: is it float64? Else int64
    relation: bool = False  # there before the first row of a stream, and for good
    scales: tuple[
        int, ...
    ] = ()  # for each argument: how many digits of its int64 are behind the point; none: 0 of each
    distincts: int = 0  # columns whose different values are counted

    def scale(self, argument: int) -> int:
        return self.scales[argument] if self.scales else 0


class Aggregate(NamedTuple):
    function: int  # COUNT, …
    input: int = ALL
    argument: int = ALL  # among the arguments of its input, or its columns whose different values are counted


@dataclass(frozen=True, slots=True)
class Spec:
    """A query in numbers."""

    inputs: tuple[Input, ...]
    aggregates: tuple[Aggregate, ...]
    every: int  # 0: an answer with each arrival
    emit: int = WHOLE_CODE
    lateness: int = 0  # FOREVER: rows do not move the watermark
    by_count: bool = False  # windows count arrivals, each those of its own input
    top: int = 0  # > 0: only the best so many groups, and those that tie with the last of them
    top_by: int = 0  # by this aggregate
    ascending: bool = False  # the smallest are the best

    @property
    def waits(self) -> bool:
        """Do windows close by the watermark?"""
        return self.every > 0 and not self.by_count

    @property
    def counts_apart(self) -> bool:
        """Do several streams count their own arrivals? Then nobody knows which of two rows will go first."""
        return self.by_count and sum(not source.relation for source in self.inputs) > 1

    @property
    def grouped_inputs(self) -> tuple[int, ...]:
        return tuple(i for i, source in enumerate(self.inputs) if source.grouped)

    @property
    def linear(self) -> bool:
        """Can every aggregate be taken back, row by row?"""
        return not any(aggregate.function in (MIN, MAX) for aggregate in self.aggregates)

    def as_one(self, source: int) -> tuple[int, ...] | None:
        """By argument: what becomes of it when rows that come and go together are made one row with a weight.

        None: they stay apart, since a sum of floats is rounded, or since an argument is asked for in two ways.
        """
        found = []
        for argument, is_float in enumerate(self.inputs[source].floats):
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
        """The columns whose different values are counted: input, and which of its own."""
        return tuple((i, d) for i, source in enumerate(self.inputs) for d in range(source.distincts))


class Plan(NamedTuple):
    """How a query is run."""

    early: tuple[bool, ...]  # by input: are its rows aggregated before the join?
    multiply: bool = False  # join what a slide changed of a cell, all at once


class Cells(NamedTuple):
    """Cells that are new; the first has the next code of its input."""

    variables: Codes  # [cell, variable of the input]
    part: Codes  # 0 when the input has no columns of the grouping
    distinct: Codes  # [cell, column whose different values are counted]: the value's code, or NO_VALUE

    @classmethod
    def none(cls, variables: int, distincts: int) -> Cells:
        """No cell."""
        return cls(np.zeros((0, variables), np.int32), np.zeros(0, np.int32), np.zeros((0, distincts), np.int32))


class KeptCells(NamedTuple):
    """Of one input: cell old[c] becomes cell c, and is told anew, since codes of variables and parts have changed, too.

    Other cells are forgotten, and groups get other codes.
    """

    old: Ints
    cells: Cells


class Rows(NamedTuple):
    """Rows of one input, in arrival order."""

    time: Ints
    cell: Codes  # or UNMATCHED
    arguments: Ints  # [row, argument]: the value, or the bits of a float64
    valid: Ints  # bit a: argument a has a value
    weight: Ints | None = None  # how many rows each stands for, with the sums of their arguments; None: itself

    def part(self, which: slice | Ints | npt.NDArray[np.bool_]) -> Rows:
        weight = None if self.weight is None else self.weight[which]
        return Rows(self.time[which], self.cell[which], self.arguments[which], self.valid[which], weight)


class Batch(NamedTuple):
    """Rows that arrive together."""

    rows: tuple[Rows | None, ...]  # by input
    cells: tuple[Cells | None, ...]  # by input: known before the rows
    order: Codes | None = None  # the input of each arrival, in order; None: input after input


class Answer(NamedTuple):
    """One entry for each group shown or changed, in order of time; within a time in no order."""

    at: Ints  # the window's end; with each arrival, now: the largest time seen, or arrivals so far
    turn: Ints  # counts the moments: two entries with the same turn became known at once
    group: Ints  # a code, whose parts `Operator.parts` knows until the next call
    live: npt.NDArray[np.bool_]  # False: the group is gone
    values: Ints  # [entry, aggregate]: the value, or the bits of a float64
    valid: Ints  # bit a: aggregate a has a value

    def chosen(self, lines: Ints) -> Answer:
        """Only these entries, in this order."""
        at, turn, group, live, values, valid = self
        return Answer(at[lines], turn[lines], group[lines], live[lines], values[lines], valid[lines])


class Known(NamedTuple):
    """What a running operator knows of an input."""

    came: float  # rows, of late
    rows: int  # live
    cells: int
    keys: int  # values of its join variables
    groups: int  # of its part of the grouping


class ShowsGroups(ShowsNoRows):
    """Of all operators for joins: they are not asked right now."""

    def top(self, k: int, size: int | None) -> Answer:
        raise InvalidQuery("Groups of a join are shown as windows close or as they change: there is no `top`.")


class JoinOperator(Operator[Batch, Answer, Sequence[KeptCells]], Protocol):
    """An algorithm for aggregates over joins, running."""

    def parts(self, groups: Ints) -> Codes:
        """[group, grouped input]: the parts of these groups."""
        ...

    def last_end(self) -> int:
        """The end of the last window that the end of the input would close now; BEFORE: there is none."""
        ...

    def groups_live(self) -> int:
        """Groups that have rows."""
        ...

    def known(self) -> tuple[Known, ...]:
        """What the planner may want to know, by input."""
        ...

    @property
    def moments(self) -> float:
        """In which rows came, of late; 0: none has come to a window."""
        ...

    def age(self) -> None:
        """From now on, what came before counts half as much as what came of late."""
        ...

    def live_codes(self) -> tuple[npt.NDArray[np.bool_], ...]:
        """By input and cell: are there rows of it, live or waiting?"""
        ...


JoinAlgorithm = Algorithm[Spec, JoinOperator]


def is_float(spec: Spec, aggregate: Aggregate) -> bool:
    """Are the values of this aggregate float64?"""
    if aggregate.function in (COUNT, DISTINCT):
        return False
    return aggregate.function == AVG or spec.inputs[aggregate.input].floats[aggregate.argument]
