"""Statements on Spark: what is done to single rows, before and after the query, is Spark's own work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from skyband.core.registry import problem_of
from skyband.dialect.query_spec import ONLY, QuerySpec
from skyband.sql.answers import Shower, projected
from skyband.sql.inputs import Inputs
from skyband.sql.rows import prepared_in_spark, where_in_spark


def run_on_spark(spec: QuerySpec, inputs: Inputs) -> Any:
    """The answer to a query, as a DataFrame."""
    queries: Any = spec.queries
    if queries is not None:
        queries = prepared_in_spark(inputs.data, queries, inputs.schemas)
    return Shower(spec)(problem_of(spec.query).run_on_spark(rows_in_spark(spec, inputs), spec.query, queries))


def rows_in_spark(spec: QuerySpec, inputs: Inputs) -> Any:
    """The rows that the query is about: one DataFrame, or one for each name."""
    ready = {name: prepared_in_spark(inputs.data, rows, inputs.schemas) for name, rows in spec.rows.items()}
    return ready.get(ONLY, ready)


def multi_query(specs: Mapping[str, QuerySpec], stream: str, data: Mapping[str, Any]) -> Any:
    """Statements about one Spark stream, and tables beside it, by name, in one pass over it."""
    from skyband.engines.spark import schema_of, sharing

    data = {name.lower(): df for name, df in data.items()}
    schemas = {name: schema_of(df) for name, df in data.items()}
    queries = {}
    for name, one in specs.items():
        given = {called: rows.name.lower() for called, rows in one.rows.items()}
        (called,) = (called for called, name in given.items() if name == stream.lower())
        rows = one.rows[called]
        assert not rows.renamed
        assert not rows.views
        tables = {
            other: prepared_in_spark(data, replace(its, name=given[other]), schemas)
            for other, its in one.rows.items()
            if other != called
        }
        where = where_in_spark(rows, schemas[given[called]])
        queries[name] = sharing.SharedQuery(one.query, where, rows.columns, called, tables)
    shared = sharing.multi_query(data[stream.lower()], queries)
    answers = {name: partial(_then, shared.answers[name], Shower(one)) for name, one in specs.items()}
    tables = {name: partial(_then, shared.tables[name], partial(projected, spec=one)) for name, one in specs.items()}
    return shared._replace(answers=answers, tables=tables)


def _then(first: Callable[[Any], Any], second: Callable[[Any], Any], value: Any) -> Any:
    return second(first(value))
