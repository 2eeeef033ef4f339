"""Checks a pipeline without running it: statements, their columns, keys of sinks, secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from skyband.core.emit import gives_windows
from skyband.core.registry import problem_of
from skyband.dialect.query_spec import QuerySpec
from skyband.dialect.statement import Statement, understand
from skyband.errors import InvalidPipeline, SkybandError
from skyband.pipelines.columns import columns_of
from skyband.pipelines.leaderboards import RESERVED
from skyband.pipelines.mistakes import together
from skyband.pipelines.model import Pipeline, Query, Sink, Source
from skyband.sql.recognise import recognise

POSTGRESQL: Final = "jdbc:postgresql:"


@dataclass(frozen=True)
class Report:
    """What `check` found: nothing wrong, and these things worth knowing."""

    queries: tuple[str, ...]  # a line for each
    notes: tuple[str, ...]
    statements: Mapping[str, Statement] = field(default_factory=dict)  # by query, so that nobody reads them again


def check(pipeline: Pipeline) -> Report:
    """Everything about `pipeline` that can be checked without Spark; raises `InvalidPipeline` with all mistakes."""
    mistakes: list[InvalidPipeline] = []
    schemas: dict[str, pa.Schema | None] = {}
    for name, source in pipeline.sources.items():
        with _remembered(mistakes):
            schemas[name] = _columns(pipeline, source)
    lines, notes, statements = [], [], {}
    for query in pipeline.queries.values():
        with _remembered(mistakes):
            statement = understood(pipeline, query)
            line, unknown = _check_query(pipeline, query, statement, schemas)
            lines.append(line)
            statements[query.name] = statement
            if unknown:
                notes.append(
                    f"The columns of {', '.join(unknown)} are known only to Spark: query {query.name!r} is checked "
                    'when it starts. A schema = "…" would tell.'
                )
    for name in ("spark.remote", "spark.api.mode"):
        if name in pipeline.spark:
            mistakes.append(
                pipeline.wrong(
                    "A pipeline writes in a session of its own, which cannot be one of Spark Connect: leave out "
                    f'{name}, and name a cluster ("spark.master"). sb.sql takes DataFrames of Spark Connect.',
                    *("spark", name),
                )
            )
    if mistakes:
        raise together(mistakes)
    missing = sorted(name for name in pipeline.secret_names() if name not in os.environ)
    if missing:
        notes.append(f"The environment must have {', '.join(missing)} when the pipeline runs.")
    return Report(tuple(lines), tuple(notes), statements)


def _check_query(
    pipeline: Pipeline, query: Query, statement: Statement, schemas: Mapping[str, pa.Schema | None]
) -> tuple[str, list[str]]:
    """What is said of a query, and the inputs whose columns are not known. Raises what is wrong with it."""
    by_input = {one.name: schemas.get(source_of(pipeline, query, one.name)) for one in statement.leaves}
    unknown = [name for name, schema in by_input.items() if schema is None]
    for name in query.to:
        check_address(pipeline, pipeline.sinks[name])
    if not unknown:
        known = {name: schema for name, schema in by_input.items() if schema is not None}
        spec = spec_of(pipeline, query, statement, known)
        for name in query.to:
            check_sink(pipeline, pipeline.sinks[name], spec)
    return f"{query.name}: from {', '.join(by_input)} to {', '.join(query.to)}", unknown


@contextmanager
def _remembered(mistakes: list[InvalidPipeline]) -> Iterator[None]:
    """A mistake is not the end: there may be others."""
    try:
        yield
    except InvalidPipeline as mistake:
        if str(mistake) not in map(str, mistakes):
            mistakes.append(mistake)


def check_key(pipeline: Pipeline, sink: Sink, key: tuple[str, ...] | None) -> tuple[str, ...]:
    """The columns by which a database finds a row again; raises if there are none."""
    chosen = sink.key or key
    if not chosen:
        raise pipeline.wrong(
            "The rows say what changed, or leave out the window, so the sink must say by which columns a row is found "
            'again: key = ["…"].',
            *("sinks", sink.name),
        )
    return chosen


def check_address(pipeline: Pipeline, sink: Sink) -> None:
    """Raise unless the address of a sink is one that can be written to, as far as the file says it."""
    url = str(sink.url)
    if sink.format == "jdbc" and "$" not in url and not url.startswith(POSTGRESQL):
        raise pipeline.wrong(
            f'Rows can be replaced by key in PostgreSQL: url = "{POSTGRESQL}//host/database". For other databases, '
            "write to files or to Kafka.",
            *("sinks", sink.name, "url"),
        )
    if sink.format == "leaderboard" and "$" not in url and not url.startswith(("redis://", "rediss://", "unix://")):
        raise pipeline.wrong(
            f'A leaderboard is kept in Redis: url = "redis://host:6379/0", got {url!r}.', *("sinks", sink.name, "url")
        )
    if sink.format in ("delta", "iceberg"):
        _check_table(pipeline, sink)
    servers = [] if sink.servers is None or "$" in sink.servers else sink.servers.split(",")
    for server in servers:
        if not re.fullmatch(r"\s*[^\s:/]+:\d+\s*", server):
            raise pipeline.wrong(
                f'servers = {sink.servers!r}: each is a host and a port, as in "localhost:9092".',
                *("sinks", sink.name, "servers"),
            )


def _check_table(pipeline: Pipeline, sink: Sink) -> None:
    """Raise unless a table of Delta Lake or Iceberg is named as such tables are."""
    path = ("sinks", sink.name)
    if sink.format == "delta":
        if sink.options and "://" not in str(sink.path) and "$" not in str(sink.path):
            raise pipeline.wrong(
                "options are those of an object store (AWS_REGION and the like), and this path is a folder.",
                *(*path, "options"),
            )
        return
    if "." not in str(sink.table):
        raise pipeline.wrong(f'An Iceberg table is in a namespace: table = "market.{sink.table}".', *path, "table")
    if any("." in name for name in sink.key):
        raise pipeline.wrong(
            "pyiceberg finds no rows by a column with a dot in its name: give it another, with AS.", *path, "key"
        )
    if sink.path is not None and sink.options:
        raise pipeline.wrong(
            "path keeps tables and their catalog in a folder, options name a catalog: leave out one of them.",
            *(*path, "options"),
        )
    if "://" in str(sink.path):
        raise pipeline.wrong(
            "path is a folder of this machine. For tables elsewhere name the catalog, by pyiceberg's names: "
            'options = { type = "rest", uri = "…", warehouse = "…" }.',
            *(*path, "path"),
        )


def understood(pipeline: Pipeline, query: Query) -> Statement:
    """The statement of a query; its mistakes are shown with the line of the file that the text begins in."""
    try:
        statement = understand(query.sql)
    except SkybandError as error:
        raise _in_query(pipeline, query, error) from error
    if statement.explain:
        raise pipeline.wrong(f"Query {query.name!r} only explains. Leave out EXPLAIN.", "queries", query.name, "sql")
    for one in statement.leaves:
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


def spec_of(pipeline: Pipeline, query: Query, statement: Statement, schemas: Mapping[str, pa.Schema]) -> QuerySpec:
    """What a query asks, by its statement, of sources with these columns."""
    try:
        return recognise(statement, schemas)
    except SkybandError as error:
        raise _in_query(pipeline, query, error) from error


def check_sink(pipeline: Pipeline, sink: Sink, spec: QuerySpec) -> None:
    """Raise unless a sink can take these answers."""
    spec = spec.last
    columns = [one.name for one in spec.shown]
    for key in (*sink.key, *([sink.member] if sink.member else [])):
        if key not in columns:
            place = "key" if key in sink.key else "member"
            raise pipeline.wrong(
                f"The answers that go to {sink.name!r} have no column {key!r}. They have: {', '.join(columns)}.",
                *("sinks", sink.name, place),
            )
    if sink.format == "jdbc":
        check_key(pipeline, sink, key_of(spec))
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
    """The columns that tell the rows of an answer apart; None: of what changed, without the window, or of rows of a
    join, none do."""
    spec = spec.last
    if not gives_windows(spec.query.emit) or spec.repeated is not None:
        return None
    plain = {one.text: one.name for one in spec.shown if one.is_plain}
    if "window_end" not in plain:
        return None
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
