"""Rows from whatever a user has: Arrow tables, data frames, readers, iterators. One loop runs any session over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from skyband.errors import InvalidInput


class Source(NamedTuple):
    """Batches of rows, and their columns."""

    schema: pa.Schema
    batches: Iterable[pa.RecordBatch | pa.Table]
    is_whole: bool  # all rows are there, as in a table; of a reader or an iterator some may be still to come


class TakesRows(Protocol):
    """What `run` needs of a session."""

    @property
    def output_schema(self) -> pa.Schema: ...

    def push(self, rows: pa.RecordBatch | pa.Table) -> pa.Table: ...

    def finish(self) -> pa.Table: ...


def run(data: Any, open_session: Callable[[pa.Schema], TakesRows]) -> pa.Table | pa.RecordBatchReader:
    """A session's answers over Arrow data: a table for a table, a reader for a reader or an iterator of batches."""
    source = read(data)
    session = open_session(source.schema)
    return collect(source.is_whole, session.output_schema, _answers(session, source.batches))


def collect(is_whole: bool, schema: pa.Schema, answers: Iterator[pa.RecordBatch]) -> pa.Table | pa.RecordBatchReader:
    """The answers in the family of what was asked of."""
    if is_whole:
        return pa.Table.from_batches(answers, schema)
    return pa.RecordBatchReader.from_batches(schema, answers)


def read(data: Any) -> Source:
    """The rows of `data`, none of which is read yet; of an iterator the first batch is, for its columns."""
    if isinstance(data, Source):
        return data
    if isinstance(data, pa.Table):
        return Source(data.schema, data.to_batches(), is_whole=True)
    if isinstance(data, pa.RecordBatch):
        return Source(data.schema, [data], is_whole=True)
    if isinstance(data, pa.RecordBatchReader):
        return Source(data.schema, data, is_whole=False)
    if hasattr(data, "__arrow_c_stream__"):
        try:
            reader = pa.RecordBatchReader.from_stream(data)
        except pa.ArrowException as error:
            raise InvalidInput(f"Cannot read this {type(data).__name__} as Arrow data: {error}") from error
        return Source(reader.schema, reader, is_whole=True)
    if isinstance(data, Iterator):
        return _read_iterator(data)
    raise InvalidInput(
        f"Cannot read rows from {type(data).__name__}. Possible: a pyarrow Table or RecordBatchReader, a pandas or "
        "polars DataFrame (anything with the Arrow C stream interface), an iterator of record batches, or a Spark "
        "DataFrame."
    )


def _read_iterator(batches: Iterator[Any]) -> Source:
    first = next(batches, None)
    if first is None:
        raise InvalidInput(
            "The iterator gave no batch, so the columns are unknown. Use a RecordBatchReader, which has a schema."
        )
    if not isinstance(first, (pa.RecordBatch, pa.Table)):
        raise InvalidInput(f"The iterator must give pyarrow record batches, got {type(first).__name__}.")
    return Source(first.schema, chain([first], batches), is_whole=False)


def _answers(session: TakesRows, batches: Iterable[pa.RecordBatch | pa.Table]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from session.push(batch).to_batches()
    yield from session.finish().to_batches()
