"""The loop that runs a session over rows, collects its answers, and warns about late rows."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from itertools import tee
from typing import Any, Final, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from skyband.core.encoding.frames import COUNTS, Like
from skyband.core.encoding.inputs import Source, read
from skyband.core.stats import Stats
from skyband.engines.embedded.ordering import check_order, ordered
from skyband.errors import LateRows
from skyband.windows import Window

_COUNTED: Final = ("rows_in", "rows_used", "rows_late", "rows_null_time", "rows_jumped", "rows_unranked")


class TakesRows(Protocol):
    """What `run` needs of a session."""

    in_order: bool  # it is told that rows come in the order of their times

    @property
    def query(self) -> Any: ...

    @property
    def rows_late(self) -> int: ...

    @property
    def output_schema(self) -> pa.Schema: ...

    def push(self, rows: pa.RecordBatch | pa.Table) -> pa.Table: ...

    def finish(self) -> pa.Table: ...

    def stats(self) -> Stats: ...


class Running(NamedTuple):
    """A session, and what it says of its input: a table for each time that rows are pushed."""

    session: Any
    answers: Iterator[pa.Table]
    is_whole: bool
    like: Like

    def collected(self) -> pa.Table | pa.RecordBatchReader:
        """All of it: a table for a table, a reader for a reader or an iterator of batches.

        The metadata of a table says what became of the rows. That of a reader has to be known before its rows are.
        """
        batches = (batch for answer in self.answers for batch in answer.to_batches())
        if not self.is_whole:
            return pa.RecordBatchReader.from_batches(self.session.output_schema, batches)
        table = pa.Table.from_batches(batches, self.session.output_schema)
        stats = self.session.stats()
        return table.replace_schema_metadata({COUNTS: json.dumps({name: getattr(stats, name) for name in _COUNTED})})

    def answer(self) -> Any:
        """All of it, in the kind of what was asked of."""
        return give(self.collected(), self.like)


def give(answer: pa.Table | pa.RecordBatchReader, like: Like) -> Any:
    """A table in the kind of what was asked of; a reader as it is."""
    return like.give(answer) if isinstance(answer, pa.Table) else answer


def run(data: Any, open_session: Callable[[pa.Schema], TakesRows], window: Window) -> Running:
    """A session's answers over a table or a stream, of which the window measures a column."""
    source = read(data)
    source = source.plain() if source.is_whole else source
    session = open_session(source.schema)
    check_order(window, source.schema)
    return started(session, _answers(session, source, window), source.is_whole, source.like)


def started(session: Any, answers: Iterator[pa.Table], is_whole: bool, like: Like) -> Running:
    """The answers of a session, with a word about rows that are late."""
    return Running(session, answers if is_whole else _watched(session, answers), is_whole, like)


def _answers(session: TakesRows, source: Source, window: Window) -> Iterator[pa.Table]:
    session.in_order = source.is_whole and window.on is not None
    for batch in ordered(source, window):
        yield session.push(batch)
    yield session.finish()


def _watched(session: TakesRows, answers: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same answers. Rows that are late are warned of when the first come, and at the end if more have come."""
    told = 0
    for answer in answers:
        if not told and session.rows_late:
            told = _warn(session)
        yield answer
    if session.rows_late > told:
        _warn(session)


def _warn(session: TakesRows) -> int:
    stats, query = session.stats(), session.query
    if query.window.every is None:
        advice = "Sort them by time, or give them as a table, which is put in order first."
    else:
        waits = "no lateness" if query.lateness is None else f"lateness={str(query.lateness)!r}"
        advice = f"Windows wait `lateness` for rows out of order ({waits} now): raise it."
    warnings.warn(
        f"{stats.rows_late:,} of {stats.rows_in:,} rows so far came after all windows that would hold them had "
        f"closed, and were dropped. {advice}",
        LateRows,
        stacklevel=2,
    )
    return stats.rows_late


class _Seen(NamedTuple):
    """What one of several queries gives out."""

    output_schema: pa.Schema
    stats: Callable[[], Stats]


def apart(together: Running, queries: int) -> list[Running]:
    """The answers of a session to each of its queries, whose number is the first column."""
    seen = _Seen(together.session.output_schema.remove(0), together.session.stats)
    copies = tee(together.answers, queries)
    return [together._replace(session=seen, answers=_of_question(number, copy)) for number, copy in enumerate(copies)]


def _of_question(number: int, answers: Iterator[pa.Table]) -> Iterator[pa.Table]:
    for answer in answers:
        yield answer.filter(pc.equal(answer.column(0), number)).remove_column(0)
