"""Codes for the cells, join variables and groups of a join, and the values behind them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyband.core.encoding.groups import GroupCodes
from skyband.core.encoding.schemas import whole_batch
from skyband.core.encoding.value_types import as_values
from skyband.core.operator import Codes, Ints
from skyband.core.validation import Saved
from skyband.problems.joins.columns import BoundInput, BoundJoin
from skyband.problems.joins.labels import ROOM, Bools, OrderLabels
from skyband.problems.joins.operator import NO_PARTNER, NO_VALUE, UNMATCHED, Cells, KeptCells, Moved, Rows


class InputCodes:
    """The cells of one input: combinations of values in its key columns."""

    def __init__(self, source: BoundInput, variables: Sequence[GroupCodes], *, label_room: int = ROOM) -> None:
        self._source = source
        self._variables = [variables[v] for v in source.variables]
        columns = source.keys
        self._schema = pa.schema([source.schema.field(name) for name in columns])
        self._cells = GroupCodes(self._schema) if columns else None
        # If all key columns are grouping columns, a cell is its own part.
        self._is_part = bool(columns) and set(columns) == set(source.grouped)
        grouped = pa.schema([source.schema.field(name) for name in source.grouped])
        self._parts = GroupCodes(grouped) if source.grouped and not self._is_part else None
        self._values = {name: GroupCodes(pa.schema([source.schema.field(name)])) for name in source.distinct}
        self._add_no_partner()
        # The columns of which MIN or MAX takes labels: their values, and the code of each cell's value.
        self._labels = [OrderLabels(source.schema.field(name).type, room=label_room) for name in source.labelled]
        self._labelled = np.zeros((0, len(self._labels)), np.int32)
        self._told = 0  # how many cells the operator knows

    def _add_no_partner(self) -> None:
        """Give rows without values the first cell: their keys are null, and no other row of the input has such keys."""
        if self._source.how != "inner" and self._cells is not None:
            nulls = [pa.nulls(1, field.type) for field in self._schema]
            assert self._cells.encode(pa.record_batch(nulls, names=self._schema.names)).tolist() == [NO_PARTNER]

    def __len__(self) -> int:
        return 1 if self._cells is None else len(self._cells)

    @property
    def keys(self) -> pa.Table:
        """The key columns of each cell."""
        assert self._cells is not None
        return self._cells.keys

    def matchable(self, batch: pa.RecordBatch) -> npt.NDArray[np.bool_] | None:
        """Which rows have a value in every join column that must have one; None: all of them."""
        nulls = [batch.column(name) for name in self._source.matching if batch.column(name).null_count]
        if not nulls:
            return None
        found = pc.is_valid(nulls[0])
        for column in nulls[1:]:
            found = pc.and_(found, pc.is_valid(column))
        return found.to_numpy(zero_copy_only=False)

    def encode(self, batch: pa.RecordBatch) -> Codes:
        if self._cells is None:
            return np.zeros(batch.num_rows, np.int32)
        return self._cells.encode(batch.select(self._schema.names))

    def new_cells(self) -> Cells | None:
        """The cells that the operator does not know yet; None if it knows all."""
        if self._told == len(self):
            return None
        new = len(self) - self._told
        variables, part = np.zeros((new, len(self._variables)), np.int32), np.zeros(new, np.int32)
        distinct = np.zeros((new, len(self._values)), np.int32)
        if self._cells is not None:
            keys = whole_batch(self._cells.keys.slice(self._told))
            for i, (codes, name) in enumerate(zip(self._variables, self._source.joined, strict=True)):
                variables[:, i] = _encode_column(codes, keys.column(name))
            for i, (name, codes) in enumerate(self._values.items()):
                distinct[:, i] = _encode_values(codes, keys.select([name]))
            self._label_cells(keys)
            if self._is_part:
                part = np.arange(self._told, len(self), dtype=np.int32)
            elif self._parts is not None:
                part = self._parts.encode(keys.select(list(self._source.grouped)))
        self._told = len(self)
        return Cells(variables, part, distinct)

    def _label_cells(self, keys: pa.RecordBatch) -> None:
        """Note the values of new cells that have labels."""
        if self._labels:
            new = [
                labels.encode(keys.column(name))
                for labels, name in zip(self._labels, self._source.labelled, strict=True)
            ]
            self._labelled = np.concatenate([self._labelled, np.stack(new, axis=1)])

    def with_labels(self, rows: Rows) -> Rows:
        """Rows whose last arguments are the labels of their values. The operator has been told of all their cells."""
        if not self._labels:
            return rows
        arguments, valid, matched = [rows.arguments], rows.valid.copy(), rows.cell != UNMATCHED
        for j, each in enumerate(self._labels):
            numbers, there = np.zeros(len(matched), np.int64), np.zeros(len(matched), bool)
            numbers[matched], there[matched] = each.labels(self._labelled[rows.cell[matched], j])
            valid |= there.astype(np.int64) << (len(self._source.arguments) + j)
            arguments.append(numbers[:, None])
        return rows._replace(arguments=np.concatenate(arguments, axis=1), valid=valid)

    def moved(self) -> dict[int, Moved]:
        """The new labels, by argument, of values that the operator knows by others."""
        first = len(self._source.arguments)
        return {first + j: moved for j, each in enumerate(self._labels) if (moved := each.moved()) is not None}

    def values_of(self, argument: int, labels: Ints, there: Bools) -> pa.Array:
        """The values behind labels, which are the minimum or maximum of this argument."""
        return self._labels[argument - len(self._source.arguments)].values(labels, there)

    def part_keys(self) -> pa.Table:
        """The grouping columns of each part."""
        codes = self._cells if self._is_part else self._parts
        assert codes is not None
        return codes.keys

    def state(self) -> dict[str, pa.Table]:
        saved = {} if self._cells is None else {"cells": self._cells.keys}
        saved |= {} if self._parts is None else {"parts": self._parts.keys}
        saved |= {f"labels {j}": each.state() for j, each in enumerate(self._labels)}
        return saved | {f"values {i}": codes.keys for i, codes in enumerate(self._values.values())}

    def validate(self, i: int, operator: Saved, tables: dict[str, pa.Table]) -> int:
        cells = 1 if self._cells is None else tables[f"input {i} cells"].num_rows
        parts = cells if self._is_part else 1 if self._parts is None else tables[f"input {i} parts"].num_rows
        if f"cells {i} part" in operator:  # `recompute` saves other arrays
            told, variables = operator[f"cells {i} part"], operator[f"cells {i} variables"]
            missing = len(told) != cells and not (self._cells is None and not len(told))
            operator.promise(not missing, f"there are {len(told)} cells of input {i}, and {cells} have keys")
            operator.indices(f"cells {i} part", told, parts)
            for column, v in enumerate(self._source.variables[: variables.shape[-1]]):
                operator.indices(f"cells {i} variables", variables[:, column], tables[f"variable {v}"].num_rows)
            self._validate_labels(i, operator, tables)
            for column in range(len(self._values)):
                codes = operator[f"cells {i} distinct"][:, column]
                values = tables[f"input {i} values {column}"].num_rows
                operator.indices(f"cells {i} distinct", codes[codes != NO_VALUE], values)
        return parts

    def _validate_labels(self, i: int, operator: Saved, tables: dict[str, pa.Table]) -> None:
        for j in range(len(self._labels)):
            known = tables[f"input {i} labels {j}"].column("label").to_numpy()
            argument = len(self._source.arguments) + j
            for rows in ("live", "waiting"):
                there = operator[f"{rows} {i} valid"] >> argument & 1 != 0
                found = operator[f"{rows} {i} arguments"][there, argument]
                operator.promise(bool(np.isin(found, known).all()), f"{rows} {i} arguments have labels without values")

    def restore(self, state: dict[str, pa.Table]) -> None:
        """Continue from saved tables. The operator's state has all their cells, so it knows them."""
        if self._cells is not None:
            self._cells.load(state["cells"])
        if self._parts is not None:
            self._parts.load(state["parts"])
        for i, codes in enumerate(self._values.values()):
            codes.load(state[f"values {i}"])
        for j, labels in enumerate(self._labels):
            labels.restore(state[f"labels {j}"])
        if self._cells is not None:
            self._label_cells(whole_batch(self._cells.keys))
        self._told = len(self)

    def parts(self) -> Codes:
        """The part of each cell."""
        if self._is_part or self._parts is None or self._cells is None:
            return np.arange(len(self), dtype=np.int32) if self._is_part else np.zeros(len(self), np.int32)
        return self._parts.encode(whole_batch(self._cells.keys.select(list(self._source.grouped))))

    def keep(self, cells: Ints) -> Cells:
        """Forget all other cells, and all parts and values. Returns these cells as if they were new."""
        if self._cells is not None:
            self._cells.keep(cells)
        if self._parts is not None:
            self._parts.load(self._parts.keys.slice(0, 0))
        for codes in self._values.values():
            codes.load(codes.keys.slice(0, 0))
        for j, labels in enumerate(self._labels):
            labels.keep(np.unique(self._labelled[cells, j]).astype(np.int64))
        self._labelled = self._labelled[:0]  # new_cells encodes them again
        self._told = 0
        return self.new_cells() or Cells.none(len(self._variables), len(self._values))


