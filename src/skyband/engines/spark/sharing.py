"""Several queries about one stream in one pass over it: one read, one shuffle, one stateful operator.

    rows ─ for each query: its score, and can the row be shown? ─ rows that some query needs ─
         ─ pack by query and bucket ─ one session per query and bucket ─ packed answers, each with its query

Queries keep apart everything that is theirs: a row belongs to each query's `where` by itself, state is kept by
query and bucket, and windows close when that query's own lateness says so, although Spark has one watermark: it
is that of the query that waits least, and the others lag behind it by as much longer as they wait.

What comes out is packed; `MultiQuery.answers` says how it becomes a query's answers in each micro-batch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any, Final, NamedTuple
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as sf
from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessorHandle, TimerValues, ValueState
from pyspark.sql.types import TimestampType

from skyband.core.registry import problem_of
from skyband.engines.spark.bucket import BucketRunner
from skyband.engines.spark.bucket_job import PREFIX, BucketJob, quoted
from skyband.engines.spark.checks import check_session
from skyband.engines.spark.clock import Clock, watermarked, with_clock
from skyband.engines.spark.gathering import GATHERED_ROWS
from skyband.engines.spark.pages import ANSWER_COLUMNS, PAGE_COLUMNS, BatchFunction, page_batch, read_table, unpacker
from skyband.engines.spark.plan import buckets_of, counts, output_type
from skyband.engines.spark.processor import processor_of
from skyband.engines.spark.projection import WEIGHT, InputProjection
from skyband.engines.spark.sieving import LATEST, counted
from skyband.engines.spark.workers import spare_the_collector
from skyband.errors import InvalidQuery

QUESTION: Final = "question"
COPIES: Final = PREFIX + "copies"


@dataclass(frozen=True)
class SharedQuery:
    """A query over those rows of the stream that meet `where` (Spark SQL), with these of its columns.

    A join calls the stream by a name, and may have relations beside it.
    """

    query: Any
    where: str | None = None
    columns: tuple[str, ...] | None = None
    name: str = ""
    relations: Mapping[str, Any] = field(default_factory=dict)


class MultiQuery(NamedTuple):
    packed: DataFrame
    answers: Mapping[str, Callable[[DataFrame], DataFrame]]  # by name: from packed rows of a micro-batch to answers
    tables: Mapping[str, Callable[[list[bytes]], pa.Table]]  # the same where what was packed is in this process
    mode: str  # Spark's output mode


class _Resolved(NamedTuple):
    """A query, resolved."""

    number: int
    projection: InputProjection
    where: Column | None
    on: str | None  # the column of time
    rows: DataFrame  # as if the query ran alone: for its columns only

    @property
    def job(self) -> BucketJob:
        return self.projection.job

    @property
    def meant(self) -> Column | None:
        """The condition that a row must meet; None: the query sees every row."""
        conditions = [condition for condition in (self.where, self.projection.where) if condition is not None]
        return reduce(Column.__and__, conditions) if conditions else None


def number_of(name: str) -> int:
    """What a query is called in Spark's rows and state."""
    return crc32(name.encode()) >> 1


def clock_column(df: DataFrame, query: object) -> str | None:
    """The column whose watermark closes the windows of `query`; "" if none does; None: it cannot share a stream."""
    on = problem_of(query).clock_column(query)
    return on if not on or isinstance(df.schema[on].dataType, TimestampType) else None


def multi_query(df: DataFrame, queries: Mapping[str, SharedQuery]) -> MultiQuery:
    """Queries about the streaming `df`, by name; their windows measure one and the same timestamp column, or none.

    State is kept by the name of a query, so that queries may come and go between two runs.
    """
    check_session(df)
    resolved = {name: _resolve(name, df, query) for name, query in queries.items()}
    if len({one.number for one in resolved.values()}) < len(resolved):
        raise InvalidQuery(f"Two of these names look the same to Spark: {', '.join(resolved)}. Rename one.")
    buckets = buckets_of(df)
    mode = "update" if any(one.job.changes for one in resolved.values()) else "append"
    pages, clocks = _pages(df, resolved, buckets)
    runners = {one.number: BucketRunner(one.job, clocks[name], buckets) for name, one in resolved.items()}
    packed = pages.groupBy(QUESTION, "bucket").transformWithState(
        processor_of(SharedRunner(runners)),
        outputStructType=f"{ANSWER_COLUMNS}, {QUESTION} int",
        outputMode=mode.capitalize(),
        timeMode="EventTime" if any(clocks.values()) else "None",
    )
    for name, one in resolved.items():
        packed = packed.observe(f"skyband_{name}", *counts(sf.col(QUESTION) == one.number))
    return MultiQuery(
        packed,
        {name: partial(_unpack, one) for name, one in resolved.items()},
        {name: partial(_unpacked, one) for name, one in resolved.items()},
        mode,
    )


