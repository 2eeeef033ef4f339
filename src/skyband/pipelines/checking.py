"""Checks a pipeline without running it: statements, their columns, keys of sinks, secrets."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from skyband.core.emit import gives_windows
from skyband.core.registry import problem_of
from skyband.dialect.query_spec import QuerySpec
from skyband.dialect.statement import Statement, understand
from skyband.errors import InvalidPipeline, SkybandError
from skyband.pipelines import connect
from skyband.pipelines.columns import columns_of
from skyband.pipelines.file import read
from skyband.pipelines.leaderboards import RESERVED
from skyband.pipelines.model import Pipeline, Query, Sink, Source, together
from skyband.pipelines.outside import check_servers, outside
from skyband.pipelines.postgresql import JDBC, is_address, refused
from skyband.sql.recognise import recognise


@dataclass(frozen=True)
class Report:
    """What `check` found: nothing wrong, and these things worth knowing."""

    queries: tuple[str, ...]  # a line for each
    notes: tuple[str, ...]
    statements: Mapping[str, Statement] = field(default_factory=dict)  # by query, so that nobody reads them again


def check_file(file: Path) -> tuple[Pipeline, Report]:
    """The pipeline in `file`, checked; raises `InvalidPipeline` with all mistakes of its shape and its statements."""
    pipeline, mistakes = read(file)
    return pipeline, check(pipeline, mistakes)


def check(pipeline: Pipeline, found: Iterable[InvalidPipeline] = ()) -> Report:
    """Everything about `pipeline` that can be checked without Spark; raises `InvalidPipeline` with all mistakes, those
    that were `found` before included."""
    mistakes = [*found]
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
                    f"The columns of {', '.join(unknown)} are unknown until Spark starts, so query {query.name!r} "
                    'is checked then. With schema = "…", `skyband check` checks it, too.'
                )
    for sink in pipeline.sinks.values():
        with _remembered(mistakes):
            check_address(pipeline, sink)
    for mistake in outside(pipeline):
        with _remembered(mistakes):
            raise mistake
    mistakes += connect.refusals(pipeline, statements)
    if mistakes:
        raise together(mistakes)
    missing = sorted(name for name in pipeline.secret_names() if name not in os.environ)
    if missing:
        notes.append(f"The environment must have {', '.join(missing)} when the pipeline runs.")
    notes += connect.notes(pipeline)
    return Report(tuple(lines), tuple(notes), statements)


def _check_query(
    pipeline: Pipeline, query: Query, statement: Statement, schemas: Mapping[str, pa.Schema | None]
) -> tuple[str, list[str]]:
    """What is said of a query, and the inputs whose columns are not known. Raises what is wrong with it."""
    by_input = {one.name: schemas.get(source_of(pipeline, query, one.name)) for one in statement.leaves}
    unknown = [name for name, schema in by_input.items() if schema is None]
    if not unknown:
        known = {name: schema for name, schema in by_input.items() if schema is not None}
        spec = spec_of(pipeline, query, statement, known)
        for sink in (pipeline.sinks[name] for name in query.to if name in pipeline.sinks):
            check_sink(pipeline, sink, spec)
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
            "These answers are changes, or do not contain the window, so the sink needs the columns that identify a "
            'row: key = ["…"].',
            *("sinks", sink.name),
        )
    return chosen


def check_address(pipeline: Pipeline, sink: Sink) -> None:
    """Raise unless the address of a sink is one that can be written to, as far as the file says it."""
    url = str(sink.url)
    if sink.format == "jdbc":
        if not url.startswith("$") and not is_address(url):
            raise pipeline.wrong(
                f'Only PostgreSQL replaces rows by key: url = "{JDBC}//host/database". For other databases, '
                "write to files or to Kafka.",
                *("sinks", sink.name, "url"),
            )
        for name, problem in refused(url, sink.options):
            where = ("options", name) if name in sink.options else ("url",)
            raise pipeline.wrong(problem, *("sinks", sink.name, *where))
    if sink.format == "leaderboard" and "$" not in url and not url.startswith(("redis://", "rediss://", "unix://")):
        raise pipeline.wrong(
            f'A leaderboard is kept in Redis: url = "redis://host:6379/0", got {url!r}.', *("sinks", sink.name, "url")
        )
    if sink.format in ("delta", "iceberg"):
        _check_table(pipeline, sink)
    check_servers(pipeline, sink)


def _check_table(pipeline: Pipeline, sink: Sink) -> None:
    """Raise unless a table of Delta Lake or Iceberg is named as such tables are."""
    path = ("sinks", sink.name)
    if sink.format == "delta":
        if sink.options and "://" not in str(sink.path) and "$" not in str(sink.path):
            raise pipeline.wrong(
                "options are for an object store (such as AWS_REGION), but this path is a folder.", *(*path, "options")
            )
        return
    if "." not in str(sink.table):
        raise pipeline.wrong(f'An Iceberg table is in a namespace: table = "market.{sink.table}".', *path, "table")
    if any("." in name for name in sink.key):
        raise pipeline.wrong(
            "pyiceberg cannot find rows by a column with a dot in its name. Rename the column with AS.", *path, "key"
        )
    if sink.path is not None and sink.options:
        raise pipeline.wrong(
            "path keeps the tables and their catalog in a folder, and options name another catalog. Leave out one of "
            "the two.",
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
    by_name = {source.lower(): source for source in (*pipeline.sources, *pipeline.broken_sources)}
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
            f"Names that begin with {RESERVED} are reserved for Skyband's own keys. Choose another name.",
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
