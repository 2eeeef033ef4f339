"""`skyband explain` and `skyband sql`: plan a query, and query files."""

from __future__ import annotations

import sys
import warnings
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from skyband.cli.options import Files, Format, Inputs
from skyband.errors import InvalidInput, InvalidQuery

if TYPE_CHECKING:
    from skyband.sql.variables import Variables


class Emit(StrEnum):
    windows = "windows"
    changes = "changes"
    entries = "entries"


class Order(StrEnum):
    random = "random"
    rising = "rising"
    falling = "falling"
    bursty = "bursty"


def explain(
    context: typer.Context,
    statement: Annotated[
        str | None,
        typer.Argument(
            help="An SQL statement over the tables of --input. Use it instead of the other options.", show_default=False
        ),
    ] = None,
    files: Files = None,
    inputs: Inputs = None,
    k: Annotated[int, typer.Option(help="How many rows each window shows.")] = 10,
    by: Annotated[str, typer.Option(help="The score of a row: a column or an SQL expression.")] = "score",
    size: Annotated[
        str | None,
        typer.Option(
            help="The size of the window: a number of rows (1000000) or a duration ('10 minutes'). Default: all.",
            show_default=False,
        ),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(help="How often the window slides, in the same unit. Default: with each row.", show_default=False),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(help="The column that the window measures. Default: the window counts rows.", show_default=False),
    ] = None,
    per: Annotated[
        list[str] | None,
        typer.Option(help="Keep a ranking for each value of this column. May be repeated.", show_default=False),
    ] = None,
    emit: Annotated[
        Emit | None, typer.Option(help="Emit whole rankings, only the changes, or each row once.", show_default=False)
    ] = None,
    ad_hoc: Annotated[bool, typer.Option("--ad-hoc", help="Let ad-hoc queries use any smaller window.")] = False,
    window_rows: Annotated[
        float | None,
        typer.Option(min=1, help="How many rows a window by time contains, if you know.", show_default=False),
    ] = None,
    algorithm: Annotated[
        str | None, typer.Option(help="Run this algorithm instead of the planner's choice.", show_default=False)
    ] = None,
    error: Annotated[
        float | None,
        typer.Option(help="How many rows a window may miss on average, such as 0.001.", show_default=False),
    ] = None,
    expect: Annotated[
        Order | None, typer.Option(help="The order of the scores, if you know it.", show_default=False)
    ] = None,
) -> None:
    """Show which algorithm the planner chooses for a query, why, how many rows it keeps, and what a row costs.

    For example: `skyband explain --k 10 --by "price * volume" --size "10 minutes" --every "1 minute" --on ts`, or
    `skyband explain "SELECT symbol FROM trades [WINDOW 1 HOUR] ORDER BY price DESC LIMIT 3" trades.csv`
    """
    inputs = [*(files or ()), *(inputs or ())]
    if statement is not None:
        _refuse_others(context, "statement", "files", "inputs")
        from skyband.cli.inputs import open_inputs
        from skyband.sql.run import plan

        typer.echo(str(plan(statement, open_inputs(inputs))))
        return
    if inputs:
        raise InvalidQuery("--input is for a statement, which names its tables: skyband explain 'SELECT …'.")
    from skyband.core.explain import explain as explain_query
    from skyband.problems.rows.query import TopK
    from skyband.windows import landmark, sliding

    slide = None if every is None else _span(every)
    window = landmark(every=slide, on=on) if size is None else sliding(_span(size), every=slide, on=on)
    query = TopK(
        k=k,
        by=by,
        window=window,
        per=per or (),
        emit=None if emit is None else emit.value,
        algorithm=algorithm,
        ad_hoc=ad_hoc,
        error=error,
        expect=None if expect is None else expect.value,
    )
    typer.echo(str(explain_query(query, window_rows=window_rows)))


def _refuse_others(context: typer.Context, *taken: str) -> None:
    """Raise if an option is given that stands for a part of a statement."""
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if source is not None and source.name == "COMMANDLINE" and option.name not in taken:
            raise InvalidQuery(f"{option.opts[0]} cannot go with a statement: say it in the statement.")


