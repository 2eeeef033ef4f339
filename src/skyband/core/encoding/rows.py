"""The rows whose positions an operator holds, as Arrow columns. A row is found by its arrival position."""

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

# RecordBatch.take looks these up at each call, which is noticeable because an answer takes only microseconds.
_TAKE, _UNCHECKED, _INDEX = pc.get_function("take"), pc.TakeOptions(boundscheck=False), pa.int64()

FEW = 8  # with more batches than this, small ones are merged
MANY = 4096  # to take this many rows at once, it pays to pick them column by column
RANGE = 2048  # one batch of a snapshot has the rows of this many arrivals
SPARSE = 4  # with more arrivals than this per row held, such batches would have too few rows
LITTLE = 4096  # up to this many rows, merging all batches is cheaper than looking in several


class RowStore:
    """Rows in order of arrival: those that an operator holds and, for a while, some that it has dropped.

    The first batch has older rows, with a list of their positions. Behind it come whole batches, whose positions are
    consecutive. When less than half of all rows are still held, the store drops the others. So keeping a row has a
    constant cost, however the stream is cut into batches.
    """

    little: ClassVar[int] = LITTLE
    many: ClassVar[int] = MANY
    checked = False  # does `take` check positions? Those from a snapshot may be wrong

    def __init__(self, schema: pa.Schema, *, dense: bool = False) -> None:
        """`dense`: the operator holds all rows of a window. The store then merges batches before it looks rows up, and
        drops rows as soon as a fifth of them is no longer held."""
        self._dense = dense
        # Rows without columns get a column of nulls, which takes no memory: Arrow counts rows by their columns, so a
        # table, a snapshot or a merged batch without columns would lose their number.
        self._bare = not len(schema)
        self._schema = _COUNTED if self._bare else schema
        self._has_dictionaries = any(map(pa.types.is_dictionary, schema.types))
        self.load(np.empty(0, np.int64), _empty(schema))

    def load(self, positions: Ints, rows: pa.RecordBatch) -> None:
        """Keep these rows and no others. Positions ascend."""
        rows = _counted(len(positions)) if self._bare else self._typed(rows)
        rows = without_waste(rows) if self._has_dictionaries else rows
        assert rows.num_rows == len(positions), "every position has its row"
        self._positions = positions
        self._batches = [rows]
        self._starts = [0, rows.num_rows]  # where each batch begins among all rows, and where the last one ends
        self._first = NEVER  # the position of the first row behind the listed ones
        self._together: pa.RecordBatch | None = rows  # all rows in one batch; None: not built since rows came

    def restore(self, session: Part, held: Ints) -> None:
        """Keep the rows of a snapshot. They must be exactly the rows `held` by its operator."""
        check_kinds(session.arrays, {"held": held})
        saved, found, rows = Saved(session.arrays), session.arrays["held"], whole_batch(session.tables["rows"])
        saved.promise(np.array_equal(found, held), "'held' is not what the algorithm holds")
        saved.ascends("held", found, strictly=True)
        saved.within("held", found, 0, session.counters["position"] - 1)
        saved.promise(rows.num_rows == len(found) or not len(rows.schema), "'rows' are not as many as are held")
        self.load(found, rows)
        self.checked = True

    def append(self, first: int, batch: pa.RecordBatch) -> None:
        """Add rows that arrived at positions first, first + 1, …, right after those of the batch before."""
        if len(self._batches) == 1:
            self._first = first
        assert first == self._first + self._starts[-1] - len(self._positions), "no batch is missing"
        self._batches.append(_counted(batch.num_rows) if self._bare else self._typed(batch))
        self._starts.append(self._starts[-1] + batch.num_rows)
        self._together = None

    def _typed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Give the batch exactly this schema. Arrow tells nullable columns from others."""
        return batch if batch.schema == self._schema else pa.record_batch(batch.columns, schema=self._schema)

    def take(self, positions: Ints) -> pa.RecordBatch:
        """Return the rows at these positions, in this order."""
        if self.checked:
            self._check(positions)
        if self._dense:
            self.join()
        found = self._take(positions)
        return found.select([]) if self._bare else found

    def _check(self, positions: Ints) -> None:
        """Raise unless all these rows are here; the lookup itself does not check."""
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
        # Listed rows and one large batch behind them: the usual case for a stream in large batches.
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
        """Take the columns of `schema` batch by batch: Arrow would first copy all batches of a table together."""
        found = [(self._batches[batch].select(schema.names), *where) for batch, *where in self._find(positions)]
        if len(found) < 2:
            return found[0][0].take(pa.array(found[0][2])) if found else _empty(schema)
        parts, order, taken = [], np.empty(len(positions), np.int64), 0
        for rows, place, index in found:
            if rows.num_rows <= len(index):  # rows are wanted more than once: the whole batch goes as it is
                order[place] = taken + index
                parts.append(rows)
            else:
                order[place] = np.arange(taken, taken + len(index))
                parts.append(rows.take(pa.array(index)))
            taken += parts[-1].num_rows
        return pa.concat_batches(parts).take(pa.array(order))

    def _find(self, positions: Ints) -> Iterator[tuple[int, Ints, Ints]]:
        """Find positions: yields (batch, which of the positions it has, their rows in the batch)."""
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
        """Merge small batches at the end if there are many, so that a lookup has few places.

        A merge makes a batch at least half as large again, so a row is copied a logarithmic number of times.
        """
        if len(self._batches) <= FEW:
            return
        start = len(self._batches) - 1
        starts = self._starts
        while start > 1 and starts[start] - starts[start - 1] <= 2 * (starts[-1] - starts[start]):
            start -= 1
        if start < len(self._batches) - 1:
            self._batches[start:] = [pa.concat_batches(self._batches[start:])]
            self._starts[start + 1 :] = self._starts[-1:]

    def keep(self, held: Ints) -> None:
        """Keep only the rows at these positions, which ascend."""
        self.load(held, self.take(held))

    def in_ranges(self, positions: Ints) -> list[pa.RecordBatch]:
        """Return the rows at these positions, which ascend, in batches for a snapshot.

        If rows lie close, each batch has the rows of a range of arrivals. Its bytes, offsets of strings included, stay
        the same until one of its rows leaves, so that snapshots can share pages.
        """
        rows = self.take(positions)
        if len(positions) <= RANGE or positions[-1] - positions[0] >= SPARSE * len(positions):
            return [rows]
        ends = np.flatnonzero(np.diff(positions // RANGE)) + 1
        return [rows.slice(start, end - start) for start, end in pairwise([0, *ends.tolist(), len(positions)])]

    def take_and_keep(self, positions: Ints, held: Ints) -> pa.RecordBatch:
        """Return the rows at `positions`, and keep only those at `held`."""
        rows = self.take(np.concatenate([positions, held]))
        self.load(held, rows.slice(len(positions)))
        return rows.slice(0, len(positions))

    def is_wasteful(self, rows_held: int) -> bool:
        return self._starts[-1] > (5 * rows_held // 4 if self._dense else 2 * rows_held) + 64


def without_waste(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Shrink dictionaries that have many values that no row uses."""
    columns = [
        encoded(column.dictionary.take(column.indices), column.type)
        if pa.types.is_dictionary(column.type) and len(column.dictionary) > 2 * rows.num_rows + LITTLE
        else column
        for column in rows.columns
    ]
    return pa.record_batch(columns, schema=rows.schema)


