"""Which parts of an expression are whole numbers or decimals, as in SQL: those stay exact, until they meet a float.

A decimal is a whole number of its last digit, here and on Spark: 1.25 is 125, with a scale of 2. So is a number written
with a point, in an expression that reads a decimal column or makes a decimal; in others it is a float.

Columns of integers and integer literals are whole. So are + - * % of whole numbers, their negative, ABS, SIGN, FLOOR
and CEIL, and what CASE, IF, COALESCE, NULLIF, GREATEST and LEAST choose from whole numbers only. Division, powers and
the other functions give floats, and so does CAST(x AS DOUBLE); a whole number beside a float becomes one.

They are computed in 126 bits (38 digits), which no product of two 64-bit numbers exceeds, and only the result has to
fit in 64: so both engines refuse the same rows, whichever branch of a CASE they evaluate. Where a sum or a product
could take more by the types of its columns, its parts have to fit in 64 bits, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final, NamedTuple

import pyarrow as pa
from sqlglot import exp

from skyband.errors import InvalidExpression
from skyband.expressions.call_rules import given_as, mark_call
from skyband.expressions.calls import RowCall
from skyband.expressions.function_spec import RowFunction, operand_of
from skyband.expressions.grammar import bottom_up, cast_to, copied, is_to_decimal, is_to_double, is_to_truth
from skyband.expressions.rounding import digits_kept, rounded, rounded_to_tens
from skyband.expressions.row_functions import MOST_DECIMAL_DIGITS, mark_function
from skyband.expressions.times import time_of, written_time

WIDEST: Final = 126  # bits of what is computed: what 38 digits hold
RESULT: Final = 63  # bits of what a score is
DIGITS: Final = MOST_DECIMAL_DIGITS  # of a decimal that is computed with
MOST_DIGITS: Final = 38  # of a decimal

TOO_WIDE: Final = (
    "does not fit in 64 bits. Skyband rejected the batch. CAST(x AS DOUBLE) of a part of it computes in float64, "
    "which rounds"
)
_SAME: Final = (exp.Neg, exp.Abs, exp.Paren)
_COMPARISONS: Final = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_FLOAT: Final = (
    *(exp.Div, exp.Pow, exp.Sqrt, exp.Exp, exp.Ln, exp.Log, exp.Sin, exp.Cos, exp.Tan, exp.Atan2, exp.Anonymous),
)
_KIND: Final = "kind"
_DECIMAL: Final = "decimal"


class Kind(NamedTuple):
    """What an expression gives. A whole number lies in [-2**bits, 2**bits]; of a decimal, the number of its last digit
    does."""

    is_whole: bool
    is_float: bool = False
    bits: int = 0
    scale: int = 0  # of a decimal: its digits after the point
    digits: int = 0  # all of them, where CAST says how many; else they are those that its bits may take

    @property
    def is_decimal(self) -> bool:
        return self.scale > 0 or self.digits > 0

    @property
    def type(self) -> pa.DataType:
        """That of the numbers, as they are shown."""
        if not self.is_whole:
            return pa.float64()
        digits = self.digits or min(len(str(2**self.bits)), MOST_DIGITS)
        return pa.decimal128(digits, self.scale) if self.is_decimal else pa.int64()


_OTHER: Final = Kind(False)  # text, truth, null
_A_FLOAT: Final = Kind(False, True)


def typed(tree: exp.Expr, types: Mapping[str, pa.DataType]) -> exp.Expr:
    """The tree with a cast wherever a whole number becomes a float, or has to fit in 64 bits; see `kind_of`."""
    root = exp.Paren(this=copied(tree))
    decimals = any(map(pa.types.is_decimal, types.values())) or any(map(is_to_decimal, root.find_all(exp.Cast)))
    for node in reversed(list(root.walk())):  # parts before the whole
        node.meta[_KIND] = _of_literal(node, decimals) if isinstance(node, exp.Literal) else _kind(node, types)
    return root.this


def with_rounds(tree: exp.Expr, types: Mapping[str, pa.DataType]) -> exp.Expr:
    """The tree with other words for ROUND: a decimal, or a whole number, is rounded exactly, and is one still."""

    def write(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Round):
            return node
        digits, kind = digits_kept(node), kind_of(typed(node.this, types))
        if digits < 0 and kind.is_decimal:
            raise InvalidExpression(
                f"{node.sql('spark')!r}: of a decimal, ROUND keeps digits behind the point. CAST(x AS BIGINT) makes a "
                "whole number of it."
            )
        if digits < 0 and kind.is_whole:
            return rounded_to_tens(exp.Paren(this=node.this), digits)
        if kind.is_whole and digits >= kind.scale:
            return exp.Paren(this=node.this)
        wanted = kind.type.precision - kind.scale + digits + 1 if kind.is_decimal else 0
        if not kind.is_whole or wanted > DIGITS:
            return rounded(node)
        return exp.Cast(this=node.this, to=exp.DataType.build(f"DECIMAL({wanted}, {digits})"))

    return bottom_up(tree, write).unnest()


def kind_of(node: exp.Expr) -> Kind:
    """What a part of a typed tree gives."""
    return node.meta.get(_KIND, _OTHER)


def is_in_digits(node: exp.Expr) -> bool:
    """Is this a decimal column of which whole numbers of its last digit are read? Behind a cast it stays as it is; one
    without digits after the point is a whole number there, too, unless it becomes a float."""
    if not node.meta.get(_DECIMAL):
        return False
    return not isinstance(node.parent, exp.Cast) or not (kind_of(node).scale or is_to_double(node.parent))


def is_narrowed(node: exp.Expr) -> bool:
    """Is this a whole number that has to fit in 64 bits?"""
    return isinstance(node, exp.Cast) and kind_of(node).is_whole


def _kind(node: exp.Expr, types: Mapping[str, pa.DataType]) -> Kind:
    if isinstance(node, RowCall):
        return _called(node, types)
    operand = operand_of(node) if isinstance(node, (exp.Func, exp.Cast, exp.Like)) else None
    if isinstance(operand, exp.Expr) and written_time(node) is None:
        function = mark_function(node, _category(operand.unnest(), types), kind_of(operand).scale)
        if function is not None:
            if is_to_decimal(node) or (function.bits and kind_of(operand).scale):  # of digits, not of a column as it is
                node.set("this", _in_parentheses(operand.copy(), kind_of(operand)))
            return _given_by(function)
    parts = list(node.iter_expressions())
    match node:
        case exp.Column():
            node.meta[_DECIMAL] = node.name in types and is_exact(types[node.name])
            _check_digits(node, types.get(node.name))
            return _of_column(types.get(node.name))
        case exp.Mul() if all(kind_of(part).is_whole for part in parts):
            return _multiplied(node, parts)
        case exp.Add() | exp.Sub():
            return _added(node)
        case exp.Mul() | exp.Mod() | exp.Greatest() | exp.Least() | exp.Coalesce() | exp.Nullif():
            return _together(parts)
        case exp.Cast() if is_to_double(node):
            _as_float(parts[0])
            return _A_FLOAT
        case exp.Length():
            return Kind(True, bits=31)
        case exp.DPipe():
            _check_text(node, types)
        case exp.Floor() | exp.Ceil():
            return _rounded(node)
        case exp.Sign():
            return Kind(True, bits=1) if kind_of(parts[0]).is_whole else _A_FLOAT
        case exp.Case():
            if node.this is not None:  # CASE x WHEN 7: x is compared with 7
                _together([node.this, *(branch.this for branch in node.args["ifs"])])
            default = node.args.get("default")
            given = [*(branch.args["true"] for branch in node.args["ifs"]), *([] if default is None else [default])]
            return _together(given)
        case exp.If():
            return _together([part for part in (node.args.get("true"), node.args.get("false")) if part is not None])
        case exp.In() | exp.Between():
            _together(parts)
            return _OTHER
    if isinstance(node, _COMPARISONS):
        _together(parts)
        return _OTHER
    if isinstance(node, _SAME):
        return kind_of(parts[0])
    if isinstance(node, _FLOAT):
        for part in parts:
            _as_float(part)
        return _A_FLOAT
    return _OTHER


def _given_by(function: RowFunction) -> Kind:
    whole = Kind(True, bits=function.bits, scale=function.scale, digits=function.digits)
    return {"whole": whole, "float": _A_FLOAT}.get(function.gives, _OTHER)


def _called(node: RowCall, types: Mapping[str, pa.DataType]) -> Kind:
    """The kind of a function of several values."""
    given = [given_as(one, _category(one.unnest(), types), kind_of(one).bits) for one in node.values]
    return _given_by(mark_call(node, given))


def _check_text(node: exp.DPipe, types: Mapping[str, pa.DataType]) -> None:
    """Raise if something else than strings and whole numbers is put together: engines print it differently."""
    for part in node.iter_expressions():
        category, said = _category(part.unnest(), types), part.sql("spark")
        if category not in ("text", "whole"):
            inner = f"CAST({said} AS BIGINT)" if category in ("float", "decimal") else said
            raise InvalidExpression(
                f"{node.sql('spark')!r} joins strings, but {said!r} is none. Write CAST({inner} AS STRING)."
            )


def _category(node: exp.Expr, types: Mapping[str, pa.DataType]) -> str:
    """What a value is, roughly."""
    kind, time = kind_of(node), time_of(node)
    if time is not None:
        return "date" if pa.types.is_date(time) else "timestamp" if pa.types.is_timestamp(time) else "span"
    if kind.is_whole or kind.is_float:
        return "decimal" if kind.scale else "whole" if kind.is_whole else "float"
    column = types.get(node.name) if isinstance(node, exp.Column) else None
    is_truth = is_to_truth(node) or isinstance(node, (exp.Predicate, exp.Connector, exp.Not, exp.Boolean))
    is_truth = is_truth or (isinstance(node, RowCall) and node.gives == "truth")
    return "truth" if is_truth or (column is not None and pa.types.is_boolean(column)) else "text"


def _of_column(column_type: pa.DataType | None) -> Kind:
    if column_type is None:
        return _OTHER
    if pa.types.is_integer(column_type):
        return Kind(True, bits=column_type.bit_width - pa.types.is_signed_integer(column_type))
    if is_exact(column_type):
        return Kind(True, bits=(10 ** min(column_type.precision, DIGITS)).bit_length(), scale=column_type.scale)
    return _A_FLOAT if pa.types.is_floating(column_type) or pa.types.is_decimal(column_type) else _OTHER


def _check_digits(node: exp.Column, column_type: pa.DataType | None) -> None:
    """Raise if this column is computed with, and has more digits after the point than are."""
    if column_type is None or not pa.types.is_decimal(column_type) or is_exact(column_type):
        return
    around = node.parent
    while isinstance(around, exp.Paren):
        around = around.parent
    if around is not None and (is_to_double(around) or isinstance(around, exp.Is)):
        return
    raise InvalidExpression(
        f"{node.name!r} is {column_type}: expressions compute with decimals of up to {DIGITS} digits after the point. "
        f"CAST({node.name} AS DOUBLE) computes in float64, which rounds."
    )


def is_exact(column_type: pa.DataType) -> bool:
    """Is this a type of decimals that are computed with exactly?"""
    return pa.types.is_decimal(column_type) and 0 <= column_type.scale <= DIGITS


def in_digits(node: exp.Literal) -> int:
    """A number as it is written, as a whole number of its last digit."""
    return int(Decimal(node.this).scaleb(kind_of(node).scale))


def written_in_digits(node: exp.Literal) -> exp.Expr:
    """The same, to be cast to a wide type: what does not fit in 64 bits is text."""
    number = in_digits(node)
    return exp.Literal(this=str(number), is_string=number >= 2**RESULT)


def _of_literal(node: exp.Literal, decimals: bool) -> Kind:
    if node.is_string:
        return _OTHER
    if not node.this.isdigit():
        whole, point, digits = node.this.partition(".")
        exact = decimals and point and f"{whole}{digits}".isdigit()
        if exact and len(whole + digits) > DIGITS:
            raise InvalidExpression(
                f"{node.this} has more than {DIGITS} digits, beside decimals. Written with an exponent, {node.this}e0, "
                "it is a float64, which rounds."
            )
        return Kind(True, bits=int(whole + digits).bit_length(), scale=len(digits)) if exact else _A_FLOAT
    bits = int(node.this).bit_length()
    if bits > RESULT + 1:
        raise InvalidExpression(
            f"{node.this} does not fit in 64 bits. Write it with an exponent, {float(node.this):.17e}, to compute in "
            "float64, which rounds."
        )
    return Kind(True, bits=bits)


def _together(parts: list[exp.Expr]) -> Kind:
    """Of parts that are computed with, compared or chosen from together: floats, if one is."""
    kinds = [kind_of(part) for part in parts]
    if any(kind.is_float for kind in kinds):
        for part in parts:
            _as_float(part)
        return _A_FLOAT
    whole = [part for part, kind in zip(parts, kinds, strict=True) if kind.is_whole]
    if not whole:
        return _OTHER
    scale = max(kind_of(part).scale for part in whole)
    digits = {(kind.digits, kind.scale) for kind in map(kind_of, whole)}
    bits = [_scaled(part, scale) for part in whole]
    return Kind(True, bits=max(bits), scale=scale, digits=digits.pop()[0] if len(digits) == 1 else 0)


def _scaled(part: exp.Expr, scale: int) -> int:
    """Give a number so many digits after the point. Returns how many bits it then has."""
    kind = kind_of(part)
    more = scale - kind.scale
    if more == 0:
        return kind.bits
    if isinstance(part, exp.Literal):
        part.meta[_KIND] = kind._replace(scale=scale)
        part.meta[_KIND] = Kind(True, bits=in_digits(part).bit_length(), scale=scale)
        return kind_of(part).bits
    factor, inner = _number(10**more), exp.Paren(this=part.copy())
    inner.meta[_KIND] = kind
    product = exp.Mul(this=inner, expression=factor)
    bits = kind.bits + kind_of(factor).bits
    if bits > WIDEST:
        bits = _narrow(inner) + kind_of(factor).bits
    if bits > WIDEST:
        raise InvalidExpression(
            f"{part.sql('spark')!r} meets a decimal of {scale} digits after the point: the result takes more than 38 "
            "digits. CAST(x AS DOUBLE) of one of them computes in float64, which rounds."
        )
    part.replace(_in_parentheses(product, Kind(True, bits=bits, scale=scale)))
    return bits


def _number(number: int) -> exp.Literal:
    literal = exp.Literal(this=str(number), is_string=False)
    literal.meta[_KIND] = Kind(True, bits=number.bit_length())
    return literal


def _in_parentheses(node: exp.Expr, kind: Kind) -> exp.Paren:
    node.meta[_KIND] = kind
    around = exp.Paren(this=node)
    around.meta[_KIND] = kind
    return around


def _rounded(node: exp.Expr) -> Kind:
    """FLOOR and CEIL: of a whole number itself; of a decimal, what is left without its part behind the point."""
    kind = kind_of(node.this)
    if not kind.scale:
        return kind
    up, wider = isinstance(node, exp.Ceil), kind._replace(bits=kind.bits + 1, digits=0)
    x, one = node.this, _number(10**kind.scale)
    # FLOOR(x) is x - ((x % 1 + 1) % 1), whichever sign % takes; CEIL(x) is -FLOOR(-x).
    rest = _in_parentheses(exp.Mod(this=_in_parentheses(x.copy(), kind), expression=one), kind)
    if up:
        rest = _in_parentheses(exp.Neg(this=rest), kind)
    above = _in_parentheses(exp.Add(this=rest, expression=one.copy()), wider)
    rest = _in_parentheses(exp.Mod(this=above, expression=one.copy()), kind)
    node.replace(_in_parentheses((exp.Add if up else exp.Sub)(this=x.copy(), expression=rest), wider))
    return wider


def _added(node: exp.Expr) -> Kind:
    kind = _together(list(node.iter_expressions()))
    if kind.is_whole and kind.bits == WIDEST:
        kind = kind._replace(bits=max(_narrow(part) for part in node.iter_expressions()))
    return kind._replace(bits=kind.bits + 1, digits=0)


def _multiplied(product: exp.Expr, parts: list[exp.Expr]) -> Kind:
    bits, scale = sum(kind_of(part).bits for part in parts), sum(kind_of(part).scale for part in parts)
    if scale >= MOST_DIGITS:
        raise InvalidExpression(
            f"{product.sql('spark')!r} has {scale} digits after the point, and a decimal has at most "
            f"{MOST_DIGITS - 1}. CAST(x AS DECIMAL(p, s)) of a part gives it fewer; CAST(x AS DOUBLE) computes in "
            "float64, which rounds."
        )
    return Kind(True, bits=bits if bits <= WIDEST else sum(_narrow(part) for part in parts), scale=scale)


def _narrow(part: exp.Expr) -> int:
    """If it may not fit in 64 bits, say that it has to. Returns how many bits it then has."""
    bits = kind_of(part).bits
    if bits <= RESULT:
        return bits
    narrowed = cast_to(part.copy(), "BIGINT")
    narrowed.meta[_KIND] = Kind(True, bits=RESULT, scale=kind_of(part).scale)
    part.replace(narrowed)
    return RESULT


def _as_float(part: exp.Expr) -> None:
    kind = kind_of(part)
    if not kind.is_whole:
        return
    if isinstance(part, exp.Literal):
        part.meta[_KIND] = _A_FLOAT
        return
    cast: exp.Expr = cast_to(part.copy(), "DOUBLE")
    cast.meta[_KIND] = _A_FLOAT
    if kind.scale and not isinstance(part, exp.Column):
        power = exp.Literal.number(f"{10**kind.scale}.0")
        cast, power.meta[_KIND] = exp.Paren(this=exp.Div(this=cast, expression=power)), _A_FLOAT
        cast.meta[_KIND] = cast.this.meta[_KIND] = _A_FLOAT
    part.replace(cast)
