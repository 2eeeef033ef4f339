"""Joins on Spark: it unites the streams, tags each row with its input, and runs one session per bucket for all inputs.

    rows of each stream ─ filter ─ union ─ merge rows, pack by bucket ─ one session per bucket ─ merge, per window
    relations ─ collect ─ into every session

If it can, Spark merges rows of batch DataFrames (`spark_panes.py`); Python merges all others.

Matching rows must meet in one bucket; `distribution.py` decides how rows are distributed, and what remains to be
merged. All buckets have the same watermark, so their answers for a window come in one micro-batch, and merging needs
no state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import LongType, StructType

from skyband.core.about import About
from skyband.core.emit import gives_windows
from skyband.core.encoding.inputs import in_batches, read
from skyband.core.query import replace_unchecked
from skyband.engines.spark.arrow_types import as_spark
from skyband.engines.spark.bucket_job import (
    BUCKET,
    CLOCK,
    PREFIX,
    BucketJob,
    arrow_schema,
    bucket_of_hash,
    ends_for_all,
    quoted,
    tie,
)
from skyband.engines.spark.clock import with_clock
from skyband.engines.spark.gathering import Gatherer
from skyband.engines.spark.plan import run
from skyband.engines.spark.projection import WEIGHT, InputProjection, Merge
from skyband.errors import InvalidInput, InvalidQuery
from skyband.problems.joins.codec import JoinsCodec
from skyband.problems.joins.columns import BoundInput, BoundJoin, bind
from skyband.problems.joins.distribution import Partitioning, spread
from skyband.problems.joins.output import GroupsOutput
from skyband.problems.joins.planning import plan, specify
from skyband.problems.joins.query import JoinAggregate, Relation, StreamInput
from skyband.problems.joins.spark_panes import PaneGatherer, Panes, of_all, of_panes, panes_of
from skyband.problems.joins.spark_rows import (
    INPUT,
    TIME,
    VALID,
    BucketOfJoins,
    JoinGatherer,
    Names,
    argument,
    shared,
)
from skyband.windows import Window

KEY: Final = PREFIX + "key"
KEEP: Final = PREFIX + "keep"


@dataclass(frozen=True)
class JoinJob(BucketJob):
    """What a worker needs to know about a join."""

    query: JoinAggregate  # the query of a bucket
    columns: Names  # the columns that the query reads of each stream, and their names on the way to Python
    keys: Names  # the key columns of each stream, and their names on the way to a bucket
    arguments: dict[str, int]  # the number of arguments of aggregates of each stream
    schemas: dict[str, pa.Schema]  # by input
    relations: dict[str, pa.Table]
    panes: Panes | None = None  # how Spark has merged the rows; None: it has not

    def open(self, bucket: int, state: bytes | None = None, *, external_clock: bool = False) -> BucketOfJoins:
        codec = JoinsCodec(self.query, self.schemas, external_clock=external_clock)
        session = BucketOfJoins(codec, state, self.plan, self.keys, self.arguments)
        if state is None:
            for name, table in self.relations.items():
                session.push(table, name)
        return session

    def about(self) -> About | None:
        return None  # its inputs are more than text and numbers

    @property
    def has_journal(self) -> bool:
        """Nobody reads rows or answers from the state of a join."""
        return True

    def gatherer(self) -> Gatherer:
        return JoinGatherer(self) if self.panes is None else PaneGatherer(self)

    @property
    def plain_names(self) -> dict[str, str]:
        crossing = dict.fromkeys(called for names in self.columns.values() for called in names.values())
        return {name: name for name in [INPUT, *crossing]}

    @property
    def in_any_order(self) -> bool:
        """With a slide, only the windows of a row matter: aggregates are exact in any order."""
        return self.by_pane


@dataclass(frozen=True)
class Resolved:
    """A join over certain streams. Making it raises for mistakes, before Spark runs anything."""

    job: JoinJob
    bound: BoundJoin
    how: Partitioning | None
    streams: dict[str, DataFrame]
    tagged: dict[str, dict[str, Column]]  # by stream: its columns in the union of all streams
    merge: Merge | None
    merged_type: StructType

    def projection(self, tagged: Mapping[str, Column], tie: Column | None = None) -> InputProjection:
        """The projection over rows with these columns. `tie` is needed if the order of rows matters."""
        return InputProjection(
            self.job,
            columns=lambda buckets: [*_columns(tagged, self.job, buckets), *([] if tie is None else [tie])],
            where=tagged[KEEP],
            merge=self.merge,
            merged_type=self.merged_type,
        )

    def united(self) -> DataFrame:
        """The rows of all streams as one. Each stream has its own watermark, so windows wait for the slowest."""
        parts, on = [], {source.name: source.on for source in self.bound.inputs}
        for name, df in self.streams.items():
            columns = [column.alias(called) for called, column in self.tagged[name].items()]
            if df.isStreaming and self.job.by_pane:
                df, _ = with_clock(df, self.job, self.job.ticks.lateness, on[name])
                columns += [quoted(CLOCK)] if CLOCK in df.columns else []
            parts.append(df.select(*columns))
        return reduce(DataFrame.unionByName, parts)

    def of_panes(self, buckets: int) -> DataFrame:
        """The rows that buckets take if Spark merges them."""
        rows = {name: df.where(self.tagged[name][KEEP]) for name, df in self.streams.items()}
        meeting = {name: self.tagged[name][KEY] for name in rows if self.how is not None and self.how.columns[name]}
        return of_panes(rows, self.bound, self.job, meeting, buckets)


def join_aggregate(data: Mapping[str, Any], query: JoinAggregate) -> DataFrame:
    """Aggregate by group over a join of the streams of `data`, all batch or all streaming, and its relations.

    Write a streaming result in append mode if the query emits whole windows, and otherwise in update mode.
    """
    join = resolve(data, query)
    if join.job.panes is not None:
        some, projected = next(iter(join.streams)), join.projection({KEEP: sf.lit(True)})
        return projected.merged(run(join.streams[some], join.job, lambda _, buckets: join.of_panes(buckets)))
    union = join.united()
    in_order = None if join.job.in_any_order else tie(union.select(*map(quoted, join.job.plain_names)))
    projected = join.projection({called: quoted(called) for called in union.columns}, in_order)
    return projected.merged(run(union, projected.job, projected.rows))


def resolve(data: Mapping[str, Any], query: JoinAggregate) -> Resolved:
    streams, relations = _inputs(data, query)
    schemas = {name: arrow_schema(data[name].schema) for name in streams}
    schemas |= {name: table.schema for name, table in relations.items()}
    bound = bind(query, query.schemas(schemas))
    if query.window.on is None:
        raise InvalidQuery(
            "On Spark the windows of a join measure a column: give each window on='…'. Windows of arrivals work in one "
            "process, over Arrow data."
        )
    # Without a slide, every row moves the windows, even one that the filter drops.
    filters = {source.name: _filter(source) for source in bound.inputs if not source.is_relation and query.every}
    needed = {
        source.name: _needed(source, query, filtered=source.keep is not None and filters.get(source.name) is None)
        for source in bound.inputs
    }
    how = None if ends_for_all(streams.values(), query.emit) else spread(query, bound)
    columns = _crossing(streams, bound, needed)
    asked = replace_unchecked(
        query, inputs=tuple((name, _after(given, filters.get(name))) for name, given in query.inputs)
    )
    job = _job(query, asked, bound, needed, columns, relations, how)
    job = replace(job, panes=panes_of(query, bound, streams, filters))
    output = GroupsOutput(asked, bind(asked, job.schemas)).schema
    return Resolved(
        job,
        bound,
        how,
        streams,
        _tagged(streams, query, bound, columns, filters, how),
        merge=merger(job, asked, adds_up=how.adds_up) if how and (how.adds_up or asked.order_by) else None,
        merged_type=as_spark(output),
    )


def merger(job: JoinJob, query: JoinAggregate, *, adds_up: bool) -> Merge:
    """Make the function that merges the buckets' answers into whole windows."""

    def merge(answers: pa.Table) -> pa.Table:
        return GroupsOutput(query, bind(query, job.schemas)).merged(answers, adds_up=adds_up)

    return merge


