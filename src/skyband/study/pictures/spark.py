"""The way of a row through Spark: most rows end before the shuffle, and few ever reach Python whole."""

from __future__ import annotations

from typing import Final

from skyband.study.pictures.drawing import PALE_BLUE, PALE_ORANGE, SHADE, SOFT, Sheet

STEPS: Final = (
    ("read", ("files, Kafka, tables", "by Spark's readers"), SHADE),
    ("score", ("the expression is", "a Spark column"), SHADE),
    ("sieve", ("one comparison", "a row, in the JVM"), SHADE),
    ("shuffle", ("few rows, packed,", "by group"), SHADE),
    ("session", ("in each bucket,", "the operator"), PALE_ORANGE),
    ("answer", ("merged, unpacked,", "written by Spark"), SHADE),
)
LEFT, TOP, STEP, WIDTH = 24, 96, 164, 142


def draw() -> str:
    """Six steps from a source to a sink, where each runs, and where rows end."""
    sheet = Sheet(1014, 330, "The way of a row through Spark")
    sheet.text(LEFT, 40, "The way of a row through Spark", size=20, bold=True)
    sheet.box(LEFT, 58, 16, 14, fill=SHADE, corner=3)
    sheet.text(LEFT + 24, 70, "in the JVM", size=14)
    sheet.box(LEFT + 120, 58, 16, 14, fill=PALE_ORANGE, corner=3)
    sheet.text(LEFT + 144, 70, "in Python, compiled", size=14)
    for i, (title, words, fill) in enumerate(STEPS):
        x = LEFT + STEP * i
        bottom = sheet.card(x, TOP, WIDTH, [title, *words], fill=fill)
        if i + 1 < len(STEPS):
            sheet.arrow((x + WIDTH, TOP + 40), (x + STEP, TOP + 40))
    sieve, session = LEFT + STEP * 2 + WIDTH / 2, LEFT + STEP * 4 + WIDTH / 2
    sheet.arrow((sieve, bottom), (sieve, bottom + 46), colour=SOFT)
    ended = ["most rows end here", "k rows of their group and pane are better"]
    sheet.card(sieve - 180, bottom + 50, 310, ended, fill=SHADE)
    sheet.arrow((session, bottom), (session, bottom + 46), colour=SOFT)
    state = ["transformWithState", "Spark's state holds the snapshot, and its", "checkpoint makes answers exactly once"]
    sheet.card(session - 130, bottom + 50, 290, state, fill=PALE_BLUE)
    return sheet.svg()
