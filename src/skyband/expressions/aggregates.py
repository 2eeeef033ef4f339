"""Aggregates, join conditions and filters as text: read once, by sqlglot, and bound to the columns they are about.

An argument of whole numbers stays whole: it is int64, and an overflow is an error. What of whole numbers is whole is as
for scores (see whole.py); + - * of columns are computed by Arrow. A decimal is int64, too: a whole number of its last
digit. Other arguments are float64, where null and NaN are no value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyband.core.encoding.decimals import FITTING_DIGITS, fit_in_64_bits, in_last_digits
from skyband.errors import InvalidExpression, InvalidInput, InvalidQuery
from skyband.expressions import scores as expressions
from skyband.expressions.extremes import in_ticks, is_labelled, is_moment, ticks_in_spark

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

FUNCTIONS: Final = ("COUNT", "SUM", "AVG", "MIN", "MAX")
COUNT_DISTINCT: Final = "COUNT DISTINCT"
_POSSIBLE: Final = (
    "COUNT(*), COUNT(x), SUM(x), AVG(x), MIN(x), MAX(x), where x is an expression over one input's columns; "
    "COUNT(DISTINCT x), where x is a column"
)


# What to write instead of other aggregates, by the names of sqlglot's nodes.
_INSTEAD: Final = (
    (("AnyValue",), "It may give any value of a group. MIN(x) gives one of them, the same one on every run"),
    (
        ("First", "FirstValue", "Last", "LastValue", "NthValue", "ArgMax", "ArgMin"),
        "To see the first or last row of each group, write QUALIFY ROW_NUMBER() OVER (PARTITION BY g ORDER BY y) = 1",
    ),
    (("LogicalAnd",), "MIN(x) is true if all booleans of a group are"),
    (("LogicalOr",), "MAX(x) is true if one boolean of a group is"),
    (("ApproxDistinct",), "COUNT(DISTINCT x) is exact"),
)


class Name(NamedTuple):
    """A column as it was written: of an input, or "" where none was named."""

    input: str
    column: str

    def __str__(self) -> str:
        return f"{self.input}.{self.column}" if self.input else self.column


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate as it was written."""

    function: str  # one of FUNCTIONS, or COUNT_DISTINCT
    text: str
    argument: str | None  # without the names of inputs; None: COUNT(*)
    columns: tuple[Name, ...]  # that the argument reads
    of: str = ""  # the input of COUNT(b.*)


def read_aggregate(text: object, called: str | None = None) -> Aggregate:
    """The aggregate in `text`; `called` is what the user called it, if the text is not the user's."""
    if not isinstance(text, str):
        raise InvalidQuery(f"An aggregate is a text, such as 'SUM(price)', got {text!r}. Possible: {_POSSIBLE}.")
    return _read(text, called)


@lru_cache(maxsize=1024)  # a query is checked, planned and opened, and each asks what its aggregates are
def _read(text: str, called: str | None) -> Aggregate:
    from sqlglot import exp

    from skyband.expressions.grammar import is_there

    tree = _parse(text)
    functions = {exp.Count: "COUNT", exp.Sum: "SUM", exp.Avg: "AVG", exp.Min: "MIN", exp.Max: "MAX"}
    function = functions.get(type(tree))
    read = {"this", "big_int"}  # COUNT gives 64 bits, and says so
    if function is None or any(is_there(value) and name not in read for name, value in tree.args.items()):
        possible = next((said for kinds, said in _INSTEAD if type(tree).__name__ in kinds), f"Possible: {_POSSIBLE}")
        raise InvalidExpression(f"{called or text!r} is not one of Skyband's aggregates. {possible}.")
    inner = tree.this
    if inner is None:  # sqlglot reads COUNT(), but no other without an argument
        raise InvalidExpression(f"{text!r} does not say what it counts. Write COUNT(*) to count rows.")
    if isinstance(inner, exp.Star) or (isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)):
        if function != "COUNT":
            raise InvalidExpression(f"{text!r}: only COUNT takes *. Possible: {_POSSIBLE}.")
        return Aggregate(function, text, None, (), inner.table if isinstance(inner, exp.Column) else "")
    if function == "COUNT" and isinstance(inner, (exp.Literal, exp.Boolean)):  # which no row is without
        return Aggregate(function, text, None, ())
    if isinstance(inner, exp.Distinct):
        return _of_distinct(function, text, inner.expressions)
    argument, columns = _without_inputs(inner)
    return Aggregate(function, text, argument, columns)


