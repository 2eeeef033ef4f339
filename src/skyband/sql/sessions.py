"""Sessions: rows between which there is no pause longer than a gap. A session ends a gap after its last row.

Rows wait until their session has ended: until a row has come that lies further than that behind it. A row is late if it
continues no session that is open, and its own would have ended.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyband.core.encoding.groups import GroupCodes
from skyband.core.encoding.inputs import HeldRows, Source, in_batches
from skyband.core.encoding.schemas import fitted, whole_batch
from skyband.dialect.query_spec import Sessions
from skyband.dialect.reading import quoted
from skyband.errors import InvalidInput, LateRows
from skyband.expressions.time_functions import micros_in_spark
from skyband.expressions.units import UNITS
from skyband.windows import FOREVER

Ints = npt.NDArray[np.int64]


def in_sessions(source: Source, asked: Sessions) -> Source:
    """The rows with their sessions, in the order in which these end; of a stream, as they end."""
    if source.is_whole:
        rows = whole_batch(pa.Table.from_batches(in_batches(source.batches), source.schema))
        return source._replace(schema=asked.schema, batches=HeldRows([_all_at_once(rows, asked)]))
    return source._replace(schema=asked.schema, batches=_as_they_end(source, asked))


def _times(rows: pa.RecordBatch, asked: Sessions) -> Ints:
    """When each row was, in the unit of its column; FOREVER where that is null."""
    column = rows.column(asked.on)
    column = column.view(pa.int64()) if pa.types.is_timestamp(column.type) else column.cast(pa.int64())
    return pc.fill_null(column, FOREVER).to_numpy()


def _codes(codes: GroupCodes | None, rows: pa.RecordBatch) -> npt.NDArray[np.int32]:
    return np.zeros(len(rows), np.int32) if codes is None else codes.encode(rows)


def _group_codes(schema: pa.Schema, asked: Sessions) -> GroupCodes | None:
    return GroupCodes(pa.schema([schema.field(name) for name in asked.by])) if asked.by else None


def _all_at_once(rows: pa.RecordBatch, asked: Sessions) -> pa.RecordBatch:
    time, code = _times(rows, asked), _codes(_group_codes(rows.schema, asked), rows)
    order = np.lexsort((time, code))
    time, code = time[order], code[order]
    begins = np.ones(len(rows), np.bool_)
    begins[1:] = (code[1:] != code[:-1]) | (time[1:] - time[:-1] > asked.gap)
    session = np.cumsum(begins) - 1
    first, last = time[begins], time[np.append(np.flatnonzero(begins)[1:] - 1, len(rows) - 1)] if len(rows) else time
    start, end = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    start[order], end[order] = first[session], last[session] + asked.gap
    return _with_bounds(rows, start, end, asked)


def _with_bounds(rows: pa.RecordBatch, start: Ints, end: Ints, asked: Sessions) -> pa.RecordBatch:
    """The rows with the bounds of their sessions, in the order of their ends."""
    order = np.argsort(end, kind="stable")
    unknown = (start >= FOREVER)[order]
    ticks = [pa.array(one[order], pa.int64(), mask=unknown) for one in (start, end)]
    kind = asked.schema.field(asked.on).type
    bounds = [one.view(kind) if pa.types.is_timestamp(kind) else one.cast(kind) for one in ticks]
    return pa.record_batch([*rows.take(pa.array(order)).columns, *bounds, ticks[1]], schema=asked.schema)


@dataclass
class _Session:
    first: int
    last: int
    rows: list[int] = field(default_factory=list)


def _as_they_end(source: Source, asked: Sessions) -> Iterator[pa.RecordBatch]:
    codes, now, late = _group_codes(source.schema, asked), -FOREVER, 0
    held = source.schema.empty_table()
    open_: dict[int, list[_Session]] = {}
    for given in in_batches(source.batches):
        batch = fitted(given, source.schema)
        times, of = _times(batch, asked).tolist(), _codes(codes, batch).tolist()
        unknown = []
        for row, (time, code) in enumerate(zip(times, of, strict=True), start=len(held)):
            if time >= FOREVER:
                unknown.append(row)
                continue
            late += not _come(open_.setdefault(code, []), _Session(time, time, [row]), asked.gap, now)
            now = max(now, time)
        held = pa.concat_tables([held, pa.Table.from_batches([batch])])
        ended = [one for some in open_.values() for one in some if one.last + asked.gap < now]
        open_ = {
            code: left for code, some in open_.items() if (left := [one for one in some if one.last + asked.gap >= now])
        }
        yield _given_out(held, [*ended, *([_Session(FOREVER, FOREVER, unknown)] if unknown else [])], asked)
        held = _kept(held, open_)
    if late:
        warnings.warn(f"{late:,} rows came after their sessions had ended, and were dropped.", LateRows, stacklevel=2)
    yield _given_out(held, [one for some in open_.values() for one in some], asked)


def _come(mine: list[_Session], new: _Session, gap: int, now: int) -> bool:
    """A row becomes part of the sessions that it touches, which become one; False: it is late."""
    touched = [one for one in mine if one.last + gap >= max(now, new.first) and new.first + gap >= one.first]
    if not touched and new.first + gap < now:
        return False
    for one in touched:
        mine.remove(one)
        new = _Session(min(one.first, new.first), max(one.last, new.last), one.rows + new.rows)
    mine.append(new)
    return True


def _given_out(held: pa.Table, ended: list[_Session], asked: Sessions) -> pa.RecordBatch:
    rows = [row for one in ended for row in one.rows]
    counts = [len(one.rows) for one in ended]
    start = np.repeat(np.array([one.first for one in ended], np.int64), counts)
    end = np.repeat(np.array([one.last for one in ended], np.int64), counts) + asked.gap
    taken = whole_batch(held.take(pa.array(rows, pa.int64())))
    return _with_bounds(taken, start, end, asked)


def _kept(held: pa.Table, sessions: dict[int, list[_Session]]) -> pa.Table:
    """The rows of these sessions alone, by new numbers."""
    rows = sorted(row for some in sessions.values() for one in some for row in one.rows)
    number = dict(zip(rows, range(len(rows)), strict=True))
    for some in sessions.values():
        for one in some:
            one.rows = [number[row] for row in one.rows]
    return held.take(pa.array(rows, pa.int64())).combine_chunks()


# -- on Spark ----------------------------------------------------------------------------------------------------------

_BEGINS, _SESSION = "__skyband_begins", "__skyband_session"


def in_sessions_on_spark(df: Any, asked: Sessions) -> Any:
    """The same of a batch DataFrame, by Spark's own window functions."""
    if df.isStreaming:
        raise InvalidInput(
            "Sessions of a stream on Spark are not supported. Group with Spark's own session_window(), or give the "
            "statement a table."
        )
    *_, start, end, clock = map(quoted, asked.schema.names)
    kind, on, by = asked.schema.field(asked.on).type, quoted(asked.on), ", ".join(map(quoted, asked.by)) or "NULL"
    gap, of_time = str(asked.gap), pa.types.is_timestamp(kind)
    if of_time:
        gap = f"INTERVAL '0.000001' SECOND * {asked.gap * 1_000_000 // UNITS[kind.unit]}"
    before = f"LAG({on}) OVER (PARTITION BY {by} ORDER BY {on})"
    df = df.selectExpr("*", f"CASE WHEN {on} - {before} <= {gap} THEN 0 ELSE 1 END AS {_BEGINS}")
    df = df.selectExpr("*", f"SUM({_BEGINS}) OVER (PARTITION BY {by} ORDER BY {on}) AS {_SESSION}")
    mine = f"OVER (PARTITION BY {by}, {_SESSION})"
    df = df.selectExpr("*", f"MIN({on}) {mine} AS {start}", f"MAX({on}) {mine} + {gap} AS {end}")
    ended = micros_in_spark(end, kind) if of_time else f"CAST({end} AS BIGINT)"
    return df.selectExpr("*", f"{ended} AS {clock}").drop(_BEGINS, _SESSION)
