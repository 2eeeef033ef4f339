"""Which parts of an expression are whole numbers, as in SQL: those stay exact, until they meet a float.

Columns of integers and integer literals are whole. So are + - * % of whole numbers, their negative, ABS, SIGN, FLOOR
and CEIL, and what CASE, IF, COALESCE, NULLIF, GREATEST and LEAST choose from whole numbers only. Division, powers and
the other functions give floats; a whole number beside a float becomes one.

They are computed in 126 bits (38 digits), which no product of two 64-bit numbers exceeds, and only the result has to
fit in 64: so both engines refuse the same rows, whichever branch of a CASE they evaluate. Where a sum or a product
could take more by the types of its columns, its parts have to fit in 64 bits, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import pyarrow as pa
from sqlglot import exp

from skyband.errors import InvalidExpression

WIDEST: Final = 126  # bits of what is computed: what 38 digits hold
RESULT: Final = 63  # bits of what a score is

TOO_WIDE: Final = (
    "does not fit in 64 bits. Nothing of this batch was taken. Multiply by 1.0 first to compute in float64, "
    "which rounds"
)
_SAME: Final = (exp.Neg, exp.Abs, exp.Paren, exp.Floor, exp.Ceil)
_COMPARISONS: Final = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_FLOAT: Final = (
    *(exp.Div, exp.Pow, exp.Sqrt, exp.Exp, exp.Ln, exp.Log, exp.Sin, exp.Cos, exp.Tan, exp.Atan2, exp.Anonymous),
)
_KIND: Final = "kind"


class Kind(NamedTuple):
    """What an expression gives. A whole number lies in [-2**bits, 2**bits]."""

    is_whole: bool
    is_float: bool = False
    bits: int = 0


_OTHER: Final = Kind(False)  # text, truth, null
_A_FLOAT: Final = Kind(False, True)


def typed(tree: exp.Expr, types: Mapping[str, pa.DataType]) -> exp.Expr:
    """The tree with a cast wherever a whole number becomes a float, or has to fit in 64 bits; see `kind_of`."""
    root = exp.Paren(this=tree.copy())
    for node in reversed(list(root.walk())):  # parts before the whole
        node.meta[_KIND] = _kind(node, types)
    return root.this


def kind_of(node: exp.Expr) -> Kind:
    """What a part of a typed tree gives."""
    return node.meta.get(_KIND, _OTHER)


def is_narrowed(node: exp.Expr) -> bool:
    """Is this a whole number that has to fit in 64 bits?"""
    return isinstance(node, exp.Cast) and kind_of(node).is_whole


def _kind(node: exp.Expr, types: Mapping[str, pa.DataType]) -> Kind:
    parts = list(node.iter_expressions())
    match node:
        case exp.Column():
            return _of_column(types.get(node.name))
        case exp.Literal():
            return _of_literal(node)
        case exp.Mul() if all(kind_of(part).is_whole for part in parts):
            return _multiplied(parts)
        case exp.Add() | exp.Sub():
            return _added(parts)
        case exp.Mul() | exp.Mod() | exp.Greatest() | exp.Least() | exp.Coalesce() | exp.Nullif():
            return _together(parts)
        case exp.Length():
            return Kind(True, bits=31)
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


def _of_column(column_type: pa.DataType | None) -> Kind:
    if column_type is None:
        return _OTHER
    if pa.types.is_integer(column_type):
        return Kind(True, bits=column_type.bit_width - pa.types.is_signed_integer(column_type))
    return _A_FLOAT if pa.types.is_floating(column_type) or pa.types.is_decimal(column_type) else _OTHER


def _of_literal(node: exp.Literal) -> Kind:
    if node.is_string:
        return _OTHER
    if not node.this.isdigit():
        return _A_FLOAT
    bits = int(node.this).bit_length()
    if bits > RESULT + 1:
        raise InvalidExpression(
            f"{node.this} does not fit in 64 bits. Write it with a point or an exponent, {float(node.this):g}, to "
            "compute in float64, which rounds."
        )
    return Kind(True, bits=bits)


def _together(parts: list[exp.Expr]) -> Kind:
    """Of parts that are computed with, compared or chosen from together: floats, if one is."""
    kinds = [kind_of(part) for part in parts]
    if any(kind.is_float for kind in kinds):
        for part in parts:
            _as_float(part)
        return _A_FLOAT
    whole = [kind.bits for kind in kinds if kind.is_whole]
    return Kind(True, bits=max(whole)) if whole else _OTHER


def _added(parts: list[exp.Expr]) -> Kind:
    kind = _together(parts)
    if kind.is_whole and kind.bits == WIDEST:
        kind = kind._replace(bits=max(_narrow(part) for part in parts))
    return kind._replace(bits=kind.bits + 1)


def _multiplied(parts: list[exp.Expr]) -> Kind:
    bits = sum(kind_of(part).bits for part in parts)
    return Kind(True, bits=bits if bits <= WIDEST else sum(_narrow(part) for part in parts))


def _narrow(part: exp.Expr) -> int:
    """If it may not fit in 64 bits, say that it has to. Returns how many bits it then has."""
    bits = kind_of(part).bits
    if bits <= RESULT:
        return bits
    narrowed = exp.cast(part.copy(), "BIGINT")
    narrowed.meta[_KIND] = Kind(True, bits=RESULT)
    part.replace(narrowed)
    return RESULT


def _as_float(part: exp.Expr) -> None:
    if kind_of(part).is_whole:
        cast = exp.cast(part.copy(), "DOUBLE")
        cast.meta[_KIND] = _A_FLOAT
        part.replace(cast)
