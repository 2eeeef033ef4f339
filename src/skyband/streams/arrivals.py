"""When rows arrive: in random order, now many and now few, or late.

These change a stream that exists, so they can be put around each other and around any generator:
`late(uneven(uniform(rows)), share=0.05, at_most=100)`. A reader is read once, as far as its rows are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from skyband.errors import InvalidInput, UnknownColumn
from skyband.streams.batches import BLOCK_ROWS, Ints, as_reader, blocks, check_count, check_number, evenly, first
from skyband.windows import Span, parse_span, span_ticks

# Random numbers of their own: which rows are late must not depend on the scores of a generator of the same seed.
_RESAMPLED: Final = (2,)
_UNEVEN: Final = (3,)
_LATE: Final = (4,)


def resampled(
    table: pa.Table, rows: int, *, column: str = "time", seed: int = 1, batch_rows: int = 1_000_000
) -> pa.RecordBatchReader:
    """`rows` rows of `table`, each drawn from all of them: a real data set as a stream in random order, of any length.

    `column` is new: 0, 1, 2, …. It takes the place of the table's column of that name, or else comes last.
    """
    if not table.num_rows:
        raise InvalidInput("resampled() draws from the rows of a table, but the table given has none.")
    check_count("rows", rows, at_least=0)
    source = table.combine_chunks()  # one chunk, from which rows are taken faster

    def at_times(drawn: pa.Table, time: Ints) -> pa.Table:
        field = pa.field(column, pa.int64())
        if column in drawn.schema.names:
            return drawn.set_column(_index(drawn.schema, column), field, pa.array(time))
        return drawn.append_column(field, pa.array(time))

    def made() -> Iterator[pa.RecordBatch]:
        for random, time in blocks(seed, purpose=_RESAMPLED):
            drawn = source.take(random.integers(source.num_rows, size=BLOCK_ROWS))
            yield from at_times(drawn, time).combine_chunks().to_batches()

    schema = at_times(source.slice(0, 0), np.empty(0, np.int64)).schema
    return as_reader(schema, first(made(), rows), seed, batch_rows)


def uneven(
    reader: pa.RecordBatchReader,
    *,
    column: str = "time",
    phase: int = 10_000,
    contrast: float = 10.0,
    seed: int = 1,
    batch_rows: int = 1_000_000,
) -> pa.RecordBatchReader:
    """The rows of `reader` with new times: busy and quiet phases in turn, each of about `phase` rows.

    A busy phase has `contrast` times as many rows in a unit of time as a quiet one; over both it is one row a unit.
    Within a phase arrivals are random (a Poisson process). The times are whole numbers from 0 on that never fall, and
    several rows may have the same. They take the place of the integer `column`, whose values are not looked at.
    """
    where = _index(reader.schema, column)
    if not pa.types.is_integer(reader.schema.field(where).type):
        raise InvalidInput(
            f"uneven() makes whole numbers, but column {column!r} is {reader.schema.field(where).type}. "
            "Give an integer column."
        )
    check_count("phase", phase, at_least=1)
    check_number("contrast", contrast, at_least=1)
    field = pa.field(column, pa.int64())
    quiet_gap = 2 * contrast / (1 + contrast)  # and busy_gap is 2 / (1 + contrast), so that their mean is 1
    gap_of = np.array([quiet_gap, quiet_gap / contrast])

    def made() -> Iterator[pa.RecordBatch]:
        turns = 0  # from quiet to busy or back, so far
        now = 0.0
        for block, (random, _) in zip(evenly(reader, BLOCK_ROWS), blocks(seed, purpose=_UNEVEN), strict=False):
            turned = turns + np.cumsum(random.random(BLOCK_ROWS) < 1 / phase)
            time = now + np.cumsum(random.exponential(size=BLOCK_ROWS) * gap_of[turned % 2])
            turns, now = int(turned[-1]), float(time[-1])
            yield block.set_column(where, field, pa.array(time[: block.num_rows].astype(np.int64)))

    return as_reader(reader.schema.set(where, field), made(), seed, batch_rows)


def late(
    reader: pa.RecordBatchReader,
    *,
    share: float,
    at_most: Span,
    column: str = "time",
    seed: int = 1,
    batch_rows: int = 1_000_000,
) -> pa.RecordBatchReader:
    """The rows of `reader`, of which a `share` comes late: the same rows and times, delivered out of order.

    Each row is held back with probability `share`, by 1 to `at_most` units of time, each as likely as the others. A row
    of time t that is held back by d is delivered after the rows of time t + d that are not, and before all later ones;
    the others keep their order. Hence a row is at most `at_most` behind any row delivered before it, and a query with
    `lateness=at_most` drops none. A row held back is really late if a row of larger time comes before it: nearly all
    of them, unless `share` is large and `at_most` small, or times are further apart than `at_most`.

    `at_most` is written like a query's `lateness`: a whole number, or a duration if `column` holds timestamps. The
    times must come in order. Only the rows held back are kept; those left at the end of the stream come last.
    """
    where = _index(reader.schema, column)
    check_number("share", share, at_least=0, at_most=1)
    longest = span_ticks(parse_span(at_most, "at_most"), column, reader.schema.field(where).type, "at_most")
    return as_reader(reader.schema, _delivered(reader, where, share, longest, seed), seed, batch_rows)


def _delivered(
    reader: pa.RecordBatchReader, where: int, share: float, longest: int, seed: int
) -> Iterator[pa.RecordBatch]:
    """Rows by when they are due; of those due together, first the ones on time, then in order of arrival."""
    back: list[pa.RecordBatch] = []  # the rows held back, as one batch, in the order of delivery
    back_due = np.empty(0, np.int64)  # when each of them is due
    now = -(2**63)  # the time of the last row read
    for block, (random, _) in zip(evenly(reader, BLOCK_ROWS), blocks(seed, purpose=_LATE), strict=False):
        time = _times_in_order(block, where, now)
        now = int(time[-1])
        is_late = (random.random(BLOCK_ROWS) < share)[: len(time)]
        delay = random.integers(1, longest, size=BLOCK_ROWS, endpoint=True)[: len(time)]
        due = np.concatenate([back_due, time + is_late * delay])
        is_back = np.concatenate([np.ones(len(back_due), np.bool_), is_late])
        order = np.lexsort((is_back, due))
        # What is still to come is due now or later, and rows on time go before rows held back.
        ready = np.count_nonzero((due < now) | ((due == now) & ~is_back))
        rows = pa.concat_batches([*back, block])
        yield rows.take(pa.array(order[:ready]))
        back = [rows.take(pa.array(order[ready:]))]
        back_due = due[order[ready:]]
    yield from back


def _times_in_order(block: pa.RecordBatch, where: int, before: int) -> Ints:
    column = block.column(where)
    name = block.schema.field(where).name
    if column.null_count:
        raise InvalidInput(f"late() needs the time of every row, but column {name!r} has {column.null_count} nulls.")
    time: Ints = column.cast(pa.int64()).to_numpy()
    falls = np.flatnonzero(time < np.concatenate([[before], time[:-1]]))
    if len(falls):
        first_fall = f"{column[falls[0]]} comes after {column[falls[0] - 1] if falls[0] else before}"
        raise InvalidInput(f"late() needs times in order, but in column {name!r} {first_fall}.")
    return time


def _index(schema: pa.Schema, column: str) -> int:
    if column not in schema.names:
        raise UnknownColumn.named(column, schema.names, used_as="the time of arrival")
    return int(schema.names.index(column))
