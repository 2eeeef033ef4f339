"""The staircase of pairs: a pair lives as long as its older row, so one number for each row rules out all others."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from skyband.problems.pairs.query import TopKPairs
from skyband.study.pictures.drawing import BLUE, FAINT, ORANGE, SOFT, Sheet
from skyband.windows import sliding

K: Final = 3
ROWS: Final = 48
LEFT, TOP, WIDTH, HEIGHT = 70, 116, 814, 270
SCALE: Final = 70.0  # the largest distance that is drawn


def draw() -> str:
    """All pairs of a window as dots: across, the age of the older row; up, how alike the two rows are."""
    values = np.random.default_rng(21).integers(0, 1000, ROWS)
    rows = pa.table({"row": np.arange(ROWS), "value": values})
    query = TopKPairs(k=K, by="abs(a.value - b.value)", ascending=True, window=sliding(ROWS))
    session = query.open(rows.schema)
    session.push(rows)
    answers = {size: session.top(k=K, size=size).to_pylist() for size in range(2, ROWS + 1)}
    kept = {(row["a_row"], row["b_row"]) for answer in answers.values() for row in answer}
    shown = {(row["a_row"], row["b_row"]) for row in answers[ROWS]}

    sheet = Sheet(940, 460, "The staircase of pairs")
    pairs = ROWS * (ROWS - 1) // 2
    sheet.text(
        LEFT, 38, f"Closest {K} pairs of {ROWS} rows: {len(kept)} of {pairs:,} pairs are kept", size=20, bold=True
    )
    entries = [
        (ORANGE, "in the answer"),
        (BLUE, "may enter when older rows leave"),
        (FAINT, f"dropped: {K} pairs are closer and live longer"),
    ]
    sheet.legend(LEFT, 66, entries)
    _dots(sheet, values, kept, shown)
    stairs = []
    for size, answer in answers.items():
        if len(answer) == K:
            stairs += [(_x(size - 0.5), _y(answer[-1]["score"])), (_x(size + 0.5), _y(answer[-1]["score"]))]
    sheet.line(stairs, colour=BLUE, width=2)
    sheet.line([(LEFT, 80), (LEFT + 12, 80)], colour=BLUE, width=2)
    sheet.text(LEFT + 17, 85, "the staircase: how close a pair must be", size=14, colour=BLUE)
    sheet.line([(LEFT, TOP + HEIGHT + 14), (LEFT + WIDTH, TOP + HEIGHT + 14)], colour=SOFT, width=1)
    sheet.text(LEFT, TOP + HEIGHT + 38, "new", colour=SOFT)
    sheet.text(LEFT + WIDTH / 2, TOP + HEIGHT + 38, "age of the pair's older row", colour=SOFT, anchor="middle")
    sheet.text(LEFT + WIDTH, TOP + HEIGHT + 38, "about to leave", colour=SOFT, anchor="end")
    sheet.text(LEFT - 14, TOP + HEIGHT, "0", colour=SOFT, anchor="end")
    sheet.text(LEFT - 14, TOP + 8, f"{SCALE:g}", colour=SOFT, anchor="end")
    sheet.add(
        f'<text transform="translate({LEFT - 26},{TOP + HEIGHT / 2:g}) rotate(-90)" font-size="15" fill="{SOFT}" '
        'text-anchor="middle">difference of the two rows</text>'
    )
    return sheet.svg()


def _dots(sheet: Sheet, values: np.ndarray, kept: set[tuple[int, int]], shown: set[tuple[int, int]]) -> None:
    """Dropped pairs first, so that the others lie on top."""
    found = []
    for a in range(ROWS):
        for b in range(a + 1, ROWS):
            distance = abs(int(values[a]) - int(values[b]))
            if distance <= SCALE:
                found.append(((a, b) in shown, (a, b) in kept, ROWS - a, distance))
    for is_shown, is_kept, age, distance in sorted(found):
        colour = ORANGE if is_shown else BLUE if is_kept else FAINT
        sheet.dot(_x(age), _y(distance), fill=colour, radius=5 if is_kept else 3.5)


def _x(age: float) -> float:
    return round(LEFT + WIDTH * (age - 1) / (ROWS - 1), 1)


def _y(distance: float) -> float:
    return round(TOP + HEIGHT * (1 - min(distance, SCALE) / SCALE), 1)
