"""The type in which a join compares the columns of its condition."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa

from skyband.core.encoding.value_types import value_type
from skyband.errors import InvalidQuery


def common_key_type(columns: Mapping[str, pa.DataType]) -> pa.DataType:
    """The type in which these columns, given by name, are compared; raises if they cannot be."""
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


def plain_type(column_type: pa.DataType) -> pa.DataType:
    return column_type.value_type if pa.types.is_dictionary(column_type) else column_type


def is_key(column_type: pa.DataType) -> bool:
    """Can a column of this type be joined and grouped by?"""
    kind = plain_type(column_type)
    others = pa.types.is_nested, pa.types.is_interval, pa.types.is_float16, pa.types.is_null
    return not any(test(kind) for test in others)
