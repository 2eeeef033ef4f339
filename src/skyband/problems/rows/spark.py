"""Top-k on Spark. A bucket has many groups, and most rows never get there.

    rows ─ score ─ sieve ─ pack by bucket ─ one session per bucket ─ count ─ unpack

The sieve drops rows that no answer can show. It works for windows by value that slide by panes. In a window of arrivals
it cannot drop rows: how long a row stays depends on how many rows follow, which is known only where all rows are
together and in order. And in a window that slides with each arrival, every row may be in the answer for a moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import NumericType

from skyband import expressions
from skyband.core.about import About, about
from skyband.core.distribution import by_pane
from skyband.core.emit import gives_windows
from skyband.core.query import replace_unchecked
from skyband.core.session import Session
from skyband.engines.spark.answering import answers_now
from skyband.engines.spark.arrow_types import as_arrow
from skyband.engines.spark.bucket_job import (
    BucketJob,
    arrow_schema,
    bucket,
    check_no_jump,
    check_order,
    ends_for_all,
    quoted,
    tie,
)
from skyband.engines.spark.gathering import Gatherer
from skyband.engines.spark.jumps import without_jumps
from skyband.engines.spark.jvm import JAR
from skyband.engines.spark.plan import run
from skyband.engines.spark.projection import InputProjection
from skyband.engines.spark.sieving import JvmSieve, is_attached, sieve_of
from skyband.errors import InvalidExpression, InvalidQuery, SkybandError, UnknownColumn
from skyband.expressions import Score
from skyband.expressions.sort_keys import bind_ranking
from skyband.problems.rows.codec import RowsCodec, kept_schema, output_of
from skyband.problems.rows.planning import plan, specify
from skyband.problems.rows.problem import PROBLEM
from skyband.problems.rows.query import TopK
from skyband.problems.rows.spark_candidates import GROUP, SCORE, CandidateGatherer, KeyedGatherer, group_key, weight
from skyband.windows import Span


@dataclass(frozen=True)
class TopKJob(BucketJob):
    """What a worker needs to know about a top-k query."""

    query: TopK  # the query of a bucket: it ranks by the column SCORE
    score: Score | None  # a Python function that workers call; None if Spark computes SCORE
    text: str = "the score"  # the score as the user wrote it

    @property
    def is_sieved(self) -> bool:
        """Does a sieve drop rows before they are packed? It needs a score that is one number. It keeps k rows, so it
        does not work if more rows may share the k-th rank."""
        return self.by_pane and not isinstance(self.query.by, tuple) and self.query.ties is None

    def open(self, bucket: int, state: bytes | None = None, *, external_clock: bool = False) -> Session:
        return Session(RowsCodec(self.query, self.schema, external_clock=external_clock), state, self.plan)

    def about(self) -> About | None:
        return about(self.query, self.schema)

    def gatherer(self) -> Gatherer:
        return KeyedGatherer(self) if isinstance(self.query.by, tuple) else CandidateGatherer(self)

    @property
    def keeps_the_latest(self) -> bool:
        return self.is_sieved


def top_k(df: DataFrame, query: TopK, score: Column | None = None) -> DataFrame:
    """Rank the k best rows of a window as it slides over `df`, batch or streaming, with the columns of `skyband.top_k`.

    `score` is the column that ranks rows, if the user gave a Column; the query then has its text.

    Write a streaming result in append mode, or in update mode if the query emits changes or entries. Windows close when
    the watermark reaches their end: the watermark that the user set on the window's column, or one that waits for
    `lateness`. Spark's watermark starts in 1970, so earlier windows close only when it has passed that year.

    Each micro-batch reports rows_in, rows_late, rows_null_time, rows_unranked and rows_missed in the progress of the
    streaming query, under `observedMetrics`, in an entry whose name starts with "skyband".

    Groups are hashed to `spark.skyband.buckets` buckets of state: 16 unless set, and about 8 a core is right. A
    checkpoint belongs to one number of buckets.
    """
    given = score is not None
    df = without_jumps(df, query)
    job, score = resolve(df, query, score)
    if given and score is not None:
        # Computed once, so that answers show the values that were compared, even if the column is random.
        df, score = df.withColumn(SCORE, score), sf.col(SCORE)
    asked = projection(df, job, score)
    return run(df, job, asked.rows, sieve=asked.sieve)


def projection(df: DataFrame, job: TopKJob, score: Column | None) -> InputProjection:
    """The columns and rows that the job needs; without a sieve, every row."""
    found = jvm_sieve(df, job, score)
    sieve = found if isinstance(found, JvmSieve) else None
    return InputProjection(
        job,
        columns=lambda buckets: _columns(df, job, score, buckets),
        weigh=(lambda where: weight(df, job, score, where, sieve)) if job.is_sieved else None,
        sieve=sieve,
    )


def jvm_sieve(df: DataFrame, job: TopKJob, score: Column | None) -> JvmSieve | str:
    """The sieve that drops rows in the JVM; or a text that says why Python has the sieve, or why there is none."""
    if not job.by_pane:
        return "none: an answer of such a window may show every row"
    if job.query.ties is not None:
        return "none: an answer may show any number of equal rows"
    if not job.is_sieved:
        return "none: it can rule out rows only if one number ranks them"
    if score is None:
        return "in Python, which computes the score"
    if not df.isStreaming:
        return "in Python, since this is no stream"
    if not is_attached(df.sparkSession):
        return f"in Python, since this session lacks {JAR.name}: see skyband.engines.spark.jvm.JAR"
    query = job.query
    time_type, score_type = df.schema[str(query.window.on)].dataType, df.select(score).schema[0].dataType
    sieve = sieve_of(job.ticks, time_type, score_type, query.k, ascending=query.ascending)
    return sieve or "in Python, since k or the window is too large for the JVM's"


def answer_now(query: TopK, sessions: Sequence[Session], k: int | None, size: Span | None) -> pa.Table:
    """The ranking right now. A group is in one of the buckets."""
    return answers_now(RowsCodec(query, sessions[0].schema), sessions, k, size)


def explain_sieve(df: DataFrame, query: TopK) -> str | None:
    """Say where the sieve runs; None for a query that Spark would refuse."""
    try:
        sieve = jvm_sieve(df, *resolve(df, query, None))
    except SkybandError:
        return None
    return sieve if isinstance(sieve, str) else "in the JVM: Python gets only rows that an answer may show"


def as_column(by: Any) -> tuple[Column | None, Any]:
    """Split `by` into the Column, if it is one, and the text or function for the query."""
    return (by, str(by)) if isinstance(by, Column) else (None, by)


def resolve(df: DataFrame, query: TopK, score: Column | None) -> tuple[TopKJob, Column | None]:
    """Make the job for `query` over `df`, and its score as a Spark column; None if workers compute the score.

    `score` is the Column that the user gave as `by`; the query then has its text. This raises for mistakes, before
    Spark runs anything.
    """
    schema = arrow_schema(df.schema)
    query.check_columns(schema.names)
    check_order(query.window, schema)
    check_no_jump(df, query.max_jump)
    if query.ad_hoc:
        raise InvalidQuery("ad_hoc=True needs a session in this process, and on Spark there is none.")
    ticks = query.window.ticks(schema, query.lateness)
    chosen = plan(specify(query, schema), query.algorithm, expect=query.expect)
    function, text = None, str(query.by)
    by: Any = SCORE
    if isinstance(query.by, tuple):
        by, score_type = query.by, bind_ranking(query.by, schema).type
    elif score is None:
        bound = expressions.bind(query.by, schema)
        text, score_type = bound.text, bound.type
        if bound.spark_sql is None:
            function = bound
        else:
            score = sf.expr(bound.spark_sql)
    if score is not None:
        score = score.alias(SCORE)
        score_type = _number_type(df, score)
    output = output_of(query, schema, str(query.emit), score_type)
    others = [name for name in kept_schema(query, schema).names if name not in query.per]
    added_first = len(output.schema) - len(query.per) - len(others) - 2  # 2: rank and score come later
    job = TopKJob(
        window=query.window,
        ticks=ticks,
        schema=schema if by is query.by else _bucket_schema(query, schema, score_type),
        added=() if by is query.by else (SCORE,),
        output=output.schema,
        sources=(*[None] * added_first, *query.per, None, None, *others),
        changes=not gives_windows(query.emit),
        is_spread=PROBLEM.distribution(query).is_spread and not (ends_for_all([df], query.emit) and by_pane(ticks)),
        fingerprint=query.fingerprint(schema),
        plan=chosen,
        query=replace_unchecked(query, by=by, lateness=None, max_jump=None),  # Spark takes care of the last two
        score=function,
        text=text,
    )
    return job, score


def _columns(df: DataFrame, job: TopKJob, score: Column | None, buckets: int) -> list[Column]:
    """The columns that a bucket needs, besides the weight."""
    per = job.query.per
    columns = [quoted(name).alias(plain) for name, plain in job.plain_names.items()]
    if score is not None:
        columns.append(score)
    columns.append(tie(df))
    if job.is_spread:
        columns.append(bucket(per, buckets))
    if job.is_sieved and per:
        columns.append(group_key(df, per).alias(GROUP))
    return columns


def _bucket_schema(query: TopK, schema: pa.Schema, score_type: pa.DataType) -> pa.Schema:
    """The columns of a bucket's rows. A column that is the score is left out, unless it has another use, too."""
    needed = {query.window.on, query.window.order, *query.per}
    fields = [field for field in schema if field.name != query.by or field.name in needed]
    return pa.schema([*fields, pa.field(SCORE, score_type)])


def _number_type(df: DataFrame, score: Column) -> pa.DataType:
    """The type of a score; raises unless it is a number."""
    try:
        schema = df.select(score).schema
    except AnalysisException as error:
        if (error.getCondition() or "").startswith("UNRESOLVED_COLUMN"):
            name = str((error.getMessageParameters() or {}).get("objectName", "")).strip("`")
            raise UnknownColumn.named(name, df.columns, used_as="the score") from error
        raise InvalidExpression(f"Spark cannot compute the score {score}: {error}") from error
    if not isinstance(schema[0].dataType, NumericType):
        raise InvalidExpression(f"A score must be a number, but {score} is {schema[0].dataType.simpleString()}.")
    return as_arrow(schema).field(0).type
