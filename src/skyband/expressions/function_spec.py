"""A function of values of a row: what it gives, in polars and in Spark SQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import polars as pl
from sqlglot import exp

from skyband.expressions.calls import RowCall

Polars = Callable[..., pl.Expr]  # of as many values as it takes
Spark = Callable[..., str]
FUNCTION: Final = "row function"  # of a node that is one, in its meta
WRITTEN: Final = "as it was written"  # of a node that stands for other words, in its meta


class RowFunction(NamedTuple):
    """A function, with all but the values that it is of."""

    gives: str  # "text", "whole", "float", "truth" or "time"
    polars: Polars
    spark: Spark
    bits: int = 0  # of a whole number
    scale: int = 0  # of a decimal, which is a whole number of its last digit
    digits: int = 0  # of a decimal: how many it has


def said(node: exp.Expr) -> str:
    """A part of an expression in the user's words."""
    return str(node.meta.get(WRITTEN) or node.sql("spark"))


def operand_of(node: exp.Expr) -> Any:
    """The value that a function is of."""
    return node.expression if isinstance(node, exp.Extract) else node.args.get("this")


def operands_of(node: exp.Expr) -> list[exp.Expr]:
    """The values that a function is of."""
    return node.values if isinstance(node, RowCall) else [operand_of(node)]


def quoted(text: str) -> str:
    """A text in Spark SQL, backslashes and all."""
    return exp.Literal.string(text).sql(dialect="spark")
