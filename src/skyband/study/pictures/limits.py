"""The headline measurements, each beside what it is compared with: how far it is on the right side of its bar."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from skyband.study.pictures.drawing import BLUE, GRID, INK, PALE_BLUE, SOFT, Sheet

PAGE: Final = Path(__file__).parents[4] / "docs" / "measurements" / "limits.md"
SHOWN: Final = {
    "panes-10": "top 10, window 1M rows, slide 100k, against one numpy pass",
    "arrival-9": "top 9, an answer with each row, against one numpy pass",
    "groups": "1,000 groups, against one numpy pass",
    "spark-scan": "Spark: top 10, against Spark scanning and counting",
    "spark-own": "Spark: top 10, against Spark's own max_by",
    "spark-groups": "Spark: 100,000 groups, against Spark's own max_by",
    "across-staircase": "three streams, against the published algorithm",
    "joins-early": "a join, against aggregating late",
    "joins-spark-own": "Spark: a join, against Spark's join and aggregation",
    "subscriptions-10000": "10,000 queries, against only computing distances",
}
SUBSCRIPTIONS: Final = {
    "subscriptions-cpmw-9": "400 queries, top 9, against CPM/w",
    "subscriptions-cpmw-81": "400 queries, top 81, against CPM/w",
    "subscriptions-snn-9": "400 queries, top 9, against SNN",
    "subscriptions-snn-81": "400 queries, top 81, against SNN",
    "subscriptions-10000": "10,000 queries, top 9, against only computing distances",
}
LEFT, TOP, WIDTH, STEP = 450, 92, 400, 36
LOWEST, HIGHEST = 0.01, 1_000.0


class Line(NamedTuple):
    """A line of the page: a ratio to its reference, and the bar that it has to reach."""

    ratio: float
    bar: float


def limits() -> str:
    """The headlines of all problems."""
    return against("How fast: each line against its reference", SHOWN)


def subscriptions_cost() -> str:
    """Subscriptions against the published competitors, and against only computing distances."""
    return against("Subscriptions against their references", SUBSCRIPTIONS)


def against(title: str, shown: Mapping[str, str]) -> str:
    """A bar for each line, on a log scale, where 1 is as fast as the reference; a tick where the bar is."""
    lines = {name: line for name, line in read().items() if name in shown}
    assert set(lines) == set(shown), "each line of the picture is on the page"
    sheet = Sheet(940, TOP + STEP * len(shown) + 60, title)
    sheet.text(30, 38, title, size=20, bold=True)
    sheet.text(
        30,
        64,
        "1 is as fast as the reference; to the right is faster. The tick is the bar we set.",
        size=14,
        colour=SOFT,
    )
    bottom = TOP + STEP * len(shown)
    for power in range(-2, 4):
        x = _x(10.0**power)
        sheet.line([(x, TOP - 8), (x, bottom)], colour=INK if power == 0 else GRID, width=1)
        sheet.text(x, bottom + 20, f"{10.0**power:g}", size=13, colour=SOFT, anchor="middle")
    for i, (name, says) in enumerate(shown.items()):
        _bar(sheet, TOP + STEP * i, says, lines[name])
    return sheet.svg()


def read() -> dict[str, Line]:
    """The lines of the page whose bar is a least ratio, by their names."""
    found = {}
    for row in re.findall(r"^\| `([\w-]+)`[^|]*\|(.*)\|$", PAGE.read_text(), re.MULTILINE):
        cells = [cell.strip() for cell in row[1].split("|")]
        if len(cells) < 4:  # a line that nobody has measured yet
            continue
        bar = re.match(r"≥ ([\d.]+)$", cells[3])
        ratio = re.match(r"([\d.]+)", cells[2])
        if bar and ratio:
            found[row[0]] = Line(float(ratio[1]), float(bar[1]))
    return found


def _bar(sheet: Sheet, y: float, says: str, line: Line) -> None:
    one, end = _x(1.0), _x(line.ratio)
    sheet.text(LEFT - 20, y + 17, says, size=13, anchor="end")
    fill = BLUE if line.ratio >= 1 else PALE_BLUE
    sheet.box(min(one, end), y + 4, max(abs(end - one), 1), 18, fill=fill, stroke=BLUE, corner=2)
    sheet.line([(_x(line.bar), y), (_x(line.bar), y + 26)], colour=INK, width=2)
    sheet.text(max(one, end, _x(line.bar)) + 8, y + 18, f"{line.ratio:g}", size=13, bold=True)


def _x(ratio: float) -> float:
    share = (math.log10(ratio) - math.log10(LOWEST)) / (math.log10(HIGHEST) - math.log10(LOWEST))
    return round(LEFT + WIDTH * share, 1)


DRAWN: Final = (limits, subscriptions_cost)
