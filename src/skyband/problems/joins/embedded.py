"""Aggregates over joins of Arrow data, in this process: whole inputs, merged by time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.core.encoding.frames import common
from skyband.core.encoding.inputs import Source, in_batches
from skyband.core.encoding.inputs import read as read_rows
from skyband.core.encoding.schemas import cast_batch, common_type, plain_schema
from skyband.core.operator import Ints
from skyband.core.session import Arrivals
from skyband.engines.embedded.merging import ready_until
from skyband.engines.embedded.ordering import check_order, ordered
from skyband.engines.embedded.running import Running, started
from skyband.errors import InvalidInput
from skyband.problems.joins.operator import Rows
from skyband.problems.joins.query import JoinAggregate
from skyband.problems.joins.session import JoinSession


def join_aggregate(data: Mapping[str, Any], query: JoinAggregate) -> Any:
    """The answers of `query` over Arrow data, by the names of its inputs.

    With a slide, windows close when the slowest stream has reached their end. With each arrival, rows arrive in the
    order of their times, and of equal times in the order of the inputs.
    """
    return start(data, query).answer()


def start(data: Mapping[str, Any], query: JoinAggregate) -> Running:
    """The same, as it runs."""
    if not isinstance(data, Mapping) or set(data) != set(query.names):
        given = ", ".join(map(str, data)) if isinstance(data, Mapping) else type(data).__name__
        raise InvalidInput(f"Give the rows of each input by its name: {', '.join(query.names)}; got {given}.")
    sources = _of_one_time({name: read_rows(data[name]) for name in query.names}, query)
    session = query.open({name: source.schema for name, source in sources.items()})
    for name, stream in query.streams:
        check_order(stream.window, sources[name].schema)
    is_whole = all(source.is_whole for source in sources.values())
    like = common([source.like for source in sources.values()])
    return started(session, _answers(session, sources), is_whole, like)


def _of_one_time(sources: dict[str, Source], query: JoinAggregate) -> dict[str, Source]:
    """The sources in columns of which rows can be gathered, with times in the finest unit that one of them has."""
    plain = {name: source.plain() if source.is_whole else source for name, source in sources.items()}
    times = {name: given.window.on for name, given in query.streams}
    types = {
        plain_schema(plain[name].schema).field(on).type
        for name, on in times.items()
        if on is not None and on in plain[name].schema.names
    }
    finest = common_type(types) if len(types) > 1 else None
    if finest is None or not pa.types.is_timestamp(finest):
        return plain
    for name, on in times.items():
        schema = plain_schema(plain[name].schema)
        schema = schema.set(schema.get_field_index(on), schema.field(on).with_type(finest))
        plain[name] = plain[name].mapped(schema, partial(cast_batch, schema=schema))
    return plain


def _answers(session: JoinSession, sources: Mapping[str, Source]) -> Iterator[pa.Table]:
    streams = [name for name, _ in session.query.streams]
    for name, source in sources.items():
        if name not in streams:
            for batch in in_batches(source.batches):
                session.push(batch, name)
    merge = _by_arrival if len(streams) > 1 and session.query.every is None else _by_watermark
    yield from merge(
        session, {name: iter(ordered(sources[name], given.window)) for name, given in session.query.streams}
    )
    yield session.finish()


def _by_watermark(session: JoinSession, streams: dict[str, Iterator[Any]]) -> Iterator[pa.Table]:
    """Always a batch of the stream that is furthest behind, so that as few rows as possible wait for the others."""
    reached = dict.fromkeys(streams, -np.inf)
    while reached:
        name = min(reached, key=lambda each: reached[each])
        batch = next(streams[name], None)
        if batch is None:
            del reached[name]
            continue
        on = dict(session.query.streams)[name].window.on
        if on is not None and batch.num_rows:
            latest = pc.max(batch.column(on)).cast(pa.int64()).as_py()
            reached[name] = max(reached[name], -np.inf if latest is None else latest)
        yield session.push(batch, name)
        if len(reached) < len(streams) and min(reached.values()) > -np.inf:
            # A stream that is over is not waited for.
            yield session.advance(int(min(reached.values())) - session.lateness)


def _by_arrival(session: JoinSession, streams: dict[str, Iterator[Any]]) -> Iterator[pa.Table]:
    """Rows of all streams in the order of their times; a row that is late arrives right after the one before it."""
    held: dict[int, Rows] = {}
    places: dict[int, Ints] = {}  # of held rows: the largest time of their stream so far
    open_streams = {session.query.names.index(name): batches for name, batches in streams.items()}
    reached = dict.fromkeys(open_streams, -(2**62))
    read: list[Arrivals] = []
    while open_streams or any(len(rows.time) for rows in held.values()):
        for i in [i for i in open_streams if i not in held or not len(held[i].time)]:
            batch = next((each for each in open_streams[i] if each.num_rows), None)
            if batch is None:
                del open_streams[i]
                continue
            read.append(session.read(batch, session.query.names[i]))
            held[i] = read[-1].numbers.rows[i]
            places[i] = np.maximum.accumulate(np.maximum(held[i].time, reached[i]))
            reached[i] = int(places[i][-1]) if len(places[i]) else reached[i]
        if not held or any(not len(held[i].time) for i in open_streams):
            continue
        # Rows up to here cannot be preceded by any that is still to come.
        bound = min(((reached[i], i) for i in open_streams), default=None)
        ready = {i: ready_until(places[i], i, bound) for i in held}
        order = np.concatenate([np.full(n, i) for i, n in ready.items()])
        when = np.concatenate([places[i][:n] for i, n in ready.items()])
        rows = {i: held[i].part(slice(0, n)) for i, n in ready.items()}
        held = {i: held[i].part(slice(ready[i], None)) for i in held}
        places = {i: places[i][ready[i] :] for i in held}
        yield session.push_rows(rows, order[np.lexsort((order, when))].astype(np.int32), read)
        read = []
