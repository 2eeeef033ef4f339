"""Several streams put together by time, as far as each of them has come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.engines.embedded.inputs import ready_until
from skyband.errors import InvalidInput
from skyband.operators.protocol import Codes, Ints

_BEFORE_ALL = -(2**63)
_ROWS_AT_ONCE = 1 << 18


def sorted_by(
    streams: Sequence[Iterator[pa.RecordBatch]], schema: pa.Schema, by: str
) -> Iterator[tuple[pa.RecordBatch, Codes]]:
    """The rows of streams that are all there, and the stream of each; of equal ones, the first stream's first."""
    tables = [pa.Table.from_batches(batches, schema) for batches in streams]
    stream = np.repeat(np.arange(len(tables), dtype=np.int32), [len(table) for table in tables])
    rows = pa.concat_tables(tables)
    numbered = rows.select([by]).append_column("row", pa.array(np.arange(len(rows))))
    order = pc.sort_indices(numbered, sort_keys=[(by, "ascending"), ("row", "ascending")])
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        some = order.slice(first, _ROWS_AT_ONCE)
        for batch in rows.take(some).combine_chunks().to_batches():
            yield batch, stream[some.to_numpy()]


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
            held[i], places[i] = batch, np.maximum.accumulate(np.maximum(_ticks(batch.column(by), by), reached[i]))
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


def _merged(
    held: dict[int, pa.RecordBatch], places: dict[int, Ints], ready: dict[int, int]
) -> tuple[pa.RecordBatch, Codes]:
    stream = np.concatenate([np.full(count, i, np.int32) for i, count in ready.items()])
    when = np.concatenate([places[i][:count] for i, count in ready.items()])
    order = np.lexsort((stream, when))
    rows = pa.concat_batches([held[i].slice(0, count) for i, count in ready.items()])
    return rows.take(pa.array(order)), stream[order]


def _ticks(column: pa.Array, by: str) -> Ints:
    """The column in whole numbers; null is before all, and stays where it came."""
    if pa.types.is_timestamp(column.type):
        column = column.view(pa.int64())
    elif not pa.types.is_integer(column.type):
        raise InvalidInput(
            f"Streams are put together by a timestamp or a whole number, but column {by!r} is {column.type}."
        )
    ticks: Ints = pc.fill_null(column.cast(pa.int64()), _BEFORE_ALL).to_numpy(zero_copy_only=False)
    return ticks
