"""The types in which Skyband compares, sorts and computes with the values of a column.

Arrow and polars cannot do everything with every type: they do not sort dictionaries and float16, cannot group by
decimal32, and cannot read decimals of negative scale. Each of these has a wider type with the same values in the same
order. Skyband converts a column to that type when it reads values, and shows the column in its own type.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from skyband.errors import InvalidInput, InvalidQuery

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


def common_key_type(columns: Mapping[str, pa.DataType]) -> pa.DataType:
    """The type in which a join compares these columns, given by name. Raises if they cannot be compared."""
    given = {name: value_type(kind) for name, kind in columns.items()}
    unsigned = pa.uint64() in given.values()
    for kind, common in (
        (pa.types.is_uint64, pa.uint64()),
        # No integer type holds both negative numbers and numbers beyond 2**63.
        (pa.types.is_integer, pa.decimal128(20, 0) if unsigned else pa.int64()),
        (lambda t: pa.types.is_string(t) or pa.types.is_large_string(t), pa.large_string()),
        (lambda t: pa.types.is_binary(t) or pa.types.is_large_binary(t), pa.large_binary()),
        (pa.types.is_floating, pa.float64()),
    ):
        if all(kind(each) for each in given.values()):
            return common
    if len(set(given.values())) > 1:
        said = ", ".join(f"{name} is {kind}" for name, kind in given.items())
        raise InvalidQuery(
            f"Joined columns must have the same type, but {said}. Convert one of them first. In SQL, write FROM "
            f"(SELECT *, CAST(x AS {_target(given.values())}) AS y FROM a) AS a."
        )
    return next(iter(given.values()))


def _target(kinds: Collection[pa.DataType]) -> str:
    """An SQL type to which values of all these types can be cast."""
    if any(map(pa.types.is_date, kinds)):
        return "DATE"
    if any(map(pa.types.is_timestamp, kinds)):
        return "TIMESTAMP_NTZ"
    decimals = [kind for kind in kinds if pa.types.is_decimal(kind)]
    if decimals and all(pa.types.is_decimal(kind) or pa.types.is_integer(kind) for kind in kinds):
        scale = max(kind.scale for kind in decimals)
        return f"DECIMAL({min(28, max(kind.precision - kind.scale for kind in decimals) + scale)}, {scale})"
    return "BIGINT"
