"""Top-k for many queries on Spark: queries are dealt to buckets, and every row goes to each of them.

    rows ─ a copy for each bucket ─ pack by bucket ─ one session per bucket, with its queries ─ all answers

A query has all of its rows in one place, so its answers are those of the embedded engine, with nothing to merge. What a
row can matter to is found out in the bucket, by the index that runs there.

Where queries are a stream themselves, their changes are pages of another kind, each for the bucket of its key. In a
micro-batch, windows close that the watermark has passed, then queries change, then rows come.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from skyband.engines.embedded.many import ForEachSession
from skyband.engines.embedded.session import Stats
from skyband.engines.output import many_layout
from skyband.engines.spark.clock import watermarked
from skyband.engines.spark.copies import COPY, CopyGatherer
from skyband.engines.spark.gathering import Gatherer
from skyband.engines.spark.pages import PAGE_COLUMNS, BatchFunction, Tally, page_batch
from skyband.engines.spark.part import Part
from skyband.engines.spark.plan import run
from skyband.engines.spark.recipe import BUCKET, PREFIX, TIE, Recipe, arrow_schema, bucket, check_order, quoted, tie
from skyband.errors import InvalidQuery
from skyband.queries import TopKForEach
from skyband.queries.many import ADDS, CHANGE, FEED, VERSION


@dataclass(frozen=True)
class ManyRecipe(Recipe):
    """What a worker has to know of many queries."""

    query: TopKForEach
    buckets: int  # over which the queries are dealt
    come_and_go: bool  # are the queries a stream? Then there are none to begin with

    def open(self, state: bytes | None = None, *, external_clock: bool = False) -> BucketOfQueries:
        return BucketOfQueries(self, state, external_clock)

    def gatherer(self) -> Gatherer:
        return CopyGatherer(self)

    def take(self, session: Any, pages: Sequence[pa.Table]) -> pa.Table:
        changes = [page for page in pages if KIND in page.column_names]
        rows = [page for page in pages if KIND not in page.column_names]
        known = [] if not changes else [session.change(_in_order(pa.concat_tables(changes)))]
        if rows:
            known.append(session.push(self.in_arrival_order(rows)))
        return pa.concat_tables(known)

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
        if state is not None or recipe.come_and_go:
            self._open(recipe.query, state)

    def _open(self, query: TopKForEach, state: bytes | None) -> ForEachSession:
        self._session = ForEachSession(query, self._rows, state, external_clock=self._external_clock)
        return self._session

    def change(self, changes: pa.Table) -> pa.Table:
        assert self._session is not None, "it begins without queries"
        return self._session.change(changes, set_aside=True)

    def push(self, rows: pa.RecordBatch | pa.Table) -> pa.Table:
        session, before = self._session, []
        if session is None:
            session = self._open(self._recipe.queries_of(int(rows.column(COPY)[0].as_py())), None)
            before = [] if self._watermark is None else [session.advance(self._watermark)]
        known = session.push(rows.select(self._rows.names))
        if self._recipe.come_and_go:
            session.forget_rows()
        return pa.concat_tables([*before, known])

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


def queries_of(df: DataFrame) -> tuple[pa.Table, DataFrame | None]:
    """The queries in `df` and, if it is a stream, the changes by which they come and go: then there are none yet."""
    schema = arrow_schema(df.schema)
    if not df.isStreaming:
        return df.toArrow().cast(schema), None
    if CHANGE not in schema.names:
        raise InvalidQuery(
            f"A stream of queries says in the column {CHANGE!r} whether a row adds one ('insert') or removes it "
            f"('delete'). Where they only come: queries.withColumn({CHANGE!r}, lit('insert')). A table of queries is "
            "a batch DataFrame, in a pipeline a source with stream = false. Columns: "
            f"{', '.join(schema.names)}."
        )
    if marked := watermarked(df):
        raise InvalidQuery(
            f"The stream of queries has a watermark on {', '.join(map(repr, marked))}: windows would wait for it. "
            "Changes are taken when they come; leave it out."
        )
    return pa.schema([field for field in schema if field.name not in FEED]).empty_table(), df


def top_k_for_each(df: DataFrame, query: TopKForEach, changes: DataFrame | None = None) -> DataFrame:
    """The answers of many queries over `df`, batch or streaming, as `top_k` gives them for one.

    With `changes`, a stream, queries come and go while it runs: see `queries_of`.
    """
    if changes is not None and not df.isStreaming:
        raise InvalidQuery(
            "The queries are a stream, and the rows are not: nothing says which come first. Give the queries as a "
            "table or as a batch DataFrame, or the rows as a stream."
        )
    recipe = resolve(df, query, come_and_go=changes is not None)
    copies = [sf.struct(sf.lit(n).alias(BUCKET), sf.lit(n).alias(COPY)) for n in range(recipe.buckets)]
    mine = Part(
        recipe,
        columns=lambda _: [*(quoted(name).alias(plain) for name, plain in recipe.plain_names.items()), tie(df)],
        copies=lambda _: sf.array(*copies),
    )
    return run(df, recipe, mine.rows, None if changes is None else _changes(changes, recipe))


def resolve(df: DataFrame, query: TopKForEach, *, come_and_go: bool = False) -> ManyRecipe:
    """The recipe for `query` over `df`. Mistakes are found here, before Spark runs anything."""
    schema = arrow_schema(df.schema)
    check_order(query.window, schema)
    ticks = query.window.ticks(schema, query.lateness)
    query.open(schema)  # refuses what cannot be answered, and queries that cannot be told apart
    output = many_layout(query, schema, str(query.emit))
    shown = output.rows_schema.names
    asked = "queries that come and go" if come_and_go else _described(query.queries)
    return ManyRecipe(
        window=query.window,
        ticks=ticks,
        schema=pa.schema([*schema, pa.field(COPY, pa.int32())]),
        added=(COPY,),
        output=output.schema,
        sources=(*[None] * (len(output.schema) - len(shown)), *shown),
        changes=query.emit != "windows",
        is_spread=True,
        fingerprint=f"{query.fingerprint(schema)} for {asked}",
        query=query,
        buckets=_BUCKETS if come_and_go else max(1, min(_BUCKETS, len(query.queries))),
        come_and_go=come_and_go,
    )


def _described(queries: pa.Table) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for batch in queries.combine_chunks().to_batches():
        digest.update(repr(batch.to_pydict()).encode())
    return f"{len(queries)} queries {digest.hexdigest()}"


_BUCKETS = 4  # a row is copied to each, so no more than there are likely to be cores that have nothing else to do


# -- queries that come and go ------------------------------------------------------------------------------------------

KIND: Final = PREFIX + "change"  # what a change does: only pages of changes have this column
_ORDER: Final = PREFIX + "version"


def _changes(df: DataFrame, recipe: ManyRecipe) -> DataFrame:
    """Pages of the changes in `df`."""
    names = recipe.query.queries.column_names
    columns = [quoted(name).alias(f"{PREFIX}{i}") for i, name in enumerate(names)]
    version = quoted(VERSION) if VERSION in df.columns else sf.lit(0)
    columns += [quoted(CHANGE).cast("string").alias(KIND), version.cast("long").alias(_ORDER), tie(df)]
    placed = df.select(*columns, bucket(recipe.query.key, recipe.buckets))
    return placed.mapInArrow(_changes_packer(recipe.query.queries.schema), PAGE_COLUMNS)


def _changes_packer(schema: pa.Schema) -> BatchFunction:
    """For mapInArrow: changes as pages, one row a bucket."""

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if not batch.num_rows:
                continue
            table = pa.Table.from_batches([batch])
            buckets = table.column(BUCKET).to_numpy()
            table = table.drop_columns([BUCKET])
            extra = table.schema.names[len(schema) :]
            types = pa.schema([*schema, *(table.schema.field(name) for name in extra)])
            table = table.rename_columns(types.names).cast(types)
            pages = ((int(number), table.filter(pa.array(buckets == number))) for number in np.unique(buckets))
            yield page_batch(pages, Tally())

    return pack


def _in_order(changes: pa.Table) -> pa.Table:
    """The changes of a micro-batch as a session takes them: by version and, where that leaves it open, what goes before
    what comes, and then by a hash of their contents, which replays repeat."""
    comes = pc.is_in(changes.column(KIND), value_set=pa.array(ADDS))
    keyed = changes.append_column("comes", pc.cast(comes, pa.int8()))
    order = pc.sort_indices(keyed, sort_keys=[(name, "ascending") for name in (_ORDER, "comes", TIE)])
    kinds = changes.column(KIND)
    return changes.drop_columns([KIND, _ORDER, TIE]).append_column(CHANGE, kinds).take(order)
