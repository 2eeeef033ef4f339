"""Rows out of order: the watermark follows the latest time, and a row below it may come too late."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from skyband.problems.rows.query import TopK
from skyband.study.pictures.drawing import BLUE, GRID, ORANGE, PALE_BLUE, SOFT, Sheet
from skyband.windows import tumbling

ROWS: Final = 60
LATENESS: Final = 8
SIZE: Final = 20
LEFT, TOP, WIDTH, HEIGHT = 80, 100, 810, 300


def draw() -> str:
    """Sixty rows by arrival and time; a session with a lateness tells which of them it drops."""
    rng = np.random.default_rng(8)
    times = np.maximum(np.arange(ROWS) - rng.exponential(4, ROWS).astype(int), 0)
    times[[36, 57]] = (9, 31)  # two that come very late
    query = TopK(k=1, by="t", window=tumbling(SIZE, on="t"), lateness=LATENESS)
    session = query.open(pa.schema({"t": pa.int64()}))
    late, closed, watermark = [], [], []
    for i, time in enumerate(times.tolist()):
        before = session.rows_late
        answer = session.push(pa.table({"t": [time]}))
        late.append(session.rows_late > before)
        closed += [(i, row["window_end"]) for row in answer.to_pylist()]
        watermark.append(int(times[: i + 1].max()) - LATENESS)

    sheet = Sheet(940, 470, "Rows out of order, and the watermark")
    sheet.text(LEFT - 40, 38, f"Windows of {SIZE} s that wait {LATENESS} s: lateness={LATENESS}", size=20, bold=True)
    sheet.legend(LEFT - 40, 68, [(BLUE, "in its window"), (ORANGE, "late: its window has closed, so it is dropped")])
    for end in range(0, ROWS + 1, SIZE):
        sheet.line([(LEFT, _y(end)), (LEFT + WIDTH, _y(end))], colour=GRID, width=1)
        sheet.text(LEFT - 10, _y(end) + 5, f"{end} s", size=13, colour=SOFT, anchor="end")
    for i, end in closed:
        sheet.box(LEFT, _y(end), _x(i) - LEFT, _y(end - SIZE) - _y(end), fill=PALE_BLUE, stroke="none", corner=0)
        sheet.text(_x(i) + 8, _y(end - SIZE) - 8, "← closed here", size=13, colour=BLUE)
    steps = [point for i, mark in enumerate(watermark) for point in ((_x(i), _y(mark)), (_x(i + 1), _y(mark)))]
    sheet.line([(x, min(y, _y(0))) for x, y in steps], colour=BLUE, width=2)
    sheet.line([(LEFT + 470, 63), (LEFT + 486, 63)], colour=BLUE, width=2)
    sheet.text(LEFT + 494, 68, f"the watermark: latest time − {LATENESS} s", size=14)
    for i, time in enumerate(times.tolist()):
        sheet.dot(_x(i + 0.5), _y(time), fill=ORANGE if late[i] else BLUE, radius=5 if late[i] else 3.5)
    sheet.line([(LEFT, TOP + HEIGHT + 10), (LEFT + WIDTH, TOP + HEIGHT + 10)], colour=SOFT, width=1)
    sheet.text(LEFT + WIDTH, TOP + HEIGHT + 34, "arrival →", colour=SOFT, anchor="end")
    sheet.text(LEFT, TOP + HEIGHT + 34, "time of the row ↑", colour=SOFT)
    return sheet.svg()


def _x(arrival: float) -> float:
    return round(LEFT + WIDTH * arrival / ROWS, 1)


def _y(time: float) -> float:
    return round(TOP + HEIGHT * (1 - time / ROWS), 1)
