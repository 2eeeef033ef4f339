"""Oracle tests: whole numbers and decimals beyond 2**53, ranked alike on both engines and shown in their own type."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from engines.spark.streams import lines, run_stream, split, trades, write_batches
from numbers_at_the_edge import EDGES_OF_64_BITS
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import skyband as sb
from skyband.expressions import bind

pytestmark = pytest.mark.spark

ROWS = 400
MINUTE = sb.sliding("30 seconds", every="10 seconds", on="ts")

QUESTIONS: dict[str, dict[str, Any]] = {
    "int64": {"k": 3, "by": "n", "window": MINUTE},
    "int64, per group, the smallest": {"k": 2, "by": "n", "window": MINUTE, "per": "symbol", "ascending": True},
    "int64, changes by count": {"k": 3, "by": "n", "window": sb.sliding(50, order="seq")},
    "decimal": {"k": 3, "by": "d", "window": MINUTE, "per": "symbol"},
    "int32": {"k": 3, "by": "i", "window": MINUTE},
    "float32": {"k": 3, "by": "f", "window": MINUTE},
    "an expression of whole numbers": {"k": 3, "by": "ABS(n % 1000003) * 9000000000001 - i", "window": MINUTE},
    "a function of whole numbers": {"k": 3, "by": lambda n, seq: n // 2 - seq, "window": MINUTE},
}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(7)
    table = trades(ROWS)
    whole = [EDGES_OF_64_BITS[i] for i in rng.integers(0, len(EDGES_OF_64_BITS), ROWS)]
    unknown = rng.random(ROWS) < 0.1
    decimals = [None if none else Decimal(x).scaleb(-3) for x, none in zip(whole, unknown, strict=True)]
    return (
        table.append_column("n", pa.array(whole, pa.int64()))
        .append_column("d", pa.array(decimals, pa.decimal128(30, 3)))
        .append_column("i", pa.array(rng.integers(-5, 5, ROWS), pa.int32()))
        .append_column("f", pa.array(rng.integers(-5, 5, ROWS) / 10, pa.float32()))
    )


@pytest.fixture(scope="module")
def subscriptions() -> dict[str, Any]:
    """A query for each whole number at the edge, and one for none."""
    wanted = pa.array([*EDGES_OF_64_BITS, None], pa.int64())
    queries = pa.table({"id": range(len(wanted)), "want": wanted})
    return {"k": 5, "by": "seq", "where": "n = q.want", "window": MINUTE, "for_each": queries}


@pytest.fixture(scope="module")
def folder(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_batches(tmp_path_factory.mktemp("exact") / "input", split(table, 3))


@pytest.mark.parametrize("asked", QUESTIONS.values(), ids=QUESTIONS.keys())
def test_batch(spark: SparkSession, table: pa.Table, folder: Path, asked: dict[str, Any]) -> None:
    expected = sb.top_k(table, **asked)
    answer = sb.top_k(spark.read.parquet(str(folder)), **asked).toArrow()
    assert answer.schema.field("score").type == expected.schema.field("score").type
    assert sorted(lines(answer)) == sorted(lines(expected))
    assert answer.num_rows >= 20


@pytest.mark.parametrize("name", ["int64", "int64, changes by count", "decimal"])
def test_streaming(spark: SparkSession, table: pa.Table, folder: Path, name: str) -> None:
    asked = QUESTIONS[name]
    mode = "update" if asked["window"].on is None else "append"
    expected = sorted(lines(sb.top_k(table, **asked)))
    outcome = run_stream(spark, folder, lambda rows: sb.top_k(rows, **asked), mode=mode)
    latest = lines(table.select(["ts"]))[-1][0]
    due = expected if mode == "update" else [line for line in expected if line[1] <= latest]
    assert sorted(outcome.lines) == due
    assert len(due) >= 20


def test_subscriptions_compare_whole_numbers_exactly(
    spark: SparkSession, table: pa.Table, folder: Path, subscriptions: dict[str, Any]
) -> None:
    expected = sb.top_k(table, **subscriptions)
    wanted = dict(enumerate(subscriptions["for_each"].column("want").to_pylist()))
    assert all(wanted[row["id"]] == row["n"] for row in expected.to_pylist())
    assert len(set(expected.column("n").to_pylist())) > 20
    answer = sb.top_k(spark.read.parquet(str(folder)), **subscriptions).toArrow()
    assert sorted(lines(answer)) == sorted(lines(expected))
    outcome = run_stream(spark, folder, lambda rows: sb.top_k(rows, **subscriptions))
    latest = lines(table.select(["ts"]))[-1][0]
    due = [line for line in sorted(lines(expected)) if line[2] <= latest]
    assert sorted(outcome.lines) == due
    assert len(due) >= 20


def test_a_spark_column_keeps_its_type(spark: SparkSession, folder: Path) -> None:
    rows = spark.read.parquet(str(folder))
    answer = sb.top_k(rows, k=1, by=sf.col("n") - sf.lit(1), window=sb.landmark(every="1 hour", on="ts"))
    assert answer.schema["score"].dataType.simpleString() == "bigint"


def test_a_whole_number_that_does_not_fit_is_refused(spark: SparkSession, table: pa.Table, folder: Path) -> None:
    asked = {"k": 1, "by": "n * 2", "window": MINUTE}
    with pytest.raises(sb.InvalidInput, match="does not fit in 64 bits"):
        sb.top_k(table, **asked)
    with pytest.raises(Exception, match="does not fit in 64 bits"):
        sb.top_k(spark.read.parquet(str(folder)), **asked).toArrow()


MEANT_ALIKE = [
    *(
        "n",
        "i",
        "f",
        "d",
        "i + 1",
        "-i",
        "n % 1000",
        "ABS(i)",
        "SIGN(n)",
        "FLOOR(i)",
        "CEIL(n)",
        "i * i - n % 7",
        "n % i",
    ),
    *("GREATEST(n, i)", "LEAST(n, 5)", "COALESCE(NULL, n)", "NULLIF(n, 9007199254740993)", "n / 2", "n * 0.5", "f + i"),
    *("CASE WHEN n > 9007199254740992 THEN n ELSE i END", "IF(n = 9007199254740993, 1, 0)", "n % 10 * (n % 100)"),
    *("IF(n IN (9007199254740993, 0), 1, 0)", "IF(n BETWEEN 9007199254740992 AND 9007199254740993, 1, 0)"),
    *("CASE i WHEN 3 THEN n WHEN -3 THEN i * 2 END", "CASE WHEN i > 100 THEN n * n ELSE 2 END", "SQRT(ABS(i)) + n % 3"),
    *("n % 1000 * (n % 999) * (n % 998)", "LOG(2, ABS(i))", "GREATEST(f, i)", "i ** 2", "n % i"),
]


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_expressions_mean_the_same_on_both_engines(
    spark: SparkSession, table: pa.Table, folder: Path, ansi: str
) -> None:
    bound = {text: bind(text, table.schema) for text in MEANT_ALIKE}
    rows = table.combine_chunks().to_batches()[0]
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        computed = [sf.expr(score.spark_sql).alias(str(i)) for i, score in enumerate(bound.values())]
        found = spark.read.parquet(str(folder)).select("seq", *computed).orderBy("seq").toArrow()
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
    for i, (text, score) in enumerate(bound.items()):
        column = found.column(str(i))
        assert column.type == score.type, text
        expected = pc.fill_null(pc.cast(score.values(rows), pa.float64(), safe=False), np.nan)
        if pa.types.is_floating(score.type):
            got = pc.fill_null(pc.cast(column, pa.float64()), np.nan)
            np.testing.assert_allclose(
                got.to_numpy(), expected.to_numpy(zero_copy_only=False), rtol=1e-15, err_msg=text
            )
        else:
            assert column.to_pylist() == score.values(rows).to_pylist(), text
