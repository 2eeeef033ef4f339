"""Oracle and example tests: the sieve in the JVM lets every row pass that may be shown, and counts all of them."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
from contextlib import redirect_stdout
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from engines.spark.streams import INSTANTS, START_US, Outcome, lines, read_batches, run_stream, split, write_batches
from numbers_at_the_edge import EDGES_OF_64_BITS
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import DecimalType, DoubleType, LongType, TimestampType

import skyband as sb
from skyband.engines.spark import sharing, sieving
from skyband.engines.spark.jvm import JAR
from skyband.engines.spark.jvm.build import build
from skyband.engines.spark.sharing import QUESTION, SharedQuery, multi_query, number_of
from skyband.engines.spark.sieving import CAPACITY, JvmSieve, is_attached, sieve_of
from skyband.problems.rows import spark as rows_on_spark

pytestmark = pytest.mark.spark

ROWS = 600
COUNTS = ("rows_in", "rows_late", "rows_null_time", "rows_unranked")
MINUTE = sb.sliding("1 minute", every="10 seconds", on="ts")

QUESTIONS: dict[str, dict[str, Any]] = {
    "every float there is": {"k": 3, "by": "price", "window": MINUTE, "lateness": "7 seconds"},
    "two panes a slide, per group, int64, the smallest": {
        "k": 2,
        "by": "whole",
        "window": sb.sliding("25 seconds", every="10 seconds", on="ts"),
        "per": ("symbol", "n"),
        "ascending": True,
    },
    "from the start, decimals": {"k": 4, "by": "exact", "window": sb.landmark(every="10 seconds", on="ts")},
    "whole numbers of time, per whole number, changes": {
        "k": 2,
        "by": "price",
        "window": sb.sliding(40, every=7, on="t"),
        "per": "n",
        "emit": "changes",
    },
    "local times, ties that a column puts in order": {
        "k": 3,
        "by": "few",
        "window": sb.sliding("1 minute", every="10 seconds", on="local", order="seq"),
    },
}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Hostile rows: out of order and late, without time, score or group, with every float there is, with ties."""
    rng = np.random.default_rng(3)
    us = START_US + (np.arange(ROWS) + rng.integers(-40, 40, ROWS)) * 250_000
    us[rng.random(ROWS) < 0.2] -= 60_000_000
    us[rng.random(ROWS) < 0.2] = START_US + 3_333_333  # many at the same time
    timeless, unranked = rng.random(ROWS) < 0.03, rng.random(ROWS) < 0.1
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, 1e308])
    price = np.where(rng.random(ROWS) < 0.2, special[rng.integers(0, len(special), ROWS)], rng.normal(size=ROWS))
    whole = [EDGES_OF_64_BITS[i] for i in rng.integers(0, len(EDGES_OF_64_BITS), ROWS)]
    return pa.table(
        {
            "ts": pa.array(us, INSTANTS, mask=timeless),
            "local": pa.array(us, pa.timestamp("us"), mask=timeless),
            "t": pa.array(us // 250_000 - START_US // 250_000, mask=timeless),
            "seq": pa.array(np.arange(ROWS)),
            "symbol": pa.array([None if code == 0 else f"S{code}" for code in rng.integers(0, 5, ROWS)]),
            "n": pa.array(rng.integers(-2, 2, ROWS), mask=rng.random(ROWS) < 0.2),
            "price": pa.array(price, mask=unranked),
            "few": pa.array(rng.integers(0, 3, ROWS).astype(np.float32), mask=unranked),
            "whole": pa.array(whole, pa.int64(), mask=unranked),
            "exact": pa.array([Decimal(x).scaleb(-3) for x in whole], pa.decimal128(30, 3), mask=unranked),
        }
    )


@pytest.fixture(scope="module")
def folder(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_batches(tmp_path_factory.mktemp("sieve") / "input", split(table, 2))


def answered(spark: SparkSession, folder: Path, asked: dict[str, Any]) -> Outcome:
    mode = "update" if asked.get("emit") == "changes" else "append"
    return run_stream(spark, folder, lambda rows: sb.top_k(rows, **asked), mode=mode)


@pytest.mark.parametrize("asked", QUESTIONS.values(), ids=QUESTIONS.keys())
def test_both_sieves_give_the_same_answers_and_counts(
    spark: SparkSession, folder: Path, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "in the JVM" in str(rows_on_spark.explain_sieve(read_batches(spark, folder), sb.TopK(**asked)))
    in_jvm = answered(spark, folder, asked)
    monkeypatch.setattr(rows_on_spark, "is_attached", lambda session: False)
    in_python = answered(spark, folder, asked)
    assert sorted(map(str, in_jvm.lines)) == sorted(map(str, in_python.lines))
    assert {name: in_jvm.observed(name) for name in COUNTS} == {name: in_python.observed(name) for name in COUNTS}
    assert in_jvm.observed("rows_in") == ROWS
    assert in_jvm.lines


# -- in a pass that several queries share -----------------------------------------------------------------------------

SHARED: dict[str, dict[str, SharedQuery]] = {
    "one of them sees all rows": {
        "all": SharedQuery(sb.TopK(k=3, by="price", window=MINUTE, lateness="7 seconds")),
        "few": SharedQuery(sb.TopK(k=2, by="whole", window=MINUTE, per="symbol", ascending=True), where="n = 1"),
        "arrivals": SharedQuery(sb.TopK(k=2, by="price", window=sb.sliding(50, every=20, order="seq"))),
    },
    "each sees some rows": {
        "few": SharedQuery(sb.TopK(k=2, by="price", window=MINUTE), where="n = 1"),
        "none": SharedQuery(sb.TopK(k=2, by="few", window=MINUTE), where="n = 7"),
    },
}


def shared(spark: SparkSession, folder: Path, queries: dict[str, SharedQuery]) -> dict[str, Any]:
    """By query: its answers, and the sums of its counts."""
    asked = multi_query(read_batches(spark, folder), queries)
    name = f"shared_{uuid4().hex}"
    writer = asked.packed.writeStream.format("memory").queryName(name).outputMode(asked.mode)
    running = writer.trigger(availableNow=True).start()
    running.awaitTermination()
    packed = [row for row in spark.table(name).collect() if row.answer is not None]
    found: dict[str, Any] = {}
    for query, unpack in asked.tables.items():
        answers = unpack([bytes(row.answer) for row in packed if row[QUESTION] == number_of(query)])
        observed = [batch["observedMetrics"][f"skyband_{query}"] for batch in running.recentProgress]
        found[query] = sorted(map(str, lines(answers))), {each: sum(one[each] for one in observed) for each in COUNTS}
    return found


@pytest.mark.parametrize("queries", SHARED.values(), ids=SHARED.keys())
def test_queries_that_share_a_pass_have_a_sieve_each(
    spark: SparkSession, folder: Path, table: pa.Table, queries: dict[str, SharedQuery], monkeypatch: pytest.MonkeyPatch
) -> None:
    in_jvm = shared(spark, folder, queries)
    monkeypatch.setattr(rows_on_spark, "is_attached", lambda session: False)
    assert in_jvm == shared(spark, folder, queries)
    some = table.filter(pc.equal(table["n"], 1)).num_rows
    rows_in = {query: counts["rows_in"] for query, (_, counts) in in_jvm.items()}
    assert rows_in == {query: {"few": some, "none": 0}.get(query, ROWS) for query in queries}
    assert in_jvm["few"][0]


def test_the_last_batches_of_a_partition_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "GATHERED_ROWS", 2)
    batches = [pa.record_batch({"x": [1] * rows}) for rows in (1, 1, 3, 0, 2)]
    groups = list(sharing._grouped(iter(batches)))
    assert [[batch.num_rows for batch in group] for group, _ in groups] == [[1, 1], [3], [0, 2]]
    assert [is_last for _, is_last in groups] == [False, False, True]
    assert list(sharing._grouped(iter([]))) == []


# -- the function alone ----------------------------------------------------------------------------------------------


def sieved(df: DataFrame, sieve: JvmSieve, score: str, group: str | None = None) -> list[tuple[int, int]]:
    """(seq, weight) of the rows that pass."""
    group_column = None if group is None else sf.col(group)
    weighed = df.withColumn("weight", sieve.weight(sf.col("ts"), sf.col(score), group_column))
    return [tuple(row) for row in weighed.where("weight IS NOT NULL").select("seq", "weight").collect()]


def candidates(table: pa.Table, k: int, every_us: int, score: str, group: str | None, sign: int) -> set[int]:
    """The rows that fewer than k others of their group and pane outrank by (score, time)."""
    panes: dict[Any, list[tuple[Any, int, int]]] = {}
    for row in table.to_pylist():
        value = row[score]
        if row["ts"] is None or value is None or value != value:
            continue
        us = int(row["ts"].timestamp() * 1_000_000)
        panes.setdefault((group and row[group], us // every_us), []).append((sign * value, us, row["seq"]))
    return {
        seq
        for rows in panes.values()
        for value, us, seq in rows
        if sum((other, time) > (value, us) for other, time, _ in rows) < k
    }


@pytest.mark.parametrize(("k", "capacity"), [(3, 4), (3, 100), (3, CAPACITY), (1, 100), (1, CAPACITY)])
@pytest.mark.parametrize(
    ("score", "score_type", "group", "ascending"),
    [
        ("price", DoubleType(), None, False),
        ("few", DoubleType(), "n", True),
        ("whole", LongType(), None, True),
        ("exact", DecimalType(30, 3), "n", False),
    ],
)
def test_what_may_be_shown_passes(
    spark: SparkSession,
    table: pa.Table,
    tmp_path: Path,
    k: int,
    capacity: int,
    score: str,
    score_type: Any,
    group: str | None,
    ascending: bool,
) -> None:
    pq.write_table(table, tmp_path / "rows.parquet")
    df = spark.read.parquet(str(tmp_path / "rows.parquet"))
    assert is_attached(spark)
    ticks = MINUTE.ticks(table.schema)
    sieve = sieve_of(ticks, TimestampType(), score_type, k, ascending=ascending, capacity=capacity)
    assert sieve is not None
    needed = candidates(table, k, 10_000_000, score, group, -1 if ascending else 1)
    passed = sieved(df, sieve, score, group)
    assert needed <= {seq for seq, _ in passed}
    assert len(needed) > 10 * k
    if capacity == CAPACITY:
        assert {weight for _, weight in passed} == {0}, "all rows are counted in the JVM"
        assert len(passed) < ROWS * 0.8
    # A plan is the same bytes each time; what a task remembers is not there when the next one runs on its thread.
    assert sorted(sieved(df, sieve, score, group)) == sorted(passed)


def test_best_rows_first_let_no_other_pass(spark: SparkSession, tmp_path: Path) -> None:
    rows = 1000
    table = pa.table(
        {"ts": pa.array([START_US] * rows, INSTANTS), "seq": range(rows), "price": np.arange(rows, 0, -1.0)}
    )
    pq.write_table(table, tmp_path / "rows.parquet")
    assert is_attached(spark)
    sieve = sieve_of(MINUTE.ticks(table.schema), TimestampType(), DoubleType(), 7, ascending=False)
    assert sieve is not None
    assert sorted(sieved(spark.read.parquet(str(tmp_path)), sieve, "price")) == [(seq, 0) for seq in range(7)]


def test_groups_that_have_the_numbers_of_others_are_not_mixed_up(spark: SparkSession, tmp_path: Path) -> None:
    """The sieve's table uses two numbers for something else: a free place, and the rows without a group."""
    free, no_group = 0x6A09E667F3BCC909, 0x5BD1E9955BD1E995
    groups = [None, no_group, None, free, free, no_group, 0, None, 0, free]
    prices = [9.0, 1.0, 8.0, 5.0, 4.0, 0.0, 7.0, 10.0, 6.0, 3.0]
    table = pa.table(
        {
            "ts": pa.array([START_US] * 10, INSTANTS),
            "seq": range(10),
            "price": prices,
            "group": pa.array(groups, pa.int64()),
        }
    )
    pq.write_table(table, tmp_path / "rows.parquet")
    assert is_attached(spark)
    sieve = sieve_of(MINUTE.ticks(table.schema), TimestampType(), DoubleType(), 1, ascending=False)
    assert sieve is not None
    passed = sieved(spark.read.parquet(str(tmp_path)), sieve, "price", "group")
    ruled_out = {2, 8}
    assert sorted(passed) == [(seq, 0) for seq in range(10) if seq not in ruled_out]


def test_times_at_the_ends_of_64_bits_pass_and_are_counted_in_python(spark: SparkSession, tmp_path: Path) -> None:
    """The sums in the sieve would overflow."""
    times = [-(2**63), -(2**60), 2**60, 2**63 - 1, 0, 0, 0]
    table = pa.table({"ts": pa.array(times, pa.int64()), "seq": range(7), "price": [1.0, 1, 1, 1, 3, 2, 1]})
    pq.write_table(table, tmp_path / "rows.parquet")
    assert is_attached(spark)
    ticks = sb.sliding(7, every=2, on="ts").ticks(table.schema)
    sieve = sieve_of(ticks, LongType(), DoubleType(), 1, ascending=False)
    assert sieve is not None
    passed = sieved(spark.read.parquet(str(tmp_path)), sieve, "price")
    assert sorted(passed) == [(0, 1), (1, 1), (2, 1), (3, 1), (4, 0)]
    assert (
        sieve_of(sb.sliding(2**60, every=1, on="ts").ticks(table.schema), LongType(), DoubleType(), 1, ascending=False)
        is None
    )


def test_spark_evaluates_it_once_and_compiles_it(spark: SparkSession, folder: Path) -> None:
    """With generated code, where Spark looks for what it can evaluate once or twice, rows are counted as without."""
    asked = QUESTIONS["every float there is"]
    interpreted = answered(spark, folder, asked)
    settings = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        compiled = answered(spark, folder, asked)
        rows = spark.read.parquet(str(folder))
        assert is_attached(spark)
        sieve = sieve_of(MINUTE.ticks(pa.schema([("ts", INSTANTS)])), TimestampType(), DoubleType(), 2, ascending=False)
        assert sieve is not None
        weighed = rows.withColumn("w", sieve.weight(sf.col("ts"), sf.col("price"), None)).where("w IS NOT NULL")
        with redirect_stdout(io.StringIO()) as plan:
            weighed.where("price > 0").explain()
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
    assert sorted(map(str, compiled.lines)) == sorted(map(str, interpreted.lines))
    assert [compiled.observed(name) for name in COUNTS] == [interpreted.observed(name) for name in COUNTS]
    calls = [line for line in plan.getvalue().splitlines() if "skyband_sieve(" in line]
    assert len(calls) == 1, "neither moved below the condition that stands behind it nor evaluated there once more"
    assert re.match(r"[ :+-]*\*\(\d+\) Project", calls[0]), "inside generated code"


def test_nothing_is_held_when_tasks_have_ended(spark: SparkSession, folder: Path) -> None:
    answered(spark, folder, QUESTIONS["every float there is"])
    tasks = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass("skyband.spark.Tasks")
    running = tasks.getDeclaredMethod("running", None)
    running.setAccessible(True)
    assert running.invoke(None, None) == 0


def test_without_the_jar_python_does_it(spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sieving, "_CLASSES", "skyband.nowhere.")
    assert not is_attached(spark)
    rows = read_batches(spark, folder)
    assert JAR.name in str(rows_on_spark.explain_sieve(rows, sb.TopK(**QUESTIONS["every float there is"])))
    statement = "EXPLAIN SELECT * FROM t [WINDOW 1 MINUTE EVERY 10 SECONDS ON ts] ORDER BY price DESC LIMIT 3"
    assert "sieve      in Python, since this session lacks" in str(sb.sql(statement, t=rows))
    monkeypatch.undo()
    assert "sieve      in the JVM" in str(sb.sql(statement, t=rows))
    assert "sieve      in Python, since this is no stream" in str(sb.sql(statement, t=spark.read.parquet(str(folder))))


def test_the_jar_is_what_its_source_gives(tmp_path: Path) -> None:
    javac = shutil.which("javac")
    if javac is None:
        pytest.skip("there is no JDK")
    version = subprocess.run([javac, "-version"], capture_output=True, text=True, check=True).stdout
    if not version.startswith("javac 17."):
        pytest.skip(f"{version.strip()} may write other bytes than javac 17")
    build(tmp_path / JAR.name)
    assert (tmp_path / JAR.name).read_bytes() == JAR.read_bytes(), "the source has changed: make jar"


def test_answers_are_those_of_the_embedded_engine(spark: SparkSession, tmp_path: Path) -> None:
    """Rows in order, so that none is late: then both engines say the same."""
    rng = np.random.default_rng(8)
    us = np.sort(START_US + rng.integers(0, 100, ROWS) * 1_000_000)
    table = pa.table({"ts": pa.array(us, INSTANTS), "seq": range(ROWS), "price": rng.integers(0, 9, ROWS) / 2})
    folder = write_batches(tmp_path / "input", split(table, 2))
    window = sb.sliding("20 seconds", every="5 seconds", on="ts", order="seq")
    expected = lines(sb.top_k(table, k=4, by="price", window=window))
    said = run_stream(spark, folder, lambda rows: sb.top_k(rows, k=4, by="price", window=window)).lines
    closed = {line[1] for line in said}
    assert sorted(said) == sorted(line for line in expected if line[1] in closed)
    assert len(closed) > 10
