"""Oracle test of Declarative Pipelines: `spark-pipelines` runs questions that are asked at the level of a module."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from engines.spark.streams import START_US, lines, split, trades, write_batches
from waiting import PATIENCE_S

import skyband as sb
from skyband.engines.spark.java import ensure_java

pytestmark = pytest.mark.spark

ROWS = 400
STATEMENT = "SELECT price, seq FROM trades [WINDOW 20 SECONDS EVERY 10 SECONDS] ORDER BY price DESC LIMIT 2 BY symbol"

SPEC = """
name: market
storage: file://{folder}/storage
libraries:
  - glob:
      include: definitions/**
configuration:
  spark.sql.streaming.stateStore.providerClass: org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider
  spark.sql.shuffle.partitions: "1"
  spark.skyband.buckets: "1"
"""

# What docs/deploying.md shows: asked outside, returned inside.
DEFINITIONS = '''
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

import skyband as sb

spark = SparkSession.active()
table = spark.read.parquet("{folder}/trades")
stream = spark.readStream.schema(table.schema).parquet("{folder}/trades")
window = sb.sliding("20 seconds", every="10 seconds", on="ts")

of_table = sb.sql("""{statement}""", trades=table)
of_stream = sb.top_k(stream, k=2, by="price", window=window, per="symbol")


@dp.materialized_view
def best():
    few = table.limit(9)
    for ask in (lambda: sb.top_k(few, k=2, by="price", window=window), lambda: sb.sql("{one}", t=few)):
        try:
            ask()
        except sb.EnvironmentProblem as error:
            print("Inside:", error)
    return of_table


@dp.table
def best_live():
    return of_stream


@dp.materialized_view
def counted():
    return spark.read.table("best").groupBy("symbol").count()
'''


def test_questions_at_the_level_of_a_module_run(tmp_path: Path) -> None:
    write_batches(tmp_path / "trades", split(trades(ROWS), 2))
    (tmp_path / "definitions").mkdir()
    one = "SELECT price FROM t [WINDOW 9 EVERY 9 ON seq] ORDER BY price LIMIT 1"
    (tmp_path / "definitions" / "best.py").write_text(DEFINITIONS.format(folder=tmp_path, statement=STATEMENT, one=one))
    (tmp_path / "spark-pipeline.yml").write_text(SPEC.format(folder=tmp_path))
    program = Path(sys.executable).with_name("spark-pipelines")
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "JAVA_HOME": str(ensure_java())}
    done = subprocess.run(
        [str(program), "run"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE_S
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-6_000:]
    answers = sb.sql(STATEMENT, trades=trades(ROWS))
    warehouse = tmp_path / "spark-warehouse"
    assert sorted(lines(pq.read_table(warehouse / "best"))) == sorted(lines(answers))
    window = sb.sliding("20 seconds", every="10 seconds", on="ts")
    answers = sb.top_k(trades(ROWS), k=2, by="price", window=window, per="symbol")
    ended = [row for row in lines(answers) if row[1] <= START_US + (ROWS - 1) * 250_000]
    live = pq.read_table(warehouse / "best_live").select(answers.column_names)
    assert sorted(lines(live)) == sorted(ended)
    assert pq.read_table(warehouse / "counted").num_rows == 5
    assert said.count("Inside: Inside a table function of a Declarative Pipeline") == 2
