"""Bars of numbers that a page of measurements has, on a log scale: the picture cannot say anything but the table.

`DRAWN` has the pictures: what is measured, the table that has it, and its groups of bars.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from skyband.study.pictures.drawing import BLUE, FAINT, GRID, ORANGE, PURPLE, SOFT, TEAL, Sheet, width_of

PAGES: Final = Path(__file__).parents[4] / "docs" / "measurements"
FILLS: Final = (BLUE, ORANGE, TEAL, PURPLE, FAINT)  # of the first series, the second, …
LEFT, TOP, WIDTH, BAR, SPACE = 250, 100, 600, 18, 16


def table(page: str, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading of a page, without its own first line."""
    _, found, below = (PAGES / page).read_text().partition(f"\n## {heading}\n")
    assert found, f"{page} has a heading {heading!r}"
    rows = re.search(r"(?:^\|.*\|\n)+", below, re.MULTILINE)
    assert rows, f"{page} has a table below {heading!r}"
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in rows[0].splitlines()]
    return cells[2:]


def number(cell: str) -> float:
    """The number with which a cell begins."""
    found = re.match(r"[\d,]*\.?\d+", cell.strip("*"))
    assert found, f"{cell!r} begins with a number"
    return float(found[0].replace(",", ""))


def bars(title: str, says: str, series: Sequence[str], groups: Mapping[str, Sequence[float]]) -> str:
    """A group of bars for each name, one bar for each series, from the power of ten below the smallest number on."""
    numbers = [each for values in groups.values() for each in values]
    low, high = math.floor(math.log10(min(numbers))), math.ceil(math.log10(max(numbers)))
    step = BAR * len(series) + SPACE
    sheet = Sheet(940, TOP + step * len(groups) + 44, title)
    sheet.text(30, 38, title, size=20, bold=True)
    _legend(sheet, series)
    sheet.text(910, 72, says, size=14, colour=SOFT, anchor="end")
    bottom = TOP + step * len(groups)

    def place(value: float) -> float:
        return round(LEFT + WIDTH * (math.log10(value) - low) / (high - low), 1)

    for power in range(low, high + 1):
        sheet.line([(place(10.0**power), TOP - 8), (place(10.0**power), bottom)], colour=GRID, width=1)
        sheet.text(place(10.0**power), bottom + 20, f"{10.0**power:,g}", size=13, colour=SOFT, anchor="middle")
    for i, (name, values) in enumerate(groups.items()):
        top = TOP + step * i
        sheet.text(LEFT - 16, top + BAR * len(series) / 2 + 5, name, size=14, anchor="end")
        for j, value in enumerate(values):
            fill = FILLS[j]
            sheet.box(LEFT, top + BAR * j, place(value) - LEFT, BAR - 4, fill=fill, stroke=fill, corner=2)
            sheet.text(place(value) + 7, top + BAR * j + 12, f"{value:,g}", size=13)
    return sheet.svg()


def _legend(sheet: Sheet, series: Sequence[str]) -> None:
    x = 30.0
    for fill, name in zip(FILLS, series, strict=False):
        sheet.box(x, 61, 16, 12, fill=fill, stroke=fill, corner=2)
        sheet.text(x + 23, 72, name, size=14)
        x += 23 + width_of(name, 14) + 18


def budget() -> str:
    """Rows of which the columns are kept: exactly, and with an error of 0.001."""
    rows = table("algorithms.md", "Allowed error: `budgeted`")
    return bars(
        "Rows that Skyband keeps with their columns, an answer with each row",
        "rows, log scale",
        ("exact", "error=0.001"),
        {f"top {row[1]} of {row[0]}": [number(row[2]), number(row[3])] for row in rows},
    )


def pairs_cost() -> str:
    """`staircase`, the bound below, and what the papers compare with, for three k."""
    rows = table("pairs.md", "`staircase`, as published")
    return bars(
        "The closest pairs of 10,000 rows, an answer with each row",
        "microseconds for each row, log scale",
        ("staircase", "supreme: only scores", "as published", "basic", "naive"),
        {f"top {row[0]} pairs": [number(row[i]) for i in (2, 1, 3, 4, 5)] for row in rows},
    )


def recall_cost() -> str:
    """Bytes and time, where three streams share half of their objects, by the size of the window."""
    rows = table("across.md", "What `recall=` costs")
    half_in_step = rows[: next(i for i, row in enumerate(rows) if i and row[0] != "the same")]
    return bars(
        "recall=0.95 beside an exact answer, three streams",
        "1 is the exact answer, log scale",
        ("bytes", "time"),
        {f"window of {row[1]} rows": [number(row[5]), number(row[6])] for row in half_in_step},
    )


def shuffle_cost() -> str:
    """Seconds of a batch query over a million rows, with aggregation in the JVM and without."""
    names = ("one stream, 100 groups", "join of two streams", "one stream, 1M groups")
    rows = table("joins.md", "Aggregation before the shuffle, on Spark")
    return bars(
        "Aggregation before the shuffle, on Spark",
        "seconds for a million rows, log scale",
        ("aggregated first", "rows passed one by one"),
        {name: [number(row[1]), number(row[2])] for name, row in zip(names, rows, strict=True)},
    )


def slides_cost() -> str:
    """`mintopk` and `sma`, in random order, for k from 10 to 10,000."""
    rows = table("algorithms.md", "Slides: `mintopk` and `sma`")
    return bars(
        "A window of a million rows that slides by 100,000",
        "nanoseconds for each row, log scale",
        ("mintopk", "sma, as published"),
        {f"top {row[0]}": [number(row[1]), number(row[2])] for row in rows},
    )


DRAWN: Final[tuple[Callable[[], str], ...]] = (budget, pairs_cost, recall_cost, shuffle_cost, slides_cost)