def _filter(source: BoundInput) -> Column | None:
    """An input's filter as a Spark column; None if there is no filter, or if it calls a user's function."""
    return None if source.keep is None or source.keep.spark_sql is None else sf.expr(source.keep.spark_sql)


def _after(given: StreamInput | Relation, filtered: Column | None) -> StreamInput | Relation:
    """An input as a bucket sees it, without the filter if Spark has applied it."""
    return StreamInput(given.window) if isinstance(given, StreamInput) and filtered is not None else given


def _inputs(data: Mapping[str, Any], query: JoinAggregate) -> tuple[dict[str, DataFrame], dict[str, pa.Table]]:
    """Split the inputs into streams and relations; relations are collected into tables."""
    if set(data) != set(query.names):
        raise InvalidInput(f"Give the rows of each input by its name: {', '.join(query.names)}; got {', '.join(data)}.")
    streams = {name: data[name] for name, _ in query.streams}
    apart = [name for name, rows in streams.items() if not hasattr(rows, "isStreaming")]
    if apart:
        raise InvalidInput(f"{', '.join(apart)} must be a Spark DataFrame as the other streams are.")
    if len({df.isStreaming for df in streams.values()}) > 1:
        raise InvalidInput(
            "The streams of a join must be all batch DataFrames or all streaming ones. A table that does not change "
            "is a relation()."
        )
    relations = {}
    for name in query.names:
        if name not in streams:
            if getattr(data[name], "isStreaming", False):
                raise InvalidInput(f"{name!r} is a relation: it must be a table, not a streaming DataFrame.")
            is_spark = hasattr(data[name], "isStreaming")
            source = None if is_spark else read(data[name])
            table = (
                data[name].toArrow()
                if source is None
                else pa.Table.from_batches(in_batches(source.batches), source.schema)
            )
            relations[name] = table.replace_schema_metadata()
    return streams, relations


