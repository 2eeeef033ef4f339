"""Times in expressions over rows: what is written beside a column of time is a time, too, and intervals move it.

A time without a zone beside a column that has one is in UTC, on both engines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

import pyarrow as pa
from sqlglot import exp

from skyband.errors import InvalidExpression
from skyband.expressions.grammar import cast_to, copied

_TYPE: Final = "time type"  # of a part of an expression, in its meta
_VALUE: Final = "time value"  # of a time or an interval that is written out
_SPANS: Final = {
    "MICROSECOND": timedelta(microseconds=1),
    "MILLISECOND": timedelta(milliseconds=1),
    "SECOND": timedelta(seconds=1),
    "MINUTE": timedelta(minutes=1),
    "HOUR": timedelta(hours=1),
    "DAY": timedelta(days=1),
    "WEEK": timedelta(weeks=1),
}
_SPAN: Final = pa.duration("us")
_COMPARED: Final = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Nullif)
_CHOSEN: Final = (exp.Coalesce, exp.Greatest, exp.Least)


def with_times(tree: exp.Expr, types: Mapping[str, pa.DataType], text: str) -> exp.Expr:
    """The tree with each part that is a time known as one: see `time_of` and `written_time`."""
    root = exp.Paren(this=copied(tree))
    stamp = next(filter(pa.types.is_timestamp, types.values()), pa.timestamp("us", "UTC"))  # as the columns have it
    for node in reversed(list(root.walk())):  # parts before the whole
        if isinstance(node, exp.Column) and node.name in types and _is_time(types[node.name]):
            node.meta[_TYPE] = types[node.name]
        elif isinstance(node, exp.Interval):
            node.meta[_TYPE], node.meta[_VALUE] = _SPAN, pa.scalar(_span(node, text), _SPAN)
        elif isinstance(node, exp.Cast) and node.to.is_type(*exp.DataType.TEMPORAL_TYPES):
            kind = _cast_to(node, stamp)
            if _is_written(node):
                _write(node, kind, text)
            else:
                node.meta[_TYPE] = kind
        elif isinstance(node, exp.TimestampTrunc) and (kind := time_of(node.this.unnest())) is not None:
            node.meta[_TYPE] = kind
        elif isinstance(node, (exp.Add, exp.Sub)):
            _moved(node, text)
        for parts in _alike(node):
            kinds = sorted(
                (written_time(part) is not None, str(kind), kind) for part in parts if (kind := time_of(part))
            )
            found = kinds[0][2] if kinds else None  # that of a column, rather than of what is written
            for part in parts if found is not None else ():
                inner = part.unnest()
                if (isinstance(inner, exp.Literal) and inner.is_string) or _is_written(inner):
                    _write(inner, found, text)
            if found is not None and not isinstance(node, exp.Predicate):
                node.meta[_TYPE] = found
        if isinstance(node, exp.Paren) and (kind := time_of(node.this)) is not None:
            node.meta[_TYPE] = kind
    return root.this


def time_of(node: exp.Expr) -> pa.DataType | None:
    """The type of a part that is a time or a span of time."""
    return node.meta.get(_TYPE)


def written_time(node: exp.Expr) -> pa.Scalar | None:
    """The time or span that is written out here."""
    return node.meta.get(_VALUE)


def in_spark(node: exp.Expr) -> exp.Expr:
    """A time or span that is written out, for Spark."""
    value = written_time(node)
    assert value is not None
    kind = value.type
    if pa.types.is_duration(kind):
        return exp.Interval(this=exp.Literal.string(str(value.value)), unit=exp.var("MICROSECOND"))
    if pa.types.is_date(kind):
        return cast_to(exp.Literal.string(str(value.as_py())), "DATE")
    if kind.tz is None:
        return cast_to(exp.Literal.string(str(value.cast(pa.timestamp("us")).as_py())), "TIMESTAMPNTZ")
    micros = exp.Literal.number(value.cast(pa.timestamp("us", kind.tz)).value)
    return exp.Anonymous(this="TIMESTAMP_MICROS", expressions=[micros])


def _is_time(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_duration(kind)


def _alike(node: exp.Expr) -> Iterator[list[exp.Expr]]:
    """The parts of a node that are of one type."""
    if isinstance(node, _COMPARED):
        yield [node.this, node.expression]
    elif isinstance(node, exp.Between):
        yield [node.this, node.args["low"], node.args["high"]]
    elif isinstance(node, (exp.In, *_CHOSEN)):
        yield [node.this, *node.expressions]
    elif isinstance(node, exp.If) and not isinstance(node.parent, exp.Case):
        yield [part for part in (node.args["true"], node.args.get("false")) if part is not None]
    elif isinstance(node, exp.Case):
        default = node.args.get("default")
        yield [*(one.args["true"] for one in node.args["ifs"]), *([] if default is None else [default])]


def _is_written(node: exp.Expr) -> bool:
    """Is this a time that is written out: TIMESTAMP '2024-01-31 12:00:00'?"""
    if not isinstance(node, exp.Cast) or not node.to.is_type(*exp.DataType.TEMPORAL_TYPES):
        return False
    literal = node.this.unnest()
    return isinstance(literal, exp.Literal) and bool(literal.is_string)


def _cast_to(node: exp.Cast, stamp: pa.DataType) -> pa.DataType:
    """The type that a cast gives: a timestamp keeps its own, and others become one as the columns have it."""
    if node.to.is_type("date"):
        return pa.date32()
    if node.to.is_type("timestampntz"):
        return pa.timestamp("us")
    kind = time_of(node.this.unnest())
    return kind if kind is not None and pa.types.is_timestamp(kind) else stamp


def _write(node: exp.Expr, kind: pa.DataType, text: str) -> None:
    """Say that what is written here is a time of this type."""
    literal = node.this.unnest() if isinstance(node, exp.Cast) else node
    value = _read(str(literal.this), kind)
    if value is None:
        raise InvalidExpression(f"{literal.this!r} in {text!r} is not a time. Write it as '2024-01-31 12:00:00'.")
    node.meta[_TYPE], node.meta[_VALUE] = kind, value


def _read(written: str, kind: pa.DataType) -> pa.Scalar | None:
    """A time in this type; with a zone in it, or without."""
    has_zone = pa.types.is_timestamp(kind) and kind.tz is not None
    for tried in (pa.timestamp(kind.unit), pa.timestamp(kind.unit, "UTC")) if has_zone else (kind,):
        try:
            value = pa.scalar(written).cast(tried)
        except pa.ArrowInvalid:
            continue
        return pa.scalar(value.value, kind) if has_zone else value
    return None


def _moved(node: exp.Expr, text: str) -> None:
    """The type of a sum or difference of times and spans."""
    left, right = time_of(node.this), time_of(node.expression)
    if left is None and right is None:
        return
    is_span = [kind is not None and pa.types.is_duration(kind) for kind in (left, right)]
    if isinstance(node, exp.Sub) and left is not None and right is not None and not any(is_span):
        node.meta[_TYPE] = _SPAN
    elif is_span[1] and left is not None and not pa.types.is_date(left):
        node.meta[_TYPE] = left
    elif is_span[0] and right is not None and not pa.types.is_date(right) and isinstance(node, exp.Add):
        node.meta[_TYPE] = right
    else:
        raise InvalidExpression(
            f"{node.sql('spark')!r} in {text!r} adds something to a time that is no time. Possible: "
            "ts + INTERVAL 10 MINUTES, and the difference of two times."
        )


def _span(node: exp.Interval, text: str) -> timedelta:
    unit, number = node.args.get("unit"), node.this
    name = "" if unit is None else unit.name.upper().removesuffix("S")
    if name in _SPANS and isinstance(number, exp.Literal):
        try:
            return float(number.this) * _SPANS[name] if "." in number.this else int(number.this) * _SPANS[name]
        except (ValueError, OverflowError):
            pass
    raise InvalidExpression(
        f"{node.sql('spark')!r} in {text!r} is not a span of time. Write INTERVAL 10 MINUTES; units: "
        f"{', '.join(_SPANS)} (months have no fixed length)."
    )
