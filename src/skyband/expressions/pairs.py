"""The score of a pair of rows: an SQL expression over `a.` and `b.` columns, or a Python function of two rows.

sqlglot parses an expression once, and every node must be on the list of allowed nodes (`expression_tree`). The lines of
Python that a kernel is compiled from (`exact`) come only from this tree: numbers are written from their values, columns
are numbered, and no text of the user gets into them.

As in SQL, a comparison with the unknown is neither true nor false, and GREATEST and LEAST ignore it. NaN means the same
as null. Division and logarithms follow IEEE 754.
"""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import CodeType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from skyband.errors import InvalidExpression, InvalidQuery, UnknownColumn
from skyband.expressions import exact_values as exact
from skyband.expressions.exact import ExactLines
from skyband.expressions.exact_values import Check, Column
from skyband.expressions.lines import distance_of, is_two
from skyband.expressions.scores import is_number
from skyband.expressions.wide import Sum

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
    whole: tuple[bool, ...] = ()  # which of them are whole numbers


@dataclass(frozen=True)
class PairScore:
    """A score bound to a schema. The lines compute `s`, higher is better, and `ok` from a0, b0, a1, b1, …"""

    text: str
    kept: tuple[Column, ...]  # what is read of a row, in this order
    lines: tuple[str, ...]
    has_where: bool
    function: Callable[..., Any] | None = None  # called by the lines as `function(Row(a0, …), Row(b0, …))`
    arguments: tuple[str, ...] = ()  # the columns of these rows
    distances: Distances | None = None
    calls: tuple[tuple[str, Callable[..., Any]], ...] = ()  # functions of the user's that the lines call, by name
    labels: tuple[tuple[bytes, int], ...] = ()  # the strings that are written out, and the numbers they have
    type: pa.DataType = field(default_factory=pa.float64)  # what a score is shown as
    # A whole number is ranked by a float64 that orders as it does (`kernels.whole_scores`), which `s` is then.
    is_key: bool = False
    sums: tuple[Sum, ...] = ()  # sum0, sum1, … in the lines: sums of many terms that are alike
    checks: tuple[Check, ...] = field(default=(), compare=False)  # what must fit into 64 bits

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.kept)

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
    arguments = () if function is None else tuple(_read_by(function, schema))
    names = tuple(dict.fromkeys([*arguments, *_column_names(trees)]))
    kept = _kept(names, arguments, trees, schema)
    labels = exact.label_texts(trees)
    code = ExactLines(kept, schema, labels)
    sign = "-" if ascending else ""
    shown, is_key = pa.float64(), False
    if function is not None:
        rows = (f"Row({', '.join(_arguments(side, arguments, code))})" for side in "ab")
        code.lines.append(f"s = {sign}(1.0 * function({', '.join(rows)}))")
    else:
        line, shown, is_key = _scored(trees[0], str(by), sign, code)
        code.lines.append(f"s = {line}")
    if where is not None:
        code.lines.append(f"ok = {code.truth(trees[-1], where)[0]}")
    distances = None if function is not None else _distances(trees[0], kept, schema, labels, ascending, str(by))
    text = by if isinstance(by, str) else f"the function {getattr(by, '__name__', 'by')!r}"
    return PairScore(
        text,
        kept,
        tuple(code.lines),
        where is not None,
        function,
        arguments,
        distances,
        tuple(code.calls.items()),
        labels,
        shown,
        is_key,
        tuple(code.sums),
        tuple(code.checks),
    )


def _scored(tree: exp.Expr, text: str, sign: str, code: ExactLines) -> tuple[str, pa.DataType, bool]:
    """What `s` is, what it is shown as, and whether it stands for a whole number."""
    value = code.value(tree, text)
    if value.kind == exact.FLOAT and value.bound is not None:
        if max(map(abs, value.bound(()))) <= exact.EXACT:
            return f"{sign}({value.text})", pa.int64(), False
        value = code.whole(value, text)
    if value.kind != exact.WHOLE:
        return f"{sign}({code.as_float(value, tree, text).text})", pa.float64(), False
    assert value.bound is not None
    code.checks.append(Check(text, value.bound, exact.MOST, "whole numbers have 64 bits here"))
    shown = pa.decimal128(38, value.scale) if value.scale else pa.int64()
    return f"rank_key({sign}({value.text}))", shown, True


def _arguments(side: str, names: tuple[str, ...], code: ExactLines) -> list[str]:
    """The columns of a row as a function gets them."""
    from sqlglot import exp

    return [code.function_argument(exp.column(exp.to_identifier(name, quoted=True), side)) for name in names]


def _kept(
    names: tuple[str, ...], arguments: tuple[str, ...], trees: list[exp.Expr], schema: pa.Schema
) -> tuple[Column, ...]:
    """How each column that is read is kept."""
    from sqlglot import exp

    asked = {name for name in names if name in arguments}
    for tree in trees:
        for column in tree.find_all(exp.Column):
            parent = column.parent
            while isinstance(parent, exp.Paren):
                parent = parent.parent
            if not (isinstance(parent, exp.Is) and isinstance(parent.expression, exp.Null)):
                asked.add(column.name)
    unit = exact.unit_of([schema.field(name).type for name in names])
    kept = []
    for name in names:
        column_type = schema.field(name).type
        how = exact.column_of(name, column_type, unit, only_known=name not in asked)
        if how is None:
            raise InvalidExpression(
                f"Column {name!r} is {column_type}, which an expression cannot read. Possible: numbers, times, "
                "strings, booleans. same= and different= compare columns of other types."
            )
        kept.append(how)
    return tuple(kept)


