"""What a pair of rows is worth: an SQL expression over `a.` and `b.` columns, or a Python function of two rows.

An expression is parsed once, by sqlglot; every node must be one that is allowed (`expression_tree`). From the tree, and
from nothing else, come the lines of Python that a kernel is compiled from: numbers are written out from their value,
columns are numbered, and nothing that a user wrote gets into them as text.

All columns are float64 there and null is NaN, so the two mean the same: unknown. As in SQL, what is compared with the
unknown is neither true nor false, and GREATEST and LEAST pass over it. Division and logarithms follow IEEE 754.
"""

from __future__ import annotations

import inspect
import keyword
import math
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from skyband.errors import InvalidExpression, InvalidQuery, UnknownColumn
from skyband.expressions import functions
from skyband.expressions.scores import is_number

if TYPE_CHECKING:
    from sqlglot import exp

POSSIBLE: Final = (
    "a.column and b.column, + - * / % **, comparisons, AND, OR, NOT, IN, BETWEEN, IS NULL, CASE, IF, COALESCE, NULLIF, "
    "ABS, SIGN, SQRT, POWER, EXP, LN, LOG, LOG2, LOG10, FLOOR, CEIL, GREATEST, LEAST, SIN, COS, TAN, ATAN2"
)


@dataclass(frozen=True)
class Distances:
    """A score that is known from the distances |a.x - b.x| of some columns, and only rises or only falls with each."""

    columns: tuple[int, ...]  # of the score's columns, by number
    nearest: tuple[bool, ...]  # the score (higher is better) falls as this distance grows: nearest rows come first
    lines: tuple[str, ...]  # `bound` from the distances l0, l1, …


@dataclass(frozen=True)
class PairScore:
    """A score bound to a schema. The lines compute `s`, higher is better, and `ok` from a0, b0, a1, b1, …"""

    text: str
    columns: tuple[str, ...]  # what is read of a row, as float64, in this order
    lines: tuple[str, ...]
    has_where: bool
    function: Callable[..., Any] | None = None  # called by the lines as `function(Row(a0, …), Row(b0, …))`
    distances: Distances | None = None
    calls: tuple[tuple[str, Callable[..., Any]], ...] = ()  # functions of the user's that the lines call, by name

    @property
    def is_checked(self) -> bool:
        """Is all of it made from an expression, so that nothing in it can fail?"""
        return self.function is None and not self.calls


def check_by(by: object) -> None:
    """Raise unless `by` can be the score of a pair at all; what it means is known only with a schema."""
    if isinstance(by, str):
        if not by.strip():
            raise InvalidQuery("by is empty. Give an SQL expression such as 'abs(a.price - b.price)', or a function.")
    elif not callable(by) or isinstance(by, np.ufunc):
        raise InvalidQuery(f"by must be an SQL expression or a function of two rows, got {type(by).__name__}.")


def bind(by: str | Callable[..., Any], where: str | None, ascending: bool, schema: pa.Schema) -> PairScore:
    """The score of pairs of rows of `schema`. Every reason why there is none is raised here, before a row is read."""
    trees: list[exp.Expr] = []
    function = None
    if isinstance(by, str):
        trees.append(_read(by, schema))
    else:
        function = by
    if where is not None:
        trees.append(_read(where, schema))
    names = _column_names(trees)
    if function is not None:
        names = tuple(dict.fromkeys([*_read_by(function, schema), *names]))
    code = Lines({name: number for number, name in enumerate(names)}, schema)
    sign = "-" if ascending else ""
    if function is not None:
        rows = (f"Row({', '.join(f'{side}{number}' for number in range(len(names)))})" for side in "ab")
        code.lines.append(f"s = {sign}(1.0 * function({', '.join(rows)}))")
    else:
        code.lines.append(f"s = {sign}({code.number(trees[0], str(by))})")
    if where is not None:
        code.lines.append(f"ok = {code.truth(trees[-1], where)[0]}")
    distances = None if function is not None else _distances(trees[0], code.columns, ascending, str(by))
    text = by if isinstance(by, str) else f"the function {getattr(by, '__name__', 'by')!r}"
    return PairScore(text, names, tuple(code.lines), where is not None, function, distances, tuple(code.calls.items()))


