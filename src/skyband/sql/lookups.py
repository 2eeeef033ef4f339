"""A table that says something of each row, here by hashing its keys and on Spark by Spark's own join."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from skyband.core.encoding.groups import same_bits
from skyband.core.encoding.inputs import Source, in_batches
from skyband.core.encoding.schemas import fitted, whole_batch
from skyband.core.encoding.value_types import as_values, common_key_type
from skyband.dialect.query_spec import Lookup
from skyband.dialect.reading import quoted
from skyband.errors import InvalidInput

_ROW, _OTHER = "row", "other"
_FEW = 8  # a batch is small if the table has more than so many rows for each of its rows

Hashes = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]


def looked_up(source: Source, lookup: Lookup, table: Source) -> Source:
    """The rows of a source with what a table says of them. The table is read when the first batch comes."""
    matcher = _Matcher(lookup, source.schema, table)

    def change(batch: pa.RecordBatch) -> pa.RecordBatch:
        return matcher.with_partners(fitted(batch, source.schema))

    return source.mapped(lookup.schema, change, {name: name for name in source.schema.names})


class _Matcher:
    """The rows of a table by their keys."""

    def __init__(self, lookup: Lookup, schema: pa.Schema, table: Source) -> None:
        self._lookup, self._source = lookup, table
        pairs = [(schema.field(mine).type, table.schema.field(its).type) for mine, its in lookup.on]
        self._types = [common_key_type(dict(enumerate(pair))) for pair in pairs]  # type: ignore[arg-type]
        self._names = [str(number) for number in range(len(pairs))]

    @cached_property
    def _table(self) -> pa.RecordBatch:
        return whole_batch(pa.Table.from_batches(in_batches(self._source.batches), self._source.schema))

    @cached_property
    def _keys(self) -> pl.DataFrame:
        return self._frame(self._table, [its for _, its in self._lookup.on], _OTHER)

    @cached_property
    def _hashed(self) -> tuple[Hashes, Places]:
        """The hashes of all keys in ascending order, and the rows that have them."""
        hashes = self._hash(self._keys)
        order = np.argsort(hashes, kind="stable")
        return hashes[order], order

    def with_partners(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        rows = self._frame(batch, [mine for mine, _ in self._lookup.on], _ROW)
        keys = self._keys if batch.num_rows * _FEW > self._table.num_rows else self._near(rows)
        # Null is like nothing, NaN is one value, and so are both zeros.
        found = rows.join(keys, on=self._names, how=self._lookup.how, maintain_order="left_right")  # type: ignore[arg-type]
        kept = batch.take(found[_ROW].to_arrow())
        if not self._lookup.added:
            return kept.select(batch.schema.names)
        partners = self._table.take(found[_OTHER].to_arrow())
        columns = [*kept.columns, *(partners.column(name) for _, name in self._lookup.added)]
        return pa.record_batch(columns, schema=self._lookup.schema)

    def _near(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The keys of the table that these rows may have: a join hashes all that it is given, each time."""
        hashes, places = self._hashed
        wanted = np.unique(self._hash(rows))
        first, end = np.searchsorted(hashes, wanted, "left"), np.searchsorted(hashes, wanted, "right")
        found = [places[begin:until] for begin, until in zip(first[first < end], end[first < end], strict=True)]
        return self._keys[np.sort(np.concatenate(found))] if found else self._keys.head(0)

    def _hash(self, frame: pl.DataFrame) -> Hashes:
        return frame.select(self._names).hash_rows().to_numpy()

    def _frame(self, batch: pa.RecordBatch, columns: list[str], row: str) -> pl.DataFrame:
        """The keys in the types in which they are compared, and the number of each row."""
        keys = {
            n: _key(batch.column(name), kind) for n, name, kind in zip(self._names, columns, self._types, strict=True)
        }
        made = pl.from_arrow(pa.table({row: np.arange(batch.num_rows), **keys}))
        assert isinstance(made, pl.DataFrame)
        return made


def _key(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column as it is compared: floats by their bits, since a join of polars of one row with one takes NaN for
    unlike NaN."""
    key = as_values(column).cast(kind)
    if pa.types.is_decimal256(kind):  # which polars cannot read
        return key.cast(pa.string())
    return same_bits(key).view(pa.int64()) if kind == pa.float64() else key


# -- on Spark ----------------------------------------------------------------------------------------------------------


def looked_up_in_spark(df: Any, lookup: Lookup, table: Any) -> Any:
    """The same of DataFrames."""
    if table.isStreaming:
        raise InvalidInput(f"{lookup.table.name!r} has no window, so it must be a table, not a streaming DataFrame.")
    free = _free_names({name.lower() for name in (*df.columns, *lookup.schema.names)})
    keys = [next(free) for _ in lookup.on]
    mine = [f"{quoted(name)} AS {quoted(key)}" for key, (name, _) in zip(keys, lookup.on, strict=True)]
    its = [f"{quoted(name)} AS {quoted(key)}" for key, (_, name) in zip(keys, lookup.on, strict=True)]
    added = [f"{quoted(column)} AS {quoted(called)}" for called, column in lookup.added]
    how = {"semi": "left_semi", "anti": "left_anti"}.get(lookup.how, lookup.how)
    joined = df.selectExpr("*", *mine).join(table.selectExpr(*its, *added), keys, how)
    return joined.selectExpr(*map(quoted, lookup.schema.names))


def _free_names(taken: set[str]) -> Iterator[str]:
    number = 0
    while True:
        name = f"__skyband_key_{number}"
        if name not in taken:
            yield name
        number += 1