def _needed(source: BoundInput, query: JoinAggregate, *, filtered: bool) -> list[str]:
    """The columns of an input that the query reads; all of them if a session has to filter it."""
    arguments = [
        column.column
        for _, aggregate in query.parsed_aggregates()
        for column in aggregate.columns
        if column.column in source.schema.names and column.input in ("", source.name)
    ]
    everything = source.schema.names if filtered or source.is_relation else []
    wanted = {*source.keys, *arguments, *everything, *([source.on] if source.on else [])}
    return [column for column in source.schema.names if column in wanted]


def _crossing(streams: Mapping[str, DataFrame], bound: BoundJoin, needed: Mapping[str, list[str]]) -> Names:
    """The names of each stream's columns on the way to Python. The time column has the same name in all streams."""
    on = {source.name: source.on for source in bound.inputs if not source.is_relation}
    kinds = {
        name: {column: streams[name].schema[column].dataType.json() for column in needed[name] if column != on[name]}
        for name in on
    }
    names = shared(kinds, PREFIX + "column_")
    return {name: {column: names[name].get(column, TIME) for column in needed[name]} for name in on}


def _tagged(
    streams: Mapping[str, DataFrame],
    query: JoinAggregate,
    bound: BoundJoin,
    columns: Names,
    filters: Mapping[str, Column | None],
    how: Partitioning | None,
) -> dict[str, dict[str, Column]]:
    """The columns of each stream in the union of all streams. A column that only other streams have is null."""
    types = {
        called: streams[name].schema[column].dataType
        for name, mine in columns.items()
        for column, called in mine.items()
        if called != TIME
    }
    tagged = {}
    for name in streams:
        i = query.names.index(name)
        source = bound.inputs[i]
        mine = {called: quoted(column) for column, called in columns[name].items()}
        time = quoted(str(source.on))
        hashed = sf.lit(0).cast("long")
        if how is not None:
            together = how.columns[name] or tuple(columns[name])
            hashed = sf.xxhash64(*(_comparable(source.schema.field(column).type, column) for column in together))
        whole = pa.types.is_integer(bound.time_type)
        keep = filters.get(name)
        tagged[name] = {
            INPUT: sf.lit(i),
            TIME: time.cast("long") if whole else time,
            KEY: hashed,
            KEEP: sf.lit(True) if keep is None else sf.coalesce(keep, sf.lit(False)),
            **of_all(mine, types),
        }
    return tagged


def _comparable(kind: pa.DataType, column: str) -> Column:
    """A column whose equal values have the same hash in every stream."""
    return quoted(column).cast(LongType()) if pa.types.is_integer(kind) else quoted(column)


def _job(
    query: JoinAggregate,
    asked: JoinAggregate,
    bound: BoundJoin,
    needed: Mapping[str, list[str]],
    columns: Names,
    relations: Mapping[str, pa.Table],
    how: Partitioning | None,
) -> JoinJob:
    """Make the job. `asked` is what is left of `query` once Spark has filtered."""
    schemas = {
        source.name: pa.schema([source.schema.field(column) for column in needed[source.name]])
        if source.name not in relations
        else relations[source.name].schema
        for source in bound.inputs
    }
    of_bucket = replace_unchecked(asked, having=None, order_by=(), k=None) if how is not None and how.adds_up else asked
    bound_bucket = bind(of_bucket, schemas)
    output = GroupsOutput(of_bucket, bound_bucket).schema
    streams = [source for source in bound.inputs if not source.is_relation]
    kinds = {
        source.name: {column: str(schemas[source.name].field(column).type) for column in source.keys}
        for source in streams
    }
    keys = shared(kinds, PREFIX + "key_")
    arguments = {source.name: len(source.arguments) for source in streams}
    numbers = [VALID, WEIGHT, *map(argument, range(max(arguments.values())))]
    rows = {called: schemas[name].field(column).type for name, mine in keys.items() for column, called in mine.items()}
    return JoinJob(
        window=Window(None, query.every, TIME),
        ticks=bound.slide,
        schema=pa.schema({INPUT: pa.int32(), TIME: bound.time_type, **dict.fromkeys(numbers, pa.int64()), **rows}),
        added=(),
        output=output,
        sources=(None,) * len(output),
        changes=not gives_windows(query.emit),
        is_spread=how is not None,
        fingerprint=query.fingerprint(schemas),
        plan=plan(of_bucket, spec=specify(of_bucket, bound_bucket)),
        query=of_bucket,
        columns=columns,
        keys=keys,
        arguments=arguments,
        schemas=schemas,
        relations=dict(relations),
    )


def _columns(tagged: Mapping[str, Column], job: JoinJob, buckets: int) -> list[Column]:
    columns = [tagged[name].alias(plain) for name, plain in job.plain_names.items()]
    if job.is_spread:
        columns.append(bucket_of_hash(tagged[KEY], buckets).alias(BUCKET))
    return columns
