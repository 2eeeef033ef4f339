"""Group codes: a small whole number for every combination of values in the `per` columns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Codes = npt.NDArray[np.int32]


class Dictionary:
    """Values of one type, numbered in order of first appearance. Null and NaN are values like any other."""

    def __init__(self, value_type: pa.DataType) -> None:
        self._type = value_type.value_type if pa.types.is_dictionary(value_type) else value_type
        self._values = pa.array([], self._type)

    def __len__(self) -> int:
        return len(self._values)

    def encode(self, column: pa.Array) -> Codes:
        if pa.types.is_dictionary(column.type):
            column = column.cast(self._type)
        encoded = column.dictionary_encode(null_encoding="encode")
        known = pc.index_in(encoded.dictionary, value_set=self._values)
        unknown = encoded.dictionary.filter(pc.is_null(known))
        if len(unknown):
            self._values = pa.concat_arrays([self._values, unknown])
            known = pc.index_in(encoded.dictionary, value_set=self._values)
        codes: Codes = known.to_numpy(zero_copy_only=True)
        return codes[encoded.indices.to_numpy(zero_copy_only=True)]


class GroupCodes:
    """Codes for rows of the key columns, and the key of every code."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._clear()

    def _clear(self) -> None:
        self._columns = [Dictionary(field.type) for field in self._schema]
        # With several columns: codes of the first and the second make a pair, that pair and the third another.
        self._pairs = [Dictionary(pa.int64()) for _ in self._columns[1:]]
        self._keys = [self._schema.empty_table()]

    def __len__(self) -> int:
        return len(self._pairs[-1] if self._pairs else self._columns[0])

    @property
    def keys(self) -> pa.Table:
        """The key columns of every code, in order."""
        self._keys = [pa.concat_tables(self._keys)]
        return self._keys[0]

    def encode(self, batch: pa.RecordBatch) -> Codes:
        """The code of each row; new keys get the next ones."""
        before = len(self)
        codes = self._columns[0].encode(batch.column(self._schema.names[0]))
        for name, dictionary, pair in zip(self._schema.names[1:], self._columns[1:], self._pairs, strict=True):
            both = codes.astype(np.int64) << 32 | dictionary.encode(batch.column(name))
            codes = pair.encode(pa.array(both))
        if len(self) > before:
            # Codes count up with first appearance, so the new ones come in order when sorted by code.
            new, first_row = np.unique(codes, return_index=True)
            rows = pa.array(first_row[new >= before])
            self._keys.append(pa.Table.from_batches([batch.select(self._schema.names).take(rows)], self._schema))
        return codes

    def keep(self, kept: npt.NDArray[np.int64]) -> None:
        """Forget all keys but these; kept[i] gets code i."""
        self.load(self.keys.take(pa.array(kept)))

    def load(self, keys: pa.Table) -> None:
        """Codes 0, 1, … for these keys."""
        self._clear()
        if keys.num_rows:
            self.encode(keys.combine_chunks().to_batches()[0])
