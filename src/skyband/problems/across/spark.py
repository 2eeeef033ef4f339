"""Top-k across streams on Spark: it tags and unites the streams, hashes objects to buckets, and merges their answers.

    streams ─ tag ─ union ─ pack by object ─ one session per bucket ─ the best of all buckets, per window

All rows of an object go to one bucket, whose session is exact for its objects. All buckets have the same watermark, so
their answers for a window come in one micro-batch, and the best k of them are the answer; merging needs no state. If
the watermark does not close windows (windows of arrivals, and answers with each arrival), there is one bucket.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from skyband.core.about import About, about
from skyband.core.emit import gives_windows
from skyband.core.encoding.output import AdHoc, best_of_parts, free_name
from skyband.core.query import replace_unchecked
from skyband.engines.spark.bucket_job import (
    PREFIX,
    BucketJob,
    arrow_schema,
    bucket,
    check_no_jump,
    check_order,
    quoted,
    tie,
)
from skyband.engines.spark.gathering import Gatherer
from skyband.engines.spark.jumps import without_jumps
from skyband.engines.spark.pages import Tally
from skyband.engines.spark.plan import BUCKETS_SETTING, output_type, run
from skyband.engines.spark.projection import InputProjection, Merge
from skyband.errors import InvalidQuery
from skyband.expressions import as_floats, check_exact
from skyband.problems.across.codec import AcrossCodec, output_of
from skyband.problems.across.operator import AcrossAnswer
from skyband.problems.across.planning import idle_ticks, plan, specify
from skyband.problems.across.problem import PROBLEM
from skyband.problems.across.query import TopKAcross
from skyband.problems.across.session import AcrossSession
from skyband.windows import Span

STREAM: Final = PREFIX + "stream"
LATEST: Final = PREFIX + "latest"  # the time of an object's most recent row, which decides between equal scores


@dataclass(frozen=True)
class AcrossJob(BucketJob):
    """What a worker needs to know about a top-k query across streams."""

    query: TopKAcross

    def open(self, bucket: int, state: bytes | None = None, *, external_clock: bool = False) -> AcrossSession:
        return AcrossSession(BucketCodec(self.query, self.schema, external_clock=external_clock), state, self.plan)

    def about(self) -> About | None:
        return about(self.query, self.schema)

    def gatherer(self) -> Gatherer:
        return CountingGatherer(self)


class BucketCodec(AcrossCodec):
    """A codec whose answers also have the time of each object's most recent row."""

    def __init__(self, query: TopKAcross, schema: pa.Schema, *, external_clock: bool = False) -> None:
        super().__init__(query, schema, external_clock=external_clock)
        self.output_schema = self.output_schema.append(pa.field(LATEST, pa.int64()))

    def decode(self, answer: AcrossAnswer, rows: pa.RecordBatch | None, ad_hoc: AdHoc | None) -> pa.Table:
        return super().decode(answer, rows, ad_hoc).append_column(LATEST, pa.array(answer.time))


class CountingGatherer(Gatherer):
    """Counts rows without a value, and those that may turn out to be late."""

    _job: AcrossJob

    def prepare(self, table: pa.Table) -> tuple[pa.Table, Tally]:
        unranked = ~self.timeless(table)
        for name in dict.fromkeys(self._job.query.values):
            check_exact(table.column(name), f"value={name!r}")
            unranked &= np.isnan(as_floats(table.column(name), table.num_rows, "a value"))
        rows, tally = super().prepare(table)
        tally.rows_unranked = int(unranked.sum())
        return rows, tally


def top_k_across(data: DataFrame | Mapping[str, DataFrame], query: TopKAcross) -> DataFrame:
    """Rank the k best objects of a window across streams, batch or streaming, as `skyband.top_k_across`.

    Among objects with equal scores and equal times of their most recent rows, the one in the earlier bucket comes
    first.
    """
    if isinstance(data, Mapping):
        for name in query.streams:
            query.check_columns(data[name].columns, name)
        columns = query.columns(())
        called = query.value if isinstance(query.value, str) else free_name("value", set(columns))
        tagged = [
            data[name].select(
                *(quoted(column) for column in columns if column != called),
                quoted(value).alias(called),
                sf.lit(name).alias(STREAM),
            )
            for name, value in zip(query.streams, query.values, strict=True)
        ]
        return _top_k(reduce(DataFrame.unionByName, tagged), replace_unchecked(query, value=called), STREAM)
    query.check_columns(data.columns)
    if query.stream is None:
        return _top_k(data.withColumn(STREAM, sf.lit(query.streams[0])), query, STREAM)
    return _top_k(data, query, query.stream)


