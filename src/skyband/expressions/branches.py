"""The types of what stands together: the values that a CASE may give, that are compared, and conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa
from sqlglot import exp

from skyband.errors import InvalidExpression
from skyband.expressions.calls import RowCall
from skyband.expressions.grammar import is_to_truth
from skyband.expressions.row_functions import GIVES_TEXT
from skyband.expressions.time_functions import AS_PARTS
from skyband.expressions.times import time_of

TEXTS: Final = (exp.Upper, exp.Lower, exp.Trim, exp.Substring, exp.DPipe, *GIVES_TEXT)
ON_NUMBERS: Final = (
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Pow, exp.Neg),
    *(exp.Abs, exp.Sign, exp.Sqrt, exp.Exp, exp.Ln, exp.Log, exp.Floor, exp.Ceil, exp.Sin, exp.Cos, exp.Tan, exp.Atan2),
)
_NUMBERS: Final[tuple[type[exp.Expr], ...]] = (*ON_NUMBERS, exp.Length, exp.Extract, exp.DateDiff, *AS_PARTS)
_TRUTHS: Final = (exp.Predicate, exp.Connector, exp.Not, exp.Boolean)
_BRANCHING: Final = (exp.Case, exp.If, exp.Coalesce, exp.Greatest, exp.Least)
_COMPARED: Final = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Nullif)
_TRUTH: Final = "true or false"

Types = Mapping[str, pa.DataType]


def check_types(tree: exp.Expr, types: Types, text: str) -> None:
    """Raise if values of different types are compared, or are what a row may have by turns, and if a condition is none.
    The times in the tree are known as such: see `with_times`."""
    for node in tree.walk():
        for parts in _alike(node):
            kinds = [(part, kind) for part in parts if (kind := _kind(part, types)) is not None]
            other = next((one for one in kinds if one[1] != kinds[0][1] and not _is_written_time(kinds[0], one)), None)
            if other is not None:
                raise InvalidExpression(
                    f"In {text!r} values have different types: {kinds[0][0].sql('spark')} is {kinds[0][1]}, "
                    f"{other[0].sql('spark')} is {other[1]}."
                )
        for condition in _conditions(node):
            kind = _kind(condition, types)
            if kind not in (None, _TRUTH):
                raise InvalidExpression(f"{condition.sql('spark')!r} in {text!r} is {kind}, not {_TRUTH}.")


def _is_written_time(*sides: tuple[exp.Expr, str]) -> bool:
    """Is one of these a time, and the other one as it is written?"""
    return {kind for _, kind in sides} == {"a time", "text"} and any(isinstance(one, exp.Literal) for one, _ in sides)


def _alike(node: exp.Expr) -> Iterator[list[exp.Expr]]:
    """Parts of a node that have one type."""
    if isinstance(node, _BRANCHING) and not (isinstance(node, exp.If) and isinstance(node.parent, exp.Case)):
        yield _branches(node)
    if isinstance(node, exp.Case) and node.this is not None:
        yield [node.this.unnest(), *(each.this.unnest() for each in node.args["ifs"])]
    elif isinstance(node, _COMPARED):
        yield [node.this.unnest(), node.expression.unnest()]
    elif isinstance(node, (exp.In, exp.Between)):
        yield [part.unnest() for part in node.iter_expressions()]


def _conditions(node: exp.Expr) -> list[exp.Expr]:
    """The parts of a node that are true or false."""
    if isinstance(node, exp.Not):
        return [node.this.unnest()]
    if isinstance(node, exp.Connector):
        return [node.this.unnest(), node.expression.unnest()]
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Boolean):
        return [node.this.unnest()]
    is_asked = isinstance(node, exp.If) and not (isinstance(node.parent, exp.Case) and node.parent.this is not None)
    return [node.this.unnest()] if is_asked else []


def _branches(node: exp.Expr) -> list[exp.Expr]:
    match node:
        case exp.Case():
            given = [*(each.args["true"] for each in node.args["ifs"]), node.args.get("default")]
        case exp.If():
            given = [node.args.get("true"), node.args.get("false")]
        case _:
            given = [node.this, *node.expressions]
    return [branch.unnest() for branch in given if branch is not None]


def _kind(node: exp.Expr, types: Types) -> str | None:
    """What a part of an expression is, in words; None: null, or what only its values tell."""
    if (time := time_of(node)) is not None:
        return "a span of time" if pa.types.is_duration(time) else "a time"
    match node:
        case exp.Paren():
            return _kind(node.unnest(), types)
        case exp.Literal():
            return "text" if node.is_string else "a number"
        case exp.Column():
            return _kind_of_type(types[node.name])
        case exp.Cast() if node.to.is_type(*exp.DataType.TEXT_TYPES):
            return "text"
        case exp.Cast() if node.to.is_type(*exp.DataType.NUMERIC_TYPES):
            return "a number"
    if is_to_truth(node):
        return _TRUTH
    if isinstance(node, exp.Nullif):
        return _kind(node.this.unnest(), types)
    if isinstance(node, _BRANCHING):
        return next((kind for branch in _branches(node) if (kind := _kind(branch, types)) is not None), None)
    if isinstance(node, TEXTS):
        return "text"
    if isinstance(node, RowCall):
        return {"text": "text", "number": "a number", "truth": _TRUTH}.get(node.gives, "a time")
    if isinstance(node, (*_NUMBERS, exp.Anonymous)):
        return "a number"
    return _TRUTH if isinstance(node, _TRUTHS) else None


def _kind_of_type(kind: pa.DataType) -> str | None:
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    if pa.types.is_boolean(kind):
        return _TRUTH
    if pa.types.is_temporal(kind):
        return "a time"
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return "a number" if is_number else None
