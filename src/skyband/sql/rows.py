"""The rows that a query reads of an input: WITH, FROM and WHERE, row by row, in this process and on Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from skyband import expressions
from skyband.core.encoding.groups import GroupCodes
from skyband.core.encoding.inputs import Source, in_batches, read
from skyband.core.encoding.schemas import fitted, whole_batch
from skyband.core.registry import problem_of
from skyband.dialect.query_spec import LINES, Lookup, OverLines, Rows, Sessions, View
from skyband.dialect.reading import quoted
from skyband.errors import InvalidInput
from skyband.sql.lookups import looked_up, looked_up_in_spark
from skyband.sql.sessions import in_sessions, in_sessions_on_spark


def prepared(sources: Mapping[str, Source], rows: Rows) -> Source:
    """The rows of a source that a query is asked of, with the columns it reads."""
    source = sources[rows.name]
    for view in rows.views:
        if isinstance(view, Lookup):
            source = looked_up(source, view, prepared(sources, view.table))
        elif isinstance(view, OverLines):
            source = with_aggregates(source, view)
        elif isinstance(view, Sessions):
            source = in_sessions(source, view)
        else:
            source = _viewed(source, view)
    taken, schema = rows.taken(source.schema)
    return _changed(source, rows.where, taken, schema)


def rereadable(sources: Mapping[str, Source], read: Iterable[Rows]) -> dict[str, Source]:
    """The sources; those that are read more than once can be."""
    times = Counter(name for rows in read for name in rows.names)
    return {name: reread(source, name) if times[name] > 1 else source for name, source in sources.items()}


def reread(source: Source, name: str) -> Source:
    """A source that can be read more than once."""
    if not source.is_whole:
        raise InvalidInput(f"The statement reads {name!r} twice, but a reader can be read only once. Pass a table.")
    return source.held()


def _viewed(source: Source, view: View) -> Source:
    return _changed(source, view.where, list(view.columns), view.schema)


def _changed(source: Source, where: str | None, columns: list[tuple[str, str]], schema: pa.Schema) -> Source:
    """Other columns of the rows that meet a condition; each is a column or an expression."""
    condition = None if where is None else expressions.bind_condition(where, source.schema, used_as="WHERE")
    plain = {name: text for name, text in columns if text in source.schema.names}
    values = {name: expressions.bind_value(text, source.schema) for name, text in columns if name not in plain}

    def change(batch: pa.RecordBatch) -> pa.RecordBatch:
        batch = fitted(batch, source.schema)
        kept = batch if condition is None else batch.filter(pa.array(condition.evaluate(batch)))
        arrays = [kept.column(plain[name]) if name in plain else values[name].values(kept) for name, _ in columns]
        return pa.record_batch(arrays, schema=schema)

    return source.mapped(schema, change, plain)


# -- on Spark, where this is Spark's own work ------------------------------------------------------------------------


def prepared_in_spark(data: Mapping[str, Any], rows: Rows, schemas: Mapping[str, pa.Schema]) -> Any:
    """The same of DataFrames with these columns."""
    df, schema = data[rows.name], schemas[rows.name]
    for view in rows.views:
        assert not isinstance(view, OverLines)  # lines are Arrow, wherever they come from
        if isinstance(view, Lookup):
            df, schema = looked_up_in_spark(df, view, prepared_in_spark(data, view.table, schemas)), view.schema
            continue
        if isinstance(view, Sessions):
            df, schema = in_sessions_on_spark(df, view), view.schema
            continue
        if view.where is not None:
            df = df.where(condition_in_spark(view.where, schema))
        df = df.selectExpr(*(f"{value_in_spark(text, schema)} AS {quoted(name)}" for name, text in view.columns))
        schema = view.schema
    if (condition := where_in_spark(rows, schema)) is not None:
        df = df.where(condition)
    if rows.columns is not None:
        renamed = [*((name, name) for name in rows.columns), *rows.renamed]
        df = df.selectExpr(*(f"{quoted(column)} AS {quoted(called)}" for called, column in renamed))
    return df


def where_in_spark(rows: Rows, schema: pa.Schema) -> str | None:
    """Which rows are taken, in Spark SQL; None: all."""
    return None if rows.where is None else condition_in_spark(rows.where, schema)


def condition_in_spark(text: str, schema: pa.Schema) -> str:
    """A condition in Spark SQL."""
    condition = expressions.bind_condition(text, schema, used_as="WHERE")
    if condition.spark_sql is None:
        raise InvalidInput(f"On Spark, WHERE cannot call your own function: {text}.")
    return condition.spark_sql


def value_in_spark(text: str, schema: pa.Schema) -> str:
    """A column or an expression in Spark SQL."""
    in_spark = expressions.bind_value(text, schema).spark_sql
    if in_spark is None:
        raise InvalidInput(f"On Spark, the SELECT list cannot call your own function: {text}.")
    return in_spark


def with_aggregates(source: Source, over: OverLines) -> Source:
    """The lines, which are all there, with the columns of the aggregates."""
    lines = whole_batch(pa.Table.from_batches(in_batches(source.batches), source.schema))
    clock = pa.array(np.zeros(len(lines), np.int64))
    given = pa.table([*lines.columns, clock], names=[*lines.schema.names, over.clock])
    groups = problem_of(over.query).start({LINES: read(given)}, over.query).collected()
    keys = pa.schema([lines.schema.field(name) for name in over.by])
    codes = GroupCodes(keys)
    # An answer begins with the end of its window, the columns of the groups, and the aggregates.
    columns = groups.columns[1 : len(over.by) + 1]
    of_group = codes.encode(whole_batch(pa.table(columns, schema=keys)))
    place = np.empty(len(codes), np.int64)
    place[of_group] = np.arange(len(of_group))
    added = whole_batch(groups.take(pa.array(place[codes.encode(lines)]))).columns[len(over.by) + 1 :]
    return read(pa.table([*lines.columns, *added], schema=over.schema))._replace(like=source.like)
