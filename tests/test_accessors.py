"""Example tests: DataFrames of each library have Skyband's questions as methods, and answer as the functions do."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import skyband as sb
from skyband.accessors import Questions

ROWS = {"minute": [0, 1, 3, 3], "price": [10, 20, 5, None], "symbol": ["OAK", "ELM", "OAK", "ELM"]}
WINDOW = sb.tumbling(2, on="minute")
STATEMENT = "SELECT symbol FROM self [WINDOW 2 EVERY 2 ON minute] ORDER BY price DESC LIMIT 1"
ASKED = {
    "top_k": {"k": 1, "by": "price", "window": WINDOW},
    "top_k_pairs": {"k": 1, "by": "a.price - b.price", "window": WINDOW},
    "join_aggregate": {"aggregates": {"n": "COUNT(*)"}, "window": WINDOW, "group_by": "symbol"},
}


def rows_of(frame: Any) -> list[tuple[Any, ...]]:
    frame = frame.collect() if isinstance(frame, pl.LazyFrame) else frame
    table = pa.Table.from_pandas(frame, preserve_index=False) if isinstance(frame, pd.DataFrame) else frame
    table = table.to_arrow() if isinstance(table, pl.DataFrame) else table
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=str)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pl.LazyFrame])
def test_frames_have_the_questions_as_methods(kind: Any) -> None:
    frame = kind(ROWS)
    for name, options in ASKED.items():
        answer = getattr(frame.skyband, name)(**options)
        assert isinstance(answer, kind)
        assert rows_of(answer) == rows_of(getattr(sb, name)(frame, **options)), name
    assert rows_of(frame.skyband.sql(STATEMENT)) == rows_of(sb.sql(STATEMENT, self=frame))
    with pytest.raises(sb.UnknownColumn, match="Did you mean 'price'"):
        frame.skyband.top_k(k=1, by="prise", window=WINDOW)


def test_help_shows_the_options() -> None:
    assert list(inspect.signature(Questions.top_k).parameters)[:3] == ["self", "k", "by"]  # type: ignore[attr-defined]
    assert "data" not in inspect.signature(Questions.join_aggregate).parameters  # type: ignore[attr-defined]


@pytest.mark.spark
def test_spark_has_them_too(spark: SparkSession) -> None:
    frame = spark.createDataFrame(pa.table(ROWS))
    for name, options in ASKED.items():
        answer = getattr(frame.skyband, name)(**options).toArrow()
        assert rows_of(answer) == rows_of(getattr(sb, name)(pa.table(ROWS), **options)), name
    answer = frame.skyband.sql(STATEMENT)
    answer.createOrReplaceTempView("accessor_best")  # what `spark.sql` reads: docs/decisions/0022
    assert spark.sql("SELECT max(score) AS best FROM accessor_best WHERE window_end = 2").collect()[0].best == 20
    assert rows_of(answer.toArrow()) == rows_of(sb.sql(STATEMENT, self=pa.table(ROWS)))


def test_importing_skyband_imports_none_of_the_libraries() -> None:
    program = "import sys, skyband; print([name for name in ('pyspark', 'skyband.accessors') if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


def test_statements_find_the_variables_of_the_caller() -> None:
    names = pl.DataFrame({"g": ["b"], "w": [1]})
    frame = pl.DataFrame({"g": ["a", "b"]})
    assert frame.skyband.sql("SELECT self.g, w FROM self JOIN names ON self.g = names.g").rows() == [("b", 1)]  # type: ignore[attr-defined]
    with pytest.raises(sb.InvalidSql, match=r"Variables: names, frame\. Write df\.skyband\.sql\(text, nobody=…\)"):
        frame.skyband.sql("SELECT g FROM nobody")  # type: ignore[attr-defined]
    assert names.height == 1
