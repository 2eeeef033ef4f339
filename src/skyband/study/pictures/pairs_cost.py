"""What a row costs in a window of pairs: our algorithm between the least possible and the published ones."""

from __future__ import annotations

from skyband.study.pictures.bars import bars, number, table


def draw() -> str:
    """`staircase`, the bound below, and what the papers compare with, for three k."""
    rows = table("pairs.md", "`staircase`, as published")
    groups = {f"top {row[0]} pairs": [number(row[i]) for i in (2, 1, 3, 4, 5)] for row in rows}
    return bars(
        "The closest pairs of 10,000 rows, an answer with each row",
        "microseconds for each row, log scale",
        ("staircase", "supreme: only scores", "as published", "basic", "naive"),
        groups,
    )
