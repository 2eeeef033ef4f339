"""The types in which Skyband compares, sorts and computes with the values of a column.

Arrow and polars cannot do everything with every type: they do not sort dictionaries and float16, cannot group by
decimal32, and cannot read decimals of negative scale. Each of these has a wider type with the same values in the same
order. Skyband converts a column to that type when it reads values, and shows the column in its own type.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from skyband.errors import InvalidInput

_DECIMAL128, _DECIMAL256 = 38, 76  # how many digits they have


def value_type(column_type: pa.DataType) -> pa.DataType:
    """The type in which Skyband compares, sorts and computes with the values of a column.

    >>> value_type(pa.dictionary(pa.int8(), pa.float16())), value_type(pa.decimal128(5, -2))
    (DataType(float), Decimal128Type(decimal128(7, 0)))
    """
    if pa.types.is_dictionary(column_type):
        return value_type(column_type.value_type)
    if isinstance(column_type, pa.BaseExtensionType):
        return value_type(column_type.storage_type)
    if pa.types.is_float16(column_type):
        return pa.float32()
    if pa.types.is_date64(column_type):
        return pa.date32()
    if not pa.types.is_decimal(column_type):
        return column_type
    digits, scale = column_type.precision - min(0, column_type.scale), max(0, column_type.scale)
    return pa.decimal128(digits, scale) if digits <= _DECIMAL128 else pa.decimal256(min(digits, _DECIMAL256), scale)


def as_values(column: pa.Array | pa.ChunkedArray, name: str = "") -> pa.Array | pa.ChunkedArray:
    """Convert a column to `value_type`. `name` is for the error message."""
    if pa.types.is_dictionary(column.type):
        column = pc.dictionary_decode(column)
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.cast(column.type.storage_type)
    wanted = value_type(column.type)
    if column.type == wanted:
        return column
    try:
        return column.cast(wanted)
    except pa.ArrowInvalid as error:
        raise InvalidInput(f"Column {name!r} is {column.type}, and a value of it is too large: {error}.") from None
