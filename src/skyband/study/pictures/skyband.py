"""The skyband as dots, while a window slides over them: which rows are shown, which may still be, which are let go."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from skyband.problems.rows.query import TopK
from skyband.study.pictures.drawing import BLUE, FAINT, INK, ORANGE, PALE_BLUE, SOFT, Sheet
from skyband.windows import sliding

K: Final = 3
WINDOW: Final = 60
ROWS: Final = 120
SECONDS_A_ROW: Final = 0.35
LEFT, TOP, WIDTH, HEIGHT = 56, 92, 828, 270
SHOWN, KEPT, GONE, UNSEEN = ORANGE, BLUE, FAINT, "none"


def draw() -> str:
    """An animation of a strict skyband with k = 3 over the last 60 rows; without animation, its last moment."""
    scores = np.random.default_rng(4).beta(1.4, 1.8, ROWS).round(3)
    colours = _colours(scores)
    sheet = Sheet(940, 440, "The rows that Skyband keeps while a window slides")
    sheet.text(LEFT, 38, f"Top {K} of the last {WINDOW} rows: what Skyband keeps", size=20, bold=True)
    _legend(sheet, sum(colour in (SHOWN, KEPT) for colour in colours[-1]))
    step = WIDTH / ROWS
    seconds = SECONDS_A_ROW * len(colours)
    first, last = LEFT, LEFT + (ROWS - WINDOW) * step
    sheet.add(
        f'<rect x="{last:g}" y="{TOP - 8}" width="{WINDOW * step:g}" height="{HEIGHT + 16}" rx="6" fill="{PALE_BLUE}" '
        f'opacity="0.55"><animate attributeName="x" from="{first:g}" to="{last:g}" dur="{seconds:g}s" '
        'repeatCount="indefinite"/></rect>'
    )
    for i in range(ROWS):
        x, y = LEFT + (i + 0.5) * step, TOP + HEIGHT * (1 - float(scores[i]))
        sheet.add(_dot(x, y, [moment[i] for moment in colours], seconds))
    sheet.line([(LEFT, TOP + HEIGHT + 12), (LEFT + WIDTH, TOP + HEIGHT + 12)], colour=SOFT, width=1)
    sheet.text(LEFT + WIDTH, TOP + HEIGHT + 34, "arrival →", anchor="end", colour=SOFT)
    sheet.text(LEFT, TOP + HEIGHT + 34, "score ↑", colour=SOFT)
    sheet.text(LEFT + WIDTH / 2, TOP + HEIGHT + 34, "shaded: the window", anchor="middle", colour=BLUE)
    return sheet.svg()


def _colours(scores: np.ndarray) -> list[list[str]]:
    """For each moment from the first full window on, the colour of every row."""
    rows = pa.table({"score": scores})
    session = TopK(k=K, by="score", window=sliding(WINDOW), algorithm="strict").open(rows.schema)
    moments = []
    for i in range(ROWS):
        session.push(rows.slice(i, 1))
        if i + 1 < WINDOW:
            continue
        held = set(session._operator.held().tolist())
        shown = sorted(held, key=lambda row: (-scores[row], -row))[:K]
        assert [scores[row] for row in shown] == session.top()["score"].to_pylist()
        moments.append([_colour(row, i, held, shown) for row in range(ROWS)])
    return moments


def _colour(row: int, now: int, held: set[int], shown: list[int]) -> str:
    if row > now:
        return UNSEEN
    return SHOWN if row in shown else KEPT if row in held else GONE


def _dot(x: float, y: float, colours: list[str], seconds: float) -> str:
    """A dot that changes its colour when the row becomes something else."""
    changes = [(i, colour) for i, colour in enumerate(colours) if i == 0 or colours[i - 1] != colour]
    circle = f'<circle cx="{x:g}" cy="{y:.1f}" r="4.5" fill="{colours[-1]}"'
    if len(changes) == 1:
        return circle + "/>"
    times = ";".join(f"{i / len(colours):.4g}" for i, _ in changes)
    values = ";".join(colour for _, colour in changes)
    return (
        f'{circle}><animate attributeName="fill" calcMode="discrete" dur="{seconds:g}s" keyTimes="{times}" '
        f'values="{values}" repeatCount="indefinite"/></circle>'
    )


def _legend(sheet: Sheet, kept: int) -> None:
    x = float(LEFT)
    for colour, words, width in (
        (SHOWN, "in the answer", 135),
        (KEPT, "not yet, but it may come", 205),
        (GONE, f"let go: {K} later rows are better", 245),
    ):
        sheet.dot(x + 5, 63, fill=colour)
        sheet.text(x + 17, 68, words, size=14, colour=INK)
        x += width
    sheet.text(LEFT + WIDTH, 68, f"{kept} of {WINDOW} rows are kept", size=14, anchor="end", bold=True)
