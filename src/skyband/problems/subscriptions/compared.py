"""Numbers for values that rows and queries are compared by, such as texts: equal ones for equal values.

Only what queries have is given a number, so there are no more than that; all else that rows have is OTHER.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.core.operator import Floats, Ints

_TABLE = "compared "  # how the tables of a snapshot are called, before the type of the values
OTHER = -1.0  # as a number: equal to that of no query


class Compared:
    """The numbers of values, which never come again once their last query has gone."""

    def __init__(self) -> None:
        self._values: dict[str, pa.Array] = {}  # by type
        self._numbers: dict[str, Ints] = {}
        self._next = 0

    def of_queries(self, column: pa.Array) -> tuple[Floats, bool]:
        """Their numbers, NaN for null; and whether one of them is new."""
        column = _values(column)
        kind = str(column.type)
        known = self._values.setdefault(kind, pa.array([], column.type))
        self._numbers.setdefault(kind, np.empty(0, np.int64))
        values = pc.unique(column.drop_null())
        new = values.filter(pc.invert(pc.is_in(values, value_set=known)))
        if len(new):
            self._values[kind] = pa.concat_arrays([known, new])
            numbers = np.arange(self._next, self._next + len(new))
            self._numbers[kind] = np.concatenate([self._numbers[kind], numbers])
            self._next += len(new)
        return self.of_rows(column), bool(len(new))

    def of_rows(self, column: pa.Array) -> Floats:
        """Their numbers, NaN for null."""
        column = _values(column)
        kind = str(column.type)
        found = np.full(len(column), OTHER)
        if kind in self._values:
            at = pc.fill_null(pc.index_in(column, value_set=self._values[kind]), -1).to_numpy(zero_copy_only=False)
            numbers = np.append(self._numbers[kind], OTHER)  # the last one is at -1, too
            found = numbers[at].astype(np.float64)
        if column.null_count:
            found[pc.is_null(column).to_numpy(zero_copy_only=False)] = np.nan
        return found

    def keep(self, used: Floats) -> None:
        """Forget all values but those with these numbers."""
        for kind, numbers in self._numbers.items():
            kept = np.isin(numbers, used)
            self._values[kind] = self._values[kind].filter(pa.array(kept))
            self._numbers[kind] = numbers[kept]

    def tables(self) -> dict[str, pa.Table]:
        """All of it, for a snapshot."""
        return {
            f"{_TABLE}{kind}": pa.table({"value": values, "number": self._numbers[kind]})
            for kind, values in self._values.items()
        }

    def restore(self, tables: dict[str, pa.Table], following: int) -> None:
        for name, table in tables.items():
            if not name.startswith(_TABLE):
                continue
            value = table.column("value").combine_chunks()
            self._values[str(value.type)] = value
            self._numbers[str(value.type)] = table.column("number").to_numpy().copy()
        self._next = following

    @property
    def following(self) -> int:
        """The next number."""
        return self._next


def _values(column: pa.Array) -> pa.Array:
    """Arrow looks up values, not what stands for them in a dictionary."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
