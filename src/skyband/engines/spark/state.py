"""Reads what a query keeps from its checkpoint, as its last micro-batch committed it: rows, and the answer right now.

The query may be running. Each bucket's snapshot says what it is asked (core/about.py), so its session can be opened
here and asked again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from skyband.core import snapshots
from skyband.core.about import read_about
from skyband.core.encoding.output import free_name
from skyband.core.problem import Problem
from skyband.core.snapshot_pages import join
from skyband.engines.spark.bucket import CLOCK
from skyband.engines.spark.bucket_job import PREFIX
from skyband.engines.spark.journal import repeat
from skyband.engines.spark.kept_state import Stored, key_of, unpacked
from skyband.engines.spark.processor import PAGES_NAME, STATE_COLUMNS, STATE_NAME
from skyband.engines.spark.sharing import QUESTION, number_of
from skyband.errors import InvalidInput
from skyband.windows import Span

POSITION: Final = "position"


@dataclass(frozen=True)
class Bucket:
    """What one bucket of a query holds."""

    question: int | None  # the number of the query, where several share a stream
    bucket: int
    rows_held: int
    groups: int
    stored: Stored


def buckets_in(spark: SparkSession, checkpoint: str) -> list[Bucket]:
    """All buckets of the queries that keep their state in a checkpoint."""
    found = []
    for row in _variable(spark, checkpoint, STATE_NAME).select("key", "value").collect():
        key, value = row.key.asDict(), row.value
        fields = [getattr(value, field.name, None) for field in STATE_COLUMNS]
        stored = Stored.read(fields[STATE_COLUMNS.names.index("bytes") :])
        found.append(Bucket(key.get(QUESTION), key["bucket"], value.rows_held, value.groups, stored))
    return sorted(found, key=lambda one: (one.question or 0, one.bucket))


def read_state(spark: SparkSession, checkpoint: str, query: str | None = None) -> DataFrame:
    """The rows that a query holds, by bucket and position; `query` names one of those that share a stream."""
    tables = [*_tables(spark, checkpoint, buckets_of(spark, checkpoint, query))]
    if not tables:
        raise InvalidInput(f"Nothing is held in {checkpoint} that could be shown as rows.")
    return spark.createDataFrame(pa.concat_tables(tables, promote_options="permissive"))


def read_answer(
    spark: SparkSession, checkpoint: str, query: str | None = None, *, k: int | None = None, size: Span | None = None
) -> DataFrame:
    """The answer of a query right now, as `Session.top` gives it."""
    states = [_state(spark, checkpoint, one) for one in buckets_of(spark, checkpoint, query)]
    if not states:
        raise InvalidInput(f"Nothing is held in {checkpoint}: no row has come.")
    said = snapshots.read(states[0].snapshot).about
    if said is None:
        raise InvalidInput(
            f"{checkpoint} does not say what its query asks: a query whose options are functions or joins cannot be "
            "asked from outside, and neither can a state of an earlier version of Skyband before its next micro-batch."
        )
    problem, asked, schema = read_about(said)
    sessions = [one.session(problem, asked, schema, external_clock=bool(said.get(CLOCK))) for one in states]
    answer = problem.answer_on_spark(asked, sessions, k, size)
    return spark.createDataFrame(answer.replace_schema_metadata())


def buckets_of(spark: SparkSession, checkpoint: str, query: str | None) -> list[Bucket]:
    """Those of one query. It has to be named where several share a stream."""
    buckets = buckets_in(spark, checkpoint)
    asked = None if query is None else number_of(query)
    if query is not None and asked not in {one.question for one in buckets}:
        raise InvalidInput(f"{checkpoint} has no state of a query {query!r}.")
    if query is None and len({one.question for one in buckets}) > 1:
        raise InvalidInput(f"Several queries keep their state in {checkpoint}. Name one: query='…'.")
    return [one for one in buckets if asked is None or one.question == asked]


@dataclass(frozen=True)
class _State:
    """What the state of a bucket says: a snapshot, and what was done to its session since."""

    snapshot: bytes
    entries: list[bytes]

    def session(self, problem: Problem[Any], query: Any, schema: pa.Schema, *, external_clock: bool) -> Any:
        """As the last micro-batch left it."""
        session = problem.bucket_on_spark(query, schema, self.snapshot, external_clock=external_clock)
        repeat(session, self.entries, b"")
        return session

    def snapshot_now(self) -> snapshots.Snapshot:
        """As if the last micro-batch had written one."""
        saved = snapshots.read(self.snapshot)
        if not self.entries or saved.about is None:
            return saved
        problem, asked, schema = read_about(saved.about)
        session = self.session(problem, asked, schema, external_clock=bool(saved.about.get(CLOCK)))
        return snapshots.read(session.snapshot())


def _state(spark: SparkSession, checkpoint: str, bucket: Bucket) -> _State:
    stored = bucket.stored
    found = _pages(spark, checkpoint, bucket) if stored.depth else {}
    entries = [found.pop(key_of(number)) for number in range(stored.entries)]
    pages = {digest: unpacked(page) for digest, page in found.items()}
    return _State(join(stored.root or b"", stored.depth, pages.get, nbytes=stored.snapshot_bytes)[0], entries)


def _tables(spark: SparkSession, checkpoint: str, buckets: list[Bucket]) -> Iterator[pa.Table]:
    for one in buckets:
        session = _state(spark, checkpoint, one).snapshot_now().parts["session"]
        if "rows" not in session.tables:
            continue
        rows, held = session.tables["rows"], session.arrays["held"]
        names = [name.removeprefix(PREFIX) if name.startswith(PREFIX) else name for name in rows.column_names]
        table = pa.table({"bucket": pa.array([one.bucket] * len(held), pa.int32()), POSITION: held})
        for name, column in zip(names, rows.columns, strict=True):
            table = table.append_column(free_name(name, set(table.column_names)), column)
        yield table


def _pages(spark: SparkSession, checkpoint: str, bucket: Bucket) -> dict[bytes, bytes]:
    """The pages of a bucket, by digest, and the entries of its journal, by number."""
    pages = _variable(spark, checkpoint, PAGES_NAME).where(sf.col("key.bucket") == bucket.bucket)
    if bucket.question is not None:
        pages = pages.where(sf.col(f"key.{QUESTION}") == bucket.question)
    found = pages.select("user_map_key.digest", "user_map_value.page").toArrow()
    return dict(zip(found.column(0).to_pylist(), found.column(1).to_pylist(), strict=True))


def _variable(spark: SparkSession, checkpoint: str, name: str) -> Any:
    try:
        return spark.read.format("statestore").option("stateVarName", name).load(checkpoint)
    except PySparkException as error:
        raise InvalidInput(
            f"{checkpoint} is not the checkpoint of a Skyband query, or the query has not committed a micro-batch: "
            f"{error}"
        ) from error