def _resolve(name: str, df: DataFrame, shared: SharedQuery) -> _Resolved:
    rows = df if shared.columns is None else df.select(*map(quoted, shared.columns))
    where = None if shared.where is None else sf.expr(shared.where)
    problem = problem_of(shared.query)
    projection = problem.projection_on_spark(name, {shared.name: rows, **shared.relations}, shared.query)
    return _Resolved(number_of(name), projection, where, problem.clock_column(shared.query) or None, rows)


def _pages(df: DataFrame, resolved: Mapping[str, _Resolved], buckets: int) -> tuple[DataFrame, dict[str, Clock | None]]:
    """Rows of PAGE_COLUMNS and QUESTION, with a watermark, and what that means to each query.

    Spark looks at the time of every row that passes a watermark, so it is set on the pages where a sieve in the JVM,
    which sees all rows, says the latest time.
    """
    sieves = {one.number: one.projection.sieve for one in resolved.values() if one.projection.sieve is not None}
    on_pages = not watermarked(df) and any(one.number in sieves and one.meant is None for one in resolved.values())
    clocks: dict[str, Clock | None] = {}
    if not on_pages:
        df, clocks = _with_clocks(df, resolved)
    pack = _packer([(one.number, one.job) for one in resolved.values()], sieves.keys())
    pages = _rows_to_gather(df, resolved, buckets).mapInArrow(pack, f"{PAGE_COLUMNS}, {QUESTION} int")
    if sieves:
        by_query = (sf.when(sf.col(QUESTION) == number, sieve.counts()) for number, sieve in sieves.items())
        pages = counted(pages, sf.coalesce(*by_query), TimestampType())
    if on_pages:
        pages, clocks = _with_clocks(pages, resolved, LATEST)
    return pages.drop(LATEST), clocks