class JoinCodes:
    """The codes of all inputs. A value of a join variable has the same code in every input."""

    def __init__(self, bound: BoundJoin, *, label_room: int = ROOM) -> None:
        self._variables = [GroupCodes(pa.schema([("value", kind)])) for kind in bound.variable_types]
        self.inputs = [InputCodes(source, self._variables, label_room=label_room) for source in bound.inputs]
        self.recount_at = 0  # with this many cells, the codec counts how many of them are dead

    def compact(self, cells: Sequence[Ints]) -> list[KeptCells]:
        """Forget all cells but these, for each input, and values that no cell has."""
        for codes in self._variables:
            codes.load(codes.keys.slice(0, 0))
        return [KeptCells(kept, each.keep(kept)) for each, kept in zip(self.inputs, cells, strict=True)]

    def moved(self) -> dict[tuple[int, int], Moved]:
        """The new labels, by input and argument, of values that the operator knows by others."""
        return {(i, a): moved for i, each in enumerate(self.inputs) for a, moved in each.moved().items()}

    def validate(self, i: int, operator: Saved, tables: dict[str, pa.Table]) -> int:
        """Check what the operator saved about the cells of an input. Returns the number of its parts."""
        return self.inputs[i].validate(i, operator, tables)

    def state(self) -> dict[str, pa.Table]:
        saved = {f"variable {v}": codes.keys for v, codes in enumerate(self._variables)}
        for i, codes in enumerate(self.inputs):
            saved |= {f"input {i} {name}": table for name, table in codes.state().items()}
        return saved

    def restore(self, state: dict[str, pa.Table]) -> None:
        for v, codes in enumerate(self._variables):
            codes.load(state[f"variable {v}"])
        for i, each in enumerate(self.inputs):
            start = f"input {i} "
            each.restore({name.removeprefix(start): table for name, table in state.items() if name.startswith(start)})


def _encode_values(codes: GroupCodes, column: pa.RecordBatch) -> Codes:
    """The codes of values that COUNT(DISTINCT x) counts; NO_VALUE for null."""
    found = codes.encode(column)
    missing = pc.is_null(column.column(0)).to_numpy(zero_copy_only=False)
    return np.where(missing, np.int32(NO_VALUE), found)


def _encode_column(codes: GroupCodes, column: pa.Array) -> Codes:
    kind = codes.keys.schema.field("value").type
    return codes.encode(pa.record_batch([as_values(column).cast(kind)], names=["value"]))
