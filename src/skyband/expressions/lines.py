"""Expressions as straight lines of Python, which loops are compiled from: here, those over float64 columns.

There null is NaN, so the two mean the same: unknown. As in SQL, what is compared with the
unknown is neither true nor false, and GREATEST and LEAST pass over it. Division and logarithms follow IEEE 754.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from skyband.errors import InvalidExpression
from skyband.expressions import functions

if TYPE_CHECKING:
    from sqlglot import exp


class StraightLines(ABC):
    """Straight lines of Python, one for each node of a tree; nothing in them branches, so loops over them vectorise.

    Conditions are the same whatever values they compare.
    """

    def __init__(self, numbers: dict[str, int], schema: pa.Schema, prefix: str = "v") -> None:
        self.lines: list[str] = []
        self.calls: dict[str, Callable[..., Any]] = {}
        self._numbers = numbers  # of columns: a0 is column 0 of a row called a
        self._schema = schema
        self._prefix = prefix  # of the names in these lines

    def _line(self, text: str) -> str:
        """Write a line; returns the name of its value."""
        name = f"{self._prefix}{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def _callee(self, node: exp.Expr) -> str:
        """What a function of the user's is called in the lines."""
        called = functions.find(node.name)
        assert called is not None, "the parser has found it"
        name = f"call_{len(self.calls)}"
        self.calls[name] = called
        return name

    def _column_name(self, node: exp.Column) -> str:
        return f"{node.table}{self._numbers[node.name]}"

    def _is_truth(self, node: exp.Expr) -> bool:
        return pa.types.is_boolean(self._schema.field(node.name).type)

    @abstractmethod
    def _is_null(self, node: exp.Expr, text: str) -> tuple[str, str]:
        """As `truth`, of node IS NULL."""

    @abstractmethod
    def _comparison(self, node: exp.Expr, text: str) -> tuple[str, str]:
        """As `truth`, of one of COMPARISONS."""

    def truth(self, node: exp.Expr, text: str) -> tuple[str, str]:
        """Write the lines of a condition; returns the names of "it is true" and of "it is false"."""
        from sqlglot import exp

        match node:
            case exp.Paren():
                return self.truth(node.this, text)
            case exp.Boolean():
                return (str(bool(node.this)), str(not node.this))
            case exp.Not():
                true, false = self.truth(node.this, text)
                return false, true
            case exp.And() | exp.Or():
                (t1, f1), (t2, f2) = self.truth(node.this, text), self.truth(node.expression, text)
                both, either = ("&", "|") if isinstance(node, exp.And) else ("|", "&")
                return self._line(f"{t1} {both} {t2}"), self._line(f"{f1} {either} {f2}")
            case exp.Column() if self._is_truth(node):
                value = self._column_name(node)
                return self._line(f"{value} == 1.0"), self._line(f"{value} == 0.0")
            case exp.Is() if isinstance(node.expression, exp.Null):
                if not isinstance(node.this.unnest(), (exp.Predicate, exp.Connector, exp.Not)):
                    return self._is_null(node.this, text)
                known = self._line(" | ".join(self.truth(node.this, text)))
                return self._line(f"not {known}"), known
            case exp.Is() if isinstance(node.expression, exp.Boolean):
                met = self.truth(node.this, text)[0 if node.expression.this else 1]
                return met, self._line(f"not {met}")
            case exp.In() if node.expressions:
                equal = [exp.EQ(this=node.this.copy(), expression=other.copy()) for other in node.expressions]
                return self.truth(any_of(equal), text)
            case exp.Between():
                low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
                high = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
                return self.truth(exp.And(this=low, expression=high), text)
        if type(node).__name__ in COMPARISONS:
            return self._comparison(node, text)
        raise InvalidExpression(f"{node.sql('spark')!r} in {text!r} is not a condition that is true or false.")


def branches_of(node: exp.Expr) -> tuple[list[tuple[exp.Expr, exp.Expr]], exp.Expr | None]:
    """The conditions of CASE or IF, each with its result, and what it gives otherwise."""
    from sqlglot import exp

    if isinstance(node, exp.If):
        return [(node.this, node.args["true"])], node.args.get("false")
    branches = [
        (
            each.this if node.this is None else exp.EQ(this=node.this.copy(), expression=each.this.copy()),
            each.args["true"],
        )
        for each in node.args["ifs"]
    ]
    return branches, node.args.get("default")


