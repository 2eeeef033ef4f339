"""A bucket runs one session, which Spark keeps in its state store.

The state is a snapshot of the session, with a version and a checksum, in one value or in pages, and a journal of what
was done to it since; nothing in it is pickled. A micro-batch restores it, closes the windows that the watermark has
passed, takes the rows, and saves it again. A timer at the end of its earliest open window wakes a bucket that gets no
rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessorHandle, TimerValues, ValueState

from skyband.engines.spark.bucket_job import BucketJob, BucketSession
from skyband.engines.spark.clock import Clock
from skyband.engines.spark.journal import Recorded
from skyband.engines.spark.kept_state import NOTHING, KeptState, Stored
from skyband.engines.spark.pages import Tally, answers, read_page
from skyband.errors import SnapshotMismatch

_NO_TIMER: Final = -1
CLOCK: Final = "external clock"  # in what a snapshot says of its query: does a watermark close its windows?


class Opened(NamedTuple):
    """A bucket in a micro-batch."""

    session: BucketSession
    recorded: Recorded  # the same session
    state: KeptState
    timer_ms: int
    rows_held: int  # before the micro-batch


class BucketRunner:
    """Runs the query of a job in each bucket."""

    def __init__(self, job: BucketJob, clock: Clock | None, buckets: int) -> None:
        self._job = job
        self._clock = clock  # None: rows alone move the window
        self._fingerprint = f"{job.fingerprint} in {buckets} buckets"
        about = job.about()
        self._about = None if about is None else about | {CLOCK: clock is not None}
        self._has_journal = job.has_journal
        self._name = uuid4().hex  # of what workers keep: a query that was asked before may have had other functions

    def attach(self, handle: StatefulProcessorHandle, state: ValueState, pages: MapState) -> None:
        self._handle, self._state, self._pages = handle, state, pages

    def take(self, key: Any, rows: Iterator[Any], timers: TimerValues) -> Iterator[Row]:
        opened = self._open(key)
        session, recorded = opened.session, opened.recorded
        pages, tallies = zip(*map(read_page, rows), strict=True)
        watermark = self._watermark(timers)
        rows_first = self._clock is None or self._clock.rows_first
        known = [] if watermark is None or rows_first else [recorded.advance(watermark)]
        before = session.stats()
        known.append(self._job.take(recorded, pages))
        after = session.stats()
        late = after.rows_late - before.rows_late
        if watermark is not None and rows_first:
            known.append(recorded.advance(watermark))
        elif watermark is not None:  # rows that were ruled out before the shuffle can be late as well
            late = sum(tally.late(watermark) for tally in tallies)
        counts = self._save(opened, opened.timer_ms) | {
            "rows_gathered": sum(page.num_rows for page in pages),
            "rows_late": late,
            "queries_refused": after.queries_refused - before.queries_refused,
            "rows_missed": after.rows_missed - before.rows_missed,
        }
        yield from _rows(pa.concat_tables(known), tallies, counts)

    def wake(self, key: Any, timers: TimerValues) -> Iterator[Row]:
        opened = self._open(key)
        watermark = self._watermark(timers)
        assert watermark is not None, "a timer is set at a time, which only a watermark reaches"
        closed = opened.recorded.advance(watermark)
        counts = self._save(opened, _NO_TIMER)  # Spark deletes the timer that has expired
        yield from _rows(closed, (), counts)

    def _watermark(self, timers: TimerValues) -> int | None:
        return self._clock.ticks(timers.getCurrentWatermarkInMs()) if self._clock else None

    def _open(self, key: Any) -> Opened:
        """The bucket's session, as the last micro-batch left it."""
        saved = self._state.get()
        fingerprint, timer_ms, rows_held, _, *stored = saved or (self._fingerprint, _NO_TIMER, 0, 0, *NOTHING)
        if fingerprint != self._fingerprint:
            raise SnapshotMismatch(
                "Another query wrote this checkpoint, or the columns or the number of buckets have changed (then: "
                f"{fingerprint}; now: {self._fingerprint}). Run the query that wrote it, or use a new checkpoint."
            )
        state = KeptState((self._name, *key), self._pages, Stored.read(stored), has_journal=self._has_journal)

        def opened(snapshot: bytes | None) -> BucketSession:
            session = self._job.open(key[-1], snapshot, external_clock=self._clock is not None)
            session.about = self._about
            return session

        session = state.session(opened)
        return Opened(session, Recorded(session), state, timer_ms, rows_held)

    def _save(self, opened: Opened, timer_ms: int) -> dict[str, int]:
        """Keep the session for the next batch, and be woken when its next window ends instead of at `timer_ms`.

        Returns by how much what is held has changed.
        """
        session = opened.session
        due = session.next_close() if self._clock else None
        due_ms = _NO_TIMER if due is None else self._clock.ms(due)  # type: ignore[union-attr]
        if due_ms != timer_ms:
            if timer_ms != _NO_TIMER:
                self._handle.deleteTimer(timer_ms)
            if due_ms != _NO_TIMER:
                self._handle.registerTimer(due_ms)
        stats = session.stats()
        before = opened.state.stored.nbytes
        stored = opened.state.write(opened.recorded)
        self._state.update((self._fingerprint, due_ms, stats.rows_held, stats.groups, *stored))
        return {
            "rows_held_change": int(stats.rows_held) - opened.rows_held,
            "bytes_held_change": stored.nbytes - before,
        }


def _rows(table: pa.Table, tallies: tuple[Tally, ...], changed: dict[str, int]) -> Iterator[Row]:
    counts = Counter(changed)
    for tally in tallies:
        counts.update(tally.counts())
    return (Row(**answer) for answer in answers(table, counts))
