"""How many rows an allowed error saves."""

from __future__ import annotations

from skyband.study.pictures.bars import bars, number, table


def draw() -> str:
    """Rows of which the columns are kept: exactly, and with an error of 0.001."""
    rows = table("algorithms.md", "Allowed error: `budgeted`")
    groups = {f"top {row[1]} of {row[0]}": [number(row[2]), number(row[3])] for row in rows}
    return bars(
        "Rows that Skyband keeps with their columns, an answer with each row",
        "rows, log scale",
        ("exact", "error=0.001"),
        groups,
    )
