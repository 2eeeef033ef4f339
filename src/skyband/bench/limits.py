"""`skyband bench limits`: how close Skyband comes to what the machine can do, as ratios measured in one run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from skyband.bench import embedded, startup
from skyband.bench.results import Result, table, write
from skyband.bench.sizes import OFFICIAL, QUICK, Sizes
from skyband.errors import InvalidQuery

GROWTH: Final = "growth"
STARTUP: Final = (startup.CACHED, startup.UNCACHED)
SPARK: Final = ("spark-scan", "spark-own", "spark-groups")
NAMES: Final = (*(workload.name for workload in embedded.WORKLOADS), GROWTH, *SPARK, *STARTUP)

Say = Callable[[str], None]


def run(console: Console, *, quick: bool, only: Sequence[str], json_file: Path | None, rows: int | None) -> None:
    """Measure the chosen lines, print them as a table, and write them as JSON."""
    wanted = choose(only)
    official = not quick and rows is None
    sizes = QUICK if quick else OFFICIAL
    if rows is not None:
        sizes = replace(sizes, rows=rows)
    results = list(_with_progress(console, measure(wanted, sizes, say=lambda _: None), wanted))
    console.print(table(results, official=official))
    console.print("Ratios of the best of several turns; --json FILE says for each line what exactly was timed.", style="dim")
    if json_file is not None:
        write(results, json_file, official=official, rows=sizes.rows)
        console.print(f"Written to {json_file}", highlight=False)


def choose(only: Sequence[str]) -> list[str]:
    """The names that start with one of `only`; all of them if it is empty."""
    for prefix in only:
        if not any(name.startswith(prefix) for name in NAMES):
            raise InvalidQuery(f"No line starts with {prefix!r}. There are: {', '.join(NAMES)}.")
    return [name for name in NAMES if not only or name.startswith(tuple(only))]
