"""A query resolved against the columns of a Spark DataFrame: mistakes are found here, before Spark runs anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkTypeError
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import NumericType, StructType

from skyband import expressions
from skyband.engines.output import layout
from skyband.errors import InvalidExpression, InvalidInput, InvalidQuery, UnknownColumn
from skyband.expressions import Score
from skyband.planner.objects import plan, specify
from skyband.queries import TopK
from skyband.windows import Ticks

PREFIX: Final = "__skyband_"
SCORE: Final = PREFIX + "score"
TIE: Final = PREFIX + "tie"  # a hash of the whole row: orders rows that nothing else orders, the same way on a replay
WEIGHT: Final = PREFIX + "weight"  # how many input rows a row stands for in the counts
GROUP: Final = PREFIX + "group"  # a number for each group: see candidates.group_key
BUCKET: Final = PREFIX + "bucket"
CLOCK: Final = PREFIX + "clock"


@dataclass(frozen=True)
class Recipe:
    """All that a worker has to know. It travels in Spark's own closures, so it holds values and functions only."""

    query: TopK  # what a bucket is asked: its score is the column SCORE
    schema: pa.Schema  # the rows a bucket takes: the input columns it needs, and SCORE
    output: pa.Schema  # what the user sees
    sources: tuple[str | None, ...]  # for each of those columns, the input column it is; None for what we add
    ticks: Ticks
    score: Score | None  # a Python function, for workers to call; None when Spark computes SCORE
    fingerprint: str  # of the query as the user asked it, and its columns

    @property
    def by_pane(self) -> bool:
        """Do answers come at the ends of windows by value? Then most rows can be ruled out before they are gathered."""
        return not self.ticks.by_count and self.ticks.every > 0

    @property
    def buckets_by_group(self) -> bool:
        """May groups be told apart in different places? Not if each row moves the one clock that they all share."""
        return bool(self.query.per) and (self.by_pane or self.ticks.by_count)

    @property
    def input_columns(self) -> list[str]:
        return [name for name in self.schema.names if name != SCORE]

    @property
    def plain_names(self) -> dict[str, str]:
        """Names for the input columns on their way to Python: mapInArrow stumbles over dots and backticks."""
        return {name: f"{PREFIX}{number}" for number, name in enumerate(self.input_columns)}

    @property
    def arrival_order(self) -> list[str]:
        """The columns that put the rows of a micro-batch in order of arrival."""
        window = self.query.window
        return [name for name in (window.on, window.order, TIE) if name is not None]


def resolve(df: DataFrame, query: TopK, score: Column | None) -> tuple[Recipe, Column | None]:
    """The recipe for `query` over `df`, and its score as a Spark column, None when workers compute it.

    `score` is the column the user gave as `by`; the query then has its text.
    """
    schema = _arrow_schema(df.schema)
    query.check_columns(schema.names)
    _check_order(query, schema)
    ticks = query.window.ticks(schema, query.lateness)
    plan(specify(query, schema), query.algorithm, expect=query.expect)  # refuses an algorithm that cannot answer
    function = None
    if score is None:
        bound = expressions.bind(query.by, schema)
        if bound.spark_sql is None:
            function = bound
        else:
            score = sf.expr(bound.spark_sql)
    if score is not None:
        score = _checked_number(df, score).cast("double").alias(SCORE)
    asked_of_a_bucket = TopK(
        k=query.k,
        by=SCORE,
        window=query.window,
        per=query.per,
        ascending=query.ascending,
        emit=query.emit,
        algorithm=query.algorithm,
        error=query.error,
        expect=query.expect,
    )
    output = layout(query, schema, str(query.emit))
    others = [name for name in output.rows_schema.names if name not in query.per]
    added_first = len(output.schema) - len(query.per) - len(others) - 2  # rank and score come between
    recipe = Recipe(
        query=asked_of_a_bucket,
        schema=_bucket_schema(query, schema),
        output=output.schema,
        sources=(*[None] * added_first, *query.per, None, None, *others),
        ticks=ticks,
        score=function,
        fingerprint=query.fingerprint(schema),
    )
    return recipe, score


def _check_order(query: TopK, schema: pa.Schema) -> None:
    order = query.window.order
    if order is None and query.window.by_count:
        raise InvalidQuery(
            "Spark has no arrival order, so a window of arrivals must say which column orders them: "
            f"add order='…' to the window. Columns: {', '.join(schema.names)}."
        )
    if order is not None and pa.types.is_nested(schema.field(order).type):
        raise InvalidQuery(f"order={order!r} cannot put rows in order: the column is {schema.field(order).type}.")


def quoted(name: str) -> Column:
    """The column of exactly this name, dots and all."""
    return sf.col("`" + name.replace("`", "``") + "`")


def _arrow_schema(schema: StructType) -> pa.Schema:
    """The columns as Arrow has them; instants in UTC, whatever the session's time zone."""
    repeated = {name for name in schema.names if schema.names.count(name) > 1}
    if repeated:
        raise InvalidInput(f"Column names must differ, but these come twice: {', '.join(sorted(repeated))}.")
    reserved = [name for name in schema.names if name.startswith(PREFIX)]
    if reserved:
        raise InvalidInput(f"Column names that start with {PREFIX} are ours: rename {', '.join(reserved)}.")
    try:
        translated = to_arrow_schema(schema, timezone="UTC")
    except PySparkTypeError as error:
        raise InvalidInput(f"A column has a type that Arrow lacks: {error}") from error
    return pa.schema([field.remove_metadata().with_nullable(True) for field in translated])


def _bucket_schema(query: TopK, schema: pa.Schema) -> pa.Schema:
    """A column that is the score is shown as `score` only, so it is not kept unless it has another use too."""
    needed = {query.window.on, query.window.order, *query.per}
    fields = [field for field in schema if field.name != query.by or field.name in needed]
    return pa.schema([*fields, pa.field(SCORE, pa.float64())])


def _checked_number(df: DataFrame, score: Column) -> Column:
    try:
        data_type = df.select(score.alias(SCORE)).schema[SCORE].dataType
    except AnalysisException as error:
        if (error.getCondition() or "").startswith("UNRESOLVED_COLUMN"):
            name = str((error.getMessageParameters() or {}).get("objectName", "")).strip("`")
            raise UnknownColumn.named(name, df.columns, used_as="the score") from error
        raise InvalidExpression(f"Spark cannot compute the score {score}: {error}") from error
    if not isinstance(data_type, NumericType):
        raise InvalidExpression(f"A score must be a number, but {score} is {data_type.simpleString()}.")
    return score
