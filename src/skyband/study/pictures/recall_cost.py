"""What `recall=0.95` saves and costs, relative to an exact answer."""

from __future__ import annotations

from skyband.study.pictures.bars import bars, number, table


def draw() -> str:
    """Bytes and time, where three streams share half of their objects, by the size of the window."""
    rows = table("across.md", "What `recall=` costs")
    half_in_step = rows[: next(i for i, row in enumerate(rows) if i and row[0] != "the same")]
    groups = {f"window of {row[1]} rows": [number(row[5]), number(row[6])] for row in half_in_step}
    return bars(
        "recall=0.95 beside an exact answer, three streams",
        "1 is the exact answer, log scale",
        ("bytes", "time"),
        groups,
    )
