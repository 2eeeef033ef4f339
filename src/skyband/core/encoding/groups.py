"""Group codes: a small whole number for every combination of values in the key columns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyband.core.encoding.schemas import whole_batch
from skyband.core.encoding.value_types import as_values, value_type
from skyband.kernels.codes import IntegerCodes, first_rows

Codes = npt.NDArray[np.int32]


class ValueCodes:
    """Codes for values of any type, by Arrow's dictionaries, which list values in order of first appearance.

    Null and NaN are values like any other.
    """

    def __init__(self, column_type: pa.DataType) -> None:
        self._values = pa.array([], value_type(column_type))

    @property
    def count(self) -> int:
        return len(self._values)

    def encode(self, column: pa.Array) -> Codes:
        encoded = as_values(column).dictionary_encode(null_encoding="encode")
        known = pc.index_in(encoded.dictionary, value_set=self._values)
        unknown = encoded.dictionary.filter(pc.is_null(known))
        if len(unknown):
            self._values = pa.concat_arrays([self._values, unknown])
            known = pc.index_in(encoded.dictionary, value_set=self._values)
        codes: Codes = known.to_numpy(zero_copy_only=True)
        return codes[encoded.indices.to_numpy(zero_copy_only=True)]


class WholeCodes:
    """Codes for columns that Arrow stores as whole numbers, and for null."""

    def __init__(self) -> None:
        self._numbers = IntegerCodes()
        self._null: int | None = None  # the code of null, once one has come

    @property
    def count(self) -> int:
        return self._numbers.count

    def encode(self, column: pa.Array) -> Codes:
        if not column.null_count:
            return self._numbers.encode(column.to_numpy(zero_copy_only=True))
        valid = pc.is_valid(column).to_numpy(zero_copy_only=False)
        numbers = column.drop_null().to_numpy(zero_copy_only=True)
        before = 0
        if self._null is None:
            # Numbers before the first null appeared first, so their codes come first.
            before = int(valid.argmin())
            first = self._numbers.encode(numbers[:before])
            self._null = self._numbers.next_code()
        codes = np.full(len(column), self._null, np.int32)
        if before:
            codes[:before] = first
        codes[before:][valid[before:]] = self._numbers.encode(numbers[before:])
        return codes


def is_whole(column_type: pa.DataType) -> bool:
    """Can every value of such a column be read as a different int64?"""
    signed = pa.types.is_integer(column_type) and column_type != pa.uint64()
    return signed or pa.types.is_timestamp(column_type)


def _as_whole(column: pa.Array) -> pa.Array:
    return column.view(pa.int64()) if pa.types.is_timestamp(column.type) else column.cast(pa.int64())


def _is_float(column_type: pa.DataType) -> bool:
    inner = column_type.value_type if pa.types.is_dictionary(column_type) else column_type
    return bool(pa.types.is_floating(inner))


def same_bits(column: pa.Array) -> pa.Array:
    """Write equal floats with the same bits: -0.0 as 0.0, and every NaN as one. Arrow compares keys by their bits."""
    if pa.types.is_dictionary(column.type):
        return pa.DictionaryArray.from_arrays(column.indices, same_bits(column.dictionary))
    zero, nan = pa.scalar(0.0, column.type), pa.scalar(np.nan, column.type)
    return pc.if_else(pc.equal(column, zero), zero, pc.if_else(pc.is_nan(column), nan, column))


class GroupCodes:
    """Codes for the rows of the key columns, in order of first appearance, and the key of every code."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._floats = [field.name for field in schema if _is_float(field.type)]
        self.recount_at = 0  # with this many keys, `compact` counts how many of them are dead
        self._clear()

    def _clear(self) -> None:
        self._columns = [WholeCodes() if is_whole(field.type) else ValueCodes(field.type) for field in self._schema]
        # With several columns, the codes of the first and the second make a pair, that pair and the third another, ….
        self._pairs = [IntegerCodes() for _ in self._columns[1:]]
        self._keys = [self._schema.empty_table()]

    def __len__(self) -> int:
        return (self._pairs[-1] if self._pairs else self._columns[0]).count

    @property
    def keys(self) -> pa.Table:
        """The key columns of every code, in order."""
        return pa.concat_tables(self._keys)

    def take(self, codes: Codes) -> pa.RecordBatch:
        """The key columns of these codes, in their order."""
        starts = np.cumsum([0, *(keys.num_rows for keys in self._keys)])
        # Part by part, because Arrow would copy a table in several parts together first.
        found, part_of = [], np.searchsorted(starts, codes, side="right") - 1
        order = np.argsort(part_of, kind="stable")
        for part in np.unique(part_of).tolist():
            found.append(self._keys[part].take(pa.array(codes[part_of == part] - starts[part])))
        back = np.empty(len(codes), np.int64)
        back[order] = np.arange(len(codes))
        return whole_batch(pa.concat_tables(found or self._keys[:1])).take(pa.array(back))

    def normal(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Write equal keys alike: -0.0 becomes 0.0 in the key columns."""
        for name in self._floats:
            place = batch.schema.get_field_index(name)
            batch = batch.set_column(place, batch.schema.field(place), same_bits(batch.column(place)))
        return batch

    def encode(self, batch: pa.RecordBatch) -> Codes:
        """Return the code of each row. New keys get the next codes, in order of first appearance."""
        batch = self.normal(batch)
        before = len(self)
        parts = [
            codes.encode(_as_whole(batch.column(name)) if isinstance(codes, WholeCodes) else batch.column(name))
            for name, codes in zip(self._schema.names, self._columns, strict=True)
        ]
        codes = parts[0]
        for part, pair in zip(parts[1:], self._pairs, strict=True):
            codes = pair.encode(codes.astype(np.int64) << 32 | part)
        if len(self) > before:
            rows = pa.array(first_rows(codes, before, len(self)))
            columns = [batch.column(name).take(rows) for name in self._schema.names]
            self._keys.append(pa.table(columns, schema=self._schema))
            while len(self._keys) > 1 and self._keys[-2].num_rows <= 2 * self._keys[-1].num_rows:
                # Each part is more than twice as large as the next, so a key is copied a logarithmic number of times.
                self._keys[-2:] = [pa.concat_tables(self._keys[-2:]).combine_chunks()]
        return codes

    def compact(
        self,
        few: int,
        live: Callable[[], npt.NDArray[np.bool_]],
        compact_operator: Callable[[npt.NDArray[np.int64]], None],
    ) -> None:
        """Forget dead keys, if there are at least `few` keys and most of them are dead.

        `live` tells for each code whether it is still used. `compact_operator` receives the codes that are kept:
        kept[i] becomes code i.
        """
        if len(self) < max(few, self.recount_at):
            return
        kept = np.flatnonzero(live())
        if 2 * len(kept) < len(self):
            compact_operator(kept)
            self.keep(kept)
        self.recount_at = 2 * len(self)

    def keep(self, kept: npt.NDArray[np.int64]) -> None:
        """Forget all keys but these; kept[i] becomes code i."""
        self.load(self.keys.take(pa.array(kept)))

    def load(self, keys: pa.Table) -> None:
        """Give codes 0, 1, … to these keys, which must all be different."""
        if keys.schema.names != self._schema.names:
            raise ValueError(f"its keys are {', '.join(keys.schema.names)}, not {', '.join(self._schema.names)}")
        self._clear()
        if keys.num_rows:
            codes = self.encode(whole_batch(keys))
            # The operator's state refers to these codes: with other codes it would confuse groups.
            if not np.array_equal(codes, np.arange(len(codes))):
                raise ValueError("its keys are not all different")


def check_live(live: npt.NDArray[np.bool_], codes: int) -> None:
    """Raise if a live code is not among the codes given so far."""
    if live[codes:].any():
        raise ValueError(f"something is known of a key behind the last of {codes}")
