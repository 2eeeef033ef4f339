"""What was measured: one line a workload, as a table for people and as JSON for later."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from rich.table import Table
from rich.text import Text


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

    @property
    def met(self) -> bool:
        return self.measured <= self.bar if self.at_most else self.measured >= self.bar


def table(results: Sequence[Result], *, official: bool) -> Table:
    """The results, for reading."""
    title = "Limits" if official else "Limits, quick run: smaller inputs, so these are not the official figures"
    shown = Table(title=title, title_justify="left", show_lines=False)
    shown.add_column("workload")
    shown.add_column("M rows/s", justify="right")
    shown.add_column("against")
    shown.add_column("M rows/s", justify="right")
    shown.add_column("ratio", justify="right")
    shown.add_column("bar", justify="right")
    shown.add_column("")
    shown.add_column("rows held", justify="right")
    shown.add_column("expected")
    for result in results:
        shown.add_row(
            result.workload,
            _millions(result.rows_per_second),
            result.against,
            _millions(result.reference_rows_per_second),
            _figure(result.measured, result.unit),
            ("≤ " if result.at_most else "≥ ") + _figure(result.bar, result.unit),
            Text("met", "green") if result.met else Text("missed", "bold red"),
            "" if result.rows_held is None else f"{result.rows_held:,.0f}",
            result.rows_expected,
        )
    return shown


def write(results: Sequence[Result], path: Path, *, official: bool, rows: int) -> None:
    """The results as JSON, with what they were measured on."""
    described = {
        "official": official,
        "rows": rows,
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "system": platform.system(),
            "python": platform.python_version(),
            **{package: version(package) for package in ("skyband", "numpy", "numba", "pyarrow")},
        },
        "results": [asdict(result) | {"met": result.met} for result in results],
    }
    path.write_text(json.dumps(described, indent=2) + "\n")


def _millions(rows_per_second: float | None) -> str:
    if rows_per_second is None:
        return ""
    millions = rows_per_second / 1e6
    return f"{millions:,.0f}" if millions >= 10 else f"{millions:.3g}"


def _figure(value: float, unit: str) -> str:
    if unit == "s":
        return f"{value:.2f} s" if value < 10 else f"{value:.0f} s"
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"
