"""The Spark engine against Spark itself: scanning the same files, and its own way to ask for the best rows."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from skyband.api import top_k
from skyband.engines.spark.session import local_session
from skyband.streams.orders import uniform
from skyband.study import spark_joins, spark_state, spark_triggers
from skyband.study.results import Result
from skyband.study.sizes import SPARK_JOIN_LINES, SPARK_LINES, SPARK_STATE_LINES, SPARK_TRIGGER_LINES, SparkSizes
from skyband.study.spark_runs import Run, Timing, compared, instants, time_all, write_files
from skyband.windows import sliding

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCAN, WIDE, SCAN_GROUPS, GROWTH, OWN, GROUPS = SPARK_LINES

_GROUP_COUNT: Final = 100_000

# Every column is counted, because a query that shows whole rows has to read them all.
_COUNT: Final = "SELECT {counts} FROM {{rows}}"
_WIDE_COLUMNS: Final = 13  # of numbers, and as many of strings, beside the four that all rows have
_OWN_GLOBAL: Final = (
    "SELECT window(ts, '60 seconds', '1 second') AS w, max_by(struct(*), score, 10) AS best "
    "FROM {rows} GROUP BY window(ts, '60 seconds', '1 second')"
)
_OWN_GROUPS: Final = (
    "SELECT window(ts, '100 seconds', '10 seconds') AS w, name, max_by(struct(*), score, 10) AS best "
    "FROM {rows} GROUP BY window(ts, '100 seconds', '10 seconds'), name"
)
_GLOBAL_WINDOW: Final = sliding("60 seconds", every="1 second", on="ts")
_DENSE_WINDOW: Final = sliding("20 seconds", every="10 seconds", on="ts")
_GROUPS_WINDOW: Final = sliding("100 seconds", every="10 seconds", on="ts")
# A thousand rows a second: windows of 1M and of 100M rows. The second is longer than the stream, and holds all of it.
_GROWING: Final = {
    "window 1M": sliding("1000 seconds", every="100 seconds", on="ts"),
    "window 100M": sliding("100000 seconds", every="100 seconds", on="ts"),
}

# With 10 panes a window k (1 + ln 10) is the 2k to 3.5k of the paper; here there are 60.
_EXPECTED_GLOBAL: Final = f"{10 * (1 + math.log(60)):.0f}"


def measure(wanted: Collection[str], sizes: SparkSizes, say: Callable[[str], None]) -> Iterator[Result]:
    """The lines of the table that are about Spark."""
    with tempfile.TemporaryDirectory(prefix="skyband-bench-") as name:
        folder = Path(name)
        say("Spark: starting")
        spark = _start(folder)
        try:
            if not set(SPARK_LINES).isdisjoint(wanted):
                say("Spark: writing rows")
                write_rows(folder / "all", sizes.rows, sizes.files)
                write_rows(folder / "groups", sizes.group_rows, files=4)
                write_rows(folder / "own", sizes.own_rows, files=4)
                if WIDE in wanted:
                    write_rows(folder / "wide", sizes.wide_rows, files=4, more_columns=_WIDE_COLUMNS)
                if SCAN_GROUPS in wanted:
                    # Four slides, so that a group has some rows in each: 50 of 20 million.
                    write_rows(folder / "dense", sizes.rows, sizes.files, rows_per_second=max(1, sizes.rows // 40))
                timings = time_all(spark, folder, _runs(sizes), wanted, say)
                yield from (_line(name, timings) for name in _COMPARED if name in wanted)
            if not set(SPARK_TRIGGER_LINES).isdisjoint(wanted):
                yield from spark_triggers.measure(spark, folder, wanted, sizes.triggers, say)
            if not set(SPARK_STATE_LINES).isdisjoint(wanted):
                yield from spark_state.measure(spark, folder, wanted, sizes.state_windows, say)
            if not set(SPARK_JOIN_LINES).isdisjoint(wanted):
                yield from spark_joins.measure(spark, folder, wanted, sizes, say)
        finally:
            spark.stop()


def _start(folder: Path) -> SparkSession:
    # Spark's own way needs more than the default of 1 GB.
    memory = {"spark.driver.memory": "4g"}
    return local_session("skyband bench", cores=2, log_file=folder / "spark.log", **memory)  # type: ignore[arg-type]


def _runs(sizes: SparkSizes) -> dict[str, Run]:
    ours = partial(top_k, k=10, by="score")
    batch = sizes.files_per_batch
    return {
        "scan": Run(_scan, ("all",), batch, (SCAN,), rounds=sizes.rounds, mode="complete"),
        "top": Run(partial(ours, window=_GLOBAL_WINDOW), ("all",), batch, (SCAN, OWN), ours=True, rounds=sizes.rounds),
        "wide": Run(partial(ours, window=_GLOBAL_WINDOW), ("wide",), 1, (WIDE,), ours=True, rounds=sizes.rounds),
        "scan wide": Run(_scan, ("wide",), 1, (WIDE,), rounds=sizes.rounds, mode="complete"),
        "dense": Run(
            partial(top_k, k=1, by="score", window=_DENSE_WINDOW, per="name"),
            ("dense",),
            batch,
            (SCAN_GROUPS,),
            ours=True,
            rounds=sizes.rounds,
            keys=("window_end", "name", "rank"),
        ),
        "scan dense": Run(_scan, ("dense",), batch, (SCAN_GROUPS,), rounds=sizes.rounds, mode="complete"),
        "own": Run(_own_way(_OWN_GLOBAL), ("own",), 1, (OWN,)),
        "groups": Run(
            partial(ours, window=_GROUPS_WINDOW, per="name"),
            ("groups",),
            1,
            (GROUPS,),
            ours=True,
            rounds=sizes.rounds,
            keys=("window_end", "name", "rank"),
            checked_files=1,
        ),
        **{
            name: Run(partial(ours, window=window), ("all",), batch, (GROWTH,), ours=True, rounds=sizes.rounds)
            for name, window in _GROWING.items()
        },
        "own groups": Run(_own_way(_OWN_GROUPS), ("own",), 1, (GROUPS,)),
    }


def _scan(rows: DataFrame) -> DataFrame:
    counts = ", ".join(f"count({name})" for name in rows.columns)
    return rows.sparkSession.sql(_COUNT.format(counts=counts), rows=rows)


def _own_way(text: str) -> Callable[[DataFrame], DataFrame]:
    def ask(rows: DataFrame) -> DataFrame:
        return rows.sparkSession.sql(text, rows=rows.withWatermark("ts", "0 seconds"))

    return ask


def write_rows(folder: Path, rows: int, files: int, *, more_columns: int = 0, rows_per_second: int = 1000) -> None:
    """Files of rows in order of time; with so many more columns of numbers, and as many of strings."""
    names = pa.array([f"name-{number:06}" for number in range(_GROUP_COUNT)])
    random = np.random.default_rng(1)

    def some_names(count: int) -> pa.Array:
        return names.take(pa.array(random.integers(_GROUP_COUNT, size=count)))

    def table(batch: pa.RecordBatch) -> pa.Table:
        ts = instants(batch.column("time").to_numpy() * 1000 // rows_per_second)
        columns = {"ts": ts, "id": batch.column("id"), "score": batch.column("score")}
        columns["name"] = some_names(batch.num_rows)
        for number in range(more_columns):
            columns[f"number_{number}"] = random.random(batch.num_rows)
            columns[f"text_{number}"] = some_names(batch.num_rows)
        return pa.table(columns)

    write_files(folder, map(table, uniform(rows, batch_rows=-(-rows // files))))


# By line: what is asked, what it is compared with, the two runs, the bar and how many rows are expected to be held.
_COMPARED: Final[dict[str, tuple[Any, ...]]] = {
    SCAN: ("Spark: top 10, window 60 s, slide 1 s", "scan and count", "top", "scan", 0.6, _EXPECTED_GLOBAL),
    WIDE: ("Spark: the same, rows of 30 columns", "scan and count", "wide", "scan wide", 0.7, _EXPECTED_GLOBAL),
    SCAN_GROUPS: (
        *("Spark: the best row of each of 100,000 groups, window of two slides", "scan and count"),
        *("dense", "scan dense", 0.4),
    ),
    GROWTH: ("Spark: cost of a row, window 1M to 100M rows", "itself", *reversed(_GROWING), 1.1),
    OWN: ("Spark: the same", "max_by per window", "top", "own", 250, _EXPECTED_GLOBAL),
    GROUPS: (
        *("Spark: 100,000 groups, window 100 s, slide 10 s", "max_by per window and group"),
        *("groups", "own groups", 5),
    ),
}


def _line(name: str, timings: dict[str, Timing]) -> Result:
    what, against, ours, reference, *bar = _COMPARED[name]
    found = compared(name, what, against, timings[ours], timings[reference], *bar)
    return replace(found, measured=1 / found.measured, at_most=True) if name == GROWTH else found
