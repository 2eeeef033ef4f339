"""Sorts whole tables by time, so that no row of a table is late.

Most tables are sorted already. One pass over the column finds out, before any row is read. A table that is not sorted
is sorted in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyband.core.encoding.inputs import Source, WholeRows, in_batches
from skyband.core.encoding.schemas import is_value, plain_schema, stored
from skyband.errors import InvalidQuery
from skyband.kernels.ascending import ascends
from skyband.windows import Window

_ROWS_AT_ONCE: Final = 1 << 18
_FEW: Final = 1 << 13


def arrival_columns(window: Window) -> list[str]:
    """The columns that put the rows of a table in order. A window of arrivals has none, unless it names one."""
    return [name for name in (window.on, window.order) if name is not None]


def check_order(window: Window, schema: pa.Schema) -> None:
    """Raise unless the column that a window names for it can put rows in order."""
    kind = plain_schema(schema).field(window.order).type if window.order in schema.names else None
    if kind is not None and not is_value(kind):
        raise InvalidQuery(f"order={window.order!r} cannot put rows in order: the column is {kind}.")


def ordered(source: Source, window: Window) -> Iterable[pa.RecordBatch]:
    """The rows of a source in the order in which they arrive; of a table, in that of the window's columns.

    Rows that are equal there keep their order. Those without a time come last.
    """
    names = arrival_columns(window)
    if not isinstance(source.batches, WholeRows):
        return in_batches(source.batches)
    if not names:
        return source.batches
    if names == [window.on] and _is_in_order(source.batches.column(names[0])):
        return source.batches
    batches = list(source.batches)
    keys = pa.table({name: _comparable(batches, source.schema.field(name)) for name in names})
    order = pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in names]).to_numpy()
    return batches if _ascends(order) else _taken(batches, order)


def _is_in_order(column: Iterable[pa.Array]) -> bool:
    """Numbers and instants: is none, in pieces as they come, before an earlier one?"""
    last: Any = None
    for piece in column:
        numbers = _numbers(piece)
        if not len(numbers):
            continue
        if (last is not None and numbers[0] < last) or not _ascends(numbers):
            return False
        last = numbers[-1]
    return True


def _ascends(numbers: npt.NDArray[Any]) -> bool:
    """Of few numbers, numpy sees it before a kernel is there."""
    return bool((numbers[1:] >= numbers[:-1]).all()) if len(numbers) < _FEW else ascends(numbers)


def _numbers(column: pa.Array) -> npt.NDArray[Any]:
    """The column's values that are not null, as they lie in memory; none at all where they cannot be read so."""
    if pa.types.is_run_end_encoded(column.type):
        column = column.values.take(pa.array(_runs(column)))
    if column.null_count:
        column = column.drop_null()
    if pa.types.is_timestamp(column.type):
        column = column.view(pa.int64())
    return column.to_numpy(zero_copy_only=False)


def _runs(column: pa.Array) -> npt.NDArray[np.int64]:
    """Which runs a column in runs has a part of."""
    first = column.find_physical_offset()
    return np.arange(first, first + column.find_physical_length())


def _comparable(batches: list[pa.RecordBatch], field: pa.Field) -> pa.ChunkedArray:
    """A column as what can be sorted by: Arrow sorts neither small decimals nor small floats yet."""
    column = pa.chunked_array([batch.column(field.name) for batch in batches], field.type)
    if pa.types.is_decimal32(field.type) or pa.types.is_decimal64(field.type):
        return column.cast(pa.decimal128(field.type.precision, field.type.scale))
    if pa.types.is_float16(field.type):
        return column.cast(pa.float32())
    return stored(column.cast(field.type.value_type) if pa.types.is_dictionary(field.type) else column)


def _taken(batches: list[pa.RecordBatch], order: npt.NDArray[Any]) -> Iterator[pa.RecordBatch]:
    """The rows of all batches in this order, some at once. Batch by batch: of a table, Arrow would copy all of them
    together for each part, and strings of more than 2 GB cannot be copied together."""
    starts = np.cumsum([0, *(batch.num_rows for batch in batches)])
    at_once = min(_ROWS_AT_ONCE, max(batch.num_rows for batch in batches))
    for first in range(0, len(order), at_once):
        wanted = order[first : first + at_once].astype(np.int64)
        batch_of = np.searchsorted(starts, wanted, side="right") - 1
        by_batch = np.argsort(batch_of, kind="stable")
        parts = []
        for number in np.unique(batch_of).tolist():
            here = wanted[batch_of == number] - starts[number]
            parts.append(batches[number].take(pa.array(here)))
        if len(parts) == 1:
            yield parts[0]
            continue
        back = np.empty(len(wanted), np.int64)
        back[by_batch] = np.arange(len(wanted))
        yield pa.concat_batches(parts).take(pa.array(back))
