"""The score of a row: one number a row, from a column, an SQL expression or a Python function.

A column is ranked in its own type. An expression means the same on both engines. sqlglot parses it once, and every node
must be on the list below, which has the nodes that polars and Spark evaluate with one meaning: sums and products of
whole numbers are whole, those of decimals are decimals (see whole.py), everything else is float64; division and
logarithms follow IEEE 754 (1/0 is +inf, ln 0 is -inf), but 0/0 and ln -1 are null. A NaN or null score is never ranked.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache, lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyband.core.encoding.value_types import value_type
from skyband.errors import RAISED_THIS, InvalidExpression, InvalidInput, InvalidQuery, UnknownColumn
from skyband.expressions import functions

Floats = npt.NDArray[np.float64]
ScoreFunction = Callable[..., Any]

_POSSIBLE: Final = (
    "+ - * / % **, comparisons, AND, OR, NOT, IN, BETWEEN, IS NULL, CASE, IF, COALESCE, NULLIF, ABS, SIGN, SQRT, "
    "POWER, EXP, LN, LOG, LOG2, LOG10, FLOOR, CEIL, GREATEST, LEAST, SIN, COS, TAN, ATAN2, "
    "LIKE, ||, UPPER, LOWER, LENGTH, TRIM, SUBSTRING, STARTSWITH, times and INTERVAL, CAST, ROUND, ILIKE, CONCAT, "
    "REPLACE, LEFT, RIGHT, LTRIM, RTRIM, REVERSE, CONTAINS, ENDSWITH, SPLIT_PART, REGEXP_EXTRACT, EXTRACT, YEAR to "
    "SECOND, DATE_ADD, DATE_SUB, DATEDIFF, DATE_TRUNC, DATE_FORMAT, TO_CHAR, ADD_MONTHS, LAST_DAY, TIMESTAMPADD, "
    "TIMESTAMPDIFF, TO_DATE, LPAD, RPAD, CONCAT_WS, INSTR, TRANSLATE, RLIKE, REGEXP_REPLACE"
)


def _no_text() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Score:
    """A value bound to a schema: knows its columns, evaluates itself on Arrow data, and prints itself for Spark. What
    rows are ranked by is a number."""

    text: str
    columns: tuple[str, ...]
    type: pa.DataType  # that of the column; of an expression of numbers int64 or float64
    _evaluate: Callable[[pa.RecordBatch], Any]
    _in_spark: Callable[[], str | None] = _no_text

    @property
    def spark_sql(self) -> str | None:
        """The same in Spark SQL, of this type; None: a Python function, which Spark has to call."""
        return self._in_spark()

    def values(self, batch: pa.RecordBatch) -> pa.Array:
        """One value a row, or null, in its own type."""
        return as_numbers(self._evaluate(batch), self.type, batch.num_rows, self.text)

    def evaluate(self, batch: pa.RecordBatch) -> Floats:
        """One float64 a row, rounded if need be; a null becomes NaN. Float64 columns without nulls are not copied."""
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
    return np.ascontiguousarray(_checked_array(values, length, text), dtype=np.float64)


def _checked_array(values: Any, length: int, text: str) -> npt.NDArray[Any]:
    array = np.asarray(values)
    if array.shape != (length,):
        raise InvalidExpression(
            f"{text} must return one number for each row: {length} rows in, shape {array.shape} out."
        )
    if array.dtype.kind not in "iuf":
        raise InvalidExpression(f"{text} must give numbers, got {array.dtype}.")
    return array


def as_numbers(values: Any, number_type: pa.DataType, length: int, text: str) -> pa.Array:
    """`values` (Arrow, or whatever numpy takes) in this type, checked to be one number a row that it can hold."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.Array):
        return values if values.type == number_type else _converted(values, number_type, text)
    array = _checked_array(values, length, text)
    missing = None
    if array.dtype.kind == "f" and pa.types.is_integer(number_type):  # of columns with nulls, which are NaN in numpy
        missing = np.isnan(array)
        array = np.where(missing, 0, array)
        if (array != np.floor(array)).any() or (np.abs(array) > EXACT).any():
            raise InvalidInput(
                f"{text} returned whole numbers for an empty batch, but now float64 that are not whole, or beyond "
                "±2**53. Let it always return float64."
            )
        array = array.astype(np.int64)
    return _converted(pa.array(array, mask=missing), number_type, text)


