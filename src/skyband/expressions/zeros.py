"""Numbers that SQL does not have: polars calls them NaN, which a condition would take for the largest number."""

from __future__ import annotations

import math

import polars as pl
from sqlglot import exp


def null_where_spark_has_it(node: exp.Expr) -> exp.Expr:
    """The same, null for 0 / 0, for x % 0 and for the logarithm of a negative number."""
    zero = exp.Literal.number(0)
    missing: exp.Expr
    if isinstance(node, exp.Ln):
        missing = exp.LT(this=exp.Paren(this=node.this.copy()), expression=zero)
    else:
        missing = exp.EQ(this=exp.Paren(this=node.expression.copy()), expression=zero)
    if isinstance(node, exp.Div):
        missing = exp.And(
            this=exp.EQ(this=exp.Paren(this=node.this.copy()), expression=zero.copy()), expression=missing
        )
    return exp.Paren(this=exp.Case(ifs=[exp.If(this=missing, true=exp.Null())], default=node))


def square_root(x: pl.Expr) -> pl.Expr:
    """x to the power of 0.5, as IEEE 754 has it: polars takes the square root, which differs for -inf and -0.0."""
    return pl.when(x == 0).then(0.0).when(x == -math.inf).then(math.inf).otherwise(x.sqrt())


def is_unknown(node: exp.Expr) -> bool:
    """Is this a NULL that stands where something is true or false?"""
    if not isinstance(node, exp.Null):
        return False
    part: exp.Expr = node
    around = node.parent
    while isinstance(around, exp.Paren):
        part, around = around, around.parent
    if isinstance(around, exp.If) and isinstance(around.parent, exp.Case) and around.parent.this is not None:
        return False  # CASE x WHEN NULL
    return isinstance(around, (exp.Not, exp.Connector)) or (isinstance(around, exp.If) and around.this is part)


def unknown() -> exp.Expr:
    """Neither true nor false: both engines take a plain NULL for no truth at all."""
    return exp.Cast(this=exp.Null(), to=exp.DataType.build("BOOLEAN"))
