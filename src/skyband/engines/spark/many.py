"""Top-k for many queries on Spark: queries are dealt to buckets, and every row goes to each of them.

    rows ─ a copy for each bucket ─ pack by bucket ─ one session per bucket, with its queries ─ all answers

A query has all of its rows in one place, so its answers are those of the embedded engine, with nothing to merge. What a
row can matter to is found out in the bucket, by the index that runs there.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from skyband.engines.embedded.many import ForEachSession
from skyband.engines.embedded.session import Stats
from skyband.engines.output import many_layout
from skyband.engines.spark.copies import COPY, CopyGatherer
from skyband.engines.spark.gathering import Gatherer
from skyband.engines.spark.plan import run
from skyband.engines.spark.recipe import BUCKET, Recipe, arrow_schema, check_order, quoted, tie
from skyband.queries import TopKForEach


@dataclass(frozen=True)
class ManyRecipe(Recipe):
    """What a worker has to know of many queries."""

    query: TopKForEach
    buckets: int  # over which the queries are dealt

    def open(self, state: bytes | None = None, *, external_clock: bool = False) -> BucketOfQueries:
        return BucketOfQueries(self, state, external_clock)

    def gatherer(self) -> Gatherer:
        return CopyGatherer(self)

    def queries_of(self, bucket: int) -> TopKForEach:
        return self.query.of(self.query.queries.take(np.arange(bucket, len(self.query.queries), self.buckets)))


class BucketOfQueries:
    """A session that knows its queries once the first rows say which bucket it is; a snapshot has them."""

    def __init__(self, recipe: ManyRecipe, state: bytes | None, external_clock: bool) -> None:
        self._recipe = recipe
        self._external_clock = external_clock
        self._rows = pa.schema([field for field in recipe.schema if field.name not in recipe.added])
        self._watermark: int | None = None
        self._session: ForEachSession | None = None
        if state is not None:
            self._open(recipe.query, state)

    def _open(self, query: TopKForEach, state: bytes | None) -> ForEachSession:
        self._session = ForEachSession(query, self._rows, state, external_clock=self._external_clock)
        return self._session

    def push(self, rows: pa.RecordBatch | pa.Table) -> pa.Table:
        session, before = self._session, []
        if session is None:
            session = self._open(self._recipe.queries_of(int(rows.column(COPY)[0].as_py())), None)
            before = [] if self._watermark is None else [session.advance(self._watermark)]
        return pa.concat_tables([*before, session.push(rows.select(self._rows.names))])

    def advance(self, watermark: int) -> pa.Table:
        self._watermark = watermark
        return self._recipe.output.empty_table() if self._session is None else self._session.advance(watermark)

    def next_close(self) -> int | None:
        return None if self._session is None else self._session.next_close()

    def finish(self) -> pa.Table:
        return self._recipe.output.empty_table() if self._session is None else self._session.finish()

    def stats(self) -> Stats:
        return Stats() if self._session is None else self._session.stats()

    def snapshot(self) -> bytes:
        assert self._session is not None, "a bucket is saved after it has got rows"
        return self._session.snapshot()


def top_k_for_each(df: DataFrame, query: TopKForEach) -> DataFrame:
    """The answers of many queries over `df`, batch or streaming, as `top_k` gives them for one."""
    recipe = resolve(df, query)
    return run(df, recipe, lambda df, buckets: _rows_to_gather(df, recipe))


def resolve(df: DataFrame, query: TopKForEach) -> ManyRecipe:
    """The recipe for `query` over `df`. Mistakes are found here, before Spark runs anything."""
    schema = arrow_schema(df.schema)
    check_order(query.window, schema)
    ticks = query.window.ticks(schema, query.lateness)
    query.open(schema)  # refuses what cannot be answered, and queries that cannot be told apart
    output = many_layout(query, schema, str(query.emit))
    shown = output.rows_schema.names
    digest = hashlib.blake2b(digest_size=8)
    for batch in query.queries.combine_chunks().to_batches():
        digest.update(repr(batch.to_pydict()).encode())
    return ManyRecipe(
        window=query.window,
        ticks=ticks,
        schema=pa.schema([*schema, pa.field(COPY, pa.int32())]),
        added=(COPY,),
        output=output.schema,
        sources=(*[None] * (len(output.schema) - len(shown)), *shown),
        changes=query.emit != "windows",
        is_spread=True,
        fingerprint=f"{query.fingerprint(schema)} for {len(query.queries)} queries {digest.hexdigest()}",
        query=query,
        buckets=max(1, min(_BUCKETS, len(query.queries))),
    )


_BUCKETS = 4  # a row is copied to each, so no more than there are likely to be cores that have nothing else to do


def _rows_to_gather(df: DataFrame, recipe: ManyRecipe) -> DataFrame:
    columns = [quoted(name).alias(plain) for name, plain in recipe.plain_names.items()]
    numbers = sf.sequence(sf.lit(0), sf.lit(recipe.buckets - 1))
    rows = df.select(*columns, tie(df), sf.explode(numbers).alias(BUCKET))
    return rows.withColumn(COPY, sf.col(BUCKET))
