"""Objects across streams: what each is sure to score and what it still can score decide which are kept."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from skyband.problems.across.query import TopKAcross
from skyband.study.pictures.drawing import BLUE, FAINT, INK, ORANGE, PALE_BLUE, PALE_SHADE, SOFT, Sheet, width_of
from skyband.windows import landmark

K: Final = 2
STREAMS: Final = ("north", "south", "west")
OBJECTS: Final = 9
ROWS: Final = 18
LEFT, TOP, WIDTH, STEP = 130, 104, 620, 34


def draw() -> str:
    """Nine flows of which three routers have said something: a bar from the sure score to the best possible one."""
    rng = np.random.default_rng(20)
    cells = [(flow, stream) for flow in range(OBJECTS) for stream in STREAMS]
    said = [cells[i] for i in sorted(rng.permutation(len(cells))[:ROWS])]
    rows = [{"flow": flow, "stream": stream, "size": round(float(rng.random()), 2)} for flow, stream in said]
    query = TopKAcross(
        k=K, id="flow", value="size", stream="stream", streams=list(STREAMS), bounds=(0, 1), window=landmark()
    )
    session = query.open(pa.Table.from_pylist(rows).schema)
    session.push(pa.Table.from_pylist(rows))
    flows = sorted({row["flow"] for row in rows}, key=lambda flow: -_sure(rows, flow))
    bar = _sure(rows, flows[K - 1])
    assert session.top()["score"].to_pylist() == [_sure(rows, flow) for flow in flows[:K]]

    sheet = Sheet(940, TOP + STEP * len(flows) + 76, "Objects across streams")
    sheet.text(40, 38, f"Top {K} flows, each scored by three routers that are never in step", size=20, bold=True)
    sheet.box(40, 54, 26, 14, fill=ORANGE, stroke=ORANGE, corner=3)
    sheet.text(74, 66, "sure already", size=14)
    x = 74 + width_of("sure already", 14) + 22
    sheet.box(x, 54, 26, 14, fill=PALE_BLUE, stroke=BLUE, corner=3)
    sheet.text(x + 34, 66, "possible: a router has not spoken yet", size=14)
    sheet.line([(_x(bar), TOP - 14), (_x(bar), TOP + STEP * len(flows))], colour=INK, dashed=True)
    sheet.text(_x(bar), TOP - 20, f"{K} flows are sure of {bar:.2f}", size=13, anchor="middle")
    for i, flow in enumerate(flows):
        _flow(sheet, TOP + i * STEP, flow, rows, i < K, bar)
    bottom = TOP + STEP * len(flows) + 14
    sheet.line([(_x(0), bottom), (_x(3), bottom)], colour=SOFT, width=1)
    for score in range(4):
        sheet.text(_x(score), bottom + 22, str(score), colour=SOFT, anchor="middle")
    sheet.text(
        _x(1.5), bottom + 42, "score: the sum of what the routers say, each from 0 to 1", colour=SOFT, anchor="middle"
    )
    return sheet.svg()


def _flow(sheet: Sheet, y: float, flow: int, rows: list[dict[str, Any]], shown: bool, bar: float) -> None:
    sure = _sure(rows, flow)
    possible = round(sure + len(STREAMS) - sum(row["flow"] == flow for row in rows), 10)
    kept = possible >= bar
    sheet.text(LEFT - 16, y + 16, f"flow {flow}", anchor="end", colour=INK if kept else SOFT)
    sheet.box(
        _x(0),
        y + 2,
        _x(possible) - _x(0),
        18,
        fill=PALE_BLUE if kept else PALE_SHADE,
        stroke=BLUE if kept else FAINT,
        corner=3,
    )
    sheet.box(_x(0), y + 2, _x(sure) - _x(0), 18, fill=ORANGE if kept else FAINT, stroke="none", corner=3)
    words = "in the answer" if shown else "kept: it may enter" if kept else "dropped"
    sheet.text(_x(3) + 16, y + 16, words, size=14, colour=INK if kept else SOFT, bold=shown)


def _sure(rows: list[dict[str, Any]], flow: int) -> float:
    return round(sum(row["size"] for row in rows if row["flow"] == flow), 10)


def _x(score: float) -> float:
    return round(LEFT + WIDTH * score / 3, 1)
