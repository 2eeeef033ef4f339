"""Panes and windows: every row is compared once, in its pane, however many windows hold it."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from skyband.api import top_k
from skyband.study.pictures.drawing import BLUE, FAINT, INK, ORANGE, PALE_BLUE, PALE_SHADE, SOFT, Sheet
from skyband.windows import sliding, tumbling

K: Final = 2
PANES: Final = 6
WINDOW: Final = 4  # panes
PER_PANE: Final = 8
LEFT, TOP, PANE_WIDTH, HEIGHT = 56, 84, 138, 150


def draw() -> str:
    """Six panes of eight rows, and the windows of four panes over them, with the answer of each."""
    rows = pa.table({"t": np.arange(PANES * PER_PANE), "score": np.random.default_rng(46).integers(10, 100, 48)})
    best_of_pane = {row["t"] for row in top_k(rows, k=K, by="score", window=tumbling(PER_PANE, on="t")).to_pylist()}
    windows = top_k(rows, k=K, by="score", window=sliding(WINDOW * PER_PANE, every=PER_PANE, on="t")).to_pylist()
    sheet = Sheet(940, 470, "Panes and windows")
    sheet.text(LEFT, 38, f"Windows of {WINDOW} panes, top {K}: a row is compared once", size=20, bold=True)
    entries = [(ORANGE, f"among the best {K} of its pane: kept"), (FAINT, "dropped: no window will ever show it")]
    sheet.legend(LEFT, 65, entries)
    for pane in range(PANES):
        _pane(sheet, pane, rows, best_of_pane)
    for line, end in enumerate(range(WINDOW, PANES + 1)):
        answer = [row for row in windows if row["window_end"] == end * PER_PANE]
        _window(sheet, end, TOP + HEIGHT + 40 + 56 * line, [row["score"] for row in answer])
    return sheet.svg()


def _pane(sheet: Sheet, pane: int, rows: pa.Table, best: set[int]) -> None:
    left = LEFT + pane * PANE_WIDTH
    sheet.box(left, TOP, PANE_WIDTH - 4, HEIGHT, fill=PALE_SHADE)
    sheet.text(left + 8, TOP + HEIGHT + 20, f"pane {pane + 1}", size=13, colour=SOFT)
    for row in rows.slice(pane * PER_PANE, PER_PANE).to_pylist():
        x = left + 12 + (row["t"] % PER_PANE) * (PANE_WIDTH - 28) / (PER_PANE - 1)
        y = TOP + HEIGHT - 12 - (row["score"] - 10) / 90 * (HEIGHT - 40)
        shown = row["t"] in best
        sheet.dot(x, y, fill=ORANGE if shown else FAINT)
        if shown:
            sheet.text(x, y - 9, str(row["score"]), size=12, anchor="middle", colour=INK)


def _window(sheet: Sheet, end: int, y: float, scores: list[int]) -> None:
    left, width = LEFT + (end - WINDOW) * PANE_WIDTH, WINDOW * PANE_WIDTH - 4
    sheet.box(left, y, width, 40, fill=PALE_BLUE, stroke=BLUE)
    ranked = ",  ".join(f"{rank}. {score}" for rank, score in enumerate(scores, start=1))
    sheet.text(left + 14, y + 26, f"window of panes {end - WINDOW + 1} to {end}", size=14, colour=BLUE)
    sheet.text(left + width - 14, y + 26, f"answer: {ranked}", size=15, anchor="end", bold=True)
