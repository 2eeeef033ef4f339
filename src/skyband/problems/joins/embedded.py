"""Aggregates over joins in this process: it merges the inputs' rows by time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.core.encoding.inputs import Source, common, in_batches
from skyband.core.encoding.inputs import read as read_rows
from skyband.core.encoding.schemas import cast_batch, common_type, plain_schema
from skyband.core.operator import Ints
from skyband.core.problem import Running
from skyband.core.session import Arrivals
from skyband.engines.embedded.merging import places_of, ready_until
from skyband.engines.embedded.running import check_order, ordered, started
from skyband.errors import InvalidInput, InvalidQuery
from skyband.problems.joins.query import JoinAggregate
from skyband.problems.joins.reading import Read
from skyband.problems.joins.session import JoinSession
from skyband.windows import Window


def start(data: Mapping[str, Any], query: JoinAggregate) -> Running:
    """Run `query` over inputs. `data` maps their names to their rows.

    With a slide, windows by value close when the slowest stream has reached their end. Without one, rows arrive in
    order of time, and at equal times in the order of the inputs. In windows of arrivals, rows arrive in order of the
    columns that the windows name (`order=`).
    """
    if not isinstance(data, Mapping) or set(data) != set(query.names):
        given = ", ".join(map(str, data)) if isinstance(data, Mapping) else type(data).__name__
        raise InvalidInput(f"Give the rows of each input by its name: {', '.join(query.names)}; got {given}.")
    _check_named(query)
    sources = _of_one_time({name: read_rows(data[name]) for name in query.names}, query)
    session = query.open({name: source.schema for name, source in sources.items()})
    for name, stream in query.streams:
        check_order(stream.window, sources[name].schema)
    is_whole = all(source.is_whole for source in sources.values())
    like = common([source.like for source in sources.values()])
    return started(session, _answers(session, sources), is_whole, like)


def _check_named(query: JoinAggregate) -> None:
    """Raise if windows of arrivals of several streams name no column that orders the rows."""
    for name, stream in query.streams:
        if len(query.streams) > 1 and _merged_by(stream.window) is None:
            raise InvalidQuery(
                f"The windows of {', '.join(name for name, _ in query.streams)} count arrivals, but the order of their "
                "rows is unknown. Name the column that defines it, as in sliding(1000, "
                f"order='seq') for {name}; or push the rows to a session as they arrive."
            )


def _merged_by(window: Window) -> str | None:
    """The column by which rows of several streams are merged."""
    return window.on or window.order


def _of_one_time(sources: dict[str, Source], query: JoinAggregate) -> dict[str, Source]:
    """Convert the sources to plain types, and all times to the finest unit among the sources."""
    plain = {name: source.plain() if source.is_whole else source for name, source in sources.items()}
    times = {name: _merged_by(given.window) for name, given in query.streams}
    types = {
        plain_schema(plain[name].schema).field(on).type
        for name, on in times.items()
        if on is not None and on in plain[name].schema.names
    }
    finest = common_type(types) if len(types) > 1 else None
    if finest is None and len(types) > 1 and query.window.by_count:
        said = ", ".join(f"{name}.{by} is {plain[name].schema.field(by).type}" for name, by in times.items())
        raise InvalidInput(
            f"Skyband puts the rows of several streams in one order, but {said}: their order is unknown."
        )
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
    in_order = session.query.every is None or session.query.window.by_count
    merge = _by_arrival if len(streams) > 1 and in_order else _by_watermark
    yield from merge(
        session, {name: iter(ordered(sources[name], given.window)) for name, given in session.query.streams}
    )
    yield session.finish()


def _by_watermark(session: JoinSession, streams: dict[str, Iterator[Any]]) -> Iterator[pa.Table]:
    """Push the next batch of the stream that is furthest behind, so that few rows wait for other streams."""
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
            # Do not wait for a stream that has ended. This changes when an answer comes, not what it is.
            yield session.close_ahead(int(min(reached.values())) - session.lateness)


def _by_arrival(session: JoinSession, streams: dict[str, Iterator[Any]]) -> Iterator[pa.Table]:
    """Push the rows of all streams in order of time. A late row arrives right after the row before it in its stream.

    For windows of arrivals, the columns that the windows name take the place of times.
    """
    held: dict[int, Read] = {}
    places: dict[int, Ints] = {}  # for each held row: the largest time of its stream so far
    open_streams = {session.query.names.index(name): batches for name, batches in streams.items()}
    orders = {session.query.names.index(name): given.window.order for name, given in session.query.streams}
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
            order = orders[i]
            when = held[i].time if order is None else places_of(batch.column(order), order)
            places[i] = np.maximum.accumulate(np.maximum(when, reached[i]))
            reached[i] = int(places[i][-1]) if len(places[i]) else reached[i]
        if not held or any(not len(held[i].time) for i in open_streams):
            continue
        # No row that is still to come belongs before this bound.
        bound = min(((reached[i], i) for i in open_streams), default=None)
        ready = {i: ready_until(places[i], i, bound) for i in held}
        source = np.concatenate([np.full(n, i) for i, n in ready.items()])
        when = np.concatenate([places[i][:n] for i, n in ready.items()])
        rows = {i: held[i].part(slice(0, n)) for i, n in ready.items()}
        held = {i: held[i].part(slice(ready[i], None)) for i in held}
        places = {i: places[i][ready[i] :] for i in held}
        yield session.push_rows(rows, source[np.lexsort((source, when))].astype(np.int32), read)
        read = []
