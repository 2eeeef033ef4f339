"""MIN and MAX of values that are no numbers: which types have them, and the numbers that stand for the values.

Times and booleans are whole numbers inside. Strings and binary have labels, which a session gives to their values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from skyband.expressions.aggregates import Aggregate


def is_moment(column_type: pa.DataType) -> bool:
    """A type of time that has an order: its values are whole numbers inside."""
    is_time = pa.types.is_timestamp, pa.types.is_duration, pa.types.is_time, pa.types.is_date
    return any(test(column_type) for test in is_time)


def in_ticks(column: pa.Array) -> pa.Array:
    """Times and booleans as whole numbers of 64 bits."""
    if pa.types.is_dictionary(column.type):
        column = pc.dictionary_decode(column)
    if pa.types.is_boolean(column.type):
        return column.cast(pa.int64())
    return column.view(pa.int64()) if column.type.bit_width == 64 else column.view(pa.int32()).cast(pa.int64())


def ticks_in_spark(value: str, kind: pa.DataType) -> str | None:
    """The same in Spark SQL; None: Spark does not say what it is inside."""
    if pa.types.is_boolean(kind):
        return f"CAST(({value}) AS BIGINT)"
    if kind == pa.date32():
        return f"CAST(UNIX_DATE({value}) AS BIGINT)"
    return f"UNIX_MICROS({value})" if kind == pa.timestamp("us", "UTC") else None


def is_labelled(kind: pa.DataType) -> bool:
    """Have values of this type an order, but no number of 64 bits?"""
    tests = pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary
    return any(test(kind) for test in tests)


def labelled_column(aggregate: Aggregate, schema: pa.Schema) -> tuple[str, pa.DataType] | None:
    """The column of which this is MIN or MAX, and the type of its values, if they are such."""
    if aggregate.function not in ("MIN", "MAX") or len(aggregate.columns) != 1:
        return None
    column = aggregate.columns[0].column
    quoted = "`{}`".format(column.replace("`", "``"))
    if column not in schema.names or aggregate.argument not in (quoted, f"({quoted})"):
        return None
    kind = schema.field(column).type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return (column, kind) if is_labelled(kind) else None
