"""The shell, `skyband sql` without a statement: it runs one statement after the other over tables that stay open.

`Shell` executes a line; `run` reads lines from a terminal, with history and completion.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import typer
from rich.console import Console
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from skyband.cli.answers import show
from skyband.cli.application import show_error
from skyband.cli.completion import completions
from skyband.cli.inputs import named_paths
from skyband.cli.options import Format
from skyband.dialect.grammar import SkybandSql
from skyband.errors import InvalidInput, SkybandError
from skyband.sql.files import open_table
from skyband.sql.run import plan
from skyband.sql.variables import Variables

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

_WELCOME: Final = "Skyband {version}. A statement ends with ;  .help lists the commands, Tab completes, Ctrl-D quits."
_COMMANDS: Final[Mapping[str, str]] = {
    ".tables": "the tables there are",
    ".schema": "the columns of all tables, or of one: .schema trades",
    ".open": "add a table: .open trades.csv, .open t='data/*.parquet'",
    ".explain": "what would run, and why: .explain SELECT …;",
    ".help": "this list",
    ".quit": "leave; so does Ctrl-D",
}

_ELSEWHERE: Final = Variables(None, write=".open {name}=FILE")

Ask = Callable[[str, dict[str, Any], Variables], Any]


class Shell:
    """Tables by name, and what is done with what one types."""

    def __init__(self, tables: Mapping[str, Any], ask: Ask, how: Format, rows: int | None) -> None:
        """`ask` answers a statement; the answer is printed as `how` says, and at most so many rows of it."""
        self.tables = dict(tables)
        self._ask, self._how, self._rows = ask, how, rows

    @property
    def schemas(self) -> dict[str, pa.Schema]:
        return {name: table.schema for name, table in self.tables.items()}

    def execute(self, text: str) -> bool:
        """Do what was typed; False: that was to leave. What is wrong with it is said, and the shell goes on."""
        try:
            if not text.lstrip().startswith("."):
                for statement in statements_in(text):
                    self._answer(statement)
                return True
            command, _, rest = text.strip().partition(" ")
            if command in (".quit", ".exit"):
                return False
            self._command(command, rest.strip().rstrip(";").strip())
        except SkybandError as error:
            show_error(str(error))
        except KeyboardInterrupt:
            typer.echo("Stopped.", err=True)
        return True

    def _answer(self, statement: str) -> None:
        began = time.perf_counter()
        answer = self._ask(statement, self.tables, _ELSEWHERE)
        if not isinstance(answer, pa.Table):
            typer.echo(str(answer))
            return
        show(answer, self._how, self._rows)
        if self._how is Format.table:
            rows = "1 row" if answer.num_rows == 1 else f"{answer.num_rows:,} rows"
            Console().print(f"({rows}, {time.perf_counter() - began:.2f} s)", style="dim", highlight=False)

    def _command(self, command: str, rest: str) -> None:
        match command:
            case ".help":
                for name, words in _COMMANDS.items():
                    typer.echo(f"{name:10}{words}")
            case ".tables":
                typer.echo("\n".join(self.tables) or "There is no table. Add one: .open trades.csv")
            case ".schema":
                for name in [self._called(rest)] if rest else self.tables:
                    columns = (f"  {each.name} {each.type}" for each in self.tables[name].schema)
                    typer.echo("\n".join((name, *columns)))
            case ".open":
                for name, path in named_paths([rest.replace("'", "").replace('"', "")]).items():
                    self.tables[name] = open_table(Path(path).expanduser())
                    typer.echo(f"{name}: {', '.join(self.tables[name].schema.names)}")
            case ".explain":
                typer.echo(str(plan(rest, self.tables, _ELSEWHERE)))
            case _:
                raise InvalidInput(f"There is no command {command!r}. Possible: {', '.join(_COMMANDS)}.")

    def _called(self, name: str) -> str:
        found = next((each for each in self.tables if each.lower() == name.lower()), None)
        if found is None:
            raise InvalidInput(f"There is no table {name!r}. Tables: {', '.join(self.tables) or 'none'}.")
        return found


def statements_in(text: str) -> list[str]:
    """The statements of a text, each with its semicolon."""
    try:
        ends = [token.end + 1 for token in SkybandSql().tokenize(text) if token.token_type == TokenType.SEMICOLON]
    except TokenError:  # a quote is not closed: whoever reads the statement says so
        return [text]
    parts = (text[start:end].strip() for start, end in zip([0, *ends], [*ends, len(text)], strict=True))
    return [part for part in parts if part.strip(";").strip()]


def is_complete(text: str) -> bool:
    """Is it a command, or does it end with a semicolon? One inside quotes does not count."""
    if not text.strip() or text.lstrip().startswith("."):
        return True
    try:
        tokens = SkybandSql().tokenize(text)
    except TokenError:
        return False
    return bool(tokens) and tokens[-1].token_type == TokenType.SEMICOLON


# -- in a terminal ----------------------------------------------------------------------------------------------------


def run(shell: Shell) -> None:
    """Read and do, until one leaves. Ctrl-C drops what was typed, or stops what runs."""
    from skyband import __version__

    session = prompting(shell)
    typer.echo(_WELCOME.format(version=__version__))
    while True:
        try:
            text = session.prompt()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        if not shell.execute(text):
            return


def prompting(shell: Shell, **options: Any) -> PromptSession[str]:
    """Where statements are typed: with history, completion, colours, and lines until there is a semicolon."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document
    from prompt_toolkit.filters import Condition, has_completions
    from prompt_toolkit.history import FileHistory
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
    from prompt_toolkit.lexers import PygmentsLexer
    from pygments.lexers.sql import SqlLexer

    class Words(Completer):
        def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
            before, after = document.text_before_cursor, document.text_after_cursor
            length, words = completions(before, after, shell.schemas, _COMMANDS)
            return (Completion(word, -length) for word in words)

    keys = KeyBindings()

    @keys.add("enter", filter=~has_completions | Condition(lambda: _is_unchosen(session)))
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    session: PromptSession[str] = PromptSession(
        "skyband> ",
        multiline=True,
        prompt_continuation=lambda width, *_: "...> ".rjust(width),
        completer=Words(),
        complete_while_typing=False,
        auto_suggest=AutoSuggestFromHistory(),
        history=FileHistory(str(history_file())),
        key_bindings=keys,
        lexer=PygmentsLexer(SqlLexer),
        **options,
    )
    return session


def _is_unchosen(session: PromptSession[str]) -> bool:
    """Is a menu of words open in which none has been chosen?"""
    state = session.default_buffer.complete_state
    return state is None or state.current_completion is None


def history_file() -> Path:
    """Where statements are remembered, for nobody else to read."""
    state = os.environ.get("XDG_STATE_HOME")
    path = (Path(state) if state else Path.home() / ".local" / "state") / "skyband" / "sql_history"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    return path
