"""A late plan joins rows and groups them; an early one groups first, and joins what is left."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from skyband.api import join_aggregate
from skyband.study.pictures.drawing import GRID, PALE_BLUE, PALE_GREEN, PALE_ORANGE, SHADE, SOFT, Sheet
from skyband.windows import tumbling

ROWS: Final = 1_000
KEYS: Final = 20


def draw() -> str:
    """Both plans for clicks and sales of an hour, with the number of things that each step of them handles."""
    rng = np.random.default_rng(5)
    inputs = {
        name: pa.table({"t": np.sort(rng.integers(0, 60, ROWS)), "item": rng.integers(0, KEYS, ROWS)})
        for name in ("clicks", "sales")
    }
    asked: dict[str, Any] = {
        "inputs": dict.fromkeys(inputs, tumbling(60, on="t")),
        "on": "clicks.item = sales.item",
        "group_by": "clicks.item",
        "aggregates": {"pairs": "COUNT(*)"},
    }
    answers = {plan: join_aggregate(inputs, **asked, every=60, plan=plan) for plan in ("late", "early:clicks,sales")}
    late, early = answers.values()
    assert late.equals(early)
    joined = sum(late["pairs"].to_pylist())
    cells = {
        name: join_aggregate(rows, window=tumbling(60, on="t"), group_by="item", aggregates={"n": "COUNT(*)"}).num_rows
        for name, rows in inputs.items()
    }

    sheet = Sheet(940, 404, "Late and early plans of a join")
    sheet.text(40, 38, "Clicks and sales for each item: the same answer from two plans", size=20, bold=True)
    _plan(sheet, 40, "late: join, then group", [f"{ROWS:,} rows"] * 2, f"{joined:,} matches", len(late), PALE_ORANGE)
    counted = [f"{ROWS:,} rows → {cells[name]} cells" for name in inputs]
    _plan(sheet, 490, "early: group, then join", counted, f"{len(late)} matches of cells", len(late), PALE_GREEN)
    sheet.line([(470, 64), (470, 384)], colour=GRID)
    return sheet.svg()


def _plan(sheet: Sheet, left: float, title: str, inputs: list[str], matches: str, groups: int, fill: str) -> None:
    sheet.text(left, 80, title, size=17, bold=True)
    for i, name in enumerate(("clicks", "sales")):
        x = left + 215 * i
        sheet.card(x, 100, 195, [name, inputs[i]], fill=SHADE)
        sheet.arrow((x + 97, 160), (left + 205 + (i * 2 - 1) * 30, 206), colour=SOFT)
    sheet.card(left + 70, 210, 270, ["join by item", matches], fill=fill)
    sheet.arrow((left + 205, 270), (left + 205, 316))
    sheet.card(left + 70, 320, 270, ["answer", f"{groups} groups"], fill=PALE_BLUE)