def outline(by: str | Callable[..., Any], where: str | None, ascending: bool) -> PairScore:
    """The score as far as it is known without a schema: as if all columns were numbers. A function is not looked at."""
    texts = [text for text in (by if isinstance(by, str) else None, where) if text is not None]
    names = _column_names([_parse(text) for text in texts])
    if isinstance(by, str):
        return bind(by, where, ascending, pa.schema([(name, pa.float64()) for name in names]))
    return PairScore(getattr(by, "__name__", "a function"), names, (), where is not None)


def _parse(text: str) -> exp.Expr:
    # Deferred: sqlglot and polars cost a second to import.
    from skyband.expressions import tree as expression_tree

    return expression_tree.parse(text, possible=POSSIBLE, tables=("a", "b"))


def _read(text: str, schema: pa.Schema) -> exp.Expr:
    from sqlglot import exp

    tree = _parse(text)
    for column in tree.find_all(exp.Column):
        if column.table not in ("a", "b"):
            raise InvalidExpression(
                f"{column.sql('spark')!r} in {text!r} belongs to neither row of a pair. Write a.{column.name} for the "
                f"earlier row or b.{column.name} for the later one."
            )
        if column.name not in schema.names:
            raise UnknownColumn.named(column.name, schema.names, used_as=f"the expression {text!r}")
        column_type = schema.field(column.name).type
        if not is_number(column_type) and not pa.types.is_boolean(column_type):
            raise InvalidExpression(
                f"{column.sql('spark')!r} in {text!r} is {column_type}, not a number. same= and different= compare "
                "columns of any type."
            )
    return tree


def _column_names(trees: list[exp.Expr]) -> tuple[str, ...]:
    from sqlglot import exp

    return tuple(dict.fromkeys(column.name for tree in trees for column in tree.find_all(exp.Column, bfs=False)))


