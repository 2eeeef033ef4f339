"""Rows from whatever a user has: Arrow tables, data frames, readers, iterators. One loop runs any session over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, tee
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.errors import InvalidInput
from skyband.operators.protocol import Ints


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


class Running(NamedTuple):
    """A session, and what it says of its input: a table for each time that rows are pushed."""

    session: Any
    answers: Iterator[pa.Table]
    is_whole: bool

    def collected(self) -> pa.Table | pa.RecordBatchReader:
        """All of it: a table for a table, a reader for a reader or an iterator of batches."""
        batches = (batch for answer in self.answers for batch in answer.to_batches())
        return collect(self.is_whole, self.session.output_schema, batches)


class _Seen(NamedTuple):
    """What one of several queries gives out."""

    output_schema: pa.Schema


def apart(together: Running, queries: int) -> list[Running]:
    """The answers of a session to each of its queries, whose number is the first column."""
    seen = _Seen(together.session.output_schema.remove(0))
    copies = tee(together.answers, queries)
    return [Running(seen, _of_question(i, copy), together.is_whole) for i, copy in enumerate(copies)]


def _of_question(number: int, answers: Iterator[pa.Table]) -> Iterator[pa.Table]:
    for answer in answers:
        yield answer.filter(pc.equal(answer.column(0), number)).remove_column(0)


def run(data: Any, open_session: Callable[[pa.Schema], TakesRows]) -> Running:
    """A session's answers over Arrow data."""
    source = read(data)
    session = open_session(source.schema)
    return Running(session, _answers(session, source.batches), source.is_whole)


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


def ready_until(places: Ints, i: int, bound: tuple[int, int] | None) -> int:
    """How many rows of stream i come before all that is still to come, of streams that are put together by time.

    `places` are the largest times so far; `bound` is that of the stream that is furthest behind, and its number.
    """
    if bound is None:
        return len(places)
    time, first = bound
    return int(np.searchsorted(places, time, side="right" if i <= first else "left"))


def _answers(session: TakesRows, batches: Iterable[pa.RecordBatch | pa.Table]) -> Iterator[pa.Table]:
    for batch in batches:
        yield session.push(batch)
    yield session.finish()
