"""SQL expressions over the columns of one row, as a checked sqlglot tree, evaluated by polars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import polars as pl
import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import SqlglotError

from skyband.errors import InvalidExpression
from skyband.expressions import functions
from skyband.expressions.branches import ON_NUMBERS, TEXTS
from skyband.expressions.calls import RowCall
from skyband.expressions.evaluation import Among, Call, Computed, RowExpression
from skyband.expressions.function_spec import operands_of
from skyband.expressions.grammar import (
    TOO_LARGE,
    RowExpressions,
    bottom_up,
    cast_to,
    is_read,
    is_to_truth,
    plainly,
    rewritten,
    too_deep,
)
from skyband.expressions.rounding import rounded
from skyband.expressions.row_functions import function_of, plain_function
from skyband.expressions.times import time_of, written_time
from skyband.expressions.units import OVERFLOWS, moved, with_unit
from skyband.expressions.whole import in_digits, is_in_digits, is_narrowed, kind_of, written_in_digits
from skyband.expressions.zeros import is_unknown, null_where_spark_has_it, square_root, unknown

Read = Mapping[type[exp.Expr], frozenset[str]]
_NOTHING: Final[Read] = {}
IN_PYTHON: Final = " Pass a Python function of the columns instead, or on Spark a Column."


def parse(text: str, *, possible: str, tables: tuple[str, ...] = (), also: Read = _NOTHING) -> exp.Expr:
    """The tree of `text`, every node of it one that both engines evaluate alike, or one of `also`. Columns may be of
    these tables."""
    try:
        statements = RowExpressions().parse(text)
    except RecursionError:
        raise InvalidExpression(f"{text[:60]!r}… is nested too deeply to be read.") from None
    except IndexError:  # as sqlglot has it of MAP(x), whose arguments come in pairs
        raise InvalidExpression(f"Cannot read {text!r}: a function has too few arguments.") from None
    except SqlglotError as error:
        where: list[dict[str, Any]] = getattr(error, "errors", [])
        place = f" near column {where[0]['col']}" if where and where[0].get("col") else ""
        raise InvalidExpression(f"Cannot read {text!r} as an expression{place}. Possible: {possible}.") from None
    if len(statements) != 1 or statements[0] is None:
        raise InvalidExpression(f"Expected one expression, got {text!r}.")
    if too_deep(statements[0]) is not None:
        raise InvalidExpression(f"{text[:60]!r}… {TOO_LARGE}.")
    tree = plainly(statements[0])
    if exp.Cast in also:  # then it is about one row, of values of any type
        tree = bottom_up(tree, plain_function).unnest()
        if exp.Round not in also:
            tree = bottom_up(tree, rounded).unnest()
    for node in tree.walk():
        if isinstance(node, exp.Anonymous):
            if functions.find(node.name) is None:
                raise InvalidExpression(
                    f"There is no function {node.name!r}, which {text!r} calls. Possible: {possible}; functions of "
                    f"your own, from sb.function(name, fn): {functions.known()}."
                )
        elif not is_read(node, also) or (isinstance(node, exp.Column) and node.table not in ("", *tables)):
            raise InvalidExpression(
                f"{node.sql('spark')!r} cannot be part of an expression in {text!r}. Possible: {possible}.{IN_PYTHON}"
            )
        if isinstance(node, exp.Substring) and not all(_is_count(node.args.get(part)) for part in ("start", "length")):
            raise InvalidExpression(f"{node.sql('spark')!r} in {text!r}: SUBSTRING counts from 1.")
    return tree


def _is_count(node: exp.Expr | None) -> bool:
    """Is this left out, or a whole number as written, from 1 on?"""
    return node is None or (isinstance(node, exp.Literal) and node.is_int and int(node.name) > 0)


def check_numbers(tree: exp.Expr, numeric: frozenset[str], text: str) -> None:
    """Raise if something that is not a number is added, multiplied, …: polars would take true for 1, Spark refuses."""
    for node in tree.find_all(*ON_NUMBERS):
        if time_of(node) is not None:
            continue
        for part in node.iter_expressions():
            if (kind := time_of(part)) is not None:
                raise InvalidExpression(
                    f"{part.sql('spark')!r} in {text!r} is {kind}, not a number. Possible: ts + INTERVAL 10 MINUTES, "
                    "the difference of two times, and ABS of it."
                )
        for operand in (part.unnest() for part in node.iter_expressions()):
            column = isinstance(operand, exp.Column) and operand.name not in numeric
            truth = is_to_truth(operand) or isinstance(operand, (exp.Predicate, exp.Connector, exp.Not, exp.Boolean))
            words = (isinstance(operand, exp.Literal) and operand.is_string) or isinstance(operand, TEXTS)
            words = words or (isinstance(operand, RowCall) and operand.gives == "text")
            truth = truth or (isinstance(operand, RowCall) and operand.gives == "truth")
            words = words or (isinstance(operand, exp.Cast) and operand.to.is_type("text", "varchar", "date"))
            if column or truth or words:
                raise InvalidExpression(
                    f"{operand.sql('spark')!r} in {text!r} is not a number. CASE WHEN … THEN 1 ELSE 0 END makes one."
                )


def column_names(tree: exp.Expr) -> tuple[str, ...]:
    """The columns a tree reads, each once, in order of appearance."""
    return tuple(dict.fromkeys(column.name for column in tree.find_all(exp.Column, bfs=False)))


def is_column(tree: exp.Expr) -> bool:
    """Is it a column, and no more than that?"""
    return isinstance(tree.unnest(), exp.Column)


def to_polars(tree: exp.Expr) -> RowExpression:
    """The typed tree in polars."""
    names = column_names(tree)
    made = _MadeColumns(names)
    try:
        score = _sql_expr(made.read(tree)).alias("score")
    except pl.exceptions.PolarsError as error:
        raise InvalidExpression(f"Cannot evaluate {tree.sql('spark')!r}: {error}") from None
    return RowExpression(
        score,
        names,
        made.divisors,
        made.times,
        made.digits,
        made.patterns,
        tuple(made.steps),
        kind_of(tree),
        time_of(tree),
    )


class _MadeColumns:
    """Makes trees that polars reads, and columns for what polars would compute otherwise than Spark."""

    def __init__(self, names: Iterable[str]) -> None:
        self._mark = "of this expression"  # what no column has in its name
        while any(self._mark in name for name in names):
            self._mark += "'"
        self.divisors: dict[str, float] = {}
        self.times: dict[str, pa.Scalar] = {}
        self.digits: dict[str, str] = {}
        self.patterns: dict[str, str] = {}
        self.steps: list[Call | Among | Computed] = []

    def read(self, tree: exp.Expr) -> exp.Expr:
        return bottom_up(rewritten(tree, self._rewrite), self._compute)

    def _part(self, tree: exp.Expr) -> pl.Expr:
        return _sql_expr(self.read(tree))

    def _kept(self, columns: dict[str, Any], what: str, value: Any) -> exp.Column:
        """A column for a value that is the same for all rows."""
        column = _column(f"{what} {len(columns)} {self._mark}")
        columns[column.name] = value
        return column

    def _first(self, what: str, step: type[Call | Among | Computed], *parts: Any) -> exp.Column:
        """A column for what is computed before the rest."""
        column = _column(f"{what} {len(self.steps)} {self._mark}")
        self.steps.append(step(column.name, *parts))
        return column

    def _rewrite(self, node: exp.Expr) -> exp.Expr:
        """A node before those below it."""
        if (time := written_time(node)) is not None:
            return self._kept(self.times, "time", time)
        if (function := function_of(node)) is not None:
            too_wide = OVERFLOWS if isinstance(node, (exp.Paren, RowCall)) else ""
            values = map(self._part, operands_of(node))
            return self._first("function", Computed, function.polars(*values), too_wide)
        if isinstance(node, (exp.Add, exp.Sub)) and (kind := time_of(node)) is not None:
            sides, way = (self._part(node.this), self._part(node.expression)), 1 if isinstance(node, exp.Add) else -1
            return self._first("moved time", Computed, moved(*sides, way, kind), OVERFLOWS)
        if isinstance(node, exp.Substring):  # whose numbers are no values of rows
            return exp.Substring(**{**node.args, "this": rewritten(node.this, self._rewrite)})
        if isinstance(node, exp.Length):
            return cast_to(exp.Length(this=rewritten(node.this, self._rewrite)), "INT128")
        if isinstance(node, exp.Column) and is_in_digits(node):
            column = _column(f"digits of {node.name}")
            self.digits[column.name] = node.name
            return column
        if isinstance(node, exp.Column) and (node.name == "*" or (node.name[:1] == "^" and node.name[-1:] == "$")):
            column = _column(f"column {node.name} {self._mark}")
            self.patterns[node.name] = column.name
            return column
        if isinstance(node, exp.In) and (listed := _listed(node)) is not None:
            return self._first("list", Among, self._part(node.this), *listed)
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Boolean):  # of null, polars says null
            met = rewritten(node.this, self._rewrite)
            met = met if node.expression.this else exp.Not(this=exp.Paren(this=met))
            return exp.Coalesce(this=met, expressions=[exp.false()])
        if isinstance(node, exp.Log) and node.args.get("expression"):
            return exp.Div(this=exp.Ln(this=node.expression), expression=exp.Ln(this=node.this))
        if isinstance(node, exp.Literal) and node.is_number:
            return _constant(node)
        if is_unknown(node):
            return unknown()
        if is_narrowed(node):
            return cast_to(cast_to(rewritten(node.this, self._rewrite), "BIGINT"), "INT128")
        return node

    def _compute(self, node: exp.Expr) -> exp.Expr:
        """A node after those below it."""
        if isinstance(node, exp.Div):
            return self._division(node)
        if isinstance(node, exp.Pow) and _is_half(node.expression):
            return self._first("root", Computed, square_root(_sql_expr(node.this)))
        if (isinstance(node, exp.Mod) and kind_of(node).is_float) or (
            isinstance(node, exp.Ln) and node.find(exp.Column)
        ):
            return self._number(node)
        if isinstance(node, exp.Anonymous):
            function = functions.find(node.name)
            assert function is not None, "parse has found it"
            return self._first("call", Call, function, tuple(_sql_expr(argument) for argument in node.expressions))
        return node

    def _number(self, node: exp.Expr) -> exp.Column:
        """In a column of its own: what stands in it is written more than once there, level by level."""
        return self._first("number", Computed, _sql_expr(null_where_spark_has_it(node)))

    def _division(self, node: exp.Div) -> exp.Expr:
        """Divisors that do not depend on the row become columns.

        Instead of dividing by a constant, polars multiplies by its reciprocal, which often differs in the last bit:
        rows could rank otherwise than on Spark.
        """
        if not node.expression.find(exp.Column):
            divisor = pl.select(_sql_expr(node.expression)).item()
            if divisor is not None:
                node.set("expression", self._kept(self.divisors, "divisor", divisor + 0.0))  # of the two zeros one
                return self._number(node) if divisor == 0 else node
        # -0.0 + 0.0 is 0.0; polars would leave out a constant.
        zero = _column(f"zero {self._mark}")
        self.divisors[zero.name] = 0.0
        node.set("expression", exp.Paren(this=exp.Add(this=node.expression, expression=zero)))
        return self._number(node)


def _column(name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True))


def _constant(node: exp.Literal) -> exp.Expr:
    """A number as it is written, in the type that polars computes with."""
    if not kind_of(node).is_whole:
        return cast_to(node, "DOUBLE")
    return cast_to(written_in_digits(node), "INT128")


def _is_half(exponent: exp.Expr) -> bool:
    return exponent.find(exp.Column) is None and pl.select(_sql_expr(exponent)).item() == 0.5


LONG: Final = 16  # so many in a list are looked up, rather than compared one after the other


def _listed(node: exp.In) -> tuple[pl.Series, bool] | None:
    """What stands in a long list, and whether there is a null in it; None: it is short, or not of plain values."""
    listed = [one.unnest() for one in node.expressions]
    negated = [one.this if isinstance(one, exp.Neg) else one for one in listed]
    if len(listed) < LONG or not all(isinstance(one, (exp.Literal, exp.Null)) for one in negated):
        return None
    signs = [-1 if isinstance(one, exp.Neg) else 1 for one in listed]
    values = [(sign, one) for sign, one in zip(signs, negated, strict=True) if isinstance(one, exp.Literal)]
    has_null, times = len(values) < len(listed), [written_time(one) for _, one in values]
    if values and all(time is not None for time in times):
        return _series([time for time in times if time is not None]), has_null
    if any(time is not None for time in times) or not values:
        return None
    if all(one.is_string for _, one in values):
        return pl.Series("", [one.this for _, one in values], pl.String), has_null
    if any(one.is_string for _, one in values):
        return None
    if all(kind_of(one).is_whole for _, one in values):
        return pl.Series("", [sign * in_digits(one) for sign, one in values], pl.Int128), has_null
    return pl.Series("", [sign * float(one.this) for sign, one in values], pl.Float64), has_null


def _series(times: list[pa.Scalar]) -> pl.Series:
    """Times of one type that are written out."""
    kind = times[0].type
    ticks = pa.array([time.value for time in times], pa.int32() if pa.types.is_date32(kind) else pa.int64())
    made = ticks.view(kind)
    if getattr(kind, "unit", None) == "s":  # which polars has not
        made = made.cast(with_unit(kind, "ms"))
    return pl.Series("", made)


def _sql_expr(tree: exp.Expr) -> pl.Expr:
    return pl.sql_expr(tree.sql(dialect="", identify=True, copy=False))


def calls_functions(tree: exp.Expr) -> bool:
    """Does it call what only Python can?"""
    return tree.find(exp.Anonymous) is not None
