"""The answer of a query right now, from sessions that a reader has opened from the state of its buckets.

A bucket knows the times of its own rows only, so buckets are not equally far. All are asked about one stretch of time.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa

from skyband.core.codec import Codec
from skyband.core.session import Session
from skyband.errors import InvalidQuery
from skyband.windows import Span, parse_span, span_ticks


def answers_now(codec: Codec[Any, Any], sessions: Sequence[Session], k: int | None, size: Span | None) -> pa.Table:
    """What all buckets show, one below the other: of the window that closes next or of the last `size`.

    `codec` is one of the query over the same rows.
    """
    if not codec.window.closes_by_value:
        return pa.concat_tables([session.top(k, size) for session in sessions])
    if size is None:
        return pa.concat_tables(_next_window(sessions, k))
    return pa.concat_tables(_last(codec, sessions, k, size))


def _next_window(sessions: Sequence[Session], k: int | None) -> list[pa.Table]:
    """Of the earliest one: a bucket whose own comes later has nothing to show in it."""
    ends = [session.next_held() for session in sessions]
    first = min((end for end in ends if end is not None), default=None)
    return [session.top(k) for session, end in zip(sessions, ends, strict=True) if end == first]


def _last(codec: Codec[Any, Any], sessions: Sequence[Session], k: int | None, size: Span) -> list[pa.Table]:
    """Up to the end of the slide that the latest row is in, from where some window begins: what is held of the rows
    between two such places answers for all of them only."""
    on, every = codec.query.window.on, codec.window.every
    ticks = span_ticks(parse_span(size, "size"), on, codec.on_type, "size")
    codec.check_question(k, ticks, size)
    if (ticks if codec.window.endless else codec.window.size - ticks) % every:
        raise InvalidQuery(
            f"size={size!r}: no window begins there. Possible: the size of the window, or whole slides less "
            f"({codec.query.window})."
        )
    latest = [session.latest() for session in sessions]
    known = [each for each in latest if each is not None]
    if not known:
        raise InvalidQuery(f"size={size!r}: {sessions[0].algorithm} answers for its whole window only.")
    end = (max(known) // every + 1) * every
    parts = [sessions[0].top(k).slice(0, 0)]  # the columns, if no bucket has rows
    for session, its in zip(sessions, latest, strict=True):
        reach = 0 if its is None else its + 1 - (end - ticks)
        if reach > 0:
            asked = timedelta(microseconds=reach) if pa.types.is_timestamp(codec.on_type) else reach
            parts.append(_called(session.top(k, asked), end - ticks, end))
    return parts


def _called(answer: pa.Table, start: int, end: int) -> pa.Table:
    """The answer under the bounds of the window that was asked for."""
    for name, value in (("window_start", start), ("window_end", end)):
        at = answer.schema.get_field_index(name)
        column = pa.array([value] * answer.num_rows, pa.int64()).view(answer.schema.field(at).type)
        answer = answer.set_column(at, answer.schema.field(at), column)
    return answer