class Lines(StraightLines):
    """Lines in which every value is a float64."""

    def number(self, node: exp.Expr, text: str) -> str:
        """Write the lines that compute a number; returns its name."""
        from sqlglot import exp

        match node:
            case exp.Paren():
                return self.number(node.this, text)
            case exp.Literal() if node.is_number:
                return "np.inf" if math.isinf(float(node.this)) else repr(float(node.this))
            case exp.Null():
                return "np.nan"
            case exp.Column():
                if self._is_truth(node):
                    raise not_a_number(node, text)
                return self._column_name(node)
            case exp.Case() | exp.If():
                return self._case(node, text)
            case exp.Anonymous():
                name = self._callee(node)
                return self._line(f"1.0 * {name}({', '.join(self.number(part, text) for part in node.expressions)})")
            case exp.Coalesce():
                value = self.number(node.this, text)
                for other in node.expressions:
                    value = self._line(f"{self.number(other, text)} if {value} != {value} else {value}")
                return value
            case exp.Nullif():
                value, other = self.number(node.this, text), self.number(node.expression, text)
                return self._line(f"np.nan if {value} == {other} else {value}")
            case exp.Greatest() | exp.Least():
                sign = ">" if isinstance(node, exp.Greatest) else "<"
                value = self.number(node.this, text)
                for other in node.expressions:
                    one = self.number(other, text)
                    value = self._line(f"{one} if ({one} {sign} {value}) | ({value} != {value}) else {value}")
                return value
            case exp.Log() if node.args.get("expression"):
                base, value = self.number(node.this, text), self.number(node.expression, text)
                return self._line(f"math.log({value}) / math.log({base})")
            case exp.Pow() if is_two(node.expression):
                value = self.number(node.this, text)
                return self._line(f"{value} * {value}")
        kind = type(node).__name__
        if kind in OPERATORS:
            return self._line(f"{self.number(node.this, text)} {OPERATORS[kind]} {self.number(node.expression, text)}")
        if kind in FUNCTIONS:
            parts = [self.number(part, text) for part in (node.this, node.args.get("expression")) if part is not None]
            return self._line(FUNCTIONS[kind].format(*parts))
        raise not_a_number(node, text)

    def _case(self, node: exp.Expr, text: str) -> str:
        branches, otherwise = branches_of(node)
        value = "np.nan" if otherwise is None else self.number(otherwise, text)
        for condition, result in reversed(branches):
            met = self.truth(condition, text)[0]
            value = self._line(f"{self.number(result, text)} if {met} else {value}")
        return value

    def _is_null(self, node: exp.Expr, text: str) -> tuple[str, str]:
        from sqlglot import exp

        inner = node.unnest()
        value = self._column_name(inner) if isinstance(inner, exp.Column) else self.number(node, text)
        return self._line(f"{value} != {value}"), self._line(f"{value} == {value}")

    def _comparison(self, node: exp.Expr, text: str) -> tuple[str, str]:
        x, y = self.number(node.this, text), self.number(node.expression, text)
        true, false = COMPARISONS[type(node).__name__]
        return self._line(true.format(x, y)), self._line(false.format(x, y))


WRITTEN: Final = "written"  # of a column that goes by another name: as the user wrote it, in its meta
OPERATORS: Final = {"Add": "+", "Sub": "-", "Mul": "*", "Pow": "**"}
FUNCTIONS: Final = {
    "Neg": "-{0}",
    "Abs": "abs({0})",
    "Div": "{0} / ({1} + 0.0)",  # zero has one sign: -0.0 + 0.0 is 0.0
    "Mod": "np.fmod({0}, {1})",
    "Sign": "1.0 if {0} > 0.0 else (-1.0 if {0} < 0.0 else {0})",
    "Sqrt": "math.sqrt({0})",
    "Exp": "math.exp({0})",
    "Ln": "math.log({0})",
    "Log": "math.log({0})",
    "Floor": "np.floor({0})",
    "Ceil": "np.ceil({0})",
    "Sin": "math.sin({0})",
    "Cos": "math.cos({0})",
    "Tan": "math.tan({0})",
    "Atan2": "math.atan2({0}, {1})",
}
# What makes a comparison true, and what false; of NaN neither.
COMPARISONS: Final = {
    "EQ": ("{0} == {1}", "({0} < {1}) | ({0} > {1})"),
    "NEQ": ("({0} < {1}) | ({0} > {1})", "{0} == {1}"),
    "LT": ("{0} < {1}", "{0} >= {1}"),
    "LTE": ("{0} <= {1}", "{0} > {1}"),
    "GT": ("{0} > {1}", "{0} <= {1}"),
    "GTE": ("{0} >= {1}", "{0} < {1}"),
}


def any_of(conditions: list[Any]) -> exp.Expr:
    from sqlglot import exp

    first, *others = conditions
    for other in others:
        first = exp.Or(this=first, expression=other)
    return first


def is_two(node: exp.Expr) -> bool:
    from sqlglot import exp

    inner = node.unnest()
    return isinstance(inner, exp.Literal) and inner.is_number and float(inner.this) == 2.0


def not_a_number(node: exp.Expr, text: str) -> InvalidExpression:
    from skyband.expressions.grammar import rewritten

    shown = rewritten(node, lambda part: part.meta.get(WRITTEN, part)).sql("spark")
    return InvalidExpression(
        f"{shown!r} in {text!r} is not a number. CASE WHEN … THEN 1 ELSE 0 END makes one of a condition."
    )


def distance_of(node: exp.Expr) -> tuple[str, bool] | None:
    """The column x if the node is |a.x - b.x| or (a.x - b.x) ** 2, and whether it is squared."""
    from sqlglot import exp

    squared = isinstance(node, exp.Pow) and is_two(node.expression)
    inner = node.this.unnest() if squared or isinstance(node, exp.Abs) else None
    if not isinstance(inner, exp.Sub):
        return None
    x, y = inner.this.unnest(), inner.expression.unnest()
    if isinstance(x, exp.Column) and isinstance(y, exp.Column) and x.name == y.name and x.table != y.table:
        return x.name, squared
    return None
