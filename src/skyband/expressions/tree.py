"""SQL expressions over the columns of one row, as a checked sqlglot tree, evaluated by polars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import SqlglotError

from skyband.errors import InvalidExpression, InvalidInput
from skyband.expressions import functions
from skyband.expressions.branches import TEXTS
from skyband.expressions.forking import use_threads
from skyband.expressions.function_spec import operand_of
from skyband.expressions.grammar import (
    TOO_LARGE,
    RowExpressions,
    bottom_up,
    cast_to,
    is_read,
    plainly,
    rewritten,
    too_deep,
)
from skyband.expressions.row_functions import function_of, plain_function
from skyband.expressions.times import time_of, written_time
from skyband.expressions.whole import (
    DIGITS,
    MOST_DIGITS,
    TOO_WIDE,
    Kind,
    in_digits,
    is_in_digits,
    is_narrowed,
    kind_of,
    written_in_digits,
)
from skyband.expressions.zeros import null_where_spark_has_it

Read = Mapping[type[exp.Expr], frozenset[str]]
_NOTHING: Final[Read] = {}


def parse(text: str, *, possible: str, tables: tuple[str, ...] = (), also: Read = _NOTHING) -> exp.Expr:
    """The tree of `text`, every node of it one that both engines evaluate alike, or one of `also`. Columns may be of
    these tables."""
    try:
        statements = RowExpressions().parse(text)
    except RecursionError:
        raise InvalidExpression(f"{text[:60]!r}… is nested too deeply to be read.") from None
    except SqlglotError as error:
        where: list[dict[str, Any]] = getattr(error, "errors", [])
        place = f" near column {where[0]['col']}" if where and where[0].get("col") else ""
        raise InvalidExpression(f"Cannot read {text!r} as an expression{place}. Possible: {possible}.") from None
    if len(statements) != 1 or statements[0] is None:
        raise InvalidExpression(f"Expected one expression, got {text!r}.")
    if too_deep(statements[0]) is not None:
        raise InvalidExpression(f"{text[:60]!r}… {TOO_LARGE}.")
    tree = statements[0]
    if exp.Cast in also:  # then it is about one row, of values of any type
        tree = bottom_up(tree, plain_function).unnest()
    tree = plainly(tree)
    for node in tree.walk():
        if isinstance(node, exp.Anonymous):
            if functions.find(node.name) is None:
                raise InvalidExpression(
                    f"There is no function {node.name!r}, which {text!r} calls. Possible: {possible}; and what "
                    f"sb.function(name, fn) has made known: {functions.known()}."
                )
        elif not is_read(node, also) or (isinstance(node, exp.Column) and node.table not in ("", *tables)):
            raise InvalidExpression(
                f"{node.sql('spark')!r} cannot be part of a score in {text!r}. Possible: {possible}. "
                "A Python function of the columns, or on Spark a Column, can do the rest."
            )
        if isinstance(node, exp.Substring) and not all(_is_count(node.args.get(part)) for part in ("start", "length")):
            raise InvalidExpression(f"{node.sql('spark')!r} in {text!r}: SUBSTRING counts from 1.")
    return tree


def _is_count(node: exp.Expr | None) -> bool:
    """Is this left out, or a whole number as written, from 1 on?"""
    return node is None or (isinstance(node, exp.Literal) and node.is_int and int(node.name) > 0)


_ON_NUMBERS: Final = (
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Pow, exp.Neg),
    *(exp.Abs, exp.Sign, exp.Sqrt, exp.Exp, exp.Ln, exp.Log, exp.Floor, exp.Ceil, exp.Sin, exp.Cos, exp.Tan, exp.Atan2),
)


def check_numbers(tree: exp.Expr, numeric: frozenset[str], text: str) -> None:
    """Raise if something that is not a number is added, multiplied, …: polars would take true for 1, Spark refuses."""
    for node in tree.find_all(*_ON_NUMBERS):
        if time_of(node) is not None:
            continue
        for operand in (part.unnest() for part in node.iter_expressions()):
            column = isinstance(operand, exp.Column) and operand.name not in numeric
            truth = isinstance(operand, (exp.Predicate, exp.Connector, exp.Not, exp.Boolean))
            words = (isinstance(operand, exp.Literal) and operand.is_string) or isinstance(operand, TEXTS)
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


class Call(NamedTuple):
    """A function of the user's, called on columns."""

    name: str  # of the column with what it gives
    function: functions.Function
    arguments: tuple[pl.Expr, ...]


