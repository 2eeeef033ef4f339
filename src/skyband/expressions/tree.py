"""SQL expressions over the columns of one row, as a checked sqlglot tree, printed for polars and for Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

from skyband.errors import InvalidExpression, InvalidInput
from skyband.expressions import functions
from skyband.expressions.grammar import is_read, plainly
from skyband.expressions.times import in_spark, time_of, written_time
from skyband.expressions.whole import RESULT, kind_of

Read = Mapping[type[exp.Expr], frozenset[str]]
_NOTHING: Final[Read] = {}


class RowExpressions(Spark):
    """Spark's expressions, with ** as power and with division that is always of floats."""

    SAFE_DIVISION = False
    TYPED_DIVISION = False

    class Tokenizer(Spark.Tokenizer):
        KEYWORDS: ClassVar = {**Spark.Tokenizer.KEYWORDS, "**": TokenType.DSTAR}

    class Parser(SparkParser):
        EXPONENT: ClassVar = {TokenType.DSTAR: exp.Pow}


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
    tree = plainly(statements[0])
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
            raise InvalidExpression(f"{node.sql('spark')!r} in {text!r}: SUBSTRING counts from 1, and says so.")
    return tree


def _is_count(node: exp.Expr | None) -> bool:
    """Is this left out, or a whole number as written, from 1 on?"""
    return node is None or (isinstance(node, exp.Literal) and node.is_int and int(node.name) > 0)


_ON_NUMBERS: Final = (
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Pow, exp.Neg),
    *(exp.Abs, exp.Sign, exp.Sqrt, exp.Exp, exp.Ln, exp.Log, exp.Floor, exp.Ceil, exp.Sin, exp.Cos, exp.Tan, exp.Atan2),
)


_TEXTS: Final = (exp.Upper, exp.Lower, exp.Trim, exp.Substring, exp.DPipe)


def check_numbers(tree: exp.Expr, numeric: frozenset[str], text: str) -> None:
    """Raise if something that is not a number is added, multiplied, …: polars would take true for 1, Spark refuses."""
    for node in tree.find_all(*_ON_NUMBERS):
        if time_of(node) is not None:
            continue
        for operand in (part.unnest() for part in node.iter_expressions()):
            column = isinstance(operand, exp.Column) and operand.name not in numeric
            truth = isinstance(operand, (exp.Predicate, exp.Connector, exp.Not, exp.Boolean))
            words = (isinstance(operand, exp.Literal) and operand.is_string) or isinstance(operand, _TEXTS)
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


class RowExpression(NamedTuple):
    """An expression of one row in polars."""

    score: pl.Expr  # over the columns, int128 where they are whole, float64 where other numbers, and the divisors
    columns: tuple[str, ...]
    divisors: dict[str, float]  # by the name of their column
    times: dict[str, pa.Scalar]  # that are written out, by the name of their column
    calls: tuple[Call, ...] = ()  # what to compute first, in this order: columns of their own, too
    is_whole: bool = False  # does it give whole numbers?


def to_polars(tree: exp.Expr) -> RowExpression:
    """The typed tree in polars. Divisors that do not depend on the row become columns.

    Instead of dividing by a constant, polars multiplies by its reciprocal, which often differs in the last bit: rows
    could rank otherwise than on Spark.
    """
    divisors: dict[str, float] = {}
    times: dict[str, pa.Scalar] = {}
    calls: list[Call] = []

    def call_first(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Anonymous):
            return node
        function = functions.find(node.name)
        assert function is not None, "parse has found it"
        name = f"call {len(calls)} of {tree.sql('spark')}"
        calls.append(Call(name, function, tuple(_sql_expr(argument) for argument in node.expressions)))
        return exp.column(exp.to_identifier(name, quoted=True))

    def rewrite(node: exp.Expr) -> exp.Expr:
        if (time := written_time(node)) is not None:
            name = f"time {len(times)} of {tree.sql('spark')}"
            times[name] = time
            return exp.column(exp.to_identifier(name, quoted=True))
        if isinstance(node, exp.Substring):  # whose numbers are no values of rows
            return exp.Substring(**{**node.args, "this": node.this.transform(rewrite)})
        if isinstance(node, exp.Length):
            return exp.cast(exp.Length(this=node.this.transform(rewrite)), "INT128")
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Boolean):  # of null, polars says null
            asked = node.this.transform(rewrite)
            asked = asked if node.expression.this else exp.Not(this=exp.Paren(this=asked))
            return exp.Coalesce(this=asked, expressions=[exp.false()])
        if isinstance(node, exp.Log) and node.args.get("expression"):
            return exp.Div(this=exp.Ln(this=node.expression), expression=exp.Ln(this=node.this))
        if isinstance(node, exp.Literal) and node.is_number:
            return exp.cast(node, "INT128" if kind_of(node).is_whole else "DOUBLE")
        if _is_narrowed(node):
            return exp.cast(exp.cast(node.this.transform(rewrite), "BIGINT"), "INT128")
        return node

    def divide_by_column(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Div) and not node.expression.find(exp.Column):
            divisor = pl.select(_sql_expr(node.expression)).item()
            if divisor is not None:
                name = f"divisor {len(divisors)} of {tree.sql('spark')}"
                divisors[name] = divisor
                node.set("expression", exp.column(exp.to_identifier(name, quoted=True)))
        return node

    try:
        rewritten = _bottom_up(_bottom_up(tree.transform(rewrite), divide_by_column), call_first)
        return RowExpression(
            _sql_expr(rewritten).alias("score"),
            column_names(tree),
            divisors,
            times,
            tuple(calls),
            kind_of(tree).is_whole,
        )
    except pl.exceptions.PolarsError as error:
        raise InvalidExpression(f"Cannot evaluate {tree.sql('spark')!r}: {error}") from None


