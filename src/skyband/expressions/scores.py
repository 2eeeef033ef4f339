"""What a row is worth: one number a row, from a column, an SQL expression or a Python function.

An expression means the same on both engines. It is parsed once, by sqlglot; every node must be on the list below, which
holds what polars and Spark can both evaluate with one meaning: numbers are float64, division and logarithms follow
IEEE 754 (1/0 is +inf, 0/0 is NaN, ln 0 is -inf). A NaN or null score is never ranked.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyband.errors import InvalidExpression, InvalidQuery, UnknownColumn

Floats = npt.NDArray[np.float64]
ScoreFunction = Callable[..., Any]

_POSSIBLE: Final = (
    "+ - * / % **, comparisons, AND, OR, NOT, IN, BETWEEN, IS NULL, CASE, IF, COALESCE, NULLIF, ABS, SIGN, SQRT, "
    "POWER, EXP, LN, LOG, LOG2, LOG10, FLOOR, CEIL, GREATEST, LEAST, SIN, COS, TAN, ATAN2"
)


@dataclass(frozen=True, slots=True)
class Score:
    """A score bound to a schema: knows its columns, evaluates itself on Arrow data, and prints itself for Spark."""

    text: str
    columns: tuple[str, ...]
    spark_sql: str | None  # None: a Python function, which Spark has to call
    _evaluate: Callable[[pa.RecordBatch], Any]

    def evaluate(self, batch: pa.RecordBatch) -> Floats:
        """One float64 a row; a null becomes NaN. Float64 columns without nulls are not copied."""
        return as_floats(self._evaluate(batch), batch.num_rows, self.text)


def bind(by: str | ScoreFunction, schema: pa.Schema) -> Score:
    """The score `by` of rows of `schema`. Every reason why there is none is raised here, before a row is read."""
    if callable(by):
        return _bind_function(by, schema)
    if by in schema.names:
        return _bind_column(by, schema)
    return _bind_expression(by, schema)


def is_number(column_type: pa.DataType) -> bool:
    return pa.types.is_integer(column_type) or pa.types.is_floating(column_type) or pa.types.is_decimal(column_type)


def as_floats(values: Any, length: int, text: str) -> Floats:
    """`values` (Arrow, or whatever numpy takes) as float64 with NaN for null, checked to be one number a row."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.Array):
        if values.type != pa.float64():
            values = pc.cast(values, pa.float64(), safe=False)
        if values.null_count:
            values = pc.fill_null(values, float("nan"))
        return values.to_numpy(zero_copy_only=True)
    array = np.asarray(values)
    if array.shape != (length,):
        raise InvalidExpression(f"{text} must give one number a row: {length} rows in, shape {array.shape} out.")
    if array.dtype.kind not in "iuf":
        raise InvalidExpression(f"{text} must give numbers, got {array.dtype}.")
    return np.ascontiguousarray(array, dtype=np.float64)


def _bind_column(name: str, schema: pa.Schema) -> Score:
    if not is_number(schema.field(name).type):
        raise InvalidExpression(f"A score must be a number, but column {name!r} is {schema.field(name).type}.")
    quoted = name.replace("`", "``")
    return Score(name, (name,), f"CAST(`{quoted}` AS DOUBLE)", lambda batch: batch.column(name))


def _bind_function(by: ScoreFunction, schema: pa.Schema) -> Score:
    """A vectorised function: its parameters are named after columns, and get them as numpy arrays."""
    text = f"the function {getattr(by, '__name__', by)!r}"
    try:
        columns = None if isinstance(by, np.ufunc) else tuple(inspect.signature(by).parameters)
    except ValueError:  # of many that are written in C
        columns = None
    if columns is None:
        raise InvalidExpression(
            f"{text} does not name its parameters after columns. Say which ones it is given, as in: "
            "lambda price, volume: …"
        )
    if not columns:
        raise InvalidExpression(
            f"{text} has no parameters. Name them after the columns it needs, as in: lambda price, volume: …"
        )
    for name in columns:
        if name not in schema.names:
            raise UnknownColumn.named(name, schema.names, used_as=f"a parameter of {text}")

    def evaluate(batch: pa.RecordBatch) -> Any:
        return by(*(_as_numpy(batch.column(name)) for name in columns))

    return Score(text, columns, None, evaluate)


