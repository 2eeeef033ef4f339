"""The stateful operator that Spark gets: a processor that unpacks its job only where rows arrive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Protocol

from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    MapState,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
    ValueState,
)
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from skyband.engines.spark.workers import spare_the_collector

STATE_NAME: Final = "bucket"
# `fingerprint` says which query, and how many buckets, the state belongs to; `session` is a snapshot, versioned itself,
# or leads to its pages: see core/snapshot_pages.py. The last three say how far its journal goes: see journal.py. They
# are null in a state that an earlier version wrote.
STATE_COLUMNS: Final = StructType(
    [
        StructField("fingerprint", StringType()),
        StructField("timer_ms", LongType()),
        StructField("rows_held", LongType()),
        StructField("groups", LongType()),
        StructField("bytes", LongType()),
        StructField("depth", IntegerType()),
        StructField("session", BinaryType()),
        StructField("entries", IntegerType()),
        StructField("journal", BinaryType()),
        StructField("journal_bytes", LongType()),
    ]
)
PAGES_NAME: Final = "pages"
DIGEST_COLUMNS: Final = StructType([StructField("digest", BinaryType())])
PAGE_COLUMNS: Final = StructType([StructField("page", BinaryType())])


class Runner(Protocol):
    """What happens in a bucket."""

    def attach(self, handle: StatefulProcessorHandle, state: ValueState, pages: MapState) -> None:
        """Before a task's first bucket."""

    def take(self, key: Any, rows: Iterator[Any], timers: TimerValues) -> Iterator[Row]:
        """A micro-batch has rows for the bucket."""

    def wake(self, key: Any, timers: TimerValues) -> Iterator[Row]:
        """It has none, and its timer has expired."""


def processor_of(runner: Runner) -> StatefulProcessor:
    """A processor that has the runner with it, packed.

    Each time a query starts, Spark asks for its state in a process of its own, which does nothing else. If it had to
    unpack the runner it would import all of Skyband for that, more than a second. So the class is one that goes with
    its instances, being nobody's to import, and has nothing of ours in it.
    """
    content: bytes = CloudPickleSerializer().dumps(runner)  # type: ignore[no-untyped-call]
    name, columns = STATE_NAME, STATE_COLUMNS
    paged = PAGES_NAME, DIGEST_COLUMNS, PAGE_COLUMNS

    class Packed(StatefulProcessor):
        def init(self, handle: StatefulProcessorHandle) -> None:
            self._handle, self._state = handle, handle.getValueState(name, columns)
            self._pages = handle.getMapState(*paged)
            self._runner: Runner | None = None

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Iterator[Row]:
            return self._unpacked().take(key, rows, timerValues)

        def handleExpiredTimer(
            self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
        ) -> Iterator[Row]:
            return self._unpacked().wake(key, timerValues)

        def close(self) -> None:
            pass

        def _unpacked(self) -> Runner:
            if self._runner is None:
                from skyband.engines.spark.processor import unpack

                self._runner = unpack(content)
                self._runner.attach(self._handle, self._state, self._pages)
            return self._runner

    return Packed()


def unpack(content: bytes) -> Runner:
    """In a worker: what was packed for it. Spark sends what it runs in the same way."""
    runner: Runner = CloudPickleSerializer().loads(content)  # type: ignore[no-untyped-call]
    spare_the_collector()
    return runner