def _sql_expr(tree: exp.Expr) -> pl.Expr:
    return pl.sql_expr(tree.sql(dialect="", identify=True))


def evaluate(expression: RowExpression, batch: pa.RecordBatch, text: str) -> pa.Array:
    """The expression on each row of `batch`: whole numbers as int64, others as float64."""
    frame: Any = _frame(batch.select(list(expression.columns)) if expression.columns else batch, text)
    whole, others = pl.selectors.integer(), pl.selectors.numeric() - pl.selectors.integer()
    rows = batch.num_rows
    constants = [pl.Series(name, np.full(rows, value)) for name, value in expression.divisors.items()]
    for name, value in expression.times.items():
        constants.append(pl.Series(name, pl.from_arrow(pa.array([value]))).new_from_index(0, rows))
    try:
        frame = frame.with_columns(whole.cast(pl.Int128), others.cast(pl.Float64)).with_columns(constants)
        for call in expression.calls:
            frame = frame.with_columns(pl.Series(call.name, _called(call, frame, text)))
        scores = frame.select(expression.score)["score"]
    except pl.exceptions.InvalidOperationError as error:
        if "i128" in str(error):  # a part of it that has to fit
            raise InvalidInput(f"In {text!r} a product {_TOO_WIDE}.") from None
        raise _mixed(text, batch.schema) from None
    except pl.exceptions.PolarsError:
        raise _mixed(text, batch.schema) from None
    if expression.is_whole:
        scores = _in_64_bits(scores, text)
    if len(scores) != batch.num_rows:  # an expression of constants only
        scores = scores.new_from_index(0, batch.num_rows) if batch.num_rows else scores.clear()
    given = scores.to_arrow()
    return given.cast(pa.string()) if scores.dtype == pl.String else given


def _mixed(text: str, schema: pa.Schema) -> InvalidExpression:
    """What to say of values that cannot be compared or computed with one another."""
    types = ", ".join(f"{field.name} is {field.type}" for field in schema)
    return InvalidExpression(f"In {text!r} values of different types meet{f': {types}' if types else ''}.")


def _frame(batch: pa.RecordBatch, text: str) -> Any:
    """The columns as polars has them."""
    for field in batch.schema:
        if pa.types.is_decimal256(field.type):  # on which polars would give up, and the process with it
            raise InvalidExpression(f"{text!r} reads {field.name!r}, which is {field.type}: cast it to decimal128.")
    try:
        return pl.from_arrow(batch)
    except pl.exceptions.PolarsError as error:
        raise InvalidExpression(f"{text!r} reads a column that polars cannot: {error}") from None


_TOO_WIDE: Final = (
    "does not fit in 64 bits. Nothing of this batch was taken. Multiply by 1.0 first to compute in float64, "
    "which rounds"
)


def _in_64_bits(scores: pl.Series, text: str) -> pl.Series:
    fitting = scores.cast(pl.Int64, strict=False)
    if fitting.null_count() > scores.null_count():
        value = scores.filter(fitting.is_null() & scores.is_not_null())[0]
        raise InvalidInput(f"{text!r} is {value} for a row, which {_TOO_WIDE}.")
    return fitting


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


def to_spark(tree: exp.Expr, text: str) -> str:
    """A number as Spark SQL with the meaning it has in polars: float64 with IEEE division, or whole numbers that fit in
    64 bits, whatever the ANSI setting."""
    number, kind = _for_spark(tree, text), kind_of(tree)
    if not kind.is_whole:
        return exp.cast(number, "DOUBLE").sql(dialect="spark")
    fitting = number if _fits(tree) else _checked(number, text)
    return exp.cast(fitting, "BIGINT").sql(dialect="spark")


def condition_to_spark(tree: exp.Expr, text: str) -> str:
    """The same for what is true or false."""
    return _for_spark(tree, text).sql(dialect="spark")