class Among(NamedTuple):
    """x IN (…), where the list is long."""

    name: str  # of the column that says so
    value: pl.Expr
    values: pl.Series
    has_null: bool  # then what is not found is unknown

    def column(self) -> pl.Expr:
        found = self.value.is_in(self.values.implode())
        return pl.when(found).then(True).otherwise(None if self.has_null else found).alias(self.name)


class Computed(NamedTuple):
    """A function of one value."""

    name: str  # of the column with what it gives
    value: pl.Expr

    def column(self) -> pl.Expr:
        return self.value.alias(self.name)


class RowExpression(NamedTuple):
    """An expression of one row in polars."""

    score: pl.Expr  # over the columns, int128 where they are whole, float64 where other numbers, and those below
    columns: tuple[str, ...]
    divisors: dict[str, float]  # by the name of their column
    times: dict[str, pa.Scalar]  # that are written out, by the name of their column
    digits: dict[str, str]  # decimals, as whole numbers of their last digit: the name of that column, and which it is
    steps: tuple[Call | Among | Computed, ...]  # what to compute first, in this order: columns of their own, too
    kind: Kind = Kind(False)  # of what it gives


def to_polars(tree: exp.Expr) -> RowExpression:
    """The typed tree in polars. Divisors that do not depend on the row become columns.

    Instead of dividing by a constant, polars multiplies by its reciprocal, which often differs in the last bit: rows
    could rank otherwise than on Spark.
    """
    mark = _mark(column_names(tree))
    divisors: dict[str, float] = {}
    times: dict[str, pa.Scalar] = {}
    digits: dict[str, str] = {}
    steps: list[Call | Among | Computed] = []

    def call_first(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Anonymous):
            return node
        function = functions.find(node.name)
        assert function is not None, "parse has found it"
        name = f"call {len(steps)} {mark}"
        steps.append(Call(name, function, tuple(_sql_expr(argument) for argument in node.expressions)))
        return exp.column(exp.to_identifier(name, quoted=True))

    def rewrite(node: exp.Expr) -> exp.Expr:
        if (time := written_time(node)) is not None:
            name = f"time {len(times)} {mark}"
            times[name] = time
            return exp.column(exp.to_identifier(name, quoted=True))
        if (function := function_of(node)) is not None:
            value = bottom_up(rewritten(operand_of(node), rewrite), step_by_step)
            name = f"function {len(steps)} {mark}"
            steps.append(Computed(name, function.polars(_sql_expr(value))))
            return exp.column(exp.to_identifier(name, quoted=True))
        if isinstance(node, exp.Substring):  # whose numbers are no values of rows
            return exp.Substring(**{**node.args, "this": rewritten(node.this, rewrite)})
        if isinstance(node, exp.Length):
            return cast_to(exp.Length(this=rewritten(node.this, rewrite)), "INT128")
        if isinstance(node, exp.Column) and is_in_digits(node):
            name = f"digits of {node.name}"
            digits[name] = node.name
            return exp.column(exp.to_identifier(name, quoted=True))
        if isinstance(node, exp.In) and (listed := _listed(node)) is not None:
            value = bottom_up(rewritten(node.this, rewrite), step_by_step)
            name = f"list {len(steps)} {mark}"
            steps.append(Among(name, _sql_expr(value), *listed))
            return exp.column(exp.to_identifier(name, quoted=True))
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Boolean):  # of null, polars says null
            asked = rewritten(node.this, rewrite)
            asked = asked if node.expression.this else exp.Not(this=exp.Paren(this=asked))
            return exp.Coalesce(this=asked, expressions=[exp.false()])
        if isinstance(node, exp.Log) and node.args.get("expression"):
            return exp.Div(this=exp.Ln(this=node.expression), expression=exp.Ln(this=node.this))
        if isinstance(node, exp.Literal) and node.is_number:
            return _constant(node)
        if is_narrowed(node):
            return cast_to(cast_to(rewritten(node.this, rewrite), "BIGINT"), "INT128")
        return node

    def compute_first(node: exp.Expr) -> exp.Expr:
        """In a column of its own: what stands in it is written more than once there, level by level."""
        name = f"number {len(steps)} {mark}"
        steps.append(Computed(name, _sql_expr(null_where_spark_has_it(node))))
        return exp.column(exp.to_identifier(name, quoted=True))

    def step_by_step(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Div) and not node.expression.find(exp.Column):
            divisor = pl.select(_sql_expr(node.expression)).item()
            if divisor is not None:
                name = f"divisor {len(divisors)} {mark}"
                divisors[name] = divisor + 0.0  # of the two zeros one
                node.set("expression", exp.column(exp.to_identifier(name, quoted=True)))
                return compute_first(node) if divisor == 0 else node
        if isinstance(node, exp.Div):
            # -0.0 + 0.0 is 0.0; polars would leave out a constant.
            zero = exp.column(exp.to_identifier(f"zero {mark}", quoted=True))
            divisors[zero.name] = 0.0
            node.set("expression", exp.Paren(this=exp.Add(this=node.expression, expression=zero)))
            return compute_first(node)
        if (isinstance(node, exp.Mod) and kind_of(node).is_float) or (
            isinstance(node, exp.Ln) and node.find(exp.Column)
        ):
            return compute_first(node)
        return call_first(node)

    try:
        plain = bottom_up(rewritten(tree, rewrite), step_by_step)
        return RowExpression(
            _sql_expr(plain).alias("score"),
            column_names(tree),
            divisors,
            times,
            digits,
            tuple(steps),
            kind_of(tree),
        )
    except pl.exceptions.PolarsError as error:
        raise InvalidExpression(f"Cannot evaluate {tree.sql('spark')!r}: {error}") from None


