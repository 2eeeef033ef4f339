"""What values are in lines of Python that keep whole numbers, times and strings exact, and how kinds become others.

See `exact.py`, which writes such lines for the nodes of a tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from skyband.core.encoding.value_types import value_type
from skyband.errors import InvalidExpression
from skyband.expressions.bounds import Bound, constant, product
from skyband.expressions.lines import StraightLines
from skyband.expressions.scores import is_number

if TYPE_CHECKING:
    from sqlglot import exp

MOST: Final = 2**63 - 2**53 - 1  # the largest whole number that can be ranked
EXACT: Final = 2**53  # up to here float64 has every whole number

FLOAT, WHOLE, TEXT, KNOWN, NULL = "float", "whole", "text", "known", "null"


class Column(NamedTuple):
    """What is read of a row, and how it is kept: 64 bits in each case."""

    name: str
    kind: str  # FLOAT; WHOLE; TEXT: its label; KNOWN: 0, or NaN for null: nothing else is asked of it
    scale: int = 0  # of a whole number: how many of its digits are behind the point
    unit: str = ""  # of a time: what it counts


class Check(NamedTuple):
    """Part of an expression, as whole numbers, and the most that it may be."""

    text: str
    bound: Bound
    most: int
    why: str


@dataclass(frozen=True)
class Value:
    """What a node of a tree is in the lines."""

    text: str  # a name, or a number written out
    kind: str = FLOAT
    scale: int = 0
    bound: Bound | None = None  # from where to where, if it is a whole number, as a float or not
    literal: str | None = None  # as written
    is_time: bool = False


def written_out(number: str) -> Value:
    """A number as it is written."""
    value = float(number)
    is_whole = number.lstrip("-").isdigit() and abs(int(number)) <= MOST
    shown = repr(value) if abs(value) != float("inf") else "np.inf" if value > 0 else "-np.inf"
    return Value(shown, FLOAT, 0, constant(int(number), int(number)) if is_whole else None, number)


def column_of(name: str, column_type: pa.DataType, unit: str, *, only_known: bool) -> Column | None:
    """How a column is kept; None: it cannot be."""
    inner = column_type.value_type if pa.types.is_dictionary(column_type) else column_type
    if is_time(inner):
        return Column(name, WHOLE, 0, unit)
    if pa.types.is_decimal(inner):
        return Column(name, WHOLE, max(0, inner.scale))
    if pa.types.is_integer(inner) and inner.bit_width == 64:
        return Column(name, WHOLE)
    if is_number(inner) or pa.types.is_boolean(inner):
        return Column(name, FLOAT)
    if only_known:
        return Column(name, KNOWN)
    return Column(name, TEXT) if is_text(inner) else None


def is_time(column_type: pa.DataType) -> bool:
    return pa.types.is_temporal(column_type) and not pa.types.is_interval(column_type)


def is_text(column_type: pa.DataType) -> bool:
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(is_kind(column_type) for is_kind in (*kinds, pa.types.is_fixed_size_binary))


def unit_of(types: Sequence[pa.DataType]) -> str:
    """What times count in an expression over columns of these types: the same for all of them."""
    return "ns" if any(is_time(one) and getattr(one, "unit", "") == "ns" for one in types) else "us"


def label_texts(trees: Sequence[exp.Expr]) -> tuple[tuple[bytes, int], ...]:
    """The strings that are written out, in order, each with the number that it has among all strings."""
    from sqlglot import exp

    written = {node.this for tree in trees for node in tree.find_all(exp.Literal) if node.is_string}
    texts = sorted(text.encode() for text in written)
    step = 2**63 // (len(texts) + 1) * 2
    return tuple((text, -(2**63) + (i + 1) * step) for i, text in enumerate(texts))


def any_unknown(*values: Value) -> str:
    """Is one of these whole numbers or texts null?"""
    return " | ".join(f"({value.text} == NULL)" for value in values if value.literal is None)


def _digits(literal: str) -> int | None:
    """How many digits a number as it is written has behind the point; None: it has an exponent."""
    _, point, behind = literal.partition(".")
    return None if "e" in literal.lower() else len(behind) if point else 0


def own_scales(values: list[Value]) -> list[int] | None:
    """How many digits after the point each has as a whole number; None: one of them is not, or none needs to be."""
    if not any(value.kind == WHOLE for value in values):
        return None
    is_decimal = any(value.scale for value in values)
    scales = []
    for value in values:
        digits = None if value.literal is None else _digits(value.literal)
        if value.kind == WHOLE or value.kind == NULL:
            scales.append(value.scale)
        elif value.literal is not None and digits is not None and (is_decimal or digits == 0):
            if abs(Decimal(value.literal).scaleb(digits)) > MOST:
                return None
            scales.append(digits)
        elif value.bound is not None:
            scales.append(0)
        else:
            return None
    return scales


def common_scale(values: list[Value]) -> int | None:
    scales = own_scales(values)
    return None if scales is None else max(scales)


def check_values(tree: exp.Expr, schema: pa.Schema, text: str) -> None:
    """Raise if values of different types are compared."""
    from sqlglot import exp

    from skyband.expressions.branches import check_types

    for span in tree.find_all(exp.Interval):
        _check_span(span, schema, text)
    check_types(tree, {field.name: value_type(field.type) for field in schema}, text)


def _check_span(span: exp.Interval, schema: pa.Schema, text: str) -> None:
    """Raise unless it is compared with the difference of two times, or with the size of one: numbers alone are here."""
    from sqlglot import exp

    part: exp.Expr = span
    while isinstance(part.parent, (exp.Paren, exp.Neg)):
        part = part.parent
    compared = part.parent
    is_compared = isinstance(compared, (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In))
    for other in compared.iter_expressions() if is_compared and compared is not None else ():
        other = other.unnest()
        other = other.this.unnest() if isinstance(other, (exp.Abs, exp.Neg)) else other
        sides = [other.this.unnest(), other.expression.unnest()] if isinstance(other, exp.Sub) else []
        times = [isinstance(one, exp.Column) and is_time(schema.field(one.name).type) for one in sides]
        is_compared = is_compared and (other.find(exp.Interval) is not None or (bool(sides) and all(times)))
    if not is_compared:
        raise InvalidExpression(
            f"{span.sql('spark')!r} in {text!r} is compared with nothing that has a length. Possible: b.ts - a.ts < "
            "INTERVAL 5 MINUTES."
        )


class Kinds(StraightLines):
    """Lines that turn values of one kind into values of another."""

    def __init__(self, columns: Sequence[Column], schema: pa.Schema, prefix: str) -> None:
        super().__init__({column.name: number for number, column in enumerate(columns)}, schema, prefix)
        self.checks: list[Check] = []
        self._columns = columns

    def _new(self, text: str, kind: str = FLOAT, scale: int = 0, bound: Bound | None = None) -> Value:
        return Value(self._line(text), kind, scale, bound)

    def _time(self, written: str, text: str) -> Value:
        """A time that is written out."""
        unit = next((column.unit for column in self._columns if column.unit), "us")
        for zone in (None, "UTC"):
            try:
                count = pa.scalar(written).cast(pa.timestamp(unit, zone)).value
            except pa.ArrowInvalid:
                continue
            return Value(repr(float(count)), FLOAT, 0, constant(count, count), str(count), is_time=True)
        raise InvalidExpression(f"{written!r} in {text!r} is not a time. Write it as '2024-01-31 12:00:00'.")

    def _span(self, node: exp.Interval, text: str) -> Value:
        """A span of time that is written out."""
        from skyband.expressions.intervals import micros_of  # deferred, as sqlglot is

        unit = next((column.unit for column in self._columns if column.unit), "us")
        count = micros_of(node, text) * {"us": 1, "ns": 1_000}[unit]
        return Value(repr(float(count)), FLOAT, 0, constant(count, count), str(count))

    def as_float(self, value: Value, node: exp.Expr, text: str) -> Value:
        if value.kind in (TEXT, KNOWN):
            raise self._no_number(node, text)
        return self._float(value)

    def _no_number(self, node: exp.Expr, text: str) -> InvalidExpression:
        return InvalidExpression(
            f"{node.sql('spark')!r} in {text!r} is not a number. You can only compare it: =, <>, <, IN, IS NULL."
        )

    def _float(self, value: Value) -> Value:
        if value.kind == NULL:
            return Value("np.nan")
        if value.kind != WHOLE:
            return value
        number = f"{value.text} / {10.0**value.scale!r}" if value.scale else f"1.0 * {value.text}"
        return self._new(f"np.nan if {value.text} == NULL else {number}")

    def whole(self, value: Value, text: str) -> Value:
        return self._whole(value, 0, text)

    def _whole(self, value: Value, scale: int, text: str) -> Value:
        """The same as a whole number with so many digits after the point, which are enough."""
        if value.kind == NULL:
            return Value("NULL", WHOLE, scale, constant(0, 0))
        if value.literal is not None:
            count = int(Decimal(value.literal).scaleb(scale))
            return Value(repr(count), WHOLE, scale, constant(count, count), value.literal)
        assert value.bound is not None
        if value.kind == FLOAT:
            value = self._new(f"NULL if {value.text} != {value.text} else int({value.text})", WHOLE, 0, value.bound)
        if value.scale == scale:
            return value
        factor = 10 ** (scale - value.scale)
        bound = product(value.bound, constant(factor, factor))  # type: ignore[arg-type]
        return self._checked(f"NULL if {value.text} == NULL else {value.text} * {factor}", scale, bound, text)

    def _checked(self, line: str, scale: int, bound: Bound, text: str) -> Value:
        self.checks.append(Check(text, bound, MOST, "whole numbers have 64 bits here"))
        return self._new(line, WHOLE, scale, bound)

    def _alike(self, values: list[Value], node: exp.Expr, text: str) -> list[Value]:
        """These values as ones of the same kind: as texts, as whole numbers if they all are, or as floats."""
        kinds = {value.kind for value in values} - {NULL}
        if any(value.is_time for value in values):
            times = [self._time(v.literal, text) if v.kind == TEXT and v.literal else v for v in values]
            values, kinds = times, {value.kind for value in times} - {NULL}
        if TEXT in kinds:
            if kinds != {TEXT}:
                raise InvalidExpression(f"{node.sql('spark')!r} in {text!r} mixes strings with other types.")
            return [Value("NULL", TEXT) if value.kind == NULL else value for value in values]
        if KNOWN in kinds:
            raise self._no_number(node, text)
        if WHOLE in kinds:
            scale = common_scale(values)
            if scale is not None:
                return [self._whole(value, scale, node.sql("spark")) for value in values]
        elif all(value.bound is not None or value.kind == NULL for value in values):
            if any(value.bound is not None and max(map(abs, value.bound(()))) > EXACT for value in values):
                return [self._whole(value, 0, node.sql("spark")) for value in values]
            return [Value("np.nan", FLOAT, 0, constant(0, 0)) if value.kind == NULL else value for value in values]
        return [self._float(value) for value in values]
