"""How large whole numbers can be: from the least and the largest of each column to those of an expression."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

Bounds = Sequence[tuple[int, int]]  # by column: the least and the largest of its whole numbers
Bound = Callable[[Bounds], tuple[int, int]]


def constant(low: int, high: int) -> Bound:
    return lambda _: (low, high)


def bound_of(column_type: pa.DataType) -> Bound | None:
    """Of a column that is kept as floats: of whole numbers of 32 bits at most."""
    inner = column_type.value_type if pa.types.is_dictionary(column_type) else column_type
    if not pa.types.is_integer(inner):
        return None
    if pa.types.is_signed_integer(inner):
        return constant(-(2 ** (inner.bit_width - 1)), 2 ** (inner.bit_width - 1) - 1)
    return constant(0, 2**inner.bit_width - 1)


def sum_of(x: Bound, y: Bound) -> Bound:
    return lambda bounds: (x(bounds)[0] + y(bounds)[0], x(bounds)[1] + y(bounds)[1])


def difference(x: Bound, y: Bound) -> Bound:
    return lambda bounds: (x(bounds)[0] - y(bounds)[1], x(bounds)[1] - y(bounds)[0])


def product(x: Bound, y: Bound) -> Bound:
    def bound(bounds: Bounds) -> tuple[int, int]:
        ends = [a * b for a in x(bounds) for b in y(bounds)]
        return min(ends), max(ends)

    return bound


def absolute(x: Bound) -> Bound:
    return lambda bounds: (0, max(-x(bounds)[0], x(bounds)[1], 0))


def either(parts: list[Bound]) -> Bound:
    return lambda bounds: (min(part(bounds)[0] for part in parts), max(part(bounds)[1] for part in parts))
