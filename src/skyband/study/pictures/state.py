"""What Spark keeps for one bucket: a small value state, the pages of a snapshot, and a journal of what came since."""

from __future__ import annotations

from typing import Final

from skyband.study.pictures.drawing import PALE_BLUE, PALE_ORANGE, SHADE, SOFT, Sheet

PAGES: Final = ("rows 0 to 299", "rows 300 to 699", "rows 700 to 999")
JOURNAL: Final = ("rows 1000 to 1099", "rows 1100 to 1199")
LEFT, TOP, WIDTH, STEP = 40, 76, 230, 76


def draw() -> str:
    """From the value state to the list of digests and the pages, and to the journal, whose last entry is new."""
    sheet = Sheet(940, TOP + STEP * (len(PAGES) + len(JOURNAL)) + 32, "The state of one bucket")
    sheet.text(LEFT, 40, "The state of one bucket: a micro-batch adds an entry to the journal", size=20, bold=True)
    middle = TOP + STEP + 26
    sheet.card(LEFT, middle - 37, WIDTH, ["value state", "root, entries, timer, counts"], fill=PALE_ORANGE)
    sheet.arrow((LEFT + WIDTH, middle - 8), (LEFT + 310, middle - 8))
    sheet.card(LEFT + 314, middle - 37, WIDTH, ["page", "the digests of all pages"], fill=SHADE)
    for i, words in enumerate(PAGES):
        y = TOP + STEP * i
        sheet.arrow((LEFT + 314 + WIDTH, middle - 8), (LEFT + 624, y + 29), colour=SOFT)
        sheet.card(LEFT + 628, y, WIDTH, ["page of the snapshot", words], fill=SHADE)
    for i, words in enumerate(JOURNAL):
        y = TOP + STEP * (len(PAGES) + i) + 16
        sheet.arrow((LEFT + WIDTH / 2, middle + 21), (LEFT + 624, y + 29), colour=SOFT)
        is_new = words == JOURNAL[-1]
        label = f"entry {i}, this micro-batch" if is_new else f"entry {i}"
        sheet.card(LEFT + 628, y, WIDTH, [label, words], fill=PALE_ORANGE if is_new else PALE_BLUE)
    return sheet.svg()
