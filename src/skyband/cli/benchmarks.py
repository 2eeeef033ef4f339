"""`skyband bench`: `limits`, `papers`, `planner` and `serving`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

app = typer.Typer(help="Measure Skyband on this machine.", no_args_is_help=True)

JsonFile = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Also write the results here, as JSON.", show_default=False),
]


@app.command()
def limits(
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Use smaller inputs. This takes about a minute and does not give the official figures."
        ),
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Run only lines whose names start with this, such as panes or spark. May be repeated.",
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
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Put the lines into the table of this Markdown page, with the date and the commit.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Measure how close Skyband comes to the limits of this machine, as ratios.

    It compares the embedded engine with one numpy pass over the same scores, Spark with a plain scan of the same files
    and with Spark's own way to ask the same question, and a new process with the clock. Beside each ratio it shows how
    many rows Skyband holds, and how many theory expects.
    """
    from skyband.study.limits import run

    run(Console(), quick=quick, only=only or [], json_file=json_file, rows=rows, page=report)


class Problem(StrEnum):
    all = "all"
    objects = "objects"
    pairs = "pairs"
    across = "across"
    joins = "joins"
    subscriptions = "subscriptions"


@app.command()
def papers(
    problem: Annotated[
        Problem,
        typer.Argument(help="Which papers: those about rows, pairs, several streams, joins or subscriptions, or all."),
    ],
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Measure fewer points for a shorter time. All of them take about a quarter of an hour."
        ),
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Run only experiments whose names start with this, such as mintopk. May be repeated.",
            show_default=False,
        ),
    ] = None,
    json_file: JsonFile = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Also write a page of claims, figures and numbers into this folder. The command skips what the folder "
            "already has, so it continues a stopped run. Figures need matplotlib.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Repeat the experiments of the papers behind Skyband, and check their claims on this machine.

    *objects*: MinTopK (2011), k-skybands with an answer for each arrival (2015), questions of any size (2014).
    *pairs*: K-skybands and staircases of pairs (2014).
    *across*: top-k over streams that are never in step (2009).
    *joins*: aggregation before or after a join (2009).
    *subscriptions*: hundreds of k-NN queries on one stream (2015).

    Each experiment runs with all algorithms that apply. The command shows the figures beside the paper's claim, and
    judges whether the claim holds here. All experiments of one kind take about a quarter of an hour.
    """
    from skyband.study.papers.run import ALL, EXPERIMENTS, run

    run(
        Console(),
        quick=quick,
        only=only or [],
        json_file=json_file,
        folder=folder,
        among=ALL if problem is Problem.all else EXPERIMENTS[problem.value],
    )


@app.command()
def planner(
    json_file: JsonFile = None,
    pairs: Annotated[bool, typer.Option("--pairs", help="Judge the planner of pairs instead of that of rows.")] = False,
) -> None:
    """Compare the planner's choices with the best algorithm, on settings that it was not calibrated on.

    This takes some minutes.
    """
    from skyband.study import pair_planner
    from skyband.study import planner as bench

    console, judge = Console(), pair_planner if pairs else bench
    with console.status("") as status:
        verdicts = judge.measure(status.update)
    console.print(judge.table(verdicts))
    console.print(bench.summary(verdicts, judge.BAR))
    if json_file:
        bench.write(verdicts, json_file)


class Served(StrEnum):
    all = "all"
    pipeline = "pipeline"
    session = "session"


@app.command()
def serving(
    served: Annotated[Served, typer.Argument(help="What readers follow: a pipeline on Spark, a session, or both.")] = (
        Served.all
    ),
    readers: Annotated[int, typer.Option(min=1, max=3_000, help="The number of readers of one answer.")] = 1_000,
    seconds: Annotated[float, typer.Option(min=1, help="How long a turn takes.")] = 10.0,
    turns: Annotated[int, typer.Option(min=1, help="The number of turns with readers, and without.")] = 3,
    json_file: JsonFile = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Put the turns into the tables of this Markdown page, with the date and the commit.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Measure what HTTP readers cost: the delay of answers, skipped answers, and the slowdown of what they follow.

    An answer changes ten times a second. Meanwhile a pipeline reads files as fast as it can on one core, or a thread
    pushes rows to a session as fast as it takes them. Readers are in a process of their own, each with its own
    connection. For a pipeline, the table also shows how much of a core each process uses.
    """
    from skyband.study.serving import run

    run(
        Console(),
        readers=readers,
        seconds=seconds,
        turns=turns,
        of_session=served is not Served.pipeline,
        of_pipeline=served is not Served.session,
        json_file=json_file,
        page=report,
    )
