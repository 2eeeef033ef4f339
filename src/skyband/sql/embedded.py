"""Statements in this process: from the rows of their inputs to answers of the same kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from skyband.core.encoding.inputs import Source, in_batches
from skyband.core.problem import Running
from skyband.core.registry import problem_of
from skyband.dialect.query_spec import ONLY, QuerySpec
from skyband.errors import InvalidInput
from skyband.sql.answers import projected
from skyband.sql.rows import prepared, reread, rereadable


def start_embedded(spec: QuerySpec, sources: Mapping[str, Source]) -> Running:
    """Begin a query; nothing is read until its answers are taken, but for a table of subscriptions."""
    sources = rereadable(sources, spec.rows.values())
    ready: dict[str, Any] = {name: prepared(sources, rows) for name, rows in spec.rows.items()}
    if spec.queries is not None:
        spec = spec.of(_queries(spec, prepared(sources, spec.queries)))
    return problem_of(spec.query).start(ready.get(ONLY, ready), spec.query)


def answer_of(running: Running, spec: QuerySpec) -> Any:
    """The answer with the columns that are shown of it, in the kind of the rows."""
    if spec.then is None or running.is_whole:
        return running.like.give(projected(running.collected(), spec))
    schema = projected(running.session.output_schema.empty_table(), spec).schema
    answers = (projected(answer, spec) for answer in running.answers)
    return pa.RecordBatchReader.from_batches(schema, (batch for answer in answers for batch in answer.to_batches()))


def with_queries(spec: QuerySpec, sources: Mapping[str, Source]) -> tuple[QuerySpec, Mapping[str, Source]]:
    """The same of the queries there are, where these are a table: what suits them depends on how many they are."""
    if spec.queries is None or not sources[spec.queries.name].is_whole:
        return spec, sources
    queries = reread(sources[spec.queries.name], spec.queries.name)
    sources = {**sources, spec.queries.name: queries}
    return spec.of(_queries(spec, prepared(sources, spec.queries))), sources


def _queries(spec: QuerySpec, source: Source) -> pa.Table:
    """The table of subscriptions; raises if two of its rows have the same key, in the words of a statement."""
    queries = pa.Table.from_batches(in_batches(source.batches), source.schema)
    names = list(problem_of(spec.query).groups(spec.query))
    try:
        differ = len(queries.group_by(names).aggregate([])) == len(queries)
    except pa.ArrowException:  # it is of no type that can be a key, as the query says itself
        return queries
    if not differ:
        called, columns = spec.queries.name if spec.queries else "", ", ".join(names)
        raise InvalidInput(
            f"Two rows of {called!r} have the same {columns}. Here each row of {called!r} asks for a ranking of its "
            f"own, and LIMIT … BY names the columns that tell them apart. For one ranking for each {columns} of the "
            f"rows of a join, write JOIN {called} ON …."
        )
    return queries
