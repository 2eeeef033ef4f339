"""The streaming queries of a pipeline: one for all queries on a source that can share a pass, one for each other query,
and one for the bad records of a source with `dead_letters`.

The first run decides which queries share a pass. A query that is added later reads its source from the start, in its
own pass, so that its answers are complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from skyband.core.emit import gives_windows
from skyband.dialect.query_spec import QuerySpec
from skyband.dialect.statement import Statement
from skyband.engines.spark import schema_of
from skyband.engines.spark.plan import BUCKETS_SETTING, DEFAULT_BUCKETS
from skyband.engines.spark.sharing import QUESTION, clock_column, number_of
from skyband.pipelines.answers import Answers
from skyband.pipelines.checking import check_sink, key_of, source_of, spec_of, understood
from skyband.pipelines.checkpoints import Asked, Checkpoint, asked_by
from skyband.pipelines.model import Pipeline, Query, Source
from skyband.pipelines.secrets import resolve
from skyband.pipelines.sinks import Target
from skyband.pipelines.sources import bad_records_of, rows_of
from skyband.sql.run import answer_to
from skyband.sql.spark import multi_query

MOST_BYTES: Final = 1 << 21  # of one packed answer, for all answers of a micro-batch to be brought to this process
BAD_RECORDS: Final = "_bad_records"  # behind the name of a source: the query that writes its bad records


@dataclass(frozen=True)
class Output:
    """What one query gets out of a stream's micro-batch."""

    answers: Callable[[DataFrame], DataFrame]  # from the micro-batch to its answers
    table: Callable[[list[bytes]], pa.Table] | None  # the same where what was packed is in this process
    key: tuple[str, ...] | None  # the columns that tell the rows of answers apart
    to: tuple[str, ...]
    asked: Asked
    number: int | None = None  # among the questions that share a stream
    spec: QuerySpec | None = None  # what is asked; None: nothing, these are bad records


@dataclass(frozen=True)
class Stream:
    """One streaming query of Spark's."""

    name: str
    rows: DataFrame
    mode: str
    outputs: Mapping[str, Output]  # by query
    checkpoint: Checkpoint
    is_stateful: bool = True

    @property
    def is_shared(self) -> bool:
        return any(output.number is not None for output in self.outputs.values())


def write_batch(
    spark: SparkSession,
    outputs: Mapping[str, Output],
    targets: Mapping[str, Sequence[Target]],
    rows: DataFrame,
    batch: int,
    said: Callable[[str, Answers, int], None],
) -> None:
    """Write what a micro-batch says to each query; `said` is told when all its sinks have it."""
    rows.persist()
    try:
        for name, answers in _answers(spark, outputs, rows).items():
            for target in targets[name]:
                target.write(answers, batch)
            said(name, answers, batch)
    finally:
        rows.unpersist()


def _answers(spark: SparkSession, outputs: Mapping[str, Output], batch: DataFrame) -> dict[str, Answers]:
    """What a micro-batch says to each query; those that it says nothing to are left out."""
    if all(output.number is None for output in outputs.values()):
        return {} if batch.isEmpty() else {name: Answers(spark, batch) for name in outputs}
    small = sf.when(sf.length("answer") <= MOST_BYTES, sf.col("answer")).alias("answer")
    packed: dict[int, list[bytes | None]] = {}
    for number, answer in batch.where("answer IS NOT NULL").select(QUESTION, small).collect():
        packed.setdefault(number, []).append(answer)
    found = {}
    for name, output in outputs.items():
        pages = packed.get(output.number or 0, [])
        if not pages:
            continue
        in_hand = [bytes(page) for page in pages if page is not None]
        if output.table is not None and len(in_hand) == len(pages):
            found[name] = Answers(spark, output.table(in_hand))
        else:
            found[name] = Answers(spark, output.answers(batch))
    return found


@dataclass(frozen=True)
class _Asked:
    """A query, with its sources and what it means."""

    query: Query
    statement: Statement
    inputs: dict[str, DataFrame]
    meaning: QuerySpec
    asked: Asked


def streams_of(
    spark: SparkSession, pipeline: Pipeline, statements: Mapping[str, Statement] | None = None
) -> list[Stream]:
    """All streams of a pipeline; mistakes in it are found here, before anything runs. `statements`: those of its
    queries, where they have been read."""
    sources = {name: rows_of(spark, pipeline, source) for name, source in pipeline.sources.items()}
    read = statements or {}
    asked = [
        _asked(spark, pipeline, query, read.get(query.name) or understood(pipeline, query), sources)
        for query in pipeline.queries.values()
    ]
    streams = []
    for name in sources:
        sharing = [one for one in asked if _stream(one) == name and _clock(one) is not None]
        if sharing:
            streams += _together(spark, pipeline, name, sharing)
    streams += [_alone(spark, pipeline, one) for one in asked if _clock(one) is None]
    streams += [_bad(spark, pipeline, source) for source in pipeline.sources.values() if source.dead_letters]
    return streams


