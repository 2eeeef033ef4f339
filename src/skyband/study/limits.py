"""`skyband bench limits`: how close Skyband comes to what the machine can do, as ratios measured in one run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from skyband.errors import InvalidQuery
from skyband.study import across, embedded, joins, pairs, pipelines, startup, subscriptions
from skyband.study.results import Result, report, table, write
from skyband.study.sizes import (
    OFFICIAL,
    PIPELINE_LINES,
    QUICK,
    SPARK_JOIN_LINES,
    SPARK_LINES,
    SPARK_STATE_LINES,
    SPARK_TRIGGER_LINES,
    Sizes,
)

GROWTH: Final = "growth"
STARTUP: Final = (startup.CACHED, startup.UNCACHED)
NAMES: Final = (
    *(workload.name for workload in embedded.WORKLOADS),
    GROWTH,
    *pairs.NAMES,
    *SPARK_LINES,
    *SPARK_TRIGGER_LINES,
    *SPARK_STATE_LINES,
    *STARTUP,
    *across.NAMES,
    *joins.NAMES,
    *SPARK_JOIN_LINES,
    *PIPELINE_LINES,
    *subscriptions.NAMES,
)

Say = Callable[[str], None]


def run(
    console: Console,
    *,
    quick: bool,
    only: Sequence[str],
    json_file: Path | None,
    rows: int | None,
    page: Path | None = None,
) -> None:
    """Measure the chosen lines, print them as a table, and write them as JSON and into a page."""
    wanted = choose(only)
    official = not quick and rows is None
    sizes = QUICK if quick else OFFICIAL
    if rows is not None:
        sizes = replace(sizes, rows=rows)
    results: list[Result] = []
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    try:
        with Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task("", total=len(wanted))
            for result in measure(wanted, sizes, lambda what: progress.update(task, description=what)):
                results.append(result)
                progress.advance(task)
    finally:  # a run takes half an hour: what it has measured is shown, even if a later line fails
        console.print(table(results, official=official))
        if json_file is not None:
            write(results, json_file, official=official, sizes=sizes)
            console.print(
                f"Written to {json_file}, with what exactly was timed for each line.", highlight=False, soft_wrap=True
            )
        if page is not None:
            report(results, page)
            console.print(f"The table of {page} has these lines now.", highlight=False, soft_wrap=True)


def choose(only: Sequence[str]) -> list[str]:
    """The names that start with one of `only`; all of them if it is empty."""
    for prefix in only:
        if not any(name.startswith(prefix) for name in NAMES):
            raise InvalidQuery(f"No line starts with {prefix!r}. There are: {', '.join(NAMES)}.")
    return [name for name in NAMES if not only or name.startswith(tuple(only))]


def measure(wanted: Collection[str], sizes: Sizes, say: Say) -> Iterator[Result]:
    """The lines called `wanted`, as they are measured; `say` is told what is being done."""
    yield from _embedded(wanted, sizes, say)
    yield from pairs.measure(wanted, sizes.passes, say)
    yield from joins.measure(wanted, sizes.passes, say)
    if not {*SPARK_LINES, *SPARK_TRIGGER_LINES, *SPARK_STATE_LINES, *SPARK_JOIN_LINES}.isdisjoint(wanted):
        from skyband.study import spark  # imports pyspark

        yield from spark.measure(wanted, sizes.spark, say)
    if not set(STARTUP).isdisjoint(wanted):
        results = startup.measure(sizes.startup_queries, sizes.startup_rounds, say)
        yield from (result for result in results if result.name in wanted)
    yield from across.measure(wanted, sizes, say)
    yield from pipelines.measure(wanted, sizes.spark, say)
    yield from subscriptions.measure(wanted, sizes.passes, say)


def _embedded(wanted: Collection[str], sizes: Sizes, say: Say) -> Iterator[Result]:
    chosen = [workload for workload in embedded.WORKLOADS if workload.name in wanted]
    for ids, workloads in groupby(chosen, key=lambda workload: workload.ids):
        say("making rows")
        rows = embedded.make_input(sizes.rows, ids, sizes.batch_rows)
        for workload in workloads:
            yield embedded.measure(workload, rows, sizes.passes, say)
    if GROWTH in wanted:
        say("making rows")
        rows = embedded.make_input(sizes.rows, None, sizes.batch_rows)
        yield embedded.measure_growth(GROWTH, rows, sizes.windows, sizes.passes, say)
