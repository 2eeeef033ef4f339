"""`skyband explain` and `skyband sql`: questions about a query, and of files."""

from __future__ import annotations

import warnings
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from skyband.errors import InvalidInput


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
    k: Annotated[int, typer.Option(help="How many rows each window shows.")] = 10,
    by: Annotated[str, typer.Option(help="The score of a row: a column or an SQL expression.")] = "score",
    size: Annotated[
        str | None,
        typer.Option(
            help="How much the window holds: a number of rows (1000000) or a duration ('10 minutes'). Default: all.",
            show_default=False,
        ),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(help="How often the window slides, in the same unit. Default: with each row.", show_default=False),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(help="The column that the window measures. Default: it counts rows.", show_default=False),
    ] = None,
    per: Annotated[
        list[str] | None,
        typer.Option(help="Keep a ranking for each value of this column. May be repeated.", show_default=False),
    ] = None,
    emit: Annotated[
        Emit | None, typer.Option(help="Give whole rankings, only what changed, or each row once.", show_default=False)
    ] = None,
    ad_hoc: Annotated[
        bool, typer.Option("--ad-hoc", help="Keep the rows that questions about any smaller window need.")
    ] = False,
    window_rows: Annotated[
        float | None,
        typer.Option(min=1, help="How many rows a window by time holds, if you know.", show_default=False),
    ] = None,
    algorithm: Annotated[
        str | None, typer.Option(help="Run this algorithm instead of the planner's choice.", show_default=False)
    ] = None,
    error: Annotated[
        float | None,
        typer.Option(help="How many rows a window may miss on average, such as 0.001.", show_default=False),
    ] = None,
    expect: Annotated[
        Order | None, typer.Option(help="The order in which scores come, if you know it.", show_default=False)
    ] = None,
) -> None:
    """Show which algorithm would answer a query, why, how many rows it would hold, and what a row would cost.

    For example: `skyband explain --k 10 --by "price * volume" --size "10 minutes" --every "1 minute" --on ts`
    """
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


def sql(
    statement: Annotated[
        str,
        typer.Argument(
            help="An SQL statement. The page on SQL (docs/sql.md) explains the language.", show_default=False
        ),
    ],
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input", help="A file, and the name that the statement gives it: trades=trades.csv. May be repeated."
        ),
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="Print at most this many rows.")] = 50,
    output: Annotated[
        Path | None,
        typer.Option(help="Write the whole answer here instead: .parquet, .csv, .jsonl or .arrow.", show_default=False),
    ] = None,
) -> None:
    """Ask a question of files: Parquet, CSV, JSON lines or Arrow.

    For example: `skyband sql "SELECT * FROM trades [WINDOW 1 HOUR EVERY 1 MINUTE] ORDER BY price DESC LIMIT 3" --input
    trades=trades.parquet`
    """
    import pyarrow as pa

    from skyband.sql import sql as ask
    from skyband.sql.files import check_ending, open_file, write_file

    if output is not None:
        check_ending(output)
    files: dict[str, Any] = {}
    for given in inputs or ():
        name, equals, path = given.partition("=")
        if not equals or not name:
            raise InvalidInput(f"--input takes a name and a file, such as trades=trades.csv; got {given!r}.")
        files[name] = open_file(Path(path))
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning  # type: ignore[assignment]
        answer = ask(statement, **files)
    if not isinstance(answer, pa.Table):
        typer.echo(str(answer))
        return
    _say_what_was_dropped(answer)
    if output is not None:
        write_file(answer, output)
        typer.echo(f"{answer.num_rows:,} rows written to {output}.")
    else:
        _print_rows(answer, rows)


def _show_warning(message: Warning | str, *_: object) -> None:
    Console(stderr=True).print(f"[bold yellow]Warning:[/] {escape(str(message))}", soft_wrap=True, highlight=False)


def _say_what_was_dropped(answer: Any) -> None:
    """Warn of rows that no window could hold, if there are any."""
    import json

    counts = json.loads(answer.schema.metadata[b"skyband"])
    for name, why in (
        ("rows_late", "came after all windows that would hold them had closed"),
        ("rows_null_time", "have no time"),
    ):
        if counts[name]:
            _show_warning(f"{counts[name]:,} of {counts['rows_in']:,} rows {why}, and were left out.")


def _print_rows(answer: Any, most: int) -> None:
    """Print the first rows as a table, and how many more there are."""
    from rich.table import Table

    shown, total = Table(box=None), answer.num_rows
    for name in answer.schema.names:
        shown.add_column(name, overflow="fold")
    for row in answer.slice(0, most).to_pylist():
        shown.add_row(
            *(
                "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
                for value in row.values()
            )
        )
    Console().print(shown)
    if total > most:
        typer.echo(f"{most:,} of {total:,} rows; --rows shows more, --output writes them all.")


def _span(text: str) -> int | str:
    """A number of rows, or the text of a duration."""
    return int(text) if text.replace("_", "").isdecimal() else text