def _asked(
    spark: SparkSession, pipeline: Pipeline, query: Query, statement: Statement, sources: Mapping[str, DataFrame]
) -> _Asked:
    names = dict.fromkeys(source_of(pipeline, query, one.name) for one in statement.leaves)
    inputs = {name: sources[name] for name in names}
    meaning = spec_of(pipeline, query, statement, {name: schema_of(df) for name, df in inputs.items()})
    for sink in query.to:
        check_sink(pipeline, pipeline.sinks[sink], meaning)
    columns = {name: df.schema.simpleString() for name, df in inputs.items()}
    buckets = str(spark.conf.get(BUCKETS_SETTING, str(DEFAULT_BUCKETS)))
    return _Asked(query, statement, inputs, meaning, asked_by(pipeline, query, columns, buckets))


def _stream(one: _Asked) -> str | None:
    """The stream that a query is about, if there is only one, read once; beside it there may be tables."""
    sources = {name.lower(): name for name in one.inputs}
    if not all(rows.name.lower() in sources for rows in one.meaning.rows.values()):
        return None  # a UNION ALL of several
    read = [sources[rows.name.lower()] for rows in one.meaning.rows.values()]
    streams = [name for name in read if one.inputs[name].isStreaming]
    return streams[0] if len(streams) == 1 else None


def _clock(one: _Asked) -> str | None:
    """The column whose watermark closes a query's windows, "" if none does; None: it cannot share a pass."""
    stream = _stream(one)
    if stream is None or any(rows.views for rows in one.meaning.rows.values()):
        return None  # what WITH computes is a stream of its own
    return clock_column(one.inputs[stream], one.meaning.query)


def _together(spark: SparkSession, pipeline: Pipeline, source: str, several: list[_Asked]) -> list[Stream]:
    """The streams of queries about one source: those that were begun together stay together."""
    waiting = {one.query.name: one for one in several}
    streams = []
    for number in count(1):
        checkpoint = _checkpoint(spark, pipeline, f"{source}_{number}")
        begun = checkpoint.queries()
        # In one pass there is one watermark, so one column of time; what needs none goes with the first.
        column = next((clock for one in waiting.values() if (clock := _clock(one))), "")
        chosen = {
            name: one for name, one in waiting.items() if (name in begun if begun else _clock(one) in ("", column))
        }
        waiting = {name: one for name, one in waiting.items() if name not in chosen}
        if chosen:
            streams.append(_shared(f"{source}_{number}", source, chosen, checkpoint))
        elif not begun:
            break
    return streams


def _shared(name: str, source: str, several: Mapping[str, _Asked], checkpoint: Checkpoint) -> Stream:
    inputs = {name: df for one in several.values() for name, df in one.inputs.items()}
    shared = multi_query({name: one.meaning for name, one in several.items()}, source, inputs)
    outputs = {
        name: Output(
            *(shared.answers[name], shared.tables[name], key_of(one.meaning), one.query.to, one.asked),
            *(number_of(name), one.meaning),
        )
        for name, one in several.items()
    }
    return Stream(name, shared.packed, shared.mode, outputs, checkpoint)


def _alone(spark: SparkSession, pipeline: Pipeline, one: _Asked) -> Stream:
    name = one.query.name
    answers = answer_to(one.statement, one.inputs, spec=one.meaning)
    mode = "append" if gives_windows(one.meaning.query.emit) else "update"
    output = Output(_as_they_are, None, key_of(one.meaning), one.query.to, one.asked, spec=one.meaning)
    return Stream(name, answers, mode, {name: output}, _checkpoint(spark, pipeline, f"query_{name}"))


def _bad(spark: SparkSession, pipeline: Pipeline, source: Source) -> Stream:
    name = f"{source.name}{BAD_RECORDS}"
    asked = Asked("", {source.name: source.identity()}, {source.name: str(source.schema)}, "")
    key = ("topic", "partition", "offset") if source.format == "kafka" else None
    output = Output(_as_they_are, None, key, (str(source.dead_letters),), asked)
    records = bad_records_of(spark, pipeline, source)
    return Stream(name, records, "append", {name: output}, _checkpoint(spark, pipeline, name), is_stateful=False)


def checkpoints_of(spark: SparkSession, pipeline: Pipeline) -> Iterator[Checkpoint]:
    """Those that runs of a pipeline have begun for its queries."""
    for source in pipeline.sources:
        for number in count(1):
            checkpoint = _checkpoint(spark, pipeline, f"{source}_{number}")
            if not checkpoint.queries():
                break
            yield checkpoint
    for query in pipeline.queries:
        checkpoint = _checkpoint(spark, pipeline, f"query_{query}")
        if checkpoint.queries():
            yield checkpoint


def _as_they_are(answers: DataFrame) -> DataFrame:
    return answers


def _checkpoint(spark: SparkSession, pipeline: Pipeline, name: str) -> Checkpoint:
    return Checkpoint(spark, pipeline.located(resolve(pipeline.checkpoint)), name)
