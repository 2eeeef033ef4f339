"""What was measured: one line a workload, as a table for people and as JSON for later."""

from __future__ import annotations

import json
import platform
import re
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from skyband.study.sizes import Sizes


@dataclass(frozen=True, slots=True)
class Result:
    """One line: what was run, what it was compared with, and whether that is enough."""

    name: str
    workload: str
    against: str
    measured: float  # the ratio, or seconds when the unit is "s"
    bar: float
    at_most: bool = False  # the bar is an upper limit
    unit: str = "x"
    rows_per_second: float | None = None
    reference_rows_per_second: float | None = None
    rows_held: float | None = None
    rows_expected: str = ""
    how: str = ""  # what exactly was timed
    cpu: str = ""  # on Spark: CPU seconds of the whole run, of Java and of Python, of both sides

    @property
    def met(self) -> bool:
        return self.measured <= self.bar if self.at_most else self.measured >= self.bar


def table(results: Sequence[Result], *, official: bool) -> Table:
    """The results, for reading: below each workload, what it is compared with."""
    title = "Limits" if official else "Limits, with smaller inputs: these are not the official figures"
    shown = Table(title=title, title_style="bold", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 1, 0))
    shown.add_column("workload\n  name: against", ratio=1)
    shown.add_column("M rows/s\n", justify="right", no_wrap=True)
    shown.add_column("ratio\nbar", justify="right", no_wrap=True)
    shown.add_column("\n", no_wrap=True)
    shown.add_column("rows held\nexpected", justify="right", no_wrap=True)
    for result in results:
        shown.add_row(
            Text.assemble(
                result.workload,
                (f"\n  {result.name}: {result.against}", "dim"),
                (f"\n  {result.cpu}" if result.cpu else "", "dim"),
            ),
            f"{_millions(result.rows_per_second)}\n{_millions(result.reference_rows_per_second)}",
            f"{_figure(result.measured, result.unit)}\n{_limit(result)}",
            Text("met", "green") if result.met else Text("missed", "bold red"),
            f"{_count(result.rows_held)}\n{result.rows_expected}",
        )
    return shown


def write(results: Sequence[Result], path: Path, *, official: bool, sizes: Sizes) -> None:
    """The results as JSON, with what they were measured on."""
    described = {
        "official": official,
        "sizes": asdict(sizes),
        "machine": machine(),
        "results": [asdict(result) | {"met": result.met} for result in results],
    }
    path.write_text(json.dumps(described, indent=2) + "\n")


_COLUMNS = ("line", "workload", "against", "measured", "bar", "", "rows held", "expected", "when, commit")
_LINE = re.compile(r"^\| `([\w-]+)` \|.*\n", re.MULTILINE)


def report(results: Sequence[Result], path: Path) -> None:
    """Put the results into the table of a Markdown page: a line that is there is replaced, others are added below it.

    A page without such a table gets one at its end.
    """
    page = path.read_text() if path.exists() else ""
    if not _LINE.search(page):
        page += f"\n| {' | '.join(_COLUMNS)} |\n|{'---|' * len(_COLUMNS)}\n"
    when = when_measured()
    for result in results:
        line = _markdown(result, when)
        known = {found[1]: found for found in _LINE.finditer(page)}
        if result.name in known:
            start, end = known[result.name].span()
        else:
            start = end = max((found.end() for found in known.values()), default=len(page))
        page = page[:start] + line + page[end:]
    path.write_text(page)


def _markdown(result: Result, when: str) -> str:
    cells = (
        f"`{result.name}`",
        result.workload,
        result.against,
        _figure(result.measured, result.unit),
        _limit(result),
        "" if result.met else "missed",
        _count(result.rows_held),
        result.rows_expected,
        when,
    )
    return f"| {' | '.join(cells)} |\n"


def when_measured() -> str:
    """The date, and the commit of the source."""
    return f"{datetime.now(UTC):%Y-%m-%d}, {_commit()}"


def _commit() -> str:
    """The commit of the source that runs, or the version of the package outside a repository."""
    asked = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return version("skyband")


def machine() -> dict[str, str]:
    """What the figures were measured on."""
    return {
        "processor": platform.processor() or platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        **{package: version(package) for package in ("skyband", "numpy", "numba", "pyarrow")},
    }


def _millions(rows_per_second: float | None) -> str:
    if rows_per_second is None:
        return ""
    millions = rows_per_second / 1e6
    return f"{millions:,.0f}" if millions >= 10 else f"{millions:.3g}"


def _count(rows: float | None) -> str:
    return "" if rows is None else f"{rows:,.0f}"


def _limit(result: Result) -> str:
    return f"{'≤' if result.at_most else '≥'} {_figure(result.bar, result.unit)}"


def _figure(value: float, unit: str) -> str:
    if unit == "s":
        return f"{value:.2f} s" if value < 10 else f"{value:.0f} s"
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"
