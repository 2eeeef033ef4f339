"""What can be known of a pipeline without running it: statements, their columns, keys of sinks, secrets."""

from __future__ import annotations

import os
from dataclasses import dataclass

import pyarrow as pa

from skyband.core.emit import gives_windows
from skyband.core.registry import problem_of
from skyband.dialect.query_spec import QuerySpec
from skyband.dialect.statement import Statement, understand
from skyband.errors import InvalidPipeline, SkybandError
from skyband.pipelines.columns import columns_of
from skyband.pipelines.leaderboards import RESERVED
from skyband.pipelines.model import Pipeline, Query, Sink, Source
from skyband.sql.run import ask


@dataclass(frozen=True)
class Report:
    """What `check` found: nothing wrong, and these things worth knowing."""

    queries: tuple[str, ...]  # a line for each
    notes: tuple[str, ...]


def check(pipeline: Pipeline) -> Report:
    """Everything about `pipeline` that can be checked without Spark; raises `InvalidPipeline` for the first mistake."""
    schemas = {name: _columns(pipeline, source) for name, source in pipeline.sources.items()}
    lines, notes = [], []
    for query in pipeline.queries.values():
        statement = understood(pipeline, query)
        unknown = [one.name for one in statement.inputs if schemas[source_of(pipeline, query, one.name)] is None]
        if unknown:
            notes.append(
                f"The columns of {', '.join(unknown)} are known only to Spark: query {query.name!r} is checked when it "
                'starts. A schema = "…" would tell.'
            )
        else:
            by_input = {one.name: schemas[source_of(pipeline, query, one.name)] for one in statement.inputs}
            spec = spec_of(pipeline, query, by_input)
            for name in query.to:
                check_sink(pipeline, pipeline.sinks[name], spec)
        inputs = ", ".join(dict.fromkeys(one.name for one in statement.inputs))
        lines.append(f"{query.name}: from {inputs} to {', '.join(query.to)}")
    missing = sorted(name for name in pipeline.secret_names() if name not in os.environ)
    if missing:
        notes.append(f"The environment must have {', '.join(missing)} when the pipeline runs.")
    return Report(tuple(lines), tuple(notes))


def understood(pipeline: Pipeline, query: Query) -> Statement:
    """The statement of a query; its mistakes are shown with the line of the file that the text begins in."""
    try:
        statement = understand(query.sql)
    except SkybandError as error:
        raise _in_query(pipeline, query, error) from error
    if statement.explain:
        raise pipeline.wrong(f"Query {query.name!r} only explains. Leave out EXPLAIN.", "queries", query.name, "sql")
    for one in statement.inputs:
        source_of(pipeline, query, one.name)
    return statement


def source_of(pipeline: Pipeline, query: Query, name: str) -> str:
    """The source that a statement calls `name`, in any case."""
    by_name = {source.lower(): source for source in pipeline.sources}
    if name.lower() not in by_name:
        known = ", ".join(pipeline.sources) or "none"
        raise pipeline.wrong(
            f"Query {query.name!r} reads {name!r}, but there is no such source. Sources: {known}.",
            *("queries", query.name, "sql"),
        )
    return by_name[name.lower()]


def spec_of(pipeline: Pipeline, query: Query, schemas: dict[str, pa.Schema]) -> QuerySpec:
    """What a query asks of sources with these columns."""
    try:
        return ask(query.sql, schemas)
    except SkybandError as error:
        raise _in_query(pipeline, query, error) from error


def check_sink(pipeline: Pipeline, sink: Sink, spec: QuerySpec) -> None:
    """Raise unless a sink can take these answers."""
    columns = [one.name for one in spec.shown]
    for key in (*sink.key, *([sink.member] if sink.member else [])):
        if key not in columns:
            place = "key" if key in sink.key else "member"
            raise pipeline.wrong(
                f"The answers that go to {sink.name!r} have no column {key!r}. They have: {', '.join(columns)}.",
                *("sinks", sink.name, place),
            )
    if sink.member is not None:
        _check_board(pipeline, sink, spec)


def _check_board(pipeline: Pipeline, sink: Sink, spec: QuerySpec) -> None:
    """Raise if a member may be in several rankings on one board: which of its ranks counts cannot be known."""
    if str(sink.board).startswith(RESERVED):
        raise pipeline.wrong(
            f"Names that begin with {RESERVED} are those under which we keep what a board shows: choose another.",
            *("sinks", sink.name, "board"),
        )
    shown = [(one.text, one.name) for one in spec.shown if one.is_plain]
    tells_apart = {text for text, name in shown if name == sink.member or f"{{{name}}}" in str(sink.board)}
    together = [name for name in problem_of(spec.query).groups(spec.query) if name not in tells_apart]
    if together:
        raise pipeline.wrong(
            f"There is a ranking for each {', '.join(together)}, all of them go to the board {sink.board!r}, and a "
            f"{sink.member} may be in several. Give each ranking a board of its own: "
            + "".join(f"{{{name}}}" for name in together)
            + " in its name, and in the SELECT list.",
            *("sinks", sink.name, "board"),
        )


def key_of(spec: QuerySpec) -> tuple[str, ...] | None:
    """The columns that tell the rows of an answer apart; None: of what changed, none do."""
    if not gives_windows(spec.query.emit):
        return None
    plain = {one.text: one.name for one in spec.shown if one.is_plain}
    return tuple(plain[name] for name in problem_of(spec.query).key(spec.query) if name in plain)


def _columns(pipeline: Pipeline, source: Source) -> pa.Schema | None:
    try:
        schema = columns_of(source, pipeline)
    except SkybandError as error:
        raise pipeline.wrong(str(error), "sources", source.name, "schema") from error
    if schema is not None and source.time is not None and source.time not in schema.names:
        raise pipeline.wrong(
            f"Source {source.name!r} has no column {source.time!r}. Columns: {', '.join(schema.names)}.",
            *("sources", source.name, "time"),
        )
    return schema


def _in_query(pipeline: Pipeline, query: Query, error: SkybandError) -> InvalidPipeline:
    return pipeline.wrong(f"Query {query.name!r}: {error}", "queries", query.name, "sql")
