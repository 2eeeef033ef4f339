"""The kinds of windows over the same rows: what each of them holds, and when it gives an answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from skyband.api import top_k
from skyband.study.pictures.drawing import BLUE, FAINT, GRID, INK, ORANGE, PALE_BLUE, SOFT, Sheet
from skyband.windows import Window, landmark, sliding, tumbling

TIMES: Final = (0.4, 1.1, 1.7, 3.2, 4.3, 4.8, 5.9, 6.5, 8.4, 9.0, 10.6, 11.3)  # minutes
END: Final = 12.0
LEFT, TOP, WIDTH, BAR = 350, 110, 550, 15


class Kind(NamedTuple):
    """A window as a user writes it, and how many of its answers are drawn."""

    code: str
    says: str
    window: Window
    shown: int


KINDS: Final = (
    Kind('tumbling("4 minutes")', "each row is in one window", tumbling(4_000, on="t"), 3),
    Kind('sliding("6 minutes", every="2 minutes")', "each row is in three", sliding(6_000, every=2_000, on="t"), 4),
    Kind('landmark(every="4 minutes")', "everything so far", landmark(every=4_000, on="t"), 3),
    Kind("sliding(5, every=2)", "the last five arrivals", sliding(5, every=2), 4),
    Kind("sliding(5)", "the same, with each arrival", sliding(5), 4),
)


def draw() -> str:
    """One timeline of rows, and below it the last windows of each kind, as `top_k` names them."""
    height = TOP + sum(24 + max(len(KINDS) and kind.shown, 2) * BAR + 14 for kind in KINDS)
    sheet = Sheet(940, int(height) + 10, "The kinds of windows")
    sheet.text(30, 38, "The same twelve rows in windows of every kind", size=20, bold=True)
    sheet.box(30, 56, 26, 12, fill=PALE_BLUE, stroke=BLUE, corner=3)
    sheet.text(64, 67, "a window", size=14)
    sheet.dot(150, 62, fill=ORANGE, radius=4)
    sheet.text(162, 67, "it gives its answer", size=14)
    for minute in range(0, 13, 2):
        sheet.line([(_x(minute), TOP - 26), (_x(minute), height - 8)], colour=GRID, width=1)
        sheet.text(_x(minute), TOP - 30, f"{minute} min" if minute else "0", size=12, colour=SOFT, anchor="middle")
    for time in TIMES:
        sheet.dot(_x(time), TOP - 12, fill=INK, radius=4.5)
    sheet.text(LEFT - 24, TOP - 7, "rows", size=14, anchor="end", bold=True)
    y = float(TOP + 14)
    for kind in KINDS:
        sheet.text(30, y + 14, kind.code, size=13, bold=True)
        sheet.text(30, y + 33, kind.says, size=13, colour=SOFT)
        for i, (start, end) in enumerate(_windows(kind)):
            sheet.box(_x(start), y + 4 + BAR * i, _x(end) - _x(start), BAR - 5, fill=PALE_BLUE, stroke=BLUE, corner=3)
            sheet.dot(_x(end), y + 4 + BAR * i + (BAR - 5) / 2, fill=ORANGE, radius=4)
        y += 24 + max(kind.shown, 2) * BAR + 14
        sheet.line([(30, y - 14), (910, y - 14)], colour=FAINT, width=0.5)
    return sheet.svg()


def _windows(kind: Kind) -> Iterator[tuple[float, float]]:
    """From when to when the last windows reach that close within the picture."""
    rows = pa.table({"t": [round(1_000 * time) for time in TIMES], "x": np.arange(len(TIMES))})
    ends: dict[Any, Any] = {}
    for row in top_k(
        rows, k=1, by="x", window=kind.window, emit="windows" if kind.window.every else "changes"
    ).to_pylist():
        if kind.window.every is None:
            ends[row["at"]] = max(row["at"] - 5, 0)
        elif kind.window.by_count or row["window_end"] <= 1_000 * END:
            ends[row["window_end"]] = row["window_start"]
    for end, start in list(ends.items())[-kind.shown :]:
        if kind.window.by_count:
            yield (TIMES[start] - 0.15, TIMES[end - 1])
        else:
            yield (max(start or 0, 0) / 1_000, end / 1_000)


def _x(minute: float) -> float:
    return round(LEFT + WIDTH * minute / END, 1)
