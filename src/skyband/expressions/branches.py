"""What a CASE, a COALESCE or the like may give: values of one type, whichever branch is taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
from sqlglot import exp

from skyband.errors import InvalidExpression
from skyband.expressions.row_functions import GIVES_TEXT

TEXTS: Final = (exp.Upper, exp.Lower, exp.Trim, exp.Substring, exp.DPipe, *GIVES_TEXT)
_TRUTHS: Final = (exp.Predicate, exp.Connector, exp.Not, exp.Boolean)
_BRANCHING: Final = (exp.Case, exp.If, exp.Coalesce, exp.Greatest, exp.Least)

Types = Mapping[str, pa.DataType]


def check_branches(tree: exp.Expr, types: Types, text: str) -> None:
    """Raise if one branch gives a number and another text: which of them a row has is known when it comes."""
    for node in tree.find_all(*_BRANCHING):
        if isinstance(node, exp.If) and isinstance(node.parent, exp.Case):
            continue  # a branch of that one
        first: tuple[exp.Expr, str] | None = None
        for branch in _branches(node):
            kind = _kind(branch, types)
            if kind is None:
                continue
            if first is not None and first[1] != kind and {first[1], kind} != {"a time", "text"}:
                raise InvalidExpression(
                    f"In {text!r} values have different types: {first[0].sql('spark')} is {first[1]}, "
                    f"{branch.sql('spark')} is {kind}."
                )
            first = first or (branch, kind)


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
    if isinstance(node, _BRANCHING):
        return next((kind for branch in _branches(node) if (kind := _kind(branch, types)) is not None), None)
    if isinstance(node, TEXTS):
        return "text"
    return "true or false" if isinstance(node, _TRUTHS) else None


def _kind_of_type(kind: pa.DataType) -> str | None:
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    if pa.types.is_boolean(kind):
        return "true or false"
    if pa.types.is_temporal(kind):
        return "a time"
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return "a number" if is_number else None