def _mark(columns: Iterable[str]) -> str:
    """What no column has in its name, for columns that are made on the way."""
    mark = "of this expression"
    while any(mark in name for name in columns):
        mark += "'"
    return mark


def _constant(node: exp.Literal) -> exp.Expr:
    """A number as it is written, in the type that polars computes with."""
    if not kind_of(node).is_whole:
        return cast_to(node, "DOUBLE")
    return cast_to(written_in_digits(node), "INT128")


LONG: Final = 16  # so many in a list are looked up, rather than compared one after the other


def _listed(node: exp.In) -> tuple[pl.Series, bool] | None:
    """What stands in a long list, and whether there is a null in it; None: it is short, or not of plain values."""
    listed = [one.unnest() for one in node.expressions]
    negated = [one.this if isinstance(one, exp.Neg) else one for one in listed]
    if len(listed) < LONG or not all(isinstance(one, (exp.Literal, exp.Null)) for one in negated):
        return None
    signs = [-1 if isinstance(one, exp.Neg) else 1 for one in listed]
    values = [(sign, one) for sign, one in zip(signs, negated, strict=True) if isinstance(one, exp.Literal)]
    if any(written_time(one) is not None for _, one in values) or not values:
        return None
    has_null = len(values) < len(listed)
    if all(one.is_string for _, one in values):
        return pl.Series("", [one.this for _, one in values], pl.String), has_null
    if any(one.is_string for _, one in values):
        return None
    if all(kind_of(one).is_whole for _, one in values):
        return pl.Series("", [sign * in_digits(one) for sign, one in values], pl.Int128), has_null
    return pl.Series("", [sign * float(one.this) for sign, one in values], pl.Float64), has_null


def _sql_expr(tree: exp.Expr) -> pl.Expr:
    return pl.sql_expr(tree.sql(dialect="", identify=True, copy=False))


