"""One pane of one group in `mintopk`: a threshold that rises, and a buffer for the few rows above it."""

from __future__ import annotations

from typing import Final

import numpy as np

from skyband.study.pictures.drawing import BLUE, FAINT, ORANGE, SOFT, Sheet

K: Final = 3
ROWS: Final = 160
PARTS: Final = K + 2  # the buffer has so many parts, of three scores each
LEFT, TOP, WIDTH, HEIGHT = 60, 100, 830, 260


def draw() -> str:
    """Scores in the order of their arrival: those below the threshold cost one comparison and nothing else."""
    scores = np.random.default_rng(30).random(ROWS)
    kept, line = _passed(scores)
    best = set(np.argsort(-scores)[:K].tolist())
    assert best <= kept, "no row of the answer is lost"
    sheet = Sheet(940, 430, "The threshold of a group in one pane")
    sheet.text(LEFT - 20, 38, f"{ROWS} rows of one group in one pane, top {K}", size=20, bold=True)
    entries = [
        (ORANGE, f"the best {K}"),
        (BLUE, f"written into the buffer: {len(kept)} rows"),
        (FAINT, "below the threshold: one comparison"),
    ]
    sheet.legend(LEFT - 20, 68, entries)
    for i in sorted(range(ROWS), key=lambda i: (i in kept, i in best)):
        colour = ORANGE if i in best else BLUE if i in kept else FAINT
        sheet.dot(_x(i), _y(float(scores[i])), fill=colour, radius=4.5 if i in kept else 3.5)
    steps = [point for i, high in enumerate(line) for point in ((_x(i), _y(high)), (_x(i + 1), _y(high)))]
    sheet.line(steps, colour=BLUE, width=2)
    sheet.text(LEFT + WIDTH, _y(line[-1]) + 22, "the threshold", colour=BLUE, anchor="end", size=14)
    sheet.line([(LEFT, TOP + HEIGHT + 8), (LEFT + WIDTH, TOP + HEIGHT + 8)], colour=SOFT, width=1)
    sheet.text(LEFT + WIDTH, TOP + HEIGHT + 32, "arrival →", colour=SOFT, anchor="end")
    sheet.text(LEFT, TOP + HEIGHT + 32, "score ↑", colour=SOFT)
    return sheet.svg()


def _passed(scores: np.ndarray) -> tuple[set[int], list[float]]:
    """Which rows reach the threshold when they arrive, and the threshold at each arrival."""
    threshold, kept, line = 0.0, set(), []
    buffer: list[float] = []
    for i, score in enumerate(scores.tolist()):
        line.append(threshold)
        if score < threshold:
            continue
        kept.add(i)
        buffer.append(score)
        if len(buffer) == 3 * PARTS:
            threshold = sorted(max(buffer[part::PARTS]) for part in range(PARTS))[2]
            buffer = [each for each in buffer if each >= threshold]
    return kept, line


def _x(arrival: float) -> float:
    return round(LEFT + WIDTH * arrival / ROWS, 1)


def _y(score: float) -> float:
    return round(TOP + HEIGHT * (1 - score), 1)
