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
from skyband.engines.spark.checks import check_session
from skyband.engines.spark.clock import Clock, watermarked, with_clock
from skyband.engines.spark.gathering import GATHERED_ROWS
from skyband.engines.spark.pages import ANSWER_COLUMNS, PAGE_COLUMNS, BatchFunction, page_batch, read_table, unpacker
from skyband.engines.spark.part import WEIGHT, Part
from skyband.engines.spark.plan import buckets_of, counts, output_type
from skyband.engines.spark.processor import processor_of
from skyband.engines.spark.recipe import PREFIX, Recipe, quoted
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
    part: Part
    where: Column | None
    on: str | None  # the column of time
    rows: DataFrame  # as if the query were asked alone: for its columns only

    @property
    def recipe(self) -> Recipe:
        return self.part.recipe

    @property
    def meant(self) -> Column | None:
        """The condition that a row must meet; None: the query sees every row."""
        conditions = [condition for condition in (self.where, self.part.where) if condition is not None]
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
    parts = {name: _resolve(name, df, query) for name, query in queries.items()}
    if len({part.number for part in parts.values()}) < len(parts):
        raise InvalidQuery(f"Two of these names cannot be told apart: {', '.join(parts)}. Rename one.")
    buckets = buckets_of(df)
    mode = "update" if any(part.recipe.changes for part in parts.values()) else "append"
    pages, clocks = _pages(df, parts, buckets)
    runners = {part.number: BucketRunner(part.recipe, clocks[name], buckets) for name, part in parts.items()}
    packed = pages.groupBy(QUESTION, "bucket").transformWithState(
        processor_of(SharedRunner(runners)),
        outputStructType=f"{ANSWER_COLUMNS}, {QUESTION} int",
        outputMode=mode.capitalize(),
        timeMode="EventTime" if any(clocks.values()) else "None",
    )
    for name, part in parts.items():
        packed = packed.observe(f"skyband_{name}", *counts(sf.col(QUESTION) == part.number))
    return MultiQuery(
        packed,
        {name: partial(_unpack, part) for name, part in parts.items()},
        {name: partial(_unpacked, part) for name, part in parts.items()},
        mode,
    )


def _resolve(name: str, df: DataFrame, shared: SharedQuery) -> _Resolved:
    rows = df if shared.columns is None else df.select(*map(quoted, shared.columns))
    where = None if shared.where is None else sf.expr(shared.where)
    problem = problem_of(shared.query)
    part = problem.part_on_spark(name, {shared.name: rows, **shared.relations}, shared.query)
    return _Resolved(number_of(name), part, where, problem.clock_column(shared.query) or None, rows)


def _pages(df: DataFrame, parts: Mapping[str, _Resolved], buckets: int) -> tuple[DataFrame, dict[str, Clock | None]]:
    """Rows of PAGE_COLUMNS and QUESTION, with a watermark, and what that means to each query.

    Spark looks at the time of every row that passes a watermark, so it is set on the pages where a sieve in the JVM,
    which sees all rows, says the latest time.
    """
    sieves = {part.number: part.part.sieve for part in parts.values() if part.part.sieve is not None}
    on_pages = not watermarked(df) and any(part.number in sieves and part.meant is None for part in parts.values())
    clocks: dict[str, Clock | None] = {}
    if not on_pages:
        df, clocks = _with_clocks(df, parts)
    pack = _packer([(part.number, part.recipe) for part in parts.values()], sieves.keys())
    pages = _rows_to_gather(df, parts, buckets).mapInArrow(pack, f"{PAGE_COLUMNS}, {QUESTION} int")
    if sieves:
        asked = (sf.when(sf.col(QUESTION) == number, sieve.counts()) for number, sieve in sieves.items())
        pages = counted(pages, sf.coalesce(*asked), TimestampType())
    if on_pages:
        pages, clocks = _with_clocks(pages, parts, LATEST)
    return pages.drop(LATEST), clocks


def _with_clocks(
    df: DataFrame, parts: Mapping[str, _Resolved], on: str | None = None
) -> tuple[DataFrame, dict[str, Clock | None]]:
    """`df` with the watermark of the query that waits least, and each query's own clock.

    `on` is what `df` calls the column of time, if not as the queries do.
    """
    timed = {name: asked for name, asked in parts.items() if asked.recipe.by_pane}
    if not timed:
        return df, dict.fromkeys(parts)
    columns = {str(asked.on) for asked in timed.values()}
    if len(columns) > 1:
        raise InvalidQuery(f"Questions that share a stream measure one column, not {', '.join(sorted(columns))}.")
    waits_ms = {name: -(-part.recipe.ticks.lateness // 1000) for name, part in timed.items()}
    least = min(waits_ms, key=lambda name: waits_ms[name])
    marked = df.schema
    df, clock = with_clock(df, timed[least].recipe, timed[least].recipe.ticks.lateness, on or timed[least].on)
    own = df.schema == marked  # the stream came with a watermark, which is then everybody's
    return df, {
        name: None
        if name not in timed
        else clock
        if own
        else replace(clock, behind_ms=waits_ms[name] - waits_ms[least])
        for name in parts
    }


def _rows_to_gather(df: DataFrame, parts: Mapping[str, _Resolved], buckets: int) -> DataFrame:
    """A struct for each query with what it needs of the row, or null; without rows that nobody needs."""
    needed = []
    for asked in parts.values():
        part, meant, kept = asked.part, asked.meant, f"{PREFIX}kept_{asked.number}"
        columns = part.columns(buckets)
        if part.weigh is not None:
            df = df.withColumn(kept, part.weigh(meant))
            columns.append(sf.col(kept).alias(WEIGHT))
        else:
            df = df.withColumn(kept, sf.lit(1) if meant is None else sf.when(meant, 1))
        if part.copies is not None:
            columns.append(part.copies(buckets).alias(COPIES))
        needed.append(sf.when(sf.col(kept).isNotNull(), sf.struct(*columns)).alias(f"q{asked.number}"))
    somebodys = sf.coalesce(*(sf.col(f"{PREFIX}kept_{asked.number}") for asked in parts.values())).isNotNull()
    return df.where(somebodys).select(*needed)


def _packer(parts: list[tuple[int, Recipe]], counted_in_jvm: Collection[int]) -> BatchFunction:
    """For mapInArrow: the rows of a partition as pages, one row a query and bucket.

    A query whose rows are counted in the JVM gets a last page when all rows have been read, which brings the counts of
    the last of them, also if none of these passed.
    """
    sieved = frozenset(counted_in_jvm)

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_the_collector()
        gatherers = [recipe.gatherer() for _, recipe in parts]
        for group, is_last in _grouped(batches):
            for position, (number, _) in enumerate(parts):
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
    schema, merge = resolved.recipe.output, resolved.part.merge
    tables = [read_table(page).select(schema.names) for page in packed]
    answers = pa.concat_tables(tables) if tables else schema.empty_table()
    return answers if merge is None else merge(answers)


def _unpack(resolved: _Resolved, packed: DataFrame) -> DataFrame:
    schema = output_type(resolved.rows.schema, resolved.recipe)
    pages = packed.where(sf.col(QUESTION) == resolved.number).select("answer")
    return resolved.part.merged(pages.mapInArrow(unpacker(resolved.recipe.output.names), schema))


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
        if runner is None:  # a query that is no longer asked
            self._state.clear()
            self._pages.clear()
            return iter(())
        return _of(key[0], runner.wake(key, timers))


def _of(number: int, answers: Iterator[Row]) -> Iterator[Row]:
    return (Row(**answer.asDict(), **{QUESTION: number}) for answer in answers)
