"""What Spark keeps for one bucket: a small value state that names pages, and the pages with the rows."""

from __future__ import annotations

from typing import Final

from skyband.study.pictures.drawing import PALE_BLUE, PALE_ORANGE, SHADE, SOFT, Sheet

PAGES: Final = ("rows 0 to 299", "rows 300 to 699", "new rows")
LEFT, TOP, WIDTH, STEP = 40, 76, 230, 76


def draw() -> str:
    """From the value state to the list of digests, and from there to pages, of which most stay as they are."""
    sheet = Sheet(940, TOP + STEP * len(PAGES) + 16, "The state of one bucket")
    sheet.text(
        LEFT, 40, "The state of one bucket: a micro-batch writes only the pages that changed", size=20, bold=True
    )
    middle = TOP + STEP + 26
    sheet.card(LEFT, middle - 37, WIDTH, ["value state", "root, timer, counts"], fill=PALE_BLUE)
    sheet.arrow((LEFT + WIDTH, middle - 8), (LEFT + 310, middle - 8))
    sheet.card(LEFT + 314, middle - 37, WIDTH, ["page", "the digests of all pages"], fill=SHADE)
    for i, words in enumerate(PAGES):
        y = TOP + STEP * i
        sheet.arrow((LEFT + 314 + WIDTH, middle - 8), (LEFT + 624, y + 29), colour=SOFT)
        sheet.card(LEFT + 628, y, WIDTH, ["page", words], fill=PALE_ORANGE if words == "new rows" else SHADE)
    return sheet.svg()