def _for_spark(tree: exp.Expr, text: str) -> exp.Expr:
    wide = "BIGINT" if all(_fits(node) for node in tree.walk()) else "DECIMAL(38, 0)"

    def rewrite(node: exp.Expr) -> exp.Expr:
        kind = kind_of(node)
        if written_time(node) is not None:
            return in_spark(node)
        if isinstance(node, exp.Substring):
            return exp.Substring(**{**node.args, "this": node.this.transform(rewrite)})
        if isinstance(node, exp.Column):
            column = exp.column(exp.to_identifier(node.name, quoted=True))
            return exp.cast(column, wide if kind.is_whole else "DOUBLE") if kind.is_whole or kind.is_float else node
        if isinstance(node, exp.Literal) and node.is_number:
            return exp.cast(node, wide if kind.is_whole else "DOUBLE")
        if _is_narrowed(node):
            return _checked(node.this.transform(rewrite), text)
        return node

    def guard(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Div) and not _is_nonzero(node.expression):
            return _template(
                "CASE WHEN y <> 0 THEN x / y WHEN y = 0 AND x > 0 THEN inf WHEN y = 0 AND x < 0 THEN -inf END", node
            )
        if isinstance(node, (exp.Greatest, exp.Least)) and not kind_of(node).is_whole:
            # NaN is Spark's largest number; polars passes over it, as both do over null.
            node.set("this", _template("NANVL(x, NULL)", node))
            node.set("expressions", [_template("NANVL(x, NULL)", exp.Paren(this=e)) for e in node.expressions])
            return node
        if isinstance(node, (exp.Sign, exp.Length)) and kind_of(node).is_whole:  # of another type in Spark
            return exp.cast(node, wide)
        if isinstance(node, (exp.Floor, exp.Ceil)) and kind_of(node).is_whole:
            return exp.Paren(this=node.this)
        if isinstance(node, exp.Mod):
            return _template("CASE WHEN y <> 0 THEN x % y END", node)
        if isinstance(node, exp.Ln):
            return _template("CASE WHEN x = 0 THEN -inf ELSE LN(x) END", node)
        if isinstance(node, exp.Log) and node.args.get("expression"):
            base = exp.Ln(this=node.this)
            return exp.Div(
                this=guard(exp.Ln(this=node.expression)), expression=base if _is_nonzero(node.this) else guard(base)
            )
        return node

    return _bottom_up(tree.transform(rewrite), guard)


def _is_narrowed(node: exp.Expr) -> bool:
    """Is this a whole number that has to fit in 64 bits?"""
    return isinstance(node, exp.Cast) and kind_of(node).is_whole


def _fits(node: exp.Expr) -> bool:
    """Does it fit in 64 bits, whatever the values of its columns? A column does; its negative may lie just beyond."""
    kind = kind_of(node)
    return not kind.is_whole or kind.bits < RESULT or (isinstance(node, exp.Column) and kind.bits == RESULT)


def _checked(number: exp.Expr, text: str) -> exp.Expr:
    """A whole number that fits in 64 bits, or an error where it does not, in Spark SQL."""
    message = exp.Literal.string(f"{text!r} {_TOO_WIDE}.")
    checked = exp.Case(
        ifs=[
            exp.If(
                this=exp.Between(this=exp.Paren(this=number.copy()), low=_whole(-(2**63)), high=_whole(2**63 - 1)),
                true=exp.Paren(this=number.copy()),
            ),
            exp.If(
                this=exp.Not(this=exp.Is(this=exp.Paren(this=number.copy()), expression=exp.Null())),
                true=exp.Anonymous(this="RAISE_ERROR", expressions=[message]),
            ),
        ]
    )
    return exp.Paren(this=checked)


def _whole(number: int) -> exp.Expr:
    return exp.cast(exp.Literal.string(str(number)), "DECIMAL(38, 0)")


def _is_nonzero(node: exp.Expr) -> bool:
    """Is this a number, as written, other than 0 (and 1, whose logarithm is 0)?"""
    literal = node.this if isinstance(node, exp.Cast) else node
    return isinstance(literal, exp.Literal) and literal.is_number and float(literal.this) not in (0.0, 1.0)


def _bottom_up(tree: exp.Expr, rewrite: Any) -> exp.Expr:
    """`tree` with every node rewritten after its children, so that what a rewrite adds is not rewritten again."""
    root = exp.Paren(this=tree)
    for node in reversed(list(root.walk())):
        if node is not root:
            replacement = rewrite(node)
            if replacement is not node:
                node.replace(replacement)
    return root


_INFINITY = "CAST('Infinity' AS DOUBLE)"


def _template(text: str, node: exp.Expr) -> exp.Expr:
    """`text` with x and y replaced by the operands of `node`."""
    operands = {"x": node.this, "y": node.args.get("expression")}

    def fill(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column):
            return part
        if part.name == "inf":
            return RowExpressions().parse(_INFINITY)[0] or part
        return exp.Paren(this=operands[part.name].copy())

    filled = RowExpressions().parse(text)[0]
    assert filled is not None
    return exp.Paren(this=filled.transform(fill))
