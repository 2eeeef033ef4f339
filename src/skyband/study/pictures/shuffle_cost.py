"""What aggregation before the shuffle saves on Spark, and when it does not."""

from __future__ import annotations

from skyband.study.pictures.bars import bars, number, table


def draw() -> str:
    """Seconds of a batch query over a million rows, with aggregation in the JVM and without."""
    names = ("one stream, 100 groups", "join of two streams", "one stream, 1M groups")
    rows = table("joins.md", "Aggregation before the shuffle, on Spark")
    groups = {name: [number(row[1]), number(row[2])] for name, row in zip(names, rows, strict=True)}
    return bars(
        "Aggregation before the shuffle, on Spark",
        "seconds for a million rows, log scale",
        ("aggregated first", "rows passed one by one"),
        groups,
    )
