"""Merges several streams by time, as far as each of them has been read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.core.encoding.times import ticks_of
from skyband.core.operator import Codes, Ints
from skyband.errors import InvalidInput

_BEFORE_ALL = -(2**63)


def in_turn(streams: Sequence[Iterator[pa.RecordBatch]], by: str) -> Iterator[tuple[pa.RecordBatch, Codes]]:
    """The rows of all streams by the column `by`, and the stream of each; of equal ones, the first stream's first.

    A row that comes after a later one of its own stream stays behind that one. Of each stream one batch is held: one
    that says nothing holds up the others, since its next row may be the next of all.
    """
    held: dict[int, pa.RecordBatch] = {}
    places: dict[int, Ints] = {}  # of held rows: the largest value of their stream so far
    waiting = dict(enumerate(streams))
    reached = dict.fromkeys(waiting, _BEFORE_ALL)
    while waiting or held:
        for i in [i for i in waiting if i not in held]:
            batch = next((each for each in waiting[i] if each.num_rows), None)
            if batch is None:
                del waiting[i]
                continue
            held[i], places[i] = batch, np.maximum.accumulate(np.maximum(places_of(batch.column(by), by), reached[i]))
            reached[i] = int(places[i][-1])
        # Rows up to here cannot be preceded by any that is still to come.
        bound = min(((reached[i], i) for i in waiting), default=None)
        ready = {i: count for i in held if (count := ready_until(places[i], i, bound))}
        if ready:
            yield _merged(held, places, ready)
        for i, count in ready.items():
            held[i], places[i] = held[i].slice(count), places[i][count:]
            if not len(places[i]):
                del held[i], places[i]


def ready_until(places: Ints, i: int, bound: tuple[int, int] | None) -> int:
    """How many rows of stream i come before all that is still to come, of streams that are put together by time.

    `places` are the largest times so far; `bound` is that of the stream that is furthest behind, and its number.
    """
    if bound is None:
        return len(places)
    time, first = bound
    return int(np.searchsorted(places, time, side="right" if i <= first else "left"))


def _merged(
    held: dict[int, pa.RecordBatch], places: dict[int, Ints], ready: dict[int, int]
) -> tuple[pa.RecordBatch, Codes]:
    stream = np.concatenate([np.full(count, i, np.int32) for i, count in ready.items()])
    when = np.concatenate([places[i][:count] for i, count in ready.items()])
    order = np.lexsort((stream, when))
    rows = pa.concat_batches([held[i].slice(0, count) for i, count in ready.items()])
    return rows.take(pa.array(order)), stream[order]


def places_of(column: pa.Array, by: str) -> Ints:
    """The column in whole numbers; null is before all, and stays where it came."""
    if not (pa.types.is_timestamp(column.type) or pa.types.is_integer(column.type)):
        raise InvalidInput(
            f"Skyband merges streams by a timestamp or a whole number, but column {by!r} is {column.type}."
        )
    places: Ints = pc.fill_null(ticks_of(column, by), _BEFORE_ALL).to_numpy(zero_copy_only=False)
    return places
