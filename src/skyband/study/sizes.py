"""How much is measured: the official sizes, and smaller ones for a quick look."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

# Named here, because bench.spark imports pyspark.
SPARK_LINES: Final = ("spark-scan", "spark-wide", "spark-scan-groups", "spark-growth", "spark-own", "spark-groups")
SPARK_TRIGGER_LINES: Final = ("spark-trigger", "spark-trigger-p95", "spark-empty", "spark-first")
SPARK_STATE_LINES: Final = tuple(
    f"spark-state-{problem}{what}"
    for problem in ("rows", "pairs", "across", "joins", "subscriptions")
    for what in ("", "-time")
)
PIPELINE_LINES: Final = ("pipelines-rate", "pipelines-first")
SPARK_JOIN_LINES: Final = ("joins-spark-union", "joins-spark-own")


@dataclass(frozen=True, slots=True)
class SparkSizes:
    rows: int = 20_000_000
    files: int = 20
    files_per_batch: int = 4
    group_rows: int = 2_000_000  # of our side of the line about groups
    own_rows: int = 500_000  # for Spark's own way, which is slow
    wide_rows: int = 4_000_000  # of 30 columns
    triggers: int = 20  # small ones, and as many empty ones
    state_windows: tuple[int, ...] = (10_000, 100_000, 1_000_000)  # of the lines about state
    join_rows: int = 1_000_000  # of each of two streams
    pipeline_rows: int = 10_000_000
    rounds: int = 3


@dataclass(frozen=True, slots=True)
class Sizes:
    rows: int = 32_000_000  # 256 MB of scores: more than any cache
    batch_rows: int = 1_000_000
    passes: int = 7
    windows: tuple[int, ...] = (100_000, 1_000_000, 10_000_000, 100_000_000)  # of the line about growth
    across_windows: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)  # of the line about growth across streams
    across_window: int = 1_000_000  # of the line about sums
    startup_queries: tuple[str, ...] = ("panes", "time", "arrival")
    startup_rounds: int = 3
    spark: SparkSizes = field(default_factory=SparkSizes)


OFFICIAL: Final = Sizes()
QUICK: Final = Sizes(
    rows=8_000_000,
    passes=3,
    windows=(100_000, 1_000_000, 10_000_000),
    across_windows=(1_000, 100_000),
    across_window=200_000,
    startup_queries=("time",),
    startup_rounds=1,
    spark=SparkSizes(
        rows=2_000_000,
        files=4,
        files_per_batch=2,
        group_rows=100_000,
        own_rows=50_000,
        wide_rows=400_000,
        triggers=5,
        state_windows=(10_000, 50_000),
        join_rows=100_000,
        pipeline_rows=1_000_000,
        rounds=1,
    ),
)
