"""`skyband demo`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from skyband.cli.console import ui as show_console
from skyband.errors import InvalidInput

WRONG_ANSWER = 1


class Engine(StrEnum):
    spark = "spark"
    embedded = "embedded"


def demo(
    engine: Annotated[
        Engine, typer.Option(help="Where to run: a local Spark session, or just this Python process.")
    ] = Engine.spark,
    rows: Annotated[
        int, typer.Option(min=50_000, help="How many trades to generate. 20,000 are about a minute of trading.")
    ] = 1_000_000,
    output: Annotated[
        Path | None,
        typer.Option(
            help="A new or empty folder for the trades, the answers (Parquet) and Spark's checkpoint and log. "
            "Without it, the demo uses a temporary folder and keeps only the answers.",
            show_default=False,
        ),
    ] = None,
    ui: Annotated[bool, typer.Option("--ui", help="Watch the stream of trades in the browser, until Ctrl-C.")] = False,
    seed: Annotated[
        int, typer.Option(min=0, help="The seed of the generator. The same seed makes the same trades.")
    ] = 1,
    pause: Annotated[
        float | None,
        typer.Option(min=0, help="Seconds to rest on each window, on a terminal. [default: 0.15]", show_default=False),
    ] = None,
) -> None:
    """Rank a stream of trades, live: the ten largest of the last ten minutes, every minute.

    The demo generates a stream of trades, some of them out of order, and ranks the top 10 by `price * volume` over the
    last 10 minutes of event time, every minute. It writes the answers as Parquet, and at the end checks every window
    by recomputing it from all trades.
    """
    if ui:
        if output is not None or pause is not None:
            raise InvalidInput("--output and --pause are for the demo on the terminal: leave them out with --ui.")
        show_console()
        return
    from skyband.demo.run import run

    console = Console()
    outcome = run(console, engine=engine.value, rows=rows, seed=seed, output=output, pause=pause)
    console.print(f"The answers are in {outcome.answers} (Parquet).", soft_wrap=True, highlight=False)
    windows, wrong = outcome.verdict.windows, outcome.verdict.disagreements
    if wrong:
        console.print(
            f"[bold red]✗[/] Windows that disagree with recomputation from scratch: {len(wrong)} of {windows}"
        )
        for line in wrong[:10]:
            console.print(f"  {escape(line)}", soft_wrap=True, highlight=False)
        raise typer.Exit(WRONG_ANSWER)
    console.print(f"[bold green]✓[/] {windows} windows checked against recomputation from scratch: all agree.")
