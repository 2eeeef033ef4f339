"""Subscriptions: each query has a threshold, and a row matters only to the queries whose threshold it reaches."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from skyband.api import top_k
from skyband.study.pictures.drawing import BLUE, FAINT, INK, ORANGE, PALE_BLUE, SOFT, Sheet
from skyband.windows import tumbling

K: Final = 3
TAXIS: Final = 90
PEOPLE: Final = ("Ann", "Bob", "Cid", "Dee", "Eve")
LEFT, TOP, SIDE, HIGH = 40, 96, 860, 330
SCALE: Final = 86.0  # pixels a kilometre


def draw() -> str:
    """A city of ten by four kilometres: the three taxis nearest to each of five people."""
    rng = np.random.default_rng(14)
    taxis = pa.table({"taxi": np.arange(TAXIS), "x": rng.random(TAXIS) * 9.8 + 0.1, "y": rng.random(TAXIS) * 3.6 + 0.1})
    spots = {"id": PEOPLE, "x": [1.2, 3.4, 5.4, 7.2, 8.8], "y": [1.2, 2.6, 1.1, 2.5, 1.3]}
    people = pa.table({**spots, "id": list(PEOPLE)})
    near = top_k(
        taxis, k=K, by="sqrt((x - q.x)**2 + (y - q.y)**2)", ascending=True, for_each=people, window=tumbling(TAXIS)
    ).to_pylist()
    sheet = Sheet(940, TOP + HIGH + 20, "Subscriptions")
    sheet.text(LEFT, 38, f"One stream of taxis, five subscriptions: the {K} nearest to each person", size=20, bold=True)
    sheet.legend(LEFT, 68, [(ORANGE, "in somebody's answer"), (FAINT, "outside every circle: matters to nobody")])
    sheet.text(LEFT + SIDE, 68, "circle: the threshold of a subscription", size=14, colour=BLUE, anchor="end")
    for person in people.to_pylist():
        reach = max(row["score"] for row in near if row["id"] == person["id"])
        x, y = _at(person["x"], person["y"])
        sheet.add(
            f'<circle cx="{x:g}" cy="{y:g}" r="{reach * SCALE:.1f}" fill="{PALE_BLUE}" fill-opacity="0.7" '
            f'stroke="{BLUE}" stroke-width="1.5"/>'
        )
    for row in near:
        person = next(each for each in people.to_pylist() if each["id"] == row["id"])
        sheet.line([_at(person["x"], person["y"]), _at(row["x"], row["y"])], colour=ORANGE, width=1.2)
    shown = {row["taxi"] for row in near}
    for taxi in taxis.to_pylist():
        x, y = _at(taxi["x"], taxi["y"])
        sheet.dot(x, y, fill=ORANGE if taxi["taxi"] in shown else FAINT, radius=4.5)
    for person in people.to_pylist():
        x, y = _at(person["x"], person["y"])
        sheet.box(x - 5, y - 5, 10, 10, fill=INK, stroke=INK, corner=2)
        sheet.text(x, y - 12, person["id"], size=14, anchor="middle", bold=True)
    sheet.line([(LEFT, TOP + HIGH), (LEFT + SCALE, TOP + HIGH)], colour=SOFT, width=2)
    sheet.text(LEFT + SCALE + 8, TOP + HIGH + 5, "1 km", size=13, colour=SOFT)
    return sheet.svg()


def _at(x: float, y: float) -> tuple[float, float]:
    return round(LEFT + x * SCALE, 1), round(TOP + y * SCALE, 1)
