"""The stateful operator: one session for each bucket, kept in Spark's state store as one binary value.

State is a snapshot of the session, versioned and checked; nothing in it is pickled. A micro-batch restores it, closes
the windows that the watermark has passed, takes the rows in, and saves it again. A bucket that gets no rows is woken by
a timer at the end of its earliest open window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from skyband.engines.spark.clock import Clock
from skyband.engines.spark.pages import Tally, answers, read_page
from skyband.engines.spark.recipe import BucketSession, Recipe
from skyband.engines.spark.workers import spare_the_collector
from skyband.errors import SnapshotMismatch

STATE_NAME: Final = "bucket"
# `fingerprint` says which query, and how many buckets, the state belongs to; `session` is a snapshot, versioned itself.
STATE_COLUMNS: Final = StructType(
    [
        StructField("fingerprint", StringType()),
        StructField("timer_ms", LongType()),
        StructField("rows_held", LongType()),
        StructField("groups", LongType()),
        StructField("session", BinaryType()),
    ]
)
_NO_TIMER: Final = -1


class BucketProcessor(StatefulProcessor):
    """Runs the query of a recipe in each bucket."""

    def __init__(self, recipe: Recipe, clock: Clock | None, buckets: int) -> None:
        self._recipe = recipe
        self._clock = clock  # None: rows alone move the window
        self._fingerprint = f"{recipe.fingerprint} in {buckets} buckets"

    def init(self, handle: StatefulProcessorHandle) -> None:
        spare_the_collector()
        self._handle = handle
        self._state = handle.getValueState(STATE_NAME, STATE_COLUMNS)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Iterator[Row]:
        session, timer_ms = self._open()
        pages, tallies = zip(*map(read_page, rows), strict=True)
        watermark = self._watermark(timerValues)
        rows_first = self._clock is None or self._clock.rows_first
        known = [] if watermark is None or rows_first else [session.advance(watermark)]
        late_before = session.stats().rows_late
        known.append(session.push(in_arrival_order(pa.concat_tables(pages), self._recipe)))
        late = session.stats().rows_late - late_before
        if watermark is not None and rows_first:
            known.append(session.advance(watermark))
        elif watermark is not None:  # rows that were ruled out before the shuffle can be late as well
            late = sum(tally.late(watermark) for tally in tallies)
        self._save(session, timer_ms)
        yield from _rows(pa.concat_tables(known), tallies, late)

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Row]:
        session, _ = self._open()
        watermark = self._watermark(timerValues)
        assert watermark is not None, "a timer is set at a time, which only a watermark reaches"
        closed = session.advance(watermark)
        self._save(session, timer_ms=_NO_TIMER)  # Spark deletes the one that has expired
        yield from _rows(closed, (), 0)

    def close(self) -> None:
        pass

    def _watermark(self, timer_values: TimerValues) -> int | None:
        return self._clock.ticks(timer_values.getCurrentWatermarkInMs()) if self._clock else None

    def _open(self) -> tuple[BucketSession, int]:
        """The bucket's session, and when its timer is set."""
        saved = self._state.get()
        fingerprint, timer_ms, *_, snapshot = saved or (self._fingerprint, _NO_TIMER, None)
        if fingerprint != self._fingerprint:
            raise SnapshotMismatch(
                "This checkpoint was written by another query, over other columns, or with another number of buckets "
                f"(then: {fingerprint}; now: {self._fingerprint}). Run the query that wrote it, or start a new one."
            )
        return self._recipe.open(snapshot, external_clock=self._clock is not None), timer_ms

    def _save(self, session: BucketSession, timer_ms: int) -> None:
        """Keep the session for the next batch, and be woken when its next window ends instead of at `timer_ms`."""
        due = session.next_close() if self._clock else None
        due_ms = _NO_TIMER if due is None else self._clock.ms(due)  # type: ignore[union-attr]
        if due_ms != timer_ms:
            if timer_ms != _NO_TIMER:
                self._handle.deleteTimer(timer_ms)
            if due_ms != _NO_TIMER:
                self._handle.registerTimer(due_ms)
        stats = session.stats()
        self._state.update((self._fingerprint, due_ms, stats.rows_held, stats.groups, session.snapshot()))


def in_arrival_order(rows: pa.Table, recipe: Recipe) -> pa.Table:
    """The rows of a micro-batch as a session takes them. Spark keeps no order; columns give one that replays repeat."""
    order = pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in recipe.arrival_order])
    return rows.select(recipe.schema.names).take(order).combine_chunks()


def _rows(table: pa.Table, tallies: tuple[Tally, ...], late: int) -> Iterator[Row]:
    counts = Counter({"rows_late": late})
    for tally in tallies:
        counts.update(tally.counts())
    return (Row(**answer) for answer in answers(table, counts))
