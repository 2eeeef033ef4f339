"""Sessions: rows between which there is no pause longer than a gap. A session ends a gap after its last row.

Rows wait until their session has ended: until a row has come that lies further than that behind it. A row is late if it
continues no session that is open, and its own would have ended.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
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
from skyband.kernels.sessions import LATE, into_sessions
from skyband.windows import NEVER

Ints = npt.NDArray[np.int64]


def in_sessions(source: Source, asked: Sessions) -> Source:
    """The rows with their sessions, in the order in which these end; of a stream, as they end."""
    if source.is_whole:
        rows = whole_batch(pa.Table.from_batches(in_batches(source.batches), source.schema))
        return source._replace(schema=asked.schema, batches=HeldRows([_all_at_once(rows, asked)]))
    return source._replace(schema=asked.schema, batches=_as_they_end(source, asked))


def _times(rows: pa.RecordBatch, asked: Sessions) -> Ints:
    """When each row was, in the unit of its column; NEVER where that is null."""
    column = rows.column(asked.on)
    column = column.view(pa.int64()) if pa.types.is_timestamp(column.type) else column.cast(pa.int64())
    return pc.fill_null(column, NEVER).to_numpy()


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
    unknown = (start >= NEVER)[order]
    ticks = [pa.array(one[order], pa.int64(), mask=unknown) for one in (start, end)]
    kind = asked.schema.field(asked.on).type
    bounds = [one.view(kind) if pa.types.is_timestamp(kind) else one.cast(kind) for one in ticks]
    return pa.record_batch([*rows.take(pa.array(order)).columns, *bounds, ticks[1]], schema=asked.schema)


class _Open:
    """Rows of a stream whose sessions may go on: those that wait, and the bounds of their sessions."""

    def __init__(self, schema: pa.Schema, asked: Sessions) -> None:
        self._asked, self._codes = asked, _group_codes(schema, asked)
        self._rows = schema.empty_table()  # in the order in which they came
        self._session = np.empty(0, np.int64)  # of each
        self._first, self._last, self._group = (np.empty(0, np.int64) for _ in range(3))  # of each session
        self._now = -NEVER
        self.late = 0

    def push(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Take rows; returns those whose sessions have ended."""
        times, codes = _times(batch, self._asked), _codes(self._codes, batch)
        known, most = len(self._first), len(self._first) + len(batch)
        first, last, following, merged = (np.full(most, -1, np.int64) for _ in range(4))
        first[:known], last[:known] = self._first, self._last
        heads = np.full(max(1 + codes.max(initial=-1), 1 + self._group.max(initial=-1)), -1, np.int64)
        order = np.argsort(self._group, kind="stable")
        alike = self._group[order][1:] == self._group[order][:-1]
        following[order[:-1][alike]] = order[1:][alike]
        heads[self._group[order[::-1]]] = order[::-1]  # the first of each group is written last
        session = np.empty(len(batch), np.int64)
        self._now, count = into_sessions(
            times, codes, self._asked.gap, self._now, NEVER, heads, following, first, last, merged, session, known
        )
        self.late += int((session == LATE).sum())
        group = np.append(self._group, np.empty(most - known, np.int64))
        group[session[session >= 0]] = codes[session >= 0]
        taken = session != LATE
        self._rows = pa.concat_tables([self._rows, pa.Table.from_batches([batch]).filter(pa.array(taken))])
        self._session = np.append(self._session, session[taken])
        while (gone := (self._session >= 0) & (merged[self._session] >= 0)).any():
            self._session[gone] = merged[self._session[gone]]
        self._first, self._last, self._group = first[:count], last[:count], group[:count]
        return self._given_out((merged[:count] < 0) & (self._last + self._asked.gap < self._now))

    def finish(self) -> pa.RecordBatch:
        """All rows that are left."""
        return self._given_out(np.ones(len(self._first), np.bool_))

    def _given_out(self, ended: npt.NDArray[np.bool_]) -> pa.RecordBatch:
        """The rows of these sessions, and those of no known time. The others stay, in sessions by new numbers."""
        start, end = (np.append(one, NEVER)[self._session] for one in (self._first, self._last))
        goes = np.append(ended, True)[self._session]
        given = whole_batch(self._rows.filter(pa.array(goes)))
        shown = _with_bounds(given, start[goes], end[goes] + self._asked.gap, self._asked)
        self._rows = self._rows.filter(pa.array(~goes)).combine_chunks()
        left, self._session = np.unique(self._session[~goes], return_inverse=True)
        self._first, self._last, self._group = self._first[left], self._last[left], self._group[left]
        return shown


def _as_they_end(source: Source, asked: Sessions) -> Iterator[pa.RecordBatch]:
    rows = _Open(source.schema, asked)
    for given in in_batches(source.batches):
        yield rows.push(fitted(given, source.schema))
    if rows.late:
        warnings.warn(
            f"{rows.late:,} rows came after their sessions had ended, and were dropped.", LateRows, stacklevel=2
        )
    yield rows.finish()


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