def evaluate(expression: RowExpression, batch: pa.RecordBatch, text: str) -> pa.Array:
    """The expression on each row of `batch`: whole numbers as int64, others as float64."""
    use_threads()
    frame: Any = _frame(batch.select(list(expression.columns)) if expression.columns else batch, text)
    whole, others = pl.selectors.integer(), pl.selectors.numeric() - pl.selectors.integer()
    rows = batch.num_rows
    constants = [pl.Series(name, np.full(rows, value)) for name, value in expression.divisors.items()]
    for name, value in expression.times.items():
        constants.append(pl.Series(name, pl.from_arrow(pa.array([value]))).new_from_index(0, rows))
    try:
        exact = [_in_digits(frame[column], text).alias(name) for name, column in expression.digits.items()]
        frame = frame.with_columns(whole.cast(pl.Int128), others.cast(pl.Float64)).with_columns(*constants, *exact)
        for step in expression.steps:
            made = pl.Series(step.name, _called(step, frame, text)) if isinstance(step, Call) else step.column()
            frame = frame.with_columns(made)
        scores = frame.select(expression.score)["score"]
    except pl.exceptions.InvalidOperationError as error:
        if "i128" in str(error):  # a part of it that has to fit
            raise InvalidInput(f"In {text!r} a product {TOO_WIDE}.") from None
        raise _mixed(text, batch.schema) from None
    except pl.exceptions.PolarsError:
        raise _mixed(text, batch.schema) from None
    if expression.kind.is_whole and not expression.kind.is_decimal:
        scores = _in_64_bits(scores, text)
    if len(scores) != batch.num_rows:  # an expression of constants only
        scores = scores.new_from_index(0, batch.num_rows) if batch.num_rows else scores.clear()
    if expression.kind.is_decimal:
        return _as_decimals(scores, expression.kind)
    given = scores.to_arrow()
    return given.cast(pa.string()) if scores.dtype == pl.String else given


def _mixed(text: str, schema: pa.Schema) -> InvalidExpression:
    """What to say of values that cannot be compared or computed with one another."""
    types = ", ".join(f"{field.name} is {field.type}" for field in schema)
    return InvalidExpression(f"{text!r} mixes values of different types{f': {types}' if types else ''}.")


def _frame(batch: pa.RecordBatch, text: str) -> Any:
    """The columns as polars has them."""
    for field in batch.schema:
        if pa.types.is_decimal256(field.type):  # on which polars would give up, and the process with it
            raise InvalidExpression(f"{text!r} reads {field.name!r}, which is {field.type}: cast it to decimal128.")
    try:
        return pl.from_arrow(batch)
    except pl.exceptions.PolarsError as error:
        raise InvalidExpression(f"{text!r} reads a column that polars cannot: {error}") from None


def _in_64_bits(scores: pl.Series, text: str) -> pl.Series:
    fitting = scores.cast(pl.Int64, strict=False)
    if fitting.null_count() > scores.null_count():
        value = scores.filter(fitting.is_null() & scores.is_not_null())[0]
        raise InvalidInput(f"{text!r} is {value} for a row, which {TOO_WIDE}.")
    return fitting


def _in_digits(decimals: pl.Series, text: str) -> pl.Series:
    """Decimals as whole numbers of their last digit."""
    numbers = decimals.to_physical().cast(pl.Int128)
    kind = decimals.dtype
    if isinstance(kind, pl.Decimal) and (kind.precision or DIGITS) > DIGITS:
        wide = decimals.filter(~numbers.is_between(-(10**DIGITS), 10**DIGITS))
        if len(wide):
            raise InvalidInput(
                f"{text!r} computes with {decimals.name}, which is {wide[0]} for a row: a decimal of more than "
                f"{DIGITS} digits. The batch was not taken. CAST({decimals.name} AS DOUBLE) is computed with "
                "in float64, which rounds."
            )
    return numbers


def _as_decimals(numbers: pl.Series, kind: Kind) -> pa.Array:
    """Whole numbers of their last digit as decimals."""
    digits = numbers.cast(pl.Decimal(MOST_DIGITS, 0)).to_arrow()
    wide = pa.decimal128(MOST_DIGITS, kind.scale)
    return pa.Array.from_buffers(wide, len(digits), digits.buffers(), offset=digits.offset).cast(kind.type)


def _called(call: Call, frame: pl.DataFrame, text: str) -> np.ndarray[Any, Any]:
    columns = [frame.select(argument.cast(pl.Float64).alias("x"))["x"].to_numpy() for argument in call.arguments]
    rows = frame.height
    try:
        # An argument that is the same for all rows comes as one value.
        given = np.asarray(call.function(*(np.broadcast_to(column, rows) for column in columns)), np.float64)
    except Exception as error:
        raise InvalidExpression(f"A function that {text!r} calls failed: {type(error).__name__}: {error}") from error
    if given.shape != (rows,):
        raise InvalidExpression(
            f"A function that {text!r} calls must give a number a row: {rows} rows in, shape {given.shape} out."
        )
    return given


def calls_functions(tree: exp.Expr) -> bool:
    """Does it call what only Python can?"""
    return tree.find(exp.Anonymous) is not None
