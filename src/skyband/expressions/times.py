"""Times in expressions over rows: what is written beside a column of time is a time, too, and intervals move it.

A time without a zone beside a column that has one is in UTC, on both engines. Times of different units are computed
with in the finest of them (see units.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import pyarrow as pa
from sqlglot import exp

from skyband.errors import InvalidExpression
from skyband.expressions.calls import WITH_UNITS, RowCall, call, name_of
from skyband.expressions.days import days_after
from skyband.expressions.function_spec import WRITTEN, said
from skyband.expressions.grammar import cast_to, copied
from skyband.expressions.intervals import SPANS, is_months, micros_of, months_of
from skyband.expressions.units import UNITS, coarsest, converted, finest, unit_of, with_unit

_TYPE: Final = "time type"  # of a part of an expression, in its meta
_VALUE: Final = "time value"  # of a time or an interval that is written out
_FIRST_YEAR: Final = -62_135_596_800  # when it began, in seconds since 1970: calendars of others know none before
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
            if not is_months(node) or not _moves(node):  # months have no length: see `_moved_months`
                node.meta[_TYPE], node.meta[_VALUE] = _SPAN, pa.scalar(micros_of(node, text), _SPAN)
        elif isinstance(node, exp.Cast) and node.to.is_type(*exp.DataType.TEMPORAL_TYPES):
            kind = _cast_to(node, stamp)
            if _is_written(node):
                _write(node, kind, text)
            else:
                node.meta[_TYPE] = kind
        elif isinstance(node, exp.TimestampTrunc) and (kind := time_of(node.this.unnest())) is not None:
            if pa.types.is_date(kind):
                kind = pa.timestamp("us", stamp.tz)
                node.set("this", exp.Cast(this=node.this.copy(), to=exp.DataType.build("TIMESTAMP")))
                node.this.meta[_TYPE] = kind
            node.meta[_TYPE] = kind
        elif isinstance(node, exp.DateFromUnixDate):
            node.meta[_TYPE] = pa.date32()
        elif isinstance(node, RowCall):
            _called(node, stamp)
        elif isinstance(node, (exp.Add, exp.Sub)):
            _moved(node, text)
        elif isinstance(node, exp.Abs) and (kind := time_of(node.this)) is not None and pa.types.is_duration(kind):
            node.meta[_TYPE] = kind
        for parts, gives_one in _alike(node):
            found = _made_alike(parts, text)
            if found is not None and gives_one:
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
        micros = value.cast(_SPAN).value
        return exp.Interval(this=exp.Literal.string(str(micros)), unit=exp.var("MICROSECOND"))
    if pa.types.is_date(kind):
        return cast_to(exp.Literal.string(str(value.as_py())), "DATE")
    if kind.tz is None:
        return cast_to(exp.Literal.string(str(value.cast(pa.timestamp("us")).as_py())), "TIMESTAMPNTZ")
    micros = exp.Literal.number(value.cast(pa.timestamp("us", kind.tz)).value)
    return exp.Anonymous(this="TIMESTAMP_MICROS", expressions=[micros])


def _is_time(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_duration(kind)


class _Alike(NamedTuple):
    """Parts of a node that are of one type."""

    parts: list[exp.Expr]
    gives_one: bool  # of them: then the node is of their type


def _alike(node: exp.Expr) -> Iterator[_Alike]:
    if isinstance(node, _COMPARED):
        yield _Alike([node.this, node.expression], isinstance(node, exp.Nullif))
    elif isinstance(node, exp.Between):
        yield _Alike([node.this, node.args["low"], node.args["high"]], False)
    elif isinstance(node, (exp.In, *_CHOSEN)):
        yield _Alike([node.this, *node.expressions], isinstance(node, _CHOSEN))
    elif isinstance(node, exp.If) and not isinstance(node.parent, exp.Case):
        yield _Alike([part for part in (node.args["true"], node.args.get("false")) if part is not None], True)
    elif isinstance(node, exp.Case):
        default, branches = node.args.get("default"), node.args["ifs"]
        yield _Alike([*(one.args["true"] for one in branches), *([] if default is None else [default])], True)
        if node.this is not None:
            yield _Alike([node.this, *(one.this for one in branches)], False)


def _made_alike(parts: list[exp.Expr], text: str) -> pa.DataType | None:
    """Give these parts one type, if there is a time among them: the finest of theirs. Returns that type."""
    kinds = [(written_time(part.unnest()) is not None, kind) for part in parts if (kind := time_of(part)) is not None]
    if not kinds:
        return None
    # That of a column, rather than of what is written; a date beside a time is a time.
    first = min(kinds, key=lambda one: (one[0], pa.types.is_date(one[1])))[1]
    columns = [kind for is_written, kind in kinds if not is_written] or [first]
    if pa.types.is_date(first):  # TIMESTAMP '…' beside it makes a time of it, too
        first = next((kind for _, kind in kinds if pa.types.is_timestamp(kind)), first)
    zones = {getattr(kind, "tz", None) for kind in columns if not pa.types.is_date(kind)}
    if len({pa.types.is_duration(kind) for kind in columns}) > 1 or len(zones) > 1:
        return first  # which cannot be compared
    common = first if pa.types.is_date(first) else with_unit(first, finest(map(unit_of, columns)))
    is_possible = _is_span if pa.types.is_duration(common) else _is_time_text  # of others, `check_types` complains
    written = [(part, inner) for part in parts if is_possible(inner := part.unnest())]
    for _, inner in written:
        common = _refined(common, inner, text)
    for part, inner in written:
        _write(inner, common, text)
        part.meta[_TYPE] = common
    of_written = {id(part) for part, _ in written}
    for part in parts:
        if id(part) not in of_written:
            _convert(part, common)
    return common


def _is_time_text(node: exp.Expr) -> bool:
    return (isinstance(node, exp.Literal) and bool(node.is_string)) or _is_written(node)


def _is_span(node: exp.Expr) -> bool:
    return isinstance(node, exp.Interval)


def _convert(part: exp.Expr, wanted: pa.DataType) -> None:
    """Let a part count as finely as this type."""
    given = time_of(part)
    if given is None or given == wanted or pa.types.is_date(wanted):
        return
    around = converted(part, given, wanted)
    around.meta[_TYPE] = wanted
    part.replace(around)


def _refined(kind: pa.DataType, node: exp.Expr, text: str) -> pa.DataType:
    """The type, or one that counts so finely that what is written here is a whole number of its units."""
    if pa.types.is_date(kind):
        return kind
    if _is_span(node):
        value = written_time(node)
        needed = "s" if value is None else coarsest(value.cast(_SPAN).value)
        return with_unit(kind, finest([kind.unit, needed]))
    finer = [unit for unit in UNITS if UNITS[unit] >= UNITS[kind.unit]]
    return next((with_unit(kind, unit) for unit in finer if _read(_words(node), with_unit(kind, unit))), kind)


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
    if kind is not None and pa.types.is_timestamp(kind):
        return kind
    return stamp if _is_written(node) else pa.timestamp("us", stamp.tz)


def _words(node: exp.Expr) -> str:
    """A time as it is written."""
    literal = node.this.unnest() if isinstance(node, exp.Cast) else node
    return str(literal.this)


def _write(node: exp.Expr, kind: pa.DataType, text: str) -> None:
    """Say that what is written here is a time of this type."""
    if _is_span(node):
        span = written_time(node)
        assert span is not None
        node.meta[_TYPE], node.meta[_VALUE] = kind, _cast(span, kind, text)
        return
    value = _read(_words(node), kind)
    if value is None:
        raise InvalidExpression(f"{_words(node)!r} in {text!r} {_why_not(_words(node), kind)}")
    node.meta[_TYPE], node.meta[_VALUE] = kind, value


def _why_not(written: str, kind: pa.DataType) -> str:
    """Why this is no time of this type."""
    stamps = [pa.timestamp(unit, zone) for zone in (None, "UTC") for unit in UNITS]
    possible = [one for one in stamps if _read(written, one) is not None]
    if not possible:
        return "is not a time. Write it as '2024-01-31 12:00:00'."
    if pa.types.is_date(kind):
        return "is a time, but the values beside it are dates. Write it as '2024-01-31'."
    if kind.tz is None and all(one.tz is not None for one in possible):
        return f"has a time zone, but {kind} has none. Write it without one."
    return f"is not possible as {kind}: nanoseconds reach from 1677 to 2262."


def _read(written: str, kind: pa.DataType) -> pa.Scalar | None:
    """A time in this type; with a zone in it, or without."""
    has_zone = pa.types.is_timestamp(kind) and kind.tz is not None
    for tried in (pa.timestamp(kind.unit), pa.timestamp(kind.unit, "UTC")) if has_zone else (kind,):
        try:
            value = pa.scalar(written).cast(tried)
        except pa.ArrowInvalid:
            continue
        seconds = value.value * 86_400 if pa.types.is_date(kind) else value.value // UNITS[kind.unit]
        if seconds < _FIRST_YEAR:
            return None
        return pa.scalar(value.value, kind) if has_zone else value
    return None


def _moved(node: exp.Expr, text: str) -> None:
    """The type of a sum or difference of times and spans."""
    left, right = time_of(node.this), time_of(node.expression)
    if _moved_months(node, text):
        return
    if (left is None and right is None) or _moved_date(node, text):
        return
    is_span = [kind is not None and pa.types.is_duration(kind) for kind in (left, right)]
    if left is not None and right is not None and isinstance(node, exp.Sub) and not any(is_span):
        days = pa.types.is_date(left) and pa.types.is_date(right)
        if pa.types.is_timestamp(left) and pa.types.is_timestamp(right) and (left.tz is None) != (right.tz is None):
            raise InvalidExpression(
                f"{node.sql('spark')!r} in {text!r} mixes a time with a zone and a time without. CAST(x AS "
                "TIMESTAMP_NTZ) drops the zone."
            )
        zone = getattr(left if pa.types.is_date(right) else right, "tz", None)
        unit = "us" if days else finest([unit_of(left), unit_of(right)])
        node.meta[_TYPE], wanted = pa.duration(unit), [pa.timestamp(unit, zone)] * 2
    elif left is not None and right is not None and is_span[1] and not pa.types.is_date(left):
        unit = finest([_needed(node.this), _needed(node.expression)])
        node.meta[_TYPE], wanted = with_unit(left, unit), [with_unit(left, unit), pa.duration(unit)]
    elif left is not None and right is not None and is_span[0] and _is_moment(right) and isinstance(node, exp.Add):
        unit = finest([_needed(node.this), _needed(node.expression)])
        node.meta[_TYPE], wanted = with_unit(right, unit), [pa.duration(unit), with_unit(right, unit)]
    else:
        wanted = []
    for part, kind in zip((node.this, node.expression), wanted, strict=bool(wanted)):
        if written_time(part.unnest()) is not None:
            _rewritten(part, kind, text)
        else:
            _convert(part, kind)
    if not wanted:
        raise InvalidExpression(
            f"{said(node)!r} in {text!r} adds something other than a duration to a time. Possible: "
            "ts + INTERVAL 10 MINUTES, d + INTERVAL 3 DAYS, DATE_ADD(d, n), and the difference of two times."
        )


def _called(node: RowCall, stamp: pa.DataType) -> None:
    """The type of a call that gives a time."""
    if node.gives == "date":
        node.meta[_TYPE] = pa.date32()
    elif node.gives == "moment" and name_of(node) not in WITH_UNITS:
        node.meta[_TYPE] = pa.timestamp("us", "UTC")
    elif node.gives == "moment" and len(node.expressions) == 3:
        unit, _, moment = node.expressions
        kind = time_of(moment)
        if kind is None or pa.types.is_duration(kind):
            return  # which `mark_call` refuses
        if pa.types.is_date(kind):
            kind = pa.timestamp("us", stamp.tz)
            cast = exp.Cast(this=moment.copy(), to=exp.DataType.build("TIMESTAMP"))
            cast.meta[_TYPE] = kind
            moment.replace(cast)
        finer = with_unit(kind, finest([unit_of(kind), coarsest(SPANS.get(unit.name, SPANS["DAY"]))]))
        _convert(node.expressions[2], finer)
        node.meta[_TYPE] = finer


def _moves(node: exp.Interval) -> bool:
    """Does it stand beside + or -?"""
    around = node.parent
    while isinstance(around, exp.Paren):
        around = around.parent
    return isinstance(around, (exp.Add, exp.Sub))


def _moved_months(node: exp.Expr, text: str) -> bool:
    """Put ts + INTERVAL 1 MONTH in other words. Returns whether it was that."""
    moment, span = node.this, node.expression.unnest()
    if isinstance(moment.unnest(), exp.Interval) and isinstance(node, exp.Add):
        moment, span = node.expression, node.this.unnest()
    if not isinstance(span, exp.Interval) or not is_months(span):
        return False
    kind = time_of(moment)
    months = months_of(span)
    if kind is None or pa.types.is_duration(kind) or months is None:
        micros_of(span, text)  # which says why it has no length
        return True
    months = months if isinstance(node, exp.Add) else -months
    count = exp.Literal.number(abs(months))
    count = exp.Neg(this=count) if months < 0 else count
    is_day = kind is not None and pa.types.is_date(kind)
    made = (
        call("ADD_MONTHS", moment.copy(), count)
        if is_day
        else call("TIMESTAMPADD", exp.var("MONTH"), count, moment.copy())
    )
    made.meta[WRITTEN], made.meta[_TYPE] = said(node), kind
    node.replace(made)
    return True


def _moved_date(node: exp.Expr, text: str) -> bool:
    """Put d + INTERVAL 3 DAYS in other words. Returns whether it was that."""
    day, span = node.this, node.expression.unnest()
    if isinstance(day.unnest(), exp.Interval) and isinstance(node, exp.Add):
        day, span = node.expression, node.this.unnest()
    kind = time_of(day)
    if kind is None or not pa.types.is_date(kind) or not isinstance(span, exp.Interval):
        return False
    days, rest = divmod(micros_of(span, text), SPANS["DAY"])
    if rest or span.args["unit"].name.upper().removesuffix("S") not in ("DAY", "WEEK"):
        raise InvalidExpression(
            f"{node.sql('spark')!r} in {text!r}: a date moves by whole days, as in d + INTERVAL 3 DAYS. CAST(d AS "
            "TIMESTAMP) moves by any interval."
        )
    made = days_after(day, exp.Literal.number(days if isinstance(node, exp.Add) else -days), node)
    made.meta[_TYPE] = pa.date32()
    node.replace(made)
    return True


def _is_moment(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind))


def _needed(part: exp.Expr) -> str:
    """The unit in which a part is a whole number."""
    value, kind = written_time(part.unnest()), time_of(part)
    assert kind is not None
    if value is None or not pa.types.is_duration(kind):
        return unit_of(kind)
    return coarsest(value.cast(_SPAN).value)


def _rewritten(part: exp.Expr, kind: pa.DataType, text: str) -> None:
    """Say that the time or span that is written here is of this type, which holds it."""
    inner = part.unnest()
    value = written_time(inner)
    assert value is not None
    part.meta[_TYPE] = inner.meta[_TYPE] = kind
    inner.meta[_VALUE] = _cast(value, kind, text)


def _cast(value: pa.Scalar, kind: pa.DataType, text: str) -> pa.Scalar:
    try:
        return value.cast(kind)
    except pa.ArrowInvalid:
        raise InvalidExpression(f"{value} in {text!r} does not fit in {kind}.") from None