def _of_distinct(function: str, text: str, inner: list[Any]) -> Aggregate:
    """An aggregate of the different values of an argument."""
    from sqlglot import exp

    if function in ("SUM", "AVG"):
        raise InvalidExpression(f"{text!r}: DISTINCT works only with COUNT: COUNT(DISTINCT x).")
    if len(inner) != 1:
        raise InvalidExpression(f"{text!r}: DISTINCT takes one column, got {len(inner)}.")
    if function != "COUNT":  # the smallest value is the smallest of the different ones
        return Aggregate(function, text, *_without_inputs(inner[0]))
    if not isinstance(inner[0].unnest(), exp.Column) or isinstance(inner[0].unnest().this, exp.Star):
        raise InvalidExpression(f"{text!r}: DISTINCT takes a column. In SQL, it takes an expression, too.")
    return Aggregate(COUNT_DISTINCT, text, *_without_inputs(inner[0].unnest()))


def read_equality(text: object) -> tuple[Name, Name]:
    """The two columns of a join condition."""
    from sqlglot import exp

    tree = _parse(text) if isinstance(text, str) else None
    sides = [tree.this, tree.expression] if isinstance(tree, exp.EQ) else []
    if len(sides) != 2 or not all(isinstance(side, exp.Column) and side.table for side in sides):
        raise InvalidQuery(
            f"A join condition sets two columns equal, such as 'a.id = b.id', got {text!r}. Other conditions, on "
            "one input, go into its where=."
        )
    left, right = (Name(side.table, side.name) for side in sides)
    return left, right


def read_name(text: object, what: str) -> Name:
    """A column, with or without its input: "a.id" or "id"."""
    from sqlglot import exp

    tree = _parse(text) if isinstance(text, str) else None
    if not isinstance(tree, exp.Column):
        raise InvalidQuery(f"{what} names columns, such as 'id' or 'a.id', got {text!r}.")
    return Name(tree.table, tree.name)


def _parse(text: str) -> Any:
    from sqlglot.errors import SqlglotError

    from skyband.expressions.grammar import RowExpressions

    try:
        statements = RowExpressions().parse(text)
    except RecursionError:
        raise InvalidExpression(f"{text[:60]!r}… is nested too deeply to be read.") from None
    except SqlglotError:
        statements = []
    if len(statements) != 1 or statements[0] is None:
        raise InvalidExpression(f"Cannot read {text!r} as an expression.")
    return statements[0]