def outline(by: str | Callable[..., Any], where: str | None, ascending: bool) -> PairScore:
    """The score as far as it is known without a schema: as if all columns were numbers. A function is not looked at."""
    texts = [text for text in (by if isinstance(by, str) else None, where) if text is not None]
    trees = [_parse(text) for text in texts]
    names = _column_names(trees)
    numbers = pa.schema([(name, pa.float64()) for name in names])
    score = PairScore(
        by if isinstance(by, str) else getattr(by, "__name__", "a function"),
        tuple(Column(name, exact.FLOAT) for name in names),
        (),
        where is not None,
    )
    if not isinstance(by, str):
        return score
    try:
        return replace(bind(by, None, ascending, numbers), has_where=where is not None, kept=score.kept)
    except InvalidExpression:
        if any(node.is_string for node in trees[0].find_all(_literals())):
            return score  # it compares strings: what it is takes their columns
        raise


def _literals() -> type[exp.Literal]:
    from sqlglot import exp

    return exp.Literal


def _parse(text: str) -> exp.Expr:
    # Deferred: sqlglot and polars cost a second to import.
    from sqlglot import exp

    from skyband.expressions import tree as expression_tree
    from skyband.expressions.grammar import READ_IN_ROWS

    kinds: tuple[type[exp.Expr], ...] = (exp.Cast, exp.TryCast, exp.DataType, exp.Interval, exp.Var)
    times = {kind: READ_IN_ROWS[kind] for kind in kinds}
    return expression_tree.parse(text, possible=POSSIBLE, tables=("a", "b"), also=times)


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
    exact.check_values(tree, schema, text)
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


# -- scores that are known from distances ------------------------------------------------------------------------------


SLACK: Final = 1e-12  # as a share: thousands of times what logarithms and powers are off by
MOST_POWER: Final = 16  # as an exponent: what its base is off by grows with it


class _NotKnown(Exception):
    """The score cannot be bounded by distances."""


@dataclass(frozen=True)
class _Shape:
    """How a part of a score behaves as distances grow."""

    sign: int  # 1: never below 0; -1: never above; 0: either
    rises: dict[str, int]  # by column: 1 if it only rises with the distance, -1 if it only falls
    exact: bool = True  # IEEE 754 rounds each of its steps correctly; otherwise it may be off by SLACK of itself

    def times(self, sign: int) -> _Shape:
        return _Shape(self.sign * sign, {name: way * sign for name, way in self.rises.items()}, self.exact)


def _distances(
    tree: exp.Expr,
    kept: tuple[Column, ...],
    schema: pa.Schema,
    labels: tuple[tuple[bytes, int], ...],
    ascending: bool,
    text: str,
) -> Distances | None:
    try:
        shape = _shape(tree)
    except _NotKnown:
        return None
    numbers = {column.name: number for number, column in enumerate(kept)}
    if not shape.rises or any(kept[numbers[name]].kind not in (exact.FLOAT, exact.WHOLE) for name in shape.rises):
        return None
    shape = shape.times(-1) if ascending else shape
    names = list(shape.rises)
    code = ExactLines(kept, schema, labels, {name: number for number, name in enumerate(names)})
    code.lines.append(f"bound = {_scored(tree, text, '-' if ascending else '', code)[0]}")
    if not shape.exact:
        code.lines.append(f"bound += abs(bound) * {SLACK}")
    return Distances(
        tuple(numbers[name] for name in names),
        tuple(shape.rises[name] < 0 for name in names),
        tuple(code.lines),
        tuple(kept[numbers[name]].kind == exact.WHOLE for name in names),
    )


def _shape(node: exp.Expr) -> _Shape:
    """What IEEE 754 rounds correctly gives a bound to the last bit; with anything else, nothing may cancel out."""
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
            return _product(_shape(node.this), _Shape(1, divisor.times(-1).rises, divisor.exact))
        case exp.Sqrt() | exp.Pow() if isinstance(node, exp.Sqrt) or is_two(node.expression):
            inner = _shape(node.this)
            if inner.sign != 1:
                raise _NotKnown
            return inner
        case exp.Pow() if 0 < _written(node.expression) <= MOST_POWER:
            return _inexact(_shape(node.this), sign=1)
        case exp.Ln():
            inner = node.this.unnest()
            from_one = isinstance(inner, exp.Add) and max(_written(inner.this), _written(inner.expression)) >= 1
            return _inexact(_shape(inner), sign=int(from_one))
        case exp.Greatest() | exp.Least():
            shape = _shape(node.this)
            for other in node.expressions:
                shape = _sum(shape, _shape(other))
            return shape
    raise _NotKnown


def _written(node: exp.Expr) -> float:
    """The number that is written out here; 0 if it is none."""
    from sqlglot import exp

    inner = node.unnest()
    return float(inner.this) if isinstance(inner, exp.Literal) and inner.is_number else 0.0


def _inexact(inner: _Shape, sign: int) -> _Shape:
    """A function that rises with what is inside, which is not below 0."""
    if inner.sign != 1:
        raise _NotKnown
    return _Shape(sign, inner.rises, exact=False)


def _sum(x: _Shape, y: _Shape) -> _Shape:
    for name in x.rises.keys() & y.rises.keys():
        if x.rises[name] != y.rises[name]:
            raise _NotKnown
    sign, exact = x.sign if x.sign == y.sign else 0, x.exact and y.exact
    if sign == 0 and not exact:
        raise _NotKnown
    return _Shape(sign, {**x.rises, **y.rises}, exact)


def _product(x: _Shape, y: _Shape) -> _Shape:
    if (x.rises and y.sign == 0) or (y.rises and x.sign == 0):
        raise _NotKnown
    rises = _sum(_Shape(0, x.times(y.sign).rises), _Shape(0, y.times(x.sign).rises)).rises
    return _Shape(x.sign * y.sign, rises, x.exact and y.exact)
