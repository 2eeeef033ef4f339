"""Functions that other functions say as well: NVL2(x, y, z) is CASE WHEN x IS NOT NULL THEN y ELSE z END."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from skyband.errors import InvalidExpression
from skyband.expressions.calls import CALLS, RowCall, call, name_of
from skyband.expressions.function_spec import said
from skyband.expressions.grammar import cast_to

_DEGREES: Final = "57.29577951308232"  # of a radian, and the other way round: as Java and polars have them
_RADIANS: Final = "0.017453292519943295"
_TRUNCATED: Final = {  # the words of TRUNC for a unit
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "YEAR"),
    "QUARTER": "QUARTER",
    **dict.fromkeys(("MONTH", "MON", "MM"), "MONTH"),
    "WEEK": "WEEK",
}
_DAYS: Final = ("ADD_MONTHS", "LAST_DAY", "NEXT_DAY", "DAYNAME", "MONTHNAME")  # whose first argument is a date
# What is put in other words here, and its arguments.
READ: Final[Mapping[type[exp.Expr], frozenset[str]]] = {
    **dict.fromkeys(CALLS.values(), frozenset({"expressions"})),
    exp.Nvl2: frozenset({"this", "true", "false"}),
    exp.DecodeCase: frozenset({"expressions"}),
    exp.EqualNull: frozenset({"this", "expression"}),
    **dict.fromkeys((exp.Degrees, exp.Radians, exp.UnixDate), frozenset({"this"})),
    exp.Pi: frozenset(),
    exp.IntDiv: frozenset({"this", "expression"}),
    exp.RegexpLike: frozenset({"this", "expression"}),
    exp.StrPosition: frozenset({"this", "substr", "position"}),
    exp.DateTrunc: frozenset({"this", "unit"}),
    exp.UnixToStr: frozenset({"this", "format"}),
}


def _made(name: str, arguments: list[exp.Expr]) -> exp.Expr | None:
    """What a function is that sqlglot does not know by name."""
    match name, [exp.Paren(this=one.copy()) for one in arguments]:
        case "ISNULL", [x]:
            return exp.Is(this=x, expression=exp.Null())
        case "ISNOTNULL", [x]:
            return exp.Not(this=exp.Is(this=x, expression=exp.Null()))
        case "NULLIFZERO", [x]:
            return exp.Nullif(this=x, expression=exp.Literal.number(0))
        case "ZEROIFNULL", [x]:
            return exp.Coalesce(this=x, expressions=[exp.Literal.number(0)])
        case "PMOD", [x, y]:
            rest = exp.Paren(this=exp.Mod(this=x, expression=y))
            above = exp.Mod(this=exp.Paren(this=exp.Add(this=rest.copy(), expression=y.copy())), expression=y.copy())
            negative = exp.LT(this=rest.copy(), expression=exp.Literal.number(0))
            return exp.Case(ifs=[exp.If(this=negative, true=above)], default=rest)
        case "E", []:
            return exp.Literal.number("2.718281828459045e0")
        case "WEEKDAY", [x]:
            return exp.Extract(this=exp.var("WEEKDAY"), expression=_day(x))
    return None


NAMES: Final = ("ISNULL", "ISNOTNULL", "NULLIFZERO", "ZEROIFNULL", "PMOD", "E", "WEEKDAY")


def is_synonym(node: exp.Anonymous) -> bool:
    """Is this a call of one of those?"""
    return _made(node.name.upper(), node.expressions) is not None


def other_words(node: exp.Expr) -> exp.Expr:
    """The same in other words, where there are."""
    match node:
        case exp.Anonymous():
            made = _made(node.name.upper(), node.expressions)
            return node if made is None else exp.Paren(this=made)
        case exp.Nvl2():
            known = exp.Not(this=exp.Is(this=exp.Paren(this=node.this.copy()), expression=exp.Null()))
            return exp.Case(ifs=[exp.If(this=known, true=node.args["true"].copy())], default=node.args.get("false"))
        case exp.DecodeCase():
            return _decoded(node)
        case exp.EqualNull():
            return _same(node.this, node.expression)
        case exp.Degrees() | exp.Radians():
            factor = exp.Literal.number((_DEGREES if isinstance(node, exp.Degrees) else _RADIANS) + "e0")
            return exp.Paren(this=exp.Mul(this=cast_to(node.this.copy(), "DOUBLE"), expression=factor))
        case exp.Pi():
            return exp.Literal.number("3.141592653589793e0")
        case exp.IntDiv():
            return call("DIV", node.this.copy(), node.expression.copy())
        case exp.RegexpLike():
            return call("REGEXP_LIKE", node.this.copy(), node.expression.copy())
        case exp.StrPosition():
            start = node.args.get("position")
            return call(
                "LOCATE", node.args["substr"].copy(), node.this.copy(), *([] if start is None else [start.copy()])
            )
        case exp.UnixDate():
            return exp.DateDiff(this=_day(node.this), expression=_literal_day("1970-01-01"))
        case exp.DateTrunc():
            return _truncated(node)
        case exp.UnixToStr():
            return exp.TimeToStr(this=call("TIMESTAMP_SECONDS", node.this.copy()), format=node.args["format"].copy())
        case RowCall():
            return _called(node)
    return node


def _same(x: exp.Expr, y: exp.Expr) -> exp.Expr:
    """x <=> y."""
    sides = [exp.Paren(this=one.copy()) for one in (x, y)]
    equal = exp.Is(this=exp.Paren(this=exp.EQ(this=sides[0], expression=sides[1])), expression=exp.Boolean(this=True))
    unknown = exp.and_(*(exp.Is(this=one.copy(), expression=exp.Null()) for one in sides))
    return exp.Paren(this=exp.or_(equal, exp.Paren(this=unknown)))


def _decoded(node: exp.DecodeCase) -> exp.Expr:
    """DECODE(x, 1, 'a', 2, 'b', 'others'), where null equals null."""
    value, *others = node.expressions
    if len(others) < 2:
        raise InvalidExpression(f"{node.sql('spark')!r}: DECODE takes a value, and pairs of what it may be.")
    default = others.pop() if len(others) % 2 else None
    ifs = [
        exp.If(this=_same(value, found), true=given.copy())
        for found, given in zip(others[::2], others[1::2], strict=True)
    ]
    return exp.Case(ifs=ifs, default=default)


def _truncated(node: exp.DateTrunc) -> exp.Expr:
    """TRUNC(d, 'MM') is a date; DATE_TRUNC, which gives a timestamp, is another node."""
    unit = _TRUNCATED.get(str(node.args["unit"].name).upper())
    if unit is None:
        raise InvalidExpression(
            f"{said(node)!r}: TRUNC cuts dates, to 'YEAR', 'QUARTER', 'MM' or 'WEEK'. ROUND(x, 2) rounds numbers, and "
            "CAST(x AS BIGINT) cuts off what is behind the point."
        )
    whole = exp.TimestampTrunc(this=_day(node.this), unit=exp.var(unit))
    return exp.Cast(this=whole, to=exp.DataType.build("DATE"))


def _called(node: RowCall) -> exp.Expr:
    """A call whose strings are dates where it takes dates, and in which TO_DATE is the cast of a string."""
    name, arguments = name_of(node), node.expressions
    if name in ("TO_DATE", "TO_TIMESTAMP") and not isinstance(node.parent, exp.Cast):
        to = exp.DataType.build(name.removeprefix("TO_"))
        return exp.Cast(this=call(name, *(one.copy() for one in arguments)), to=to)
    if name in _DAYS and arguments and _is_string(arguments[0]):
        return call(name, _day(arguments[0]), *(one.copy() for one in arguments[1:]))
    if name == "MONTHS_BETWEEN" and any(map(_is_string, arguments)):
        return call(name, *(_day(one) for one in arguments))
    if name in ("TIMESTAMPDIFF", "DATEDIFF", "DATE_DIFF", "TIMESTAMPADD", "DATEADD", "DATE_ADD"):
        moments = [_moment(one) if _is_string(one) else one.copy() for one in arguments[1:]]
        return call(name, arguments[0].copy(), *moments) if any(map(_is_string, arguments[1:])) else node
    return node


def _is_string(node: exp.Expr) -> bool:
    inner = node.unnest()
    return isinstance(inner, exp.Literal) and bool(inner.is_string)


def _day(node: exp.Expr) -> exp.Expr:
    """A string that is written out as a date."""
    return _literal_day(node.unnest().name) if _is_string(node) else node.copy()


def _literal_day(text: str) -> exp.Expr:
    return exp.Cast(this=exp.Literal.string(text), to=exp.DataType.build("DATE"))


def _moment(node: exp.Expr) -> exp.Expr:
    return exp.Cast(this=node.unnest().copy(), to=exp.DataType.build("TIMESTAMP"))
