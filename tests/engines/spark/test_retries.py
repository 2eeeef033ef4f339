"""Restart test: a task that fails once in the middle of its rows is tried again, and nothing is counted or shown twice.

It runs in a process of its own, because Spark tries again only where it was started to.

python -m engines.spark.test_retries INPUT FOLDER
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from engines.spark.driver import rows
from engines.spark.streams import START_US, lines, read_batches, split, trades, write_batches
from pyspark.sql import functions as sf
from waiting import PATIENCE_S

from skyband.engines.spark import local_session

pytestmark = pytest.mark.spark

ROWS = 1_200
LATENESS_US = 5_000_000


def failing_once(flag: Path, value: float) -> Any:
    """A condition that all rows meet; the first time it is asked of this value, the task fails instead."""

    def check(given: float) -> bool:
        if given == value and not flag.exists():
            flag.touch()
            raise RuntimeError("the test wants this task to be tried again")
        return True

    return sf.udf(check, "boolean", useArrow=False)  # then Spark hands over 100 rows at a time


def main(source: str, folder: str) -> None:
    """Write the answers and the counts of a query that fails on both sides of its shuffle."""
    place = Path(folder)
    spark = local_session("retries test", fast_start=True, **{"spark.master": "local[2,4]"})
    # The 200 rows before this one in its file have passed the sieve, and those that it let pass are packed.
    before, behind = failing_once(place / "before", 1_001.0), failing_once(place / "behind", START_US / 1e6 + 150)
    given = read_batches(spark, Path(source)).where(before(sf.col("seq").cast("double")))
    answer = rows(lambda _: given).where(behind(sf.col("window_end").cast("double")))
    writer = answer.writeStream.format("parquet").option("checkpointLocation", str(place / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(place / "answers"))
    query.awaitTermination()
    counted = [entry for batch in query.recentProgress for entry in (batch["observedMetrics"] or {}).values()]
    pq.write_table(spark.read.parquet(str(place / "answers")).toArrow(), place / "answers.parquet")
    (place / "counts.json").write_text(json.dumps([entry.asDict() for entry in counted]))
    spark.stop()


def test_tasks_that_fail_once_change_no_answer(tmp_path: Path) -> None:
    table = trades(ROWS)
    source = write_batches(tmp_path / "input", split(table, 2))
    places = str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")
    with (tmp_path / "log.txt").open("wb") as log:
        subprocess.run(
            [sys.executable, "-m", "engines.spark.test_retries", str(source), str(tmp_path)],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, places))},
            stderr=log,
            stdout=log,
            timeout=PATIENCE_S,
            check=True,
        )
    assert (tmp_path / "before").exists()
    assert (tmp_path / "behind").exists()
    written = lines(pq.read_table(tmp_path / "answers.parquet"))
    watermark = START_US + (ROWS - 1) * 250_000 - LATENESS_US
    assert sorted(written) == sorted(line for line in lines(rows(lambda _: table)) if line[1] <= watermark)
    assert len(written) > 100
    counts = json.loads((tmp_path / "counts.json").read_text())
    assert {name: sum(batch[name] for batch in counts) for name in ("rows_in", "rows_late")} == {
        "rows_in": ROWS,
        "rows_late": 0,
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