_COUNTED = pa.schema([pa.field("", pa.null())])


def _counted(rows: int) -> pa.RecordBatch:
    """A batch that stands for rows without columns."""
    return pa.record_batch([pa.nulls(rows)], schema=_COUNTED)


def column_of(numbers: npt.NDArray[Any], plain: type[np.number[Any]], kind: pa.DataType) -> pa.Array:
    """Make a column of type `kind` over an array of numbers of type `plain`.

    It is faster than `pa.array`, which inspects its argument.
    """
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(np.ascontiguousarray(numbers, plain))])


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.record_batch([pa.nulls(0, field.type) for field in schema], schema=schema)


def _is_flat(column: pa.Array) -> bool:
    """Is it one buffer of fixed-size values, without nulls?"""
    return pa.types.is_primitive(column.type) and column.type.bit_width >= 8 and not column.null_count


def _pick(index: Ints, listed: pa.Array, following: pa.Array) -> pa.Array:
    """Take entries of a flat column in two pieces. Arrow is slower, because it checks each index."""
    picked = np.empty(len(index), f"u{listed.type.bit_width // 8}")
    pick(index, _flat(listed), _flat(following), picked)
    return column_of(picked, picked.dtype.type, listed.type)


def _flat(column: pa.Array) -> npt.NDArray[np.unsignedinteger[Any]]:
    """The values of a flat column as unsigned numbers of the same size."""
    size = column.type.bit_width // 8
    if not len(column):
        return np.empty(0, f"u{size}")
    return np.frombuffer(column.buffers()[1], f"u{size}", len(column), column.offset * size)


def _runs(sorted_numbers: npt.NDArray[np.intp]) -> Iterator[tuple[int, int, int]]:
    """Each number, and where its run starts and stops."""
    ends = [*(np.flatnonzero(sorted_numbers[1:] != sorted_numbers[:-1]) + 1).tolist(), len(sorted_numbers)]
    for start, stop in pairwise([0, *ends]):
        if stop > start:
            yield int(sorted_numbers[start]), start, stop