def _as_numpy(column: pa.Array) -> npt.NDArray[Any]:
    if is_number(column.type) and (column.null_count or pa.types.is_decimal(column.type)):
        return as_floats(column, len(column), "")
    return column.to_numpy(zero_copy_only=False)


def _bind_expression(text: str, schema: pa.Schema) -> Score:
    # Deferred: a score that is a plain column needs neither, and they cost a second to import.
    from skyband.expressions import tree as expression_tree

    tree = expression_tree.parse(text, possible=_POSSIBLE)
    columns = expression_tree.column_names(tree)
    for name in columns:
        if name not in schema.names:
            raise UnknownColumn.named(name, schema.names, used_as=f"the expression {text!r}")
    numeric = frozenset(name for name in columns if is_number(schema.field(name).type))
    expression_tree.check_numbers(tree, numeric, text)
    row_expression = expression_tree.to_polars(tree)

    def evaluate(batch: pa.RecordBatch) -> Any:
        return expression_tree.evaluate(row_expression, batch, text)

    empty = pa.record_batch([pa.array([], schema.field(name).type) for name in columns], names=list(columns))
    result = evaluate(empty)
    if not is_number(result.type):
        raise InvalidExpression(f"A score must be a number, but {text!r} gives {result.type}.")
    in_spark = None if expression_tree.calls_functions(tree) else expression_tree.to_spark(tree, numeric)
    return Score(text, columns, in_spark, evaluate)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition bound to a schema: says which rows meet it, and prints itself for Spark. Null is not met."""

    text: str
    columns: tuple[str, ...]
    spark_sql: str | None  # None: it calls a function of the user's
    _evaluate: Callable[[pa.RecordBatch], Any]

    def evaluate(self, batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        met: npt.NDArray[np.bool_] = pc.fill_null(self._evaluate(batch), False).to_numpy(zero_copy_only=False)
        return met


def bind_condition(text: str, schema: pa.Schema, *, used_as: str) -> Condition:
    """The condition `text` on rows of `schema`. Every reason why there is none is raised here, before a row is read."""
    from skyband.expressions import tree as expression_tree

    tree = expression_tree.parse(text, possible=_POSSIBLE)
    columns = expression_tree.column_names(tree)
    for name in columns:
        if name not in schema.names:
            raise UnknownColumn.named(name, schema.names, used_as=used_as)
    numeric = frozenset(name for name in columns if is_number(schema.field(name).type))
    expression_tree.check_numbers(tree, numeric, text)
    row_expression = expression_tree.to_polars(tree)

    def evaluate(batch: pa.RecordBatch) -> Any:
        return expression_tree.evaluate(row_expression, batch, text)

    empty = pa.record_batch([pa.array([], schema.field(name).type) for name in columns], names=list(columns))
    if not pa.types.is_boolean(evaluate(empty).type):
        raise InvalidExpression(f"{used_as} must be true or false for each row, but {text!r} is not.")
    in_spark = None if expression_tree.calls_functions(tree) else expression_tree.condition_to_spark(tree, numeric)
    return Condition(text, columns, in_spark, evaluate)


def check_text(by: object) -> None:
    """Raise unless `by` can be a score at all; what it means is known only with a schema."""
    if isinstance(by, str):
        if not by.strip():
            raise InvalidQuery("by is empty. Give a column, an SQL expression such as 'price * volume', or a function.")
    elif not callable(by):
        raise InvalidQuery(f"by must be a column, an SQL expression or a function, got {type(by).__name__}.")
