"""Top-k across several inputs in this process: it merges their rows by time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from skyband.core.encoding.inputs import HeldRows, Source, common, in_batches, read
from skyband.core.encoding.output import free_name
from skyband.core.encoding.schemas import cast_batch, common_type, plain_schema
from skyband.core.operator import Codes
from skyband.core.problem import Running
from skyband.core.query import replace_unchecked
from skyband.engines.embedded.merging import in_turn
from skyband.engines.embedded.running import check_order, ordered, started
from skyband.errors import InvalidInput, InvalidQuery
from skyband.problems.across.query import TopKAcross
from skyband.problems.across.session import AcrossSession
from skyband.windows import Window


def start(data: Mapping[str, Any], query: TopKAcross) -> Running:
    """Run `query` over several streams. `data` maps their names to their rows."""
    by = query.window.on or query.window.order
    if by is None:
        raise InvalidQuery(
            "In a window of arrivals over several streams, the order of arrival is unknown. Name the column that "
            "defines it, as in sliding(1000, order='seq'), or give one stream in which a column names the source "
            "(stream=)."
        )
    query, sources = _with_one_value(query, [read(data[name]) for name in query.streams])
    schema = _common_schema(sources, query)
    session = query.open(schema)
    check_order(query.window, schema)
    sources = [source.mapped(schema, partial(cast_batch, schema=schema)) for source in sources]
    is_whole = all(source.is_whole for source in sources)
    return started(session, _answers(session, sources, by), is_whole, common([source.like for source in sources]))


def _with_one_value(query: TopKAcross, sources: list[Source]) -> tuple[TopKAcross, list[Source]]:
    """If streams have their values in columns of different names, rename these columns and change the query."""
    if isinstance(query.value, str):
        return query, sources
    called = free_name("value", set(query.columns(())))
    found = []
    for name, value, source in zip(query.streams, query.values, sources, strict=True):
        query.check_columns(source.schema.names, name)
        read_columns = query.columns(())
        fields = [*map(source.schema.field, read_columns), source.schema.field(value).with_name(called)]
        schema = pa.schema(fields)
        found.append(source.mapped(schema, partial(_renamed, columns=[*read_columns, value], schema=schema)))
    return replace_unchecked(query, value=called), found


def _renamed(batch: pa.RecordBatch, columns: list[str], schema: pa.Schema) -> pa.RecordBatch:
    return pa.record_batch([batch.column(name) for name in columns], schema=schema)


def _common_schema(sources: list[Source], query: TopKAcross) -> pa.Schema:
    """The columns that the query reads, in types that hold the values of every stream."""
    fields = []
    for source in sources:
        query.check_columns(source.schema.names)
    plain = [plain_schema(source.schema) for source in sources]
    for column in query.columns(query.values):
        types = {name: schema.field(column).type for name, schema in zip(query.streams, plain, strict=True)}
        found = common_type(types.values())
        if found is None:
            said = ", ".join(f"{kind} in {name!r}" for name, kind in types.items())
            raise InvalidInput(f"Column {column!r} has no type that can hold the values of all streams: it is {said}.")
        fields.append(plain[0].field(column).with_type(found))
    return pa.schema(fields)


def _answers(session: AcrossSession, sources: list[Source], by: str) -> Iterator[pa.Table]:
    window = session.query.window
    is_whole = all(source.is_whole for source in sources)
    session.in_order = is_whole and window.on is not None
    together = _sorted(sources, window) if is_whole else in_turn([iter(ordered(one, window)) for one in sources], by)
    for batch, stream in together:
        yield session.push_merged(batch, stream)
    yield session.finish()


def _sorted(sources: list[Source], window: Window) -> Iterator[tuple[pa.RecordBatch, Codes]]:
    """Sort the rows of whole streams by time; yields batches and the stream of each row. At equal times, the rows of
    the first stream come first."""
    schema = sources[0].schema
    number = pa.field(free_name("stream", set(schema.names)), pa.int32())
    rows = (
        batch.append_column(number, pa.array(np.full(batch.num_rows, stream, np.int32)))
        for stream, source in enumerate(sources)
        for batch in in_batches(source.batches)
    )
    for batch in ordered(Source(schema.append(number), HeldRows(rows), is_whole=True), window):
        yield batch.select(schema.names), batch.column(number.name).to_numpy()
