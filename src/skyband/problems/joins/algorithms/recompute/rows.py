"""Rows, cells and lines of an answer, as plain values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from skyband.problems.joins.operator import UNMATCHED, Batch, Cells


class Cell(NamedTuple):
    """The meaning of a cell."""

    variables: tuple[int, ...]
    part: int
    distinct: tuple[int, ...] = ()  # codes of values, or NO_VALUE


class Row(NamedTuple):
    """A row in numbers."""

    cell: int
    bits: tuple[int, ...]  # the bits of its arguments
    valid: int  # bit a: argument a has a value


class Joining(NamedTuple):
    """The values of a row that matter in a join."""

    variables: dict[int, int]
    part: int
    arguments: tuple[int | float | None, ...]
    distinct: tuple[int, ...]  # codes of values, or NO_VALUE

    def agrees(self, bound: dict[int, int]) -> bool:
        return all(bound.get(variable, value) == value for variable, value in self.variables.items())


class Line(NamedTuple):
    """One entry of an answer."""

    at: int
    turn: int
    parts: tuple[int, ...] | None  # None: no group is left
    values: tuple[Any, ...] | None  # None: the group is gone


def as_cells(cells: Cells) -> list[Cell]:
    columns = (column.tolist() for column in cells)
    return [Cell(tuple(v), p, tuple(d)) for v, p, d in zip(*columns, strict=True)]


def arriving(batch: Batch) -> Iterator[tuple[int, int, Row | None]]:
    """Yield the rows of a batch in order of arrival: input, time and row; None for a row that matches nothing."""
    counts = [0 if rows is None else len(rows.time) for rows in batch.rows]
    order = [i for i, n in enumerate(counts) for _ in range(n)] if batch.order is None else batch.order.tolist()
    taken = [0 for _ in counts]
    for source in order:
        rows, i = batch.rows[source], taken[source]
        assert rows is not None
        assert rows.weight is None, "the definition is about rows"
        taken[source] += 1
        row = Row(int(rows.cell[i]), tuple(rows.arguments[i].tolist()), int(rows.valid[i]))
        yield source, int(rows.time[i]), None if row.cell == UNMATCHED else row