def _read_by(function: Callable[..., Any], schema: pa.Schema) -> list[str]:
    """The columns that a function of two rows reads: those it names, or if it names none all that are numbers."""
    text = f"the function {getattr(function, '__name__', function)!r}"
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise InvalidExpression(f"{text} is not a Python function of two rows.") from None
    required = [
        p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if len(required) != 2:
        raise InvalidExpression(f"{text} must take two rows, as in: lambda a, b: abs(a.price - b.price).")
    possible = [
        field.name
        for field in schema
        if (is_number(field.type) or pa.types.is_boolean(field.type))
        and field.name.isidentifier()
        and not field.name.startswith("_")
        and not keyword.iskeyword(field.name)
    ]
    named = _names_in(getattr(getattr(function, "py_func", function), "__code__", None))
    return [name for name in possible if name in named] or possible


def _names_in(code: CodeType | None) -> set[str]:
    if code is None:
        return set()
    return set(code.co_names).union(*(_names_in(part) for part in code.co_consts if isinstance(part, CodeType)))


class Lines:
    """Straight lines of Python, one for each node of a tree; nothing in them branches, so loops over them vectorise."""

    def __init__(self, columns: dict[str, int], schema: pa.Schema, distances: dict[str, int] | None = None) -> None:
        self.columns = columns
        self.lines: list[str] = []
        self.calls: dict[str, Callable[..., Any]] = {}
        self._schema = schema
        self._distances = distances  # by column: which distance it is; then these stand for the columns

    def _new(self, text: str) -> str:
        name = f"{'v' if self._distances is None else 'w'}{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def number(self, node: exp.Expr, text: str) -> str:
        """Write the lines that compute a number; returns its name."""
        from sqlglot import exp

        if self._distances is not None and (found := distance_of(node)):
            name, squared = found
            distance = f"l{self._distances[name]}"
            return self._new(f"{distance} * {distance}") if squared else distance
        match node:
            case exp.Paren():
                return self.number(node.this, text)
            case exp.Literal() if node.is_number:
                return "np.inf" if math.isinf(float(node.this)) else repr(float(node.this))
            case exp.Null():
                return "np.nan"
            case exp.Column():
                if pa.types.is_boolean(self._schema.field(node.name).type):
                    raise _not_a_number(node, text)
                return f"{node.table}{self.columns[node.name]}"
            case exp.Case() | exp.If():
                return self._case(node, text)
            case exp.Anonymous():
                called = functions.find(node.name)
                assert called is not None, "the parser has found it"
                name = f"call_{len(self.calls)}"
                self.calls[name] = called
                return self._new(f"1.0 * {name}({', '.join(self.number(part, text) for part in node.expressions)})")
            case exp.Coalesce():
                value = self.number(node.this, text)
                for other in node.expressions:
                    value = self._new(f"{self.number(other, text)} if {value} != {value} else {value}")
                return value
            case exp.Nullif():
                value, other = self.number(node.this, text), self.number(node.expression, text)
                return self._new(f"np.nan if {value} == {other} else {value}")
            case exp.Greatest() | exp.Least():
                sign = ">" if isinstance(node, exp.Greatest) else "<"
                value = self.number(node.this, text)
                for other in node.expressions:
                    one = self.number(other, text)
                    value = self._new(f"{one} if ({one} {sign} {value}) | ({value} != {value}) else {value}")
                return value
            case exp.Log() if node.args.get("expression"):
                base, value = self.number(node.this, text), self.number(node.expression, text)
                return self._new(f"math.log({value}) / math.log({base})")
            case exp.Pow() if is_two(node.expression):
                value = self.number(node.this, text)
                return self._new(f"{value} * {value}")
        kind = type(node).__name__
        if kind in _OPERATORS:
            return self._new(f"{self.number(node.this, text)} {_OPERATORS[kind]} {self.number(node.expression, text)}")
        if kind in _FUNCTIONS:
            parts = [self.number(part, text) for part in (node.this, node.args.get("expression")) if part is not None]
            return self._new(_FUNCTIONS[kind].format(*parts))
        raise _not_a_number(node, text)

    def _case(self, node: exp.Expr, text: str) -> str:
        from sqlglot import exp

        if isinstance(node, exp.If):
            branches, otherwise = [node], node.args.get("false")
        else:
            branches, otherwise = node.args["ifs"], node.args.get("default")
        value = "np.nan" if otherwise is None else self.number(otherwise, text)
        for branch in reversed(branches):
            if node is not branch and node.this is not None:
                condition = self.truth(exp.EQ(this=node.this.copy(), expression=branch.this.copy()), text)[0]
            else:
                condition = self.truth(branch.this, text)[0]
            value = self._new(f"{self.number(branch.args['true'], text)} if {condition} else {value}")
        return value

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
                return self._new(f"{t1} {both} {t2}"), self._new(f"{f1} {either} {f2}")
            case exp.Column() if pa.types.is_boolean(self._schema.field(node.name).type):
                value = f"{node.table}{self.columns[node.name]}"
                return self._new(f"{value} == 1.0"), self._new(f"{value} == 0.0")
            case exp.Is() if isinstance(node.expression, exp.Null):
                value = self._value(node.this, text)
                return self._new(f"{value} != {value}"), self._new(f"{value} == {value}")
            case exp.In() if node.expressions:
                equal = [exp.EQ(this=node.this.copy(), expression=other.copy()) for other in node.expressions]
                return self.truth(_any(equal), text)
            case exp.Between():
                low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
                high = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
                return self.truth(exp.And(this=low, expression=high), text)
        kind = type(node).__name__
        if kind in _COMPARISONS:
            x, y = self.number(node.this, text), self.number(node.expression, text)
            true, false = _COMPARISONS[kind]
            return self._new(true.format(x, y)), self._new(false.format(x, y))
        raise InvalidExpression(f"{node.sql('spark')!r} in {text!r} is not a condition that is true or false.")

    def _value(self, node: exp.Expr, text: str) -> str:
        """As `number`, but a column of truth values is as good."""
        from sqlglot import exp

        inner = node.unnest()
        if isinstance(inner, exp.Column):
            return f"{inner.table}{self.columns[inner.name]}"
        return self.number(node, text)


_OPERATORS: Final = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "Pow": "**"}
_FUNCTIONS: Final = {
    "Neg": "-{0}",
    "Abs": "abs({0})",
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
_COMPARISONS: Final = {
    "EQ": ("{0} == {1}", "({0} < {1}) | ({0} > {1})"),
    "NEQ": ("({0} < {1}) | ({0} > {1})", "{0} == {1}"),
    "LT": ("{0} < {1}", "{0} >= {1}"),
    "LTE": ("{0} <= {1}", "{0} > {1}"),
    "GT": ("{0} > {1}", "{0} <= {1}"),
    "GTE": ("{0} >= {1}", "{0} < {1}"),
}


def _any(conditions: list[Any]) -> exp.Expr:
    from sqlglot import exp

    first, *others = conditions
    for other in others:
        first = exp.Or(this=first, expression=other)
    return first


def is_two(node: exp.Expr) -> bool:
    from sqlglot import exp

    inner = node.unnest()
    return isinstance(inner, exp.Literal) and inner.is_number and float(inner.this) == 2.0


def _not_a_number(node: exp.Expr, text: str) -> InvalidExpression:
    return InvalidExpression(
        f"{node.sql('spark')!r} in {text!r} is not a number. CASE WHEN … THEN 1 ELSE 0 END makes one of a condition."
    )


# -- scores that are known from distances ------------------------------------------------------------------------------


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


class _NotKnown(Exception):
    """The score cannot be bounded by distances."""


@dataclass(frozen=True)
class _Shape:
    """How a part of a score behaves as distances grow."""

    sign: int  # 1: never below 0; -1: never above; 0: either
    rises: dict[str, int]  # by column: 1 if it only rises with the distance, -1 if it only falls

    def times(self, sign: int) -> _Shape:
        return _Shape(self.sign * sign, {name: way * sign for name, way in self.rises.items()})


def _distances(tree: exp.Expr, columns: dict[str, int], ascending: bool, text: str) -> Distances | None:
    try:
        shape = _shape(tree)
    except _NotKnown:
        return None
    if not shape.rises:
        return None
    shape = shape.times(-1) if ascending else shape
    names = list(shape.rises)
    code = Lines(columns, pa.schema([]), {name: number for number, name in enumerate(names)})
    code.lines.append(f"bound = {'-' if ascending else ''}({code.number(tree, text)})")
    return Distances(
        tuple(columns[name] for name in names), tuple(shape.rises[name] < 0 for name in names), tuple(code.lines)
    )


def _shape(node: exp.Expr) -> _Shape:
    """Only of what IEEE 754 rounds correctly: then a bound is a bound to the last bit."""
    from sqlglot import exp

    if found := distance_of(node):
        return _Shape(1, {found[0]: 1})
    match node:
        case exp.Paren():
            return _shape(node.this)
        case exp.Literal() if node.is_number:
            return _Shape(1, {})
        case exp.Neg():
            return _shape(node.this).times(-1)
        case exp.Add():
            return _sum(_shape(node.this), _shape(node.expression))
        case exp.Sub():
            return _sum(_shape(node.this), _shape(node.expression).times(-1))
        case exp.Mul():
            return _product(_shape(node.this), _shape(node.expression))
        case exp.Div():
            divisor = _shape(node.expression)
            if divisor.sign != 1:
                raise _NotKnown
            return _product(_shape(node.this), _Shape(1, divisor.times(-1).rises))
        case exp.Sqrt() | exp.Pow() if isinstance(node, exp.Sqrt) or is_two(node.expression):
            inner = _shape(node.this)
            if inner.sign != 1:
                raise _NotKnown
            return inner
        case exp.Greatest() | exp.Least():
            shape = _shape(node.this)
            for other in node.expressions:
                shape = _sum(shape, _shape(other))
            return shape
    raise _NotKnown


def _sum(x: _Shape, y: _Shape) -> _Shape:
    for name in x.rises.keys() & y.rises.keys():
        if x.rises[name] != y.rises[name]:
            raise _NotKnown
    return _Shape(x.sign if x.sign == y.sign else 0, {**x.rises, **y.rises})


def _product(x: _Shape, y: _Shape) -> _Shape:
    if (x.rises and y.sign == 0) or (y.rises and x.sign == 0):
        raise _NotKnown
    return _Shape(x.sign * y.sign, _sum(_Shape(0, x.times(y.sign).rises), _Shape(0, y.times(x.sign).rises)).rises)