def _converted(values: pa.Array, number_type: pa.DataType, text: str) -> pa.Array:
    if pa.types.is_floating(number_type):
        check_exact(values, text)
        return pc.cast(values, number_type, safe=False)
    try:
        return pc.cast(values, number_type)
    except pa.ArrowInvalid as error:
        raise InvalidInput(f"{text} must give {number_type}, as it does for an empty batch: {error}.") from None


EXACT: Final = 2**53  # float64 holds every whole number up to here
SAFE_DIGITS: Final = 15  # of a decimal: float64 tells all of those apart


def check_exact(values: pa.Array | pa.ChunkedArray, text: str) -> None:
    """Raise if float64 cannot tell one of these numbers from its neighbours: a whole number beyond ±2**53, or a decimal
    of more than 15 digits."""
    kind, wrong = values.type, None
    if pa.types.is_decimal(kind) and kind.precision > SAFE_DIGITS:
        wrong = next((x for x in values.to_pylist() if x is not None and _digits(x) > SAFE_DIGITS), None)
    elif pa.types.is_integer(kind) and kind.bit_width == 64 and len(values) > values.null_count:
        extremes = pc.min_max(values).as_py()
        wrong = next((x for x in extremes.values() if abs(x) > EXACT), None)
    if wrong is not None:
        raise InvalidInput(
            f"{text} is {wrong} for a row. Skyband computes it in float64, which cannot distinguish this {kind} from "
            "its "
            "neighbours. Cast the column to float64 to accept rounding. Skyband rejected the batch."
        )


def _digits(value: Decimal) -> int:
    """How many digits a number has, but for zeros at its end."""
    return len(value.normalize().as_tuple().digits)


def _bind_column(name: str, schema: pa.Schema) -> Score:
    kind = schema.field(name).type
    shown = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not is_number(shown):
        raise InvalidExpression(f"A score must be a number, but column {name!r} is {kind}.")
    quoted = name.replace("`", "``")
    return Score(name, (name,), shown, lambda batch: _decoded(batch.column(name)), lambda: f"`{quoted}`")


def _decoded(column: pa.Array) -> pa.Array:
    return pc.dictionary_decode(column) if pa.types.is_dictionary(column.type) else column


def _bind_function(by: ScoreFunction, schema: pa.Schema) -> Score:
    """A vectorised function: its parameters are named after columns, and get them as numpy arrays."""
    text = f"the function {getattr(by, '__name__', by)!r}"
    try:
        columns = None if isinstance(by, np.ufunc) else tuple(inspect.signature(by).parameters)
    except ValueError:  # of many that are written in C
        columns = None
    if columns is None:
        raise InvalidExpression(
            f"{text} does not name its parameters after columns. Name them, as in: lambda price, volume: …"
        )
    if not columns:
        raise InvalidExpression(
            f"{text} has no parameters. Name them after the columns it needs, as in: lambda price, volume: …"
        )
    for name in columns:
        if name not in schema.names:
            raise UnknownColumn.named(name, schema.names, used_as=f"a parameter of {text}")

    def evaluate(batch: pa.RecordBatch) -> Any:
        given = [_as_numpy(batch.column(name)) for name in columns]
        try:
            return by(*given)
        except Exception as error:
            error.add_note(f"{text} {RAISED_THIS}")
            raise

    return Score(text, columns, _type_given(evaluate, schema, columns), evaluate)


def _type_given(evaluate: Callable[[pa.RecordBatch], Any], schema: pa.Schema, columns: tuple[str, ...]) -> pa.DataType:
    """The type of numbers that a function gives, as far as it says when it is called with no rows; else float64."""
    no_rows = pa.record_batch([pa.nulls(0, schema.field(name).type) for name in columns], names=list(columns))
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            given = evaluate(no_rows)
            kind = given.type if isinstance(given, (pa.Array, pa.ChunkedArray)) else pa.from_numpy_dtype(given.dtype)
    except Exception:  # it may come of there being no rows; if not, it comes again when there are
        return pa.float64()
    return pa.uint64() if kind == pa.uint64() else pa.int64() if pa.types.is_integer(kind) else pa.float64()