def _with_clocks(
    df: DataFrame, resolved: Mapping[str, _Resolved], on: str | None = None
) -> tuple[DataFrame, dict[str, Clock | None]]:
    """`df` with the watermark of the query that waits least, and each query's own clock.

    `on` is what `df` calls the column of time, if not as the queries do.
    """
    timed = {name: one for name, one in resolved.items() if one.job.by_pane}
    if not timed:
        return df, dict.fromkeys(resolved)
    columns = {str(one.on) for one in timed.values()}
    if len(columns) > 1:
        raise InvalidQuery(
            f"Queries that share a stream must measure the same column, got {', '.join(sorted(columns))}."
        )
    waits_ms = {name: -(-one.job.ticks.lateness // 1000) for name, one in timed.items()}
    least = min(waits_ms, key=lambda name: waits_ms[name])
    marked = df.schema
    df, clock = with_clock(df, timed[least].job, timed[least].job.ticks.lateness, on or timed[least].on)
    own = df.schema == marked  # the stream came with a watermark, which is then everybody's
    return df, {
        name: None
        if name not in timed
        else clock
        if own
        else replace(clock, behind_ms=waits_ms[name] - waits_ms[least])
        for name in resolved
    }


def _rows_to_gather(df: DataFrame, resolved: Mapping[str, _Resolved], buckets: int) -> DataFrame:
    """A struct for each query with what it needs of the row, or null; without rows that nobody needs."""
    needed = []
    for one in resolved.values():
        projection, meant, kept = one.projection, one.meant, f"{PREFIX}kept_{one.number}"
        columns = projection.columns(buckets)
        if projection.weigh is not None:
            df = df.withColumn(kept, projection.weigh(meant))
            columns.append(sf.col(kept).alias(WEIGHT))
        else:
            df = df.withColumn(kept, sf.lit(1) if meant is None else sf.when(meant, 1))
        if projection.copies is not None:
            columns.append(projection.copies(buckets).alias(COPIES))
        needed.append(sf.when(sf.col(kept).isNotNull(), sf.struct(*columns)).alias(f"q{one.number}"))
    somebodys = sf.coalesce(*(sf.col(f"{PREFIX}kept_{one.number}") for one in resolved.values())).isNotNull()
    return df.where(somebodys).select(*needed)


def _packer(jobs: list[tuple[int, BucketJob]], counted_in_jvm: Collection[int]) -> BatchFunction:
    """For mapInArrow: the rows of a partition as pages, one row a query and bucket.

    A query whose rows are counted in the JVM gets a last page when all rows have been read, which brings the counts of
    the last of them, also if none of these passed.
    """
    sieved = frozenset(counted_in_jvm)

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_the_collector()
        gatherers = [job.gatherer() for _, job in jobs]
        for group, is_last in _grouped(batches):
            for position, (number, _) in enumerate(jobs):
                mine = (_with_copies(batch.column(position).drop_null()) for batch in group)
                for rows, tally in gatherers[position].gather(mine, without_rows=is_last and number in sieved):
                    page = page_batch(gatherers[position].pages(rows), tally)
                    yield page.append_column(QUESTION, pa.array([number] * page.num_rows, pa.int32()))

    return pack


def _with_copies(rows: pa.StructArray) -> pa.RecordBatch:
    """The rows of a query; one that goes to several buckets once for each of them."""
    batch = pa.RecordBatch.from_struct_array(rows)
    if COPIES not in batch.schema.names:
        return batch
    copies = batch.column(COPIES)
    whole = batch.drop_columns([COPIES]).take(pc.list_parent_indices(copies))
    more = pa.RecordBatch.from_struct_array(pc.list_flatten(copies))
    return pa.record_batch([*whole.columns, *more.columns], names=[*whole.schema.names, *more.schema.names])


def _grouped(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[list[pa.RecordBatch], bool]]:
    """Batches that are handled together, and whether they are the last: these come when all rows have been read."""
    group: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if rows >= GATHERED_ROWS:
            yield group, False
            group, rows = [], 0
        group.append(batch)
        rows += batch.num_rows
    if group:
        yield group, True


def _unpacked(resolved: _Resolved, packed: list[bytes]) -> pa.Table:
    schema, merge = resolved.job.output, resolved.projection.merge
    tables = [read_table(page).select(schema.names) for page in packed]
    answers = pa.concat_tables(tables) if tables else schema.empty_table()
    return answers if merge is None else merge(answers)


def _unpack(resolved: _Resolved, packed: DataFrame) -> DataFrame:
    schema = output_type(resolved.rows.schema, resolved.job)
    pages = packed.where(sf.col(QUESTION) == resolved.number).select("answer")
    return resolved.projection.merged(pages.mapInArrow(unpacker(resolved.job.output.names), schema))


class SharedRunner:
    """Runs each query in its own buckets."""

    def __init__(self, runners: dict[int, BucketRunner]) -> None:
        self._runners = runners  # by the query's number

    def attach(self, handle: StatefulProcessorHandle, state: ValueState, pages: MapState) -> None:
        self._state, self._pages = state, pages
        for runner in self._runners.values():
            runner.attach(handle, state, pages)

    def take(self, key: Any, rows: Iterator[Any], timers: TimerValues) -> Iterator[Row]:
        return _of(key[0], self._runners[key[0]].take(key, rows, timers))

    def wake(self, key: Any, timers: TimerValues) -> Iterator[Row]:
        runner = self._runners.get(key[0])
        if runner is None:  # a query that no longer runs
            self._state.clear()
            self._pages.clear()
            return iter(())
        return _of(key[0], runner.wake(key, timers))


def _of(number: int, answers: Iterator[Row]) -> Iterator[Row]:
    return (Row(**answer.asDict(), **{QUESTION: number}) for answer in answers)