def _without_inputs(tree: Any) -> tuple[str, tuple[Name, ...]]:
    """The expression as text, with columns by their plain names, and the columns as they were written."""
    from sqlglot import exp

    from skyband.expressions.grammar import rewritten

    found = [Name(column.table, column.name) for column in tree.find_all(exp.Column, bfs=False)]

    def strip(node: Any) -> Any:
        if isinstance(node, exp.Column) and node.table:
            return exp.column(exp.to_identifier(node.name, quoted=True))
        return node

    return rewritten(tree, strip).sql(dialect="spark", identify=True), tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument bound to a schema: a number of 64 bits a row."""

    text: str
    is_float: bool
    type: pa.DataType  # of a minimum or maximum of it
    is_number: bool  # may be added up
    spark_sql: str | None  # the same, where null is no value, if Spark's arithmetic is checked; None: Spark cannot
    _evaluate: Callable[[pa.RecordBatch], pa.Array]
    scale: int = 0  # of a whole number: how many of its digits are behind the point

    def evaluate(self, batch: pa.RecordBatch) -> tuple[Ints, Bools]:
        """The value of each row, or the bits of its float64; and whether it has one: neither null nor NaN."""
        column = self._evaluate(batch)
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if self.is_float:
            floats = expressions.as_floats(column, batch.num_rows, self.text)
            return (floats + 0.0).view(np.int64), ~np.isnan(floats)  # + 0.0: of the two zeros one
        valid = np.ones(len(column), bool)
        if column.null_count:
            valid = pc.is_valid(column).to_numpy(zero_copy_only=False)
            column = pc.fill_null(column, 0)
        return column.to_numpy(zero_copy_only=False).astype(np.int64, copy=False), valid


def bind_argument(aggregate: Aggregate, schema: pa.Schema) -> Argument:
    """The argument of an aggregate over rows of one input; raises what is wrong with it before a row is read."""
    assert aggregate.argument is not None
    tree, text = _parse(aggregate.argument), aggregate.text
    plain = len(aggregate.columns) == 1 and aggregate.argument == f"`{aggregate.columns[0].column}`"
    written = aggregate.columns[0].column if plain else aggregate.argument
    if aggregate.function == "COUNT" and (counted := _counted(text, tree, written, schema)) is not None:
        return counted
    if _is_whole(tree, schema):
        whole = _whole(tree)
        return Argument(
            text, False, pa.int64(), True, _whole_for_spark(tree), lambda batch: _checked(whole, batch, text)
        )
    value = expressions.bind_value(written, schema)
    kind = value.type.value_type if pa.types.is_dictionary(value.type) else value.type
    if not expressions.is_number(kind):
        return _ordered_argument(aggregate, written, value, kind)
    score = expressions.bind(written, schema)
    if pa.types.is_integer(score.type):
        return Argument(
            text, False, pa.int64(), True, score.spark_sql, lambda batch: _signed(score.values(batch), text)
        )
    if pa.types.is_decimal(score.type):
        return _decimal_argument(text, written, score.type, score.spark_sql, score.values)
    in_spark = None if score.spark_sql is None else f"NULLIF(CAST({score.spark_sql} AS DOUBLE), DOUBLE('NaN'))"
    return Argument(text, True, pa.float64(), True, in_spark, score.evaluate)


def _ordered_argument(aggregate: Aggregate, written: str, value: expressions.Score, kind: pa.DataType) -> Argument:
    """The argument of MIN or MAX of values that have an order, but are no numbers."""
    text, in_spark = aggregate.text, value.spark_sql
    is_ordered = is_moment(kind) or pa.types.is_boolean(kind)
    if aggregate.function in ("SUM", "AVG"):
        accepted = "MIN, MAX and COUNT accept it" if is_ordered or is_labelled(kind) else "COUNT accepts it"
        raise InvalidExpression(f"{text!r} adds up numbers, but {written!r} is {kind}. {accepted}.")
    if is_labelled(kind):
        raise InvalidExpression(
            f"{text!r}: MIN and MAX of strings take a column, and {written!r} is none. In SQL, they take an "
            "expression, too."
        )
    if not is_ordered:
        raise InvalidExpression(
            f"{text!r} takes numbers, strings, booleans and times, but {written!r} is {kind}. COUNT takes it."
        )
    ticks = None if in_spark is None else ticks_in_spark(in_spark, kind)
    return Argument(text, False, kind, False, ticks, lambda batch: in_ticks(value.values(batch)))


def _counted(text: str, tree: Any, written: str, schema: pa.Schema) -> Argument | None:
    """What COUNT takes: only whether there is a value. None: of floats, of which NaN is none, or of whole numbers that
    are computed, which may be too large."""
    from sqlglot import exp

    filtered = tree.args["ifs"][0].args["true"].unnest() if _is_filtered(tree) else None
    if isinstance(filtered, exp.Column) and not _is_float(schema.field(filtered.name).type):
        # The value itself may be of a type that no expression gives.
        tree = tree.copy()
        branch = tree.args["ifs"][0]
        known = exp.Not(this=exp.Is(this=filtered.copy(), expression=exp.Null()))
        branch.set("this", exp.and_(branch.this.copy(), known))
        branch.set("true", exp.Literal.number(1))
        written = tree.sql(dialect="spark", identify=True)
    elif _is_whole(tree, schema) and written not in schema.names:
        return None
    value = expressions.bind_value(written, schema)
    if _is_float(value.type):
        return None
    there = None if value.spark_sql is None else f"IF(({value.spark_sql}) IS NULL, NULL, CAST(1 AS BIGINT))"
    return Argument(text, False, pa.int64(), False, there, lambda batch: _presence(value.values(batch)))


def _is_filtered(tree: Any) -> bool:
    """Is it CASE WHEN … THEN … END, as FILTER is written?"""
    from sqlglot import exp

    is_case = isinstance(tree, exp.Case) and tree.this is None and tree.args.get("default") is None
    return is_case and len(tree.args["ifs"]) == 1


def _is_float(kind: pa.DataType) -> bool:
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_floating(inner))


def _signed(column: pa.Array, text: str) -> pa.Array:
    return _checked(lambda _: column.cast(pa.int64()), column, text)


def _presence(column: pa.Array) -> pa.Array:
    return pa.array(np.ones(len(column), np.int64), mask=pc.is_null(column).to_numpy(zero_copy_only=False))


def _decimal_argument(
    text: str, name: str, kind: pa.DataType, spark_sql: str | None, read: Callable[[pa.RecordBatch], Any]
) -> Argument:
    """Decimals, as whole numbers of their last digit."""
    scale = max(0, kind.scale)
    # Of more digits, the product may have more than Spark's 38; so may a value without its point.
    fits = kind.precision <= FITTING_DIGITS and kind.scale >= 0
    in_spark = f"CAST({spark_sql} * {10**scale}BD AS BIGINT)" if fits and spark_sql is not None else None

    def evaluate(batch: pa.RecordBatch) -> pa.Array:
        column = read(batch)
        if kind.scale < 0:
            column = column.cast(pa.decimal256(76, 0))
        fits = fit_in_64_bits(column)
        if not fits.all():
            wrong = column.filter(pa.array(~fits))[0]
            raise InvalidInput(
                f"{text!r}: {name} is {wrong} for a row, a {kind} that takes more than 64 bits as a whole number of "
                f"its last digit. Skyband rejected the batch. Cast the column to a decimal of fewer digits; "
                f"{text.partition('(')[0]}(CAST({name} AS DOUBLE)) takes it as float64."
            )
        missing = pc.is_null(column).to_numpy(zero_copy_only=False) if column.null_count else None
        return pa.array(in_last_digits(column), mask=missing)

    return Argument(text, False, kind, True, in_spark, evaluate, scale)


def _is_whole(tree: Any, schema: pa.Schema) -> bool:
    """Does it stay within whole numbers?"""
    from sqlglot import exp

    def whole(node: Any) -> bool:
        if isinstance(node, exp.Column):
            return bool(pa.types.is_integer(schema.field(node.name).type))
        if isinstance(node, exp.Literal):
            return bool(node.is_int) and abs(int(node.this)) < 2**63
        operators = (exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Paren)
        return isinstance(node, operators) and all(whole(part) for part in node.iter_expressions())

    return whole(tree) and any(True for _ in tree.find_all(exp.Column))


def _whole(tree: Any) -> Callable[[pa.RecordBatch], Any]:
    """An expression of whole numbers, as checked Arrow arithmetic."""
    from sqlglot import exp

    if isinstance(tree, exp.Paren):
        return _whole(tree.this)
    if isinstance(tree, exp.Column):
        name = tree.name
        return lambda batch: batch.column(name).cast(pa.int64())
    if isinstance(tree, exp.Literal):
        number = pa.scalar(int(tree.this), pa.int64())
        return lambda batch: number
    first = _whole(tree.this)
    if isinstance(tree, exp.Neg):
        return lambda batch: pc.negate_checked(first(batch))
    second = _whole(tree.expression)
    kinds = {exp.Add: pc.add_checked, exp.Sub: pc.subtract_checked, exp.Mul: pc.multiply_checked}
    function = kinds[type(tree)]
    return lambda batch: function(first(batch), second(batch))


def _whole_for_spark(tree: Any) -> str:
    """The same for Spark, in 64 bits."""
    from sqlglot import exp

    from skyband.expressions.grammar import cast_to, rewritten

    def widen(node: Any) -> Any:
        return cast_to(node.copy(), "BIGINT") if isinstance(node, (exp.Column, exp.Literal)) else node

    text: str = rewritten(tree, widen).sql(dialect="spark", identify=True)
    return text


def _checked(whole: Callable[[Any], Any], batch: pa.RecordBatch | pa.Array, text: str) -> pa.Array:
    try:
        return whole(batch)
    except pa.ArrowInvalid as error:
        raise InvalidInput(
            f"{text!r} does not fit in 64 bits with a sign: {error}. Skyband rejected the batch."
        ) from None


def bind_filter(text: str, schema: pa.Schema, *, input: str = "", what: str = "where") -> expressions.Condition:
    """A condition on rows of `schema`, of one input or of the answer."""
    stripped, columns = _without_inputs(_parse(text))
    for name in columns:
        if name.input not in ("", input):
            raise InvalidQuery(
                f"{what}={text!r} of {input or 'the answer'} names {name}. A filter is about one input: join "
                "conditions go into on=."
            )
    return expressions.bind_condition(stripped, schema, used_as=f"{what}={text!r}")
