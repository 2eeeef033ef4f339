"""Subscriptions on Spark: each query lives in one bucket, and a row goes to the buckets that it can matter to.

    rows ─ where to ─ pack by bucket ─ one session per bucket, with its queries ─ all answers

A bucket gets every row that can matter to its queries, so their answers are those of the embedded engine, with nothing
to merge. `spark_routing.py` sends a row to buckets by the condition of the queries, and `spark_sifting.py` by what they
can show. If neither applies, a row goes to every bucket.

If the queries are a stream, their changes are pages of another kind. A micro-batch first closes the windows that the
watermark has passed, then changes queries, then takes rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from skyband.core.about import About, about
from skyband.core.emit import gives_windows
from skyband.core.query import replace_unchecked
from skyband.engines.spark.bucket_job import (
    BUCKET,
    PREFIX,
    TIE,
    BucketJob,
    arrow_schema,
    bucket,
    check_no_jump,
    check_order,
    quoted,
    tie,
)
from skyband.engines.spark.clock import watermarked
from skyband.engines.spark.gathering import COPY, Gatherer
from skyband.engines.spark.journal import Recorded
from skyband.engines.spark.jumps import without_jumps
from skyband.engines.spark.pages import PAGE_COLUMNS, BatchFunction, Ints, Tally, page_batch
from skyband.engines.spark.plan import buckets_of, run
from skyband.engines.spark.projection import InputProjection
from skyband.errors import InvalidQuery
from skyband.problems.subscriptions.codec import SubscriptionsCodec, kept_schema, output_of
from skyband.problems.subscriptions.query import ADDS, CHANGE, FEED, VERSION, TopKForEach
from skyband.problems.subscriptions.session import SubscriptionsSession
from skyband.problems.subscriptions.spark_routing import (
    Meeting,
    QueriesGatherer,
    bucket_of_query,
    bucket_of_row,
    buckets_of_table,
    meetings,
    needs_only_what_it_shows,
    sifted,
)
from skyband.problems.subscriptions.spark_sifting import Panes, panes_of
from skyband.windows import Span


@dataclass(frozen=True)
class SubscriptionJob(BucketJob):
    """What a worker needs to know about subscriptions."""

    query: TopKForEach
    buckets: int  # in which the queries live
    homes: Ints | None  # the bucket of each query; None: queries are a stream, and there are none yet
    meet_by: tuple[Meeting, ...]  # the equalities that send a row to its bucket; empty: it goes to every bucket
    panes: Panes | None  # rows that no query shows in their pane are dropped; None: no row is dropped

    @property
    def everywhere(self) -> int:
        """The bucket number that means: the row goes to every bucket."""
        return self.buckets

    def open(self, bucket: int, state: bytes | None = None, *, external_clock: bool = False) -> SubscriptionsSession:
        query = self.query
        if state is None and self.homes is not None:  # a snapshot contains its queries
            query = query.of(query.queries.filter(pa.array(self.homes == bucket)))
        return SubscriptionsSession(
            SubscriptionsCodec(query, self.schema, external_clock=external_clock), state, self.plan
        )

    def about(self) -> About | None:
        return about(self.query, self.schema)

    def gatherer(self) -> Gatherer:
        return QueriesGatherer(self)

    def take(self, session: Recorded, pages: Sequence[pa.Table]) -> pa.Table:
        changes = [page for page in pages if KIND in page.column_names]
        rows = [page for page in pages if KIND not in page.column_names]
        known = [self.output.empty_table()]
        if changes:
            changed, elsewhere = _in_order(pa.concat_tables(changes))
            known.append(session.change(changed, elsewhere))
        if rows:
            known.append(session.push(self.in_arrival_order(rows)))
        if self.homes is None:
            session.forget_rows()
        return pa.concat_tables(known)


def answer_now(
    query: TopKForEach, sessions: Sequence[SubscriptionsSession], k: int | None, size: Span | None
) -> pa.Table:
    """The ranking of each query right now. A query is in one of the buckets."""
    return pa.concat_tables([session.top(k, size) for session in sessions])


def queries_of(df: DataFrame) -> tuple[pa.Table, DataFrame | None]:
    """The queries in `df`. If `df` is a stream, there are no queries yet, and it contains their changes."""
    schema = arrow_schema(df.schema)
    if not df.isStreaming:
        return df.toArrow().cast(schema), None
    if CHANGE not in schema.names:
        raise InvalidQuery(
            f"A stream of queries says in the column {CHANGE!r} whether a row adds one ('insert') or removes it "
            f"('delete'). If queries are only added: queries.withColumn({CHANGE!r}, lit('insert')). A table of queries "
            "is "
            "a batch DataFrame, in a pipeline a source with stream = false. Columns: "
            f"{', '.join(schema.names)}."
        )
    if marked := watermarked(df):
        raise InvalidQuery(
            f"The stream of queries has a watermark on {', '.join(map(repr, marked))}: windows would wait for it. "
            "Leave it out: changes apply when they arrive."
        )
    return pa.schema([field for field in schema if field.name not in FEED]).empty_table(), df


def top_k_for_each(df: DataFrame, query: TopKForEach, changes: DataFrame | None = None) -> DataFrame:
    """Answer all queries over `df`, batch or streaming, as `top_k` answers one.

    With the stream `changes`, queries come and go while it runs: see `queries_of`.
    """
    if changes is not None and not df.isStreaming:
        raise InvalidQuery(
            "The queries are a stream, but the rows are not, so their order is unknown. Pass the queries as a table or "
            "a batch DataFrame, or the rows as a stream."
        )
    df = without_jumps(df, query)
    job = resolve(df, query, come_and_go=changes is not None)
    columns = [*(quoted(name).alias(plain) for name, plain in job.plain_names.items()), tie(df)]
    if job.meet_by:
        columns.append(bucket_of_row(df, job.meet_by, job.buckets))
    copies = [sf.struct(sf.lit(n).alias(BUCKET), sf.lit(n).alias(COPY)) for n in range(job.buckets)]
    # Spark sorts a batch bucket by bucket. In a stream, workers put the same rows into several pages.
    are_copied = not df.isStreaming and not job.meet_by and job.panes is None
    mine = InputProjection(job, lambda _: columns, (lambda _: sf.array(*copies)) if are_copied else None)

    def rows_of(df: DataFrame, buckets: int) -> DataFrame:
        rows = mine.rows(df, buckets)
        return rows if df.isStreaming or job.panes is None else sifted(rows, job)

    return run(df, job, rows_of, None if changes is None else _changes(changes, job))


def resolve(df: DataFrame, query: TopKForEach, *, come_and_go: bool = False) -> SubscriptionJob:
    """The job for `query` over `df`. Mistakes are found here, before Spark runs anything."""
    schema = arrow_schema(df.schema)
    check_order(query.window, schema)
    check_no_jump(df, query.max_jump)
    ticks = query.window.ticks(schema, query.lateness)
    session = query.open(schema)  # raises if the query cannot be answered, or queries cannot be told apart
    output = output_of(query, schema, str(query.emit))
    shown = kept_schema(query, schema).names
    is_choosy = needs_only_what_it_shows(df, query, ticks)
    meet_by = meetings(df, schema, query) if is_choosy else ()
    # To sift a batch, its rows cross to Python once more. If no row is copied, that costs more than it saves.
    is_sifted = is_choosy and not come_and_go and (df.isStreaming or not meet_by)
    few = _BUCKETS if come_and_go else max(1, min(_BUCKETS, len(query.queries)))
    buckets = buckets_of(df) if meet_by else few
    asked = "queries that come and go" if come_and_go else _described(query.queries)
    meeting = "".join(f" by {each.row} = q.{each.query}" for each in meet_by)
    return SubscriptionJob(
        window=query.window,
        ticks=ticks,
        schema=schema,
        added=(),
        output=output.schema,
        sources=(*[None] * (len(output.schema) - len(shown)), *shown),
        changes=not gives_windows(query.emit),
        is_spread=True,
        fingerprint=f"{query.fingerprint(schema)} for {asked}{meeting}",
        plan=session.plan,
        query=replace_unchecked(query, max_jump=None),  # a bucket does not see all rows
        buckets=buckets,
        homes=None if come_and_go else _homes(df, query.queries, meet_by, buckets),
        meet_by=meet_by,
        panes=panes_of(session.sizes, ticks.every) if is_sifted else None,
    )


def _homes(df: DataFrame, queries: pa.Table, meet_by: tuple[Meeting, ...], buckets: int) -> Ints:
    """The bucket of each query."""
    if meet_by:
        return buckets_of_table(df, queries, meet_by, buckets)
    return np.arange(len(queries)) % buckets


def _described(queries: pa.Table) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for batch in queries.combine_chunks().to_batches():
        digest.update(repr(batch.to_pydict()).encode())
    return f"{len(queries)} queries {digest.hexdigest()}"


_BUCKETS = 4  # a row is copied to each, so there are no more than cores that are likely to be idle


# -- queries that come and go ------------------------------------------------------------------------------------------

KIND: Final = PREFIX + "change"  # what a change does: only pages of changes have this column
HERE: Final = PREFIX + "here"  # does the page's bucket own this change: is the query added, or counted, there?
_ORDER: Final = PREFIX + "version"


def _changes(df: DataFrame, job: SubscriptionJob) -> DataFrame:
    """The changes in `df` as pages."""
    names = job.query.queries.column_names
    columns = [quoted(name).alias(f"{PREFIX}{i}") for i, name in enumerate(names)]
    version = quoted(VERSION) if VERSION in df.columns else sf.lit(0)
    columns += [quoted(CHANGE).cast("string").alias(KIND), version.cast("long").alias(_ORDER), tie(df)]
    meet_by, buckets = job.meet_by, job.buckets
    home = bucket_of_query(meet_by, buckets) if meet_by else bucket(job.query.key, buckets)
    return df.select(*columns, home).mapInArrow(_changes_packer(job), PAGE_COLUMNS)


def _changes_packer(job: SubscriptionJob) -> BatchFunction:
    """For mapInArrow: turn changes into pages, with one row for each bucket.

    If a query's values say in which bucket it lives, every bucket gets every change: a change does not say where a
    query lived before it was removed, or before its values changed.
    """
    schema = job.query.queries.schema

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if not batch.num_rows:
                continue
            table = pa.Table.from_batches([batch])
            homes = table.column(BUCKET).to_numpy()
            table = table.drop_columns([BUCKET])
            extra = table.schema.names[len(schema) :]
            types = pa.schema([*schema, *(table.schema.field(name) for name in extra)])
            table = table.rename_columns(types.names).cast(types)
            yield page_batch(_pages(table, homes, job), Tally())

    return pack


def _pages(changes: pa.Table, homes: npt.NDArray[np.int32], job: SubscriptionJob) -> Iterator[tuple[int, pa.Table]]:
    for number in range(job.buckets) if job.meet_by else np.unique(homes).tolist():
        is_here = pa.array(homes == number)
        page = changes.append_column(HERE, is_here)
        yield number, page if job.meet_by else page.filter(is_here)


def _in_order(changes: pa.Table) -> tuple[pa.Table, npt.NDArray[np.bool_]]:
    """Sort the changes of a micro-batch: by version, then removals before additions, then by a hash of their contents,
    which a replay repeats. Also returns which changes belong to another bucket."""
    comes = pc.is_in(changes.column(KIND), value_set=pa.array(ADDS))
    keyed = changes.append_column("comes", pc.cast(comes, pa.int8()))
    order = pc.sort_indices(keyed, sort_keys=[(name, "ascending") for name in (_ORDER, "comes", TIE)])
    changes = changes.take(order)
    kinds, elsewhere = changes.column(KIND), pc.invert(changes.column(HERE))
    return changes.drop_columns([KIND, _ORDER, TIE, HERE]).append_column(CHANGE, kinds), elsewhere.to_numpy()
