"""`skyband sql --follow`: a statement over files that grow. On a terminal its answer is a board, else lines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa
import typer
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from skyband.cli.answers import as_json, as_markdown, cell, is_number, print_table, table_of
from skyband.cli.inputs import named_paths
from skyband.cli.options import Format
from skyband.dialect.statement import understand
from skyband.leaderboard import Column, Leaderboard
from skyband.serving.boards import Answer
from skyband.serving.formats import as_csv, in_micros
from skyband.serving.served import identity_of
from skyband.serving.watching import Watched
from skyband.sql.files import open_table
from skyband.sql.following import follow
from skyband.sql.run import Started, start

_ROWS_AT_ONCE: Final = 10_000
_LINES_AROUND: Final = 8  # of a board: its title, its heading, what is said below it
_NOT_COLUMNS: Final = ("window_start", "window_end", "rank", "at")


def follow_statement(text: str, inputs: Iterable[str] | None, how: Format | None, rows: int | None) -> None:
    """Give the answers of a statement as they become known, until Ctrl-C or until there are so many rows."""
    with suppress(KeyboardInterrupt):
        started = start(text, _opened(text, inputs), batch_rows=_ROWS_AT_ONCE)
        if how is None and sys.stdout.isatty():
            _show_board(started, text, rows)
        else:
            _print_answers(started, how or Format.csv, rows)


def _opened(text: str, inputs: Iterable[str] | None) -> dict[str, Any]:
    """The tables that the statement names; those with a window are followed."""
    statement = understand(text).innermost
    by_name = {name.lower(): path for name, path in named_paths(inputs).items()}
    opened: dict[str, Any] = {}
    if statement.unions:
        statement.refuse(
            "UNION ALL of files that grow has no order",
            statement.inputs[0].node,
            "Run it without --follow, or on Spark.",
        )
    with Console(stderr=True).status("Waiting for rows"):
        for one in statement.inputs:
            if (path := by_name.get(one.name.lower())) is not None:
                is_stream = one.window is not None or statement.window is not None
                opened[one.name] = follow(path) if is_stream else open_table(path)
    return opened


# -- lines ------------------------------------------------------------------------------------------------------------


def _print_answers(started: Started, how: Format, rows: int | None) -> None:
    left = sys.maxsize if rows is None else rows
    write = _writer(how, started.shown(started.running.session.output_schema.empty_table()).schema)
    for answer in started.running.answers:
        if answer.num_rows:
            shown = started.shown(answer)
            write(shown.slice(0, left))
            left -= shown.num_rows
        if left <= 0:
            return


def _writer(how: Format, schema: pa.Schema) -> Callable[[pa.Table], None]:
    """What prints one answer behind the other; a heading is there at once."""
    empty = schema.empty_table()
    match how:
        case Format.json:
            return lambda answer: typer.echo(as_json(answer), nl=False)
        case Format.arrow:
            stream = pa.ipc.new_stream(typer.get_binary_stream("stdout"), schema)
            return lambda answer: (stream.write_table(answer), typer.get_binary_stream("stdout").flush())[1]
        case Format.csv:
            typer.echo(as_csv(empty), nl=False)
            return lambda answer: typer.echo(as_csv(answer, header=False), nl=False)
        case Format.markdown:
            heading = as_markdown(empty)
            typer.echo(heading, nl=False)
            return lambda answer: typer.echo(as_markdown(answer)[len(heading) :], nl=False)
    return lambda answer: print_table(table_of(answer))


# -- a board ----------------------------------------------------------------------------------------------------------


def _show_board(started: Started, text: str, rows: int | None) -> None:
    watched = Watched(started.running.session, "query", statement=text, shows=started.shown)
    view = _View(watched)
    given = 0
    try:
        with Live(console=view.console, get_renderable=view.render, refresh_per_second=8):
            for answer in started.running.answers:
                given += answer.num_rows
                if rows is not None and given >= rows:
                    return
    finally:
        watched.close()


class _View:
    """The latest answer, and how many rows have come."""

    def __init__(self, watched: Watched) -> None:
        self.console = Console()
        self._watched = watched
        self._board: Leaderboard | None = None
        self._shown = 0  # the version of the answer that is on the board

    def render(self) -> Group:
        """Called by the screen as often as it is drawn."""
        answer = self._watched.board.latest()
        if answer is not None and answer.version != self._shown:
            self._shown = answer.version
            self._take(answer)
        stats = self._watched.session.stats()
        late = f", {stats.rows_late:,} late" if stats.rows_late else ""
        said = Text(f"{stats.rows_in:,} rows read, {stats.rows_held:,} held{late}. Ctrl-C stops it.", "dim")
        if self._board is None:
            return Group(Text("No window has closed yet."), said)
        return Group(self._board.render(self.console.width), said)

    def _take(self, answer: Answer) -> None:
        schema = answer.table.schema
        if self._board is None:
            names = [name for name in schema.names if name not in _NOT_COLUMNS]
            columns = [Column(name, cell, is_number=is_number(schema.field(name).type)) for name in names]
            identity = [name for name in identity_of(self._watched.session.query) if name in names]
            self._board = Leaderboard(self._watched.describe()["title"], columns, identity=identity)
        most = max(1, self.console.height - _LINES_AROUND)
        self._board.show(in_micros(answer.table.slice(0, most)).to_pylist(), _window_of(answer.table))


def _window_of(answer: pa.Table) -> str:
    ends = [cell(answer.column(name)[0].as_py()) for name in ("window_start", "window_end") if _has(answer, name)]
    return " – ".join(ends) if ends else "now"


def _has(answer: pa.Table, name: str) -> bool:
    return name in answer.column_names and answer.num_rows > 0