def _top_k(df: DataFrame, query: TopKAcross, stream: str) -> DataFrame:
    df = without_jumps(df, query)
    mine = _projection(df, query, stream)
    answers = run(df, mine.job, mine.rows)
    return mine.merged(answers) if mine.job.is_spread else answers.drop(LATEST)


def _projection(df: DataFrame, query: TopKAcross, stream: str) -> InputProjection:
    job = _resolve(df, query, stream)
    shown = StructType([field for field in output_type(df.schema, job) if field.name != LATEST])
    return InputProjection(
        job,
        columns=lambda buckets: _columns(df, job, buckets),
        merge=best_of_all(query.k, None if query.recall is None else shown[-1].name),
        merged_type=shown,
    )


def reopened(query: TopKAcross, schema: pa.Schema, snapshot: bytes, *, external_clock: bool) -> AcrossSession:
    """The session of a bucket, for a reader of the state."""
    return AcrossSession(BucketCodec(query, schema, external_clock=external_clock), snapshot)


def answer_now(query: TopKAcross, sessions: Sequence[AcrossSession], k: int | None, size: Span | None) -> pa.Table:
    """The ranking right now, of the one bucket."""
    if len(sessions) > 1:
        raise InvalidQuery(
            f"The rankings that {len(sessions)} buckets have right now cannot be merged: each bucket ranks as of its "
            "own latest row. Possible: the windows that have closed, from the sink; or one bucket "
            f"({BUCKETS_SETTING}=1)."
        )
    return sessions[0].top(k, size).drop_columns([LATEST])


def best_of_all(k: int, recall: str | None = None) -> Merge:
    """Make the function that merges the buckets' answers: it ranks the k best objects of each window.

    `recall` names the column with the recall. That of a window is the mean over its objects of the recall of their
    buckets; null if one of these is null.
    """
    keys = [("score", "descending"), (LATEST, "descending"), ("rank", "ascending")]

    def merge(answers: pa.Table) -> pa.Table:
        rows = best_of_parts(answers, keys, k).drop_columns([LATEST])
        if recall is not None:
            window = rows["window_end"].combine_chunks().dictionary_encode().indices.to_numpy()
            mean = np.bincount(window, rows[recall].to_numpy()) / np.bincount(window)
            rows = rows.set_column(rows.schema.names.index(recall), recall, pa.array(mean[window], from_pandas=True))
        return rows

    return merge


def _resolve(df: DataFrame, query: TopKAcross, stream: str) -> AcrossJob:
    """Make the job for `query` over `df`, whose column `stream` names the stream of each row."""
    added = [stream] if stream == STREAM else []
    whole = arrow_schema(df.drop(*added).schema)
    check_order(query.window, whole)
    chosen = plan(specify(query, whole), query.algorithm)
    ticks = query.window.ticks(whole, query.lateness)
    # All streams share one watermark, which follows the fastest, so it must wait as long as any stream may be behind.
    ticks = replace(ticks, lateness=ticks.lateness + idle_ticks(query, whole))
    check_no_jump(df, query.max_jump)
    fields = [whole.field(name) for name in query.columns(query.values)]
    schema = pa.schema([*fields, *(pa.field(name, pa.string()) for name in added)])
    output = output_of(query, whole, str(query.emit)).schema
    return AcrossJob(
        window=query.window,
        ticks=ticks,
        schema=schema,
        added=tuple(added),
        output=output.append(pa.field(LATEST, pa.int64())),
        sources=(*[None] * 4, *query.ids, *[None] * (len(output) - 4 - len(query.ids)), None),
        changes=not gives_windows(query.emit),
        is_spread=PROBLEM.distribution(query).is_spread,
        fingerprint=query.fingerprint(whole),
        plan=chosen,
        # In a bucket, a column names the stream of each row, and Spark does the waiting.
        query=replace_unchecked(query, stream=stream, lateness=None, idle_after=None, max_jump=None),
    )


def _columns(df: DataFrame, job: AcrossJob, buckets: int) -> list[Column]:
    columns = [quoted(name).alias(plain) for name, plain in job.plain_names.items()]
    columns += [quoted(name) for name in job.added]
    columns.append(tie(df))
    if job.is_spread:
        columns.append(bucket(job.query.ids, buckets))
    return columns
