"""The rows behind the positions an operator holds: columns in Arrow, each row found by its arrival position."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyband.core.encoding.schemas import encoded, whole_batch
from skyband.core.snapshots import Part
from skyband.core.validation import Saved, check_kinds
from skyband.kernels.positions import locate, pick
from skyband.windows import NEVER

Ints = npt.NDArray[np.int64]

# As RecordBatch.take does it, which looks all of this up each time: that shows where an answer takes microseconds.
_TAKE, _UNCHECKED, _INDEX = pc.get_function("take"), pc.TakeOptions(boundscheck=False), pa.int64()

FEW = 8  # batches, each of which is one more place to look
MANY = 4096  # rows at once, for which it pays to pick them out column by column
RANGE = 2048  # arrivals whose rows are one batch of a snapshot
SPARSE = 4  # arrivals for each row that is held: with more, such batches would have few rows
LITTLE = 4096  # rows in all: copying them together is cheaper than looking in several places


class RowStore:
    """Rows in order of arrival. It keeps those an operator holds and, for a while, some that it no longer does.

    Older rows are few, and their positions are listed. Behind them come whole batches, whose positions are consecutive.
    They are cleaned up when less than half of all rows are still held, so the cost of keeping rows is constant per row
    however the stream is cut into batches.
    """

    little: ClassVar[int] = LITTLE
    many: ClassVar[int] = MANY
    checked = False  # are positions looked up that somebody may have made up? Those of a snapshot are

    def __init__(self, schema: pa.Schema, *, dense: bool = False) -> None:
        """Dense: all rows of a window are held, and that is much. They are found in few places, and cleaned up as soon
        as a quarter more of them is stored."""
        self._dense = dense
        # Rows without columns have a column of nulls, which takes no memory: Arrow counts rows by their columns, and in
        # a table, a snapshot or a batch put together from none it would forget how many there are.
        self._bare = not len(schema)
        self._schema = _COUNTED if self._bare else schema
        self._has_dictionaries = any(map(pa.types.is_dictionary, schema.types))
        self.load(np.empty(0, np.int64), _empty(schema))

    def load(self, positions: Ints, rows: pa.RecordBatch) -> None:
        """Keep these rows; positions are ascending."""
        rows = _counted(len(positions)) if self._bare else self._typed(rows)
        rows = without_waste(rows) if self._has_dictionaries else rows
        assert rows.num_rows == len(positions), "every position has its row"
        self._positions = positions
        self._batches = [rows]
        self._starts = [0, rows.num_rows]  # where each batch starts among all rows, and where the last one ends
        self._first = NEVER  # the position of the first row of whole batches
        self._together: pa.RecordBatch | None = rows  # all of them in one batch, or None: not made since rows came

    def restore(self, session: Part, held: Ints) -> None:
        """Keep the rows of a snapshot, which must be all that its operator holds: they are looked up unchecked."""
        check_kinds(session.arrays, {"held": held})
        saved, found, rows = Saved(session.arrays), session.arrays["held"], whole_batch(session.tables["rows"])
        saved.promise(np.array_equal(found, held), "'held' is not what the algorithm holds")
        saved.ascends("held", found, strictly=True)
        saved.within("held", found, 0, session.counters["position"] - 1)
        saved.promise(rows.num_rows == len(found) or not len(rows.schema), "'rows' are not as many as are held")
        self.load(found, rows)
        self.checked = True

    def append(self, first: int, batch: pa.RecordBatch) -> None:
        """Rows that arrived at positions first, first + 1, …: right after those of the batch before."""
        if len(self._batches) == 1:
            self._first = first
        assert first == self._first + self._starts[-1] - len(self._positions), "no batch is missing"
        self._batches.append(_counted(batch.num_rows) if self._bare else self._typed(batch))
        self._starts.append(self._starts[-1] + batch.num_rows)
        self._together = None

    def _typed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch as the schema says: to Arrow, a column that may be null is another than one that may not."""
        return batch if batch.schema == self._schema else pa.record_batch(batch.columns, schema=self._schema)

    def take(self, positions: Ints) -> pa.RecordBatch:
        """The rows at these positions, in their order."""
        if self.checked:
            self._check(positions)
        if self._dense:
            self.join()
        found = self._take(positions)
        return found.select([]) if self._bare else found

    def _check(self, positions: Ints) -> None:
        """Raise unless all these rows are here: they are looked up as if they were."""
        listed = positions[positions < self._first]
        at = np.minimum(np.searchsorted(self._positions, listed), max(0, len(self._positions) - 1))
        after = self._first + self._starts[-1] - len(self._positions)
        if len(listed) and not (len(self._positions) and (self._positions[at] == listed).all()):
            raise KeyError("a row that is shown is not held")
        if (positions[positions >= self._first] >= after).any():
            raise KeyError("a row that is shown has not come")

    def _take(self, positions: Ints) -> pa.RecordBatch:
        if self._together is None and self._starts[-1] <= self.little:
            self._together = pa.concat_batches(self._batches)
        if self._together is not None and len(positions):
            index = column_of(locate(self._positions, self._first, positions), np.int64, _INDEX)
            return _TAKE.call([self._together, index], _UNCHECKED)
        if len(self._batches) != 2 or len(positions) < self.many:
            return self._take_by_batch(positions, self._schema)
        # Rows held and one large batch behind them: what a stream in large batches mostly comes to.
        index, (listed, following) = locate(self._positions, self._first, positions), self._batches
        columns = dict.fromkeys(self._schema.names)
        for name in columns:
            if _is_flat(listed.column(name)) and _is_flat(following.column(name)):
                columns[name] = _pick(index, listed.column(name), following.column(name))
        others = pa.schema([field for field in self._schema if columns[field.name] is None])
        if len(others):
            columns |= dict(zip(others.names, self._take_by_batch(positions, others).columns, strict=True))
        return pa.record_batch(list(columns.values()), schema=self._schema)

    def _take_by_batch(self, positions: Ints, schema: pa.Schema) -> pa.RecordBatch:
        """These columns of the rows. Batch by batch: of a table, Arrow would copy all batches together first."""
        found = [(self._batches[batch].select(schema.names), *where) for batch, *where in self._find(positions)]
        if len(found) < 2:
            return found[0][0].take(pa.array(found[0][2])) if found else _empty(schema)
        parts, order, taken = [], np.empty(len(positions), np.int64), 0
        for rows, place, index in found:
            if rows.num_rows <= len(index):  # many are wanted more than once: they go as they are
                order[place] = taken + index
                parts.append(rows)
            else:
                order[place] = np.arange(taken, taken + len(index))
                parts.append(rows.take(pa.array(index)))
            taken += parts[-1].num_rows
        return pa.concat_batches(parts).take(pa.array(order))

    def _find(self, positions: Ints) -> Iterator[tuple[int, Ints, Ints]]:
        """Which batch holds which of the positions, and where: (batch, which, where)."""
        if not len(positions):
            return
        listed = positions < self._first
        which = np.flatnonzero(listed)
        if len(which):
            yield 0, which, locate(self._positions, self._first, positions[which])
        which = np.flatnonzero(~listed)
        index = positions[which] + (len(self._positions) - self._first)
        if len(self._batches) == 2:
            if len(which):
                yield 1, which, index - self._starts[1]
            return
        batch_of = np.searchsorted(self._starts, index, side="right") - 1
        by_batch = np.argsort(batch_of, kind="stable")
        for batch, start, stop in _runs(batch_of[by_batch]):
            some = by_batch[start:stop]
            yield batch, which[some], index[some] - self._starts[batch]

    def join(self) -> None:
        """Copy small batches together where there are many, so that rows are found in few places.

        What is copied at least makes a batch half as large again, so a row is copied a logarithmic number of times.
        """
        if len(self._batches) <= FEW:
            return
        start = len(self._batches) - 1
        while start > 1 and self._rows_in(start - 1) <= 2 * (self._starts[-1] - self._starts[start]):
            start -= 1
        if start < len(self._batches) - 1:
            self._batches[start:] = [pa.concat_batches(self._batches[start:])]
            self._starts[start + 1 :] = self._starts[-1:]

    def _rows_in(self, batch: int) -> int:
        return self._starts[batch + 1] - self._starts[batch]

    def keep(self, held: Ints) -> None:
        """Forget the rows at other positions than these, which are ascending."""
        self.load(held, self.take(held))

    def in_ranges(self, positions: Ints) -> list[pa.RecordBatch]:
        """The rows at these positions, which ascend, in batches for a snapshot.

        Where rows lie close, a batch has those of a range of arrivals. It is written the same each time until one of
        them leaves, also where columns say where their strings begin.
        """
        rows = self.take(positions)
        if len(positions) <= RANGE or positions[-1] - positions[0] >= SPARSE * len(positions):
            return [rows]
        ends = np.flatnonzero(np.diff(positions // RANGE)) + 1
        return [rows.slice(start, end - start) for start, end in pairwise([0, *ends.tolist(), len(positions)])]

    def take_and_keep(self, positions: Ints, held: Ints) -> pa.RecordBatch:
        """The rows at these positions; of all others, those that are not held are forgotten."""
        rows = self.take(np.concatenate([positions, held]))
        self.load(held, rows.slice(len(positions)))
        return rows.slice(0, len(positions))

    def is_wasteful(self, rows_held: int) -> bool:
        return self._starts[-1] > (5 * rows_held // 4 if self._dense else 2 * rows_held) + 64


def without_waste(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows, with dictionaries that have no more than a few values that none of them has."""
    columns = [
        encoded(column.dictionary.take(column.indices), column.type)
        if pa.types.is_dictionary(column.type) and len(column.dictionary) > 2 * rows.num_rows + LITTLE
        else column
        for column in rows.columns
    ]
    return pa.record_batch(columns, schema=rows.schema)


_COUNTED = pa.schema([pa.field("", pa.null())])


def _counted(rows: int) -> pa.RecordBatch:
    """Rows without columns."""
    return pa.record_batch([pa.nulls(rows)], schema=_COUNTED)


def column_of(numbers: npt.NDArray[Any], plain: type[np.number[Any]], kind: pa.DataType) -> pa.Array:
    """A column of this type over these numbers. `plain`: the type of numbers that it is made of.

    As `pa.array`, which first looks at what it is given.
    """
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(np.ascontiguousarray(numbers, plain))])


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.record_batch([pa.nulls(0, field.type) for field in schema], schema=schema)


def _is_flat(column: pa.Array) -> bool:
    """Is it an array of numbers or the like, and nothing besides?"""
    return pa.types.is_primitive(column.type) and column.type.bit_width >= 8 and not column.null_count


def _pick(index: Ints, listed: pa.Array, following: pa.Array) -> pa.Array:
    """The entries at these indices of a flat column in two pieces. Arrow, which checks each index, takes longer."""
    picked = np.empty(len(index), f"u{listed.type.bit_width // 8}")
    pick(index, _flat(listed), _flat(following), picked)
    return column_of(picked, picked.dtype.type, listed.type)


def _flat(column: pa.Array) -> npt.NDArray[np.unsignedinteger[Any]]:
    """A flat column's entries, whatever they stand for."""
    size = column.type.bit_width // 8
    if not len(column):
        return np.empty(0, f"u{size}")
    return np.frombuffer(column.buffers()[1], f"u{size}", len(column), column.offset * size)


def _runs(sorted_numbers: npt.NDArray[np.intp]) -> Iterator[tuple[int, int, int]]:
    """Each number with where its run starts and stops."""
    ends = [*(np.flatnonzero(sorted_numbers[1:] != sorted_numbers[:-1]) + 1).tolist(), len(sorted_numbers)]
    for start, stop in pairwise([0, *ends]):
        if stop > start:
            yield int(sorted_numbers[start]), start, stop