def _as_numpy(column: pa.Array) -> npt.NDArray[Any]:
    if is_number(column.type) and (column.null_count or pa.types.is_decimal(column.type)):
        return as_floats(column, len(column), "")
    return column.to_numpy(zero_copy_only=False)


def _bind_expression(text: str, schema: pa.Schema) -> Score:
    value = _bind_tree(text, schema, f"the expression {text!r}")
    if not is_number(value.type):
        raise InvalidExpression(f"A score must be a number, but {text!r} gives {value.type}.")
    return value


def bind_value(text: str, schema: pa.Schema) -> Score:
    """A column or an expression over rows of `schema`, of whatever type it is: numbers, strings, times, booleans."""
    if text in schema.names:
        quoted = text.replace("`", "``")
        return Score(text, (text,), schema.field(text).type, lambda batch: batch.column(text), lambda: f"`{quoted}`")
    return _bind_tree(text, schema, f"the expression {text!r}")


def _bind_tree(text: str, schema: pa.Schema, used_as: str) -> Score:
    return _bound(text, schema.remove_metadata(), used_as, functions.meaning())


@lru_cache(maxsize=256)  # a statement is checked part by part before it runs
def _bound(text: str, schema: pa.Schema, used_as: str, _meaning: object) -> Score:
    # Deferred: a score that is a plain column needs neither, and they cost a second to import.
    from skyband.expressions import evaluation
    from skyband.expressions import tree as expression_tree
    from skyband.expressions.branches import check_types
    from skyband.expressions.grammar import READ_IN_ROWS
    from skyband.expressions.row_functions import READ
    from skyband.expressions.spark_text import condition_to_spark, to_spark
    from skyband.expressions.times import with_times
    from skyband.expressions.whole import typed, with_rounds

    tree = expression_tree.parse(text, possible=_POSSIBLE, also={**READ_IN_ROWS, **READ})
    columns = expression_tree.column_names(tree)
    for name in columns:
        if name not in schema.names:
            raise UnknownColumn.named(name, schema.names, used_as=used_as)
    types = {name: value_type(schema.field(name).type) for name in columns}
    if expression_tree.is_column(tree):
        return replace(bind_value(columns[0], schema), text=text)
    tree = with_rounds(with_times(tree, types, text), types)
    expression_tree.check_numbers(tree, frozenset(name for name in columns if is_number(types[name])), text)
    check_types(tree, types, text)
    tree = typed(tree, types)
    row_expression = expression_tree.to_polars(tree)

    def evaluate(batch: pa.RecordBatch) -> Any:
        return evaluation.evaluate(row_expression, batch, text)

    given = evaluate(pa.record_batch([pa.nulls(0, kind) for kind in types.values()], names=list(types))).type
    number = is_number(given)

    @cache
    def in_spark() -> str | None:
        if expression_tree.calls_functions(tree):
            return None
        return to_spark(tree, text) if number else condition_to_spark(tree, text)

    return Score(text, columns, row_expression.kind.type if number else given, evaluate, in_spark)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition bound to a schema: says which rows meet it, and prints itself for Spark. Null is not met."""

    text: str
    columns: tuple[str, ...]
    _evaluate: Callable[[pa.RecordBatch], Any]
    _in_spark: Callable[[], str | None]

    @property
    def spark_sql(self) -> str | None:
        """The same in Spark SQL; None: it calls a function of the user's."""
        return self._in_spark()

    def evaluate(self, batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        met: npt.NDArray[np.bool_] = pc.fill_null(self._evaluate(batch), False).to_numpy(zero_copy_only=False)
        return met


def bind_condition(text: str, schema: pa.Schema, *, used_as: str) -> Condition:
    """The condition `text` on rows of `schema`. Every reason why there is none is raised here, before a row is read."""
    value = _bind_tree(text, schema, used_as)
    if not pa.types.is_boolean(value.type):
        raise InvalidExpression(f"{used_as} must be true or false for each row, but {text!r} is not.")
    return Condition(text, value.columns, value.values, value._in_spark)


def check_text(by: object) -> None:
    """Raise unless `by` can be a score at all; what it means is known only with a schema."""
    if isinstance(by, str):
        if not by.strip():
            raise InvalidQuery("by is empty. Give a column, an SQL expression such as 'price * volume', or a function.")
    elif not callable(by):
        raise InvalidQuery(f"by must be a column, an SQL expression or a function, got {type(by).__name__}.")
