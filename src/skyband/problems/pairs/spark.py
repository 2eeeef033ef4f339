"""Top-k pairs on Spark: every pair of rows meets in exactly one bucket, and Skyband merges the buckets' answers.

    rows ─ a copy for each cell ─ pack by cell ─ one session per cell ─ best k of the cells' answers

For windows by value that slide, rows are divided into parts. There is a cell for every two parts and for each part by
itself: a triangle of cells. A row goes to each cell of its part, as many as there are parts, and there meets the rows
of the other part. With `same`, both rows of a pair have one colour, so a row goes only to the cell of its colour. All
cells see the same watermark in a micro-batch, so their answers for a window come in the same one, and merging needs no
state.

With `per`, a bucket has whole groups, whose answers are final: there is nothing to merge.

If answers do not come window by window, or the times do not determine the rows of a window, there is one bucket.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from skyband.core.about import About, about
from skyband.core.distribution import by_pane
from skyband.core.emit import gives_windows
from skyband.core.encoding.output import best_of_parts
from skyband.core.query import replace_unchecked
from skyband.core.session import Session
from skyband.engines.spark.answering import answers_now
from skyband.engines.spark.bucket_job import (
    BUCKET,
    PREFIX,
    BucketJob,
    arrow_schema,
    bucket,
    check_order,
    ends_for_all,
    quoted,
    tie,
)
from skyband.engines.spark.gathering import COPY, Gatherer
from skyband.engines.spark.plan import output_type, run
from skyband.engines.spark.projection import InputProjection, Merge
from skyband.expressions import pairs as pair_expressions
from skyband.problems.pairs.codec import PairsCodec, output_of
from skyband.problems.pairs.drivers.scoring import scoring_of
from skyband.problems.pairs.planning import plan, specify
from skyband.problems.pairs.problem import PROBLEM
from skyband.problems.pairs.query import TopKPairs
from skyband.windows import Span

SIDE: Final = COPY  # of its cell: 1 or -1, the two parts; 0, a part by itself
ROW: Final = PREFIX + "row"  # TIE, once more, as a column of the row: answers are merged by it


@dataclass(frozen=True)
class PairsJob(BucketJob):
    """What a worker has to know of a top-k pairs query."""

    query: TopKPairs  # what a bucket is asked

    def open(self, bucket: int, state: bytes | None = None, *, external_clock: bool = False) -> Session:
        return Session(PairsCodec(self.query, self.schema, external_clock=external_clock), state, self.plan)

    def about(self) -> About | None:
        return about(self.query, self.schema)

    def gatherer(self) -> Gatherer:
        return Gatherer(self)


def top_k_pairs(df: DataFrame, query: TopKPairs) -> DataFrame:
    """The k best pairs of rows of a window as it slides over `df`, batch or streaming.

    As for `top_k`, a streaming result is written in append mode, or in update mode if windows are
    not given whole. Rows of equal time are put in order by a hash of their contents.
    """
    mine = projection(df, query)
    return mine.merged(run(df, mine.job, mine.rows))


def projection(df: DataFrame, query: TopKPairs) -> InputProjection:
    job = resolve(df, query)
    if not job.is_spread or query.per:
        return InputProjection(job, columns=lambda buckets: _columns(df, job, buckets))
    whole = output_type(df.schema, job)
    return InputProjection(
        job,
        columns=lambda buckets: _columns(df, job, buckets),
        copies=None if query.same else lambda buckets: _cells(sf.pmod(tie(df), sf.lit(parts_of(buckets))), buckets),
        merge=merger(job, query),
        merged_type=StructType([field for field in whole if field.name[2:] not in job.added]),
    )


def resolve(df: DataFrame, query: TopKPairs) -> PairsJob:
    """The job for `query` over `df`. Mistakes are found here, before Spark runs anything."""
    schema = arrow_schema(df.schema)
    query.check_columns(schema.names)
    check_order(query.window, schema)
    ticks = query.window.ticks(schema, query.lateness)
    score = pair_expressions.bind(query.by, query.where, query.ascending, schema)
    scoring = scoring_of(score, same=bool(query.same), different=bool(query.different))
    chosen = plan(specify(query, schema, scoring), query.algorithm)
    is_spread = PROBLEM.distribution(query).is_spread
    is_spread = is_spread and not (ends_for_all([df], query.emit) and by_pane(ticks))
    is_merged = is_spread and not query.per
    added = [pa.field(ROW, pa.int64())] if is_merged else []
    where = query.where
    if is_merged and not query.same:
        added.append(pa.field(SIDE, pa.int32()))
        across = f"a.`{SIDE}` * b.`{SIDE}` <= 0"
        where = across if where is None else f"({where}) AND {across}"
    asked = replace_unchecked(query, where=where, lateness=None)
    rows = pa.schema([*schema, *added])
    output = output_of(asked, rows, str(query.emit), score.type).schema
    others = [name for name in rows.names if name not in query.per]
    sources = [name if name in schema.names else None for name in others]
    lead = [None] * (len(output) - 2 * len(others) - len(query.per) - 2)
    return PairsJob(
        window=query.window,
        ticks=ticks,
        schema=rows,
        added=tuple(field.name for field in added),
        output=output,
        sources=(*lead, *query.per, None, None, *sources, *sources),
        changes=not gives_windows(query.emit),
        is_spread=is_spread,
        fingerprint=query.fingerprint(schema),
        plan=chosen,
        query=asked,
    )


def parts_of(buckets: int) -> int:
    """How many parts make a triangle of no more cells than there are buckets.

    >>> [parts_of(buckets) for buckets in (1, 2, 3, 16)]
    [1, 1, 2, 5]
    """
    return (math.isqrt(8 * buckets + 1) - 1) // 2


def _columns(df: DataFrame, job: PairsJob, buckets: int) -> list[Column]:
    """What is needed of a row, besides its cells."""
    columns = [quoted(name).alias(plain) for name, plain in job.plain_names.items()]
    columns.append(tie(df))
    if job.is_spread:
        if job.query.per:
            columns.append(bucket(job.query.per, buckets))
            return columns
        columns.append(tie(df).alias(ROW))
        if job.query.same:
            columns.append(bucket(job.query.same, buckets))
    return columns


def _cells(part: Column, buckets: int) -> Column:
    """The cells that a part is in, and the side on which it is there. Cell (p, q) has number q (q + 1) / 2 + p."""

    def cell(other: Column) -> Column:
        low, high = sf.least(part, other), sf.greatest(part, other)
        number = (sf.call_function("div", high * (high + 1), sf.lit(2)) + low).cast("int")
        return sf.struct(number.alias(BUCKET), sf.signum(other - part).cast("int").alias(SIDE))

    return sf.transform(sf.sequence(sf.lit(0).cast("long"), sf.lit(parts_of(buckets) - 1).cast("long")), cell)


def answer_now(query: TopKPairs, sessions: Sequence[Session], k: int | None, size: Span | None) -> pa.Table:
    """The best pairs right now, of all cells."""
    answers = answers_now(PairsCodec(query, sessions[0].schema), sessions, k, size)
    added = [name for name in sessions[0].schema.names if name.startswith(PREFIX)]
    return best_of_cells(answers, query, added, query.k if k is None else k) if added else answers


def merger(job: PairsJob, query: TopKPairs) -> Merge:
    """The best k of the cells' answers about each window, with the columns that the user knows."""
    added = job.added

    def merge(answers: pa.Table) -> pa.Table:
        return best_of_cells(answers, query, added, query.k)

    return merge


def best_of_cells(answers: pa.Table, query: TopKPairs, added: Sequence[str], k: int) -> pa.Table:
    """The best k of what the cells say of each window, without the columns that were added to rows."""
    recent = [f"{side}_{name}" for side in "ab" for name in (query.window.on, query.window.order, ROW) if name]
    keys = [("score", "ascending" if query.ascending else "descending")]
    keys += [(name, "descending") for name in recent]
    shown = [name for name in answers.column_names if name[2:] not in added]
    return best_of_parts(answers, keys, k).select(shown)
