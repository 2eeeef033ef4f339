"""How exactness is tested: one generated stream goes to an algorithm and to the definition, in many ways."""

from __future__ import annotations

from typing import Final

from skyband.core import registry
from skyband.study.pictures.drawing import PALE_BLUE, PALE_GREEN, PALE_ORANGE, SHADE, Sheet

WAYS: Final = (
    ("cut otherwise", "other batches, same rows"),
    ("stopped and restored", "after any step"),
    ("with capacities of 1", "invariants after each step"),
    ("on Spark", "tables and streams"),
)
LEFT, TOP = 36, 76


def draw() -> str:
    """From the generator to the comparison, and the ways in which the same stream is run once more."""
    algorithms = sum(len(list(registry.packages_of(name))) for name in registry.problems())
    sheet = Sheet(940, 432, "How exactness is tested")
    sheet.text(LEFT, 40, "Every algorithm must give the same rows as the definition", size=20, bold=True)
    sheet.card(
        LEFT, TOP + 70, 230, ["a generated stream", "ties, late rows, NaN, nulls,", "empty batches, k too large"]
    )
    sheet.card(LEFT + 330, TOP, 240, ["an algorithm", f"one of {algorithms} folders,", "fast"], fill=PALE_ORANGE)
    sheet.card(LEFT + 330, TOP + 140, 240, ["recompute", "sorts the whole window;", "shares no code"], fill=PALE_BLUE)
    sheet.card(LEFT + 650, TOP + 70, 220, ["equal?", "row for row,", "ties included"], fill=PALE_GREEN)
    for y in (TOP + 40, TOP + 180):
        sheet.arrow((LEFT + 232, TOP + 110), (LEFT + 326, y))
        sheet.arrow((LEFT + 572, y), (LEFT + 646, TOP + 110))
    sheet.text(LEFT, TOP + 262, "The same stream once more", size=15, bold=True)
    for i, way in enumerate(WAYS):
        sheet.card(LEFT + 220 * i, TOP + 240 + 36, 208, way, fill=SHADE)
    return sheet.svg()
