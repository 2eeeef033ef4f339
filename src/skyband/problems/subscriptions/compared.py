"""Numbers the values in which rows and queries are compared: equal values get equal numbers.

Only values that occur in queries are numbered; every other value of a row gets the number OTHER. Whole numbers that
float64 holds exactly stand for themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.core.operator import Floats
from skyband.expressions import as_floats

_TABLE: Final = "compared "  # the tables of a snapshot are named so, followed by the type of the values
OTHER: Final = -0.5  # the number of values that no query has
EXACT: Final = 2**53  # float64 holds every whole number up to here
# Added to the numbers of whole numbers beyond EXACT, so that they equal no whole number that stands for itself.
_BEYOND: Final = 0.5


class Compared:
    """The numbers of values. The number of a value whose last query was removed is never used again."""

    def __init__(self) -> None:
        self._values: dict[str, pa.Array] = {}  # by type
        self._numbers: dict[str, Floats] = {}  # by type, in the order of the values; whole numbers, or _BEYOND them
        self._next = 0

    def of_queries(self, column: pa.Array) -> tuple[Floats, bool]:
        """The numbers of queries' values, NaN for null; and whether any of the values is new."""
        before = self._next
        numbers = _numbers(column, self._learned)
        return numbers, self._next > before

    def of_rows(self, column: pa.Array) -> Floats:
        """The numbers of rows' values, NaN for null."""
        return _numbers(column, self._found)

    def _learned(self, column: pa.Array) -> Floats:
        """The numbers of values, none of them null. New values are given the next numbers."""
        kind = str(column.type)
        known = self._values.setdefault(kind, pa.array([], column.type))
        self._numbers.setdefault(kind, np.empty(0))
        values = pc.unique(column)
        new = values.filter(pc.invert(pc.is_in(values, value_set=known)))
        if len(new):
            self._values[kind] = pa.concat_arrays([known, new])
            numbers = np.arange(self._next, self._next + len(new)) + (_BEYOND if pa.types.is_integer(new.type) else 0.0)
            self._numbers[kind] = np.concatenate([self._numbers[kind], numbers])
            self._next += len(new)
        return self._found(column)

    def _found(self, column: pa.Array) -> Floats:
        """The numbers of values, none of them null; OTHER for values that have no number."""
        kind = str(column.type)
        if kind not in self._values:
            return np.full(len(column), OTHER)
        at = pc.fill_null(pc.index_in(column, value_set=self._values[kind]), -1).to_numpy(zero_copy_only=False)
        found: Floats = np.append(self._numbers[kind], OTHER)[at]  # an index of -1 finds OTHER
        return found

    def keep(self, used: Floats) -> None:
        """Keep the values with these numbers, and forget all others."""
        for kind, numbers in self._numbers.items():
            kept = np.isin(numbers, used)
            self._values[kind] = self._values[kind].filter(pa.array(kept))
            self._numbers[kind] = numbers[kept]

    def tables(self) -> dict[str, pa.Table]:
        """All values and their numbers as tables, for a snapshot."""
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
            self._numbers[str(value.type)] = table.column("number").to_numpy().astype(np.float64)
        self._next = following

    @property
    def following(self) -> int:
        """The number that the next new value gets."""
        return self._next


def _numbers(column: pa.Array, look_up: Callable[[pa.Array], Floats]) -> Floats:
    """The numbers of values, NaN for null. Values that stand for themselves are not looked up."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_integer(column.type):
        return _numbers_of_whole(column, look_up)
    if not column.null_count:
        return look_up(column)
    found = np.full(len(column), np.nan)
    found[pc.is_valid(column).to_numpy(zero_copy_only=False)] = look_up(column.drop_null())
    return found


def _numbers_of_whole(column: pa.Array, look_up: Callable[[pa.Array], Floats]) -> Floats:
    found = as_floats(column, len(column), "")
    ends = pc.min_max(column).as_py()
    if not ends or ends["max"] is None or (ends["min"] >= -EXACT and ends["max"] <= EXACT):
        return found
    found = found.copy()
    values = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
    # An int64 and a uint64 may be equal, so each sign has one type.
    for beyond, kind in ((values > EXACT, pa.uint64()), (values < -EXACT, pa.int64())):
        if beyond.any():
            found[beyond] = look_up(pa.array(values[beyond]).cast(kind))
    return found
