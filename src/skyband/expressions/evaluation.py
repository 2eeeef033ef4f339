"""Expressions over rows as polars computes them: what a batch of rows gives."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from skyband.core.encoding.value_types import as_values
from skyband.errors import InvalidExpression, InvalidInput
from skyband.expressions import functions
from skyband.expressions.forking import use_threads
from skyband.expressions.units import with_unit
from skyband.expressions.whole import DIGITS, MOST_DIGITS, TOO_WIDE, Kind


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
    too_wide: str = ""  # what to say if a value does not fit in 64 bits

    def column(self) -> pl.Expr:
        return self.value.alias(self.name)


class RowExpression(NamedTuple):
    """An expression of one row in polars."""

    score: pl.Expr  # over the columns, int128 where they are whole, float64 where other numbers, and those below
    columns: tuple[str, ...]
    divisors: dict[str, float]  # by the name of their column
    times: dict[str, pa.Scalar]  # that are written out, by the name of their column
    digits: dict[str, str]  # decimals, as whole numbers of their last digit: the name of that column, and which it is
    patterns: dict[str, str]  # columns whose names polars takes for those of several, and what they are called instead
    steps: tuple[Call | Among | Computed, ...]  # what to compute first, in this order: columns of their own, too
    kind: Kind = Kind(False)  # of what it gives
    time: pa.DataType | None = None  # the type of that, if it is a time


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
        frame = frame.rename(expression.patterns)
        for step in expression.steps:
            frame = _computed(step, frame, text)
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
    wanted = pa.string() if scores.dtype == pl.String else expression.time or given.type
    return given if given.type == wanted else given.cast(wanted)


def _computed(step: Call | Among | Computed, frame: pl.DataFrame, text: str) -> pl.DataFrame:
    """The frame with one column more."""
    if isinstance(step, Call):
        return frame.with_columns(pl.Series(step.name, _called(step, frame, text)))
    try:
        return frame.with_columns(step.column())
    except pl.exceptions.InvalidOperationError as error:
        if isinstance(step, Computed) and step.too_wide and "i128" in str(error):
            raise InvalidInput(f"In {text!r} {step.too_wide}.") from None
        raise


def _mixed(text: str, schema: pa.Schema) -> InvalidExpression:
    """What to say of values that cannot be compared or computed with one another."""
    types = ", ".join(f"{field.name} is {field.type}" for field in schema)
    return InvalidExpression(f"{text!r} mixes values of different types{f': {types}' if types else ''}.")


def _frame(batch: pa.RecordBatch, text: str) -> Any:
    """The columns as polars has them."""
    columns = {field.name: _readable(batch.column(i), field.name, text) for i, field in enumerate(batch.schema)}
    for field in batch.schema:
        if pa.types.is_decimal256(columns[field.name].type):  # on which polars would give up, and the process with it
            raise InvalidExpression(f"{text!r} reads {field.name!r}, which is {field.type}: cast it to decimal128.")
    try:
        return pl.from_arrow(pa.record_batch(columns) if columns else batch)
    except pl.exceptions.PolarsError as error:
        raise InvalidExpression(f"{text!r} reads a column that polars cannot: {error}") from None


def _readable(column: pa.Array, name: str, text: str) -> pa.Array:
    """A column as polars has it: without seconds, which it has not."""
    values, unit = as_values(column, name), getattr(column.type, "unit", None)
    if unit != "s" or not (pa.types.is_timestamp(values.type) or pa.types.is_duration(values.type)):
        return values
    try:
        return values.cast(with_unit(values.type, "ms"))
    except pa.ArrowInvalid:
        raise InvalidInput(f"In {text!r} a time of {name!r} does not fit in 64 bits, in milliseconds.") from None


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
                f"{DIGITS} digits. Skyband rejected the batch. CAST({decimals.name} AS DOUBLE) computes in float64, "
                "which rounds."
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
            f"A function that {text!r} calls must return one number for each row: {rows} rows in, shape {given.shape} "
            "out."
        )
    return given
