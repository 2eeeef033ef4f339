"""What a row costs if windows slide: our algorithm beside the published one that it is compared with."""

from __future__ import annotations

from skyband.study.pictures.bars import bars, number, table


def draw() -> str:
    """`mintopk` and `sma`, in random order, for k from 10 to 10,000."""
    rows = table("algorithms.md", "Slides: `mintopk` and `sma`")
    groups = {f"top {row[0]}": [number(row[1]), number(row[2])] for row in rows}
    return bars(
        "A window of a million rows that slides by 100,000",
        "nanoseconds for each row, log scale",
        ("mintopk", "sma, as published"),
        groups,
    )
