"""What may be part of an expression: both engines evaluate it alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType


class RowExpressions(Spark):
    """Spark's expressions, with ** as power and with division that is always of floats."""

    SAFE_DIVISION = False
    TYPED_DIVISION = False

    class Tokenizer(Spark.Tokenizer):
        KEYWORDS: ClassVar = {**Spark.Tokenizer.KEYWORDS, "**": TokenType.DSTAR}

    class Parser(SparkParser):
        EXPONENT: ClassVar = {TokenType.DSTAR: exp.Pow}


_OPERANDS: Final = frozenset({"this", "expression"})
_ONE: Final = frozenset({"this"})

# Of each kind of node, the arguments that are evaluated.
READ: Final[Mapping[type[exp.Expr], frozenset[str]]] = {
    exp.Column: frozenset({"this", "table"}),
    exp.Identifier: frozenset({"this", "quoted"}),
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Boolean: _ONE,
    exp.Null: frozenset(),
    **dict.fromkeys((exp.Paren, exp.Neg, exp.Not), _ONE),
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.Pow, exp.Nullif, exp.Log, exp.Atan2), _OPERANDS),
    exp.Div: _OPERANDS | {"typed", "safe"},  # how other dialects divide
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.And, exp.Or, exp.Is), _OPERANDS),
    exp.In: frozenset({"this", "expressions"}),
    exp.Between: frozenset({"this", "low", "high"}),
    exp.Case: frozenset({"this", "ifs", "default"}),
    exp.If: frozenset({"this", "true", "false"}),
    exp.Coalesce: frozenset({"this", "expressions", "is_nvl", "is_null"}),  # NVL and IFNULL are names of it
    exp.Greatest: frozenset({"this", "expressions", "ignore_nulls"}),  # as Spark ignores them
    exp.Least: frozenset({"this", "expressions", "ignore_nulls"}),
    **dict.fromkeys((exp.Abs, exp.Sign, exp.Sqrt, exp.Exp, exp.Ln, exp.Floor, exp.Ceil), _ONE),
    **dict.fromkeys((exp.Sin, exp.Cos, exp.Tan), _ONE),
}


# What more there may be in expressions over one row, of whatever type they are.
READ_IN_ROWS: Final[Mapping[type[exp.Expr], frozenset[str]]] = {
    exp.Interval: frozenset({"this", "unit"}),
    exp.Var: _ONE,
    **dict.fromkeys((exp.Cast, exp.TryCast), frozenset({"this", "to"})),  # of a time: TIMESTAMP '2024-01-31 12:00:00'
    exp.DataType: frozenset({"this", "nested"}),
    exp.Like: _OPERANDS | {"negate"},
    exp.DPipe: _OPERANDS | {"safe"},  # how other dialects put numbers together
    **dict.fromkeys((exp.Upper, exp.Lower, exp.Length, exp.Trim), _ONE),
    exp.Substring: frozenset({"this", "start", "length"}),
    exp.StartsWith: _OPERANDS,
}


def is_read(node: exp.Expr, also: Mapping[type[exp.Expr], frozenset[str]]) -> bool:
    """Is this part of an expression evaluated, with all that was written of it?"""
    read = READ.get(type(node), also.get(type(node)))
    return read is not None and all(name in read or not is_there(value) for name, value in node.args.items())


def plainly(tree: exp.Expr) -> exp.Expr:
    """The same in fewer kinds of nodes: x <=> y is (x = y) IS TRUE OR (x IS NULL AND y IS NULL)."""

    def write(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, (exp.NullSafeEQ, exp.NullSafeNEQ)):
            return node
        x, y = (exp.Paren(this=plainly(part)) for part in (node.this, node.expression))
        equal = exp.Is(this=exp.Paren(this=exp.EQ(this=x, expression=y)), expression=exp.Boolean(this=True))
        unknown = (exp.Is(this=part.copy(), expression=exp.Null()) for part in (x, y))
        same = exp.Paren(this=exp.or_(equal, exp.and_(*unknown)))
        return same if isinstance(node, exp.NullSafeEQ) else exp.Not(this=same)

    return tree.transform(write)


def is_there(value: object) -> bool:
    """Was this argument of a node written?"""
    return value is not None and value is not False and value != [] and value != ""


def bottom_up(tree: exp.Expr, rewrite: Any) -> exp.Expr:
    """`tree` with every node rewritten after its children, so that what a rewrite adds is not rewritten again."""
    root = exp.Paren(this=tree)
    for node in reversed(list(root.walk())):
        if node is not root:
            replacement = rewrite(node)
            if replacement is not node:
                node.replace(replacement)
    return root