def sql(
    statement: Annotated[
        str | None,
        typer.Argument(
            help="An SQL statement (see docs/sql.md). Without it: a shell in a terminal, else standard input, like -.",
            show_default=False,
        ),
    ] = None,
    files: Files = None,
    inputs: Inputs = None,
    how: Annotated[
        Format | None, typer.Option("--format", help="The output format. [default: table]", show_default=False)
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            min=1, help="Print at most this many rows. [default: 50 in a table, else all]", show_default=False
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Write the answer to this file instead. Its ending is .parquet, .csv, .jsonl, .arrow or .md.",
            show_default=False,
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            help="Wait for more rows: lines appended to a CSV or JSON file, files added to a folder. Print answers as "
            "windows close, until Ctrl-C or --rows.",
        ),
    ] = False,
) -> None:
    """Query Parquet, CSV, JSON lines or Arrow files with SQL. Without a statement, open a shell.

    For example: `skyband sql "SELECT * FROM trades [WINDOW 1 HOUR EVERY 1 MINUTE] ORDER BY price DESC LIMIT 3"
    trades.parquet`, or `skyband sql trades.parquet` for a shell.

    The exit code is 0 on success, 2 if the statement, an option or a file is wrong, and 130 after
    Ctrl-C.
    """
    import pyarrow as pa

    from skyband.cli.answers import check_format, check_output, show, write
    from skyband.cli.inputs import open_inputs

    inputs = [*(files or ()), *(inputs or ())]
    if statement is not None and statement != "-" and len(statement.split()) == 1:  # no statement is one word
        inputs, statement = [statement, *inputs], None
    if output is not None:
        if how is not None:
            raise InvalidInput(
                f"--format is for printing; the ending of {output.name!r} chooses the format of the file."
            )
        check_output(output, inputs)
    check_format(how or Format.table)
    if statement is None and sys.stdin.isatty() and sys.stdout.isatty():
        if output is not None or follow:
            raise InvalidInput("--output and --follow are for one statement: give it.")
        from skyband.cli.shell import Shell, run

        run(Shell(open_inputs(inputs), _ask, how or Format.table, rows))
        return
    text = sys.stdin.read() if statement is None or statement == "-" else statement
    if follow:
        if output is not None:
            raise InvalidInput("--output writes a whole answer, and --follow has none: --format csv > answers.csv")
        _follow(text, inputs, how, rows)
        return
    answer = _ask(text, open_inputs(inputs))
    if not isinstance(answer, pa.Table):
        if how is not None or output is not None:
            raise InvalidQuery("EXPLAIN gives a plan, which is text: leave out --format and --output.")
        typer.echo(str(answer))
        return
    if output is None:
        show(answer, how or Format.table, rows)
        return
    answer = answer if rows is None else answer.slice(0, rows)
    write(answer, output)
    typer.echo(f"{answer.num_rows:,} rows written to {output}.")


def _follow(text: str, inputs: list[str] | None, how: Format | None, rows: int | None) -> None:
    from skyband.cli.following import follow_statement

    with warnings.catch_warnings():
        warnings.showwarning = _show_warning  # type: ignore[assignment]
        follow_statement(text, inputs, how, rows)


def _ask(text: str, tables: dict[str, Any], elsewhere: Variables | None = None) -> Any:
    """The answer; while it is found, warnings are shown as words, and on a terminal how far it is."""
    from skyband.cli.inputs import progress
    from skyband.sql.run import answer_given
    from skyband.sql.variables import NO_VARIABLES

    with warnings.catch_warnings(), progress(tables) as sources:
        warnings.showwarning = _show_warning  # type: ignore[assignment]
        answer = answer_given(text, sources, elsewhere or NO_VARIABLES)
    _say_what_was_dropped(answer)
    return answer


def _show_warning(message: Warning | str, *_: object) -> None:
    Console(stderr=True).print(f"[bold yellow]Warning:[/] {escape(str(message))}", soft_wrap=True, highlight=False)


def _say_what_was_dropped(answer: Any) -> None:
    """Warn of rows that no window could hold, if there are any."""
    import json

    import pyarrow as pa

    if not isinstance(answer, pa.Table):
        return
    counts = json.loads((answer.schema.metadata or {}).get(b"skyband", b"{}"))  # plain rows have none
    for name, why in (("rows_late", "arrived after all their windows had closed"), ("rows_null_time", "have no time")):
        if counts.get(name):
            _show_warning(f"{counts[name]:,} of {counts['rows_in']:,} rows {why}, and were left out.")


def _span(text: str) -> int | str:
    """A number of rows, or the text of a duration."""
    return int(text) if text.replace("_", "").isdecimal() else text
