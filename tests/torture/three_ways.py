"""Line 5: generated statements three ways. The embedded engine and DuckDB answer each, Spark every fortieth."""

from __future__ import annotations

import random
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from sql.test_statements_duckdb import Statements, found, ordered, trades
from sql.test_values import same

import skyband as sb
from torture.campaign import Result

ON_SPARK = 40  # one statement in so many: it takes a second or two there


@cache
def spark_session() -> Any:
    """A session for all statements of this run; Spark's messages go to a file."""
    from skyband.engines.spark import local_session

    log = Path(tempfile.gettempdir()) / "skyband-torture-spark.log"
    settings = {"spark.skyband.buckets": "2", "spark.driver.memory": "1g"}
    return local_session("skyband torture", cores=2, fast_start=True, log_file=log, **settings)


def one(seed: int) -> tuple[str, str | None]:
    chance = random.Random(seed)
    rows = trades(chance)
    asked = Statements(chance).one()
    connection = duckdb.connect()
    connection.register("trades", rows)
    expected = ordered(connection.execute(asked.duckdb).fetchall())
    wrong = _difference(sb.sql(asked.ours, trades=rows), expected)
    if wrong or seed % ON_SPARK:
        return "DuckDB", wrong and f"{asked.ours}: {wrong}"
    answer = sb.sql(asked.ours, trades=spark_session().createDataFrame(rows)).toArrow()
    wrong = _difference(answer, expected)
    return "DuckDB and Spark", wrong and f"on Spark, {asked.ours}: {wrong}"


def _difference(answer: pa.Table, expected: list[tuple[Any, ...]]) -> str | None:
    rows = ordered(found(answer))
    if len(rows) != len(expected):
        return f"{len(rows)} rows, and {len(expected)} in DuckDB"
    different = (pair for pair in zip(rows, expected, strict=True) if not all(map(same, *pair)))
    return next((f"{ours}, and {theirs} in DuckDB" for ours, theirs in different), None)


def run(first: int, count: int) -> Result:
    result = Result()
    for seed in range(first, first + count):
        try:
            others, wrong = one(seed)
        except Exception as error:
            others, wrong = "raw error", f"{type(error).__name__}: {error}"
        result.note(seed, f"as {others}" if wrong is None else "wrong", wrong)
    return result
