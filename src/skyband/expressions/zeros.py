"""Division by zero in polars: what SQL calls null is NaN there, which a condition would take for the largest number."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

# What of these is computed with NaN is NaN again, and so null in the end.
_KEEPS_NAN: Final = (
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Abs),
    *(exp.Paren, exp.Column, exp.Identifier, exp.Literal),
)


def is_only_computed(tree: exp.Expr) -> bool:
    """Is NaN as good as null in all of it?"""
    return all(isinstance(node, _KEEPS_NAN) for node in tree.walk())


def null_of_zeros(node: exp.Div | exp.Mod) -> exp.Expr:
    """The same, null where the divisor is 0; of a quotient, where both are."""
    asked = (node.this, node.expression) if isinstance(node, exp.Div) else (node.expression,)
    zeros: list[exp.Expr] = [exp.EQ(this=part.copy(), expression=exp.Literal.number(0)) for part in asked]
    none = exp.If(this=zeros[0] if len(zeros) == 1 else exp.And(this=zeros[0], expression=zeros[1]), true=exp.Null())
    return exp.Paren(this=exp.Case(ifs=[none], default=node))
