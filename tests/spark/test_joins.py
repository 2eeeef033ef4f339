"""Oracle and restart tests: joins on Spark, batch and streaming, answer as they do in this process."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from spark.streams import (
    START_US,
    lines,
    read_batches,
    run_stream,
    run_to_files,
    shuffled,
    split,
    trades,
    write_batches,
)

import skyband as sb
from skyband.expressions import functions
from skyband.problems.joins.spark import resolve

pytestmark = pytest.mark.spark

INSTANTS = pa.timestamp("us", tz="UTC")
ROWS, SECONDS = 240, 60
PEOPLE = pa.table({"id": [0, 1, 2], "state": ["VT", "NH", "VT"]})


def stream(seed: int) -> pa.Table:
    """Rows of a minute, in order."""
    rng = np.random.default_rng(seed)
    at = START_US + np.sort(rng.integers(0, SECONDS * 1_000_000, ROWS))
    return pa.table(
        {
            "ts": pa.array(at, INSTANTS),
            "item": pa.array([None if n == 9 else n for n in rng.integers(0, 10, ROWS).tolist()], pa.int64()),
            "who": rng.integers(0, 4, ROWS),
            "price": rng.integers(0, 400, ROWS) / 4,
            "cost": _decimals(rng.integers(-(10**15), 10**15, ROWS), pa.decimal128(18, 3)),
            "wide": _decimals(rng.integers(-50, 10**9, ROWS), pa.decimal128(38, 4)),
        }
    )


def _decimals(numbers: Any, kind: pa.DataType) -> pa.Array:
    """Whole numbers of the last digit; one in seven is missing."""
    return pa.array([None if n % 7 == 0 else Decimal(n).scaleb(-kind.scale) for n in numbers.tolist()], kind)


DATA = {"a": stream(1), "b": stream(2)}
JOIN: dict[str, Any] = {
    "inputs": {
        "a": sb.sliding("30 seconds", on="ts"),
        "b": sb.stream_input(sb.sliding("10 seconds", on="ts"), where="price > 5"),
    },
    "on": "a.item = b.item",
    "group_by": ["a.item", "b.who"],
    "aggregates": {"n": "COUNT(*)", "total": "SUM(b.price)", "low": "MIN(a.price)"},
}
WITH_PEOPLE: dict[str, Any] = {
    **JOIN,
    "inputs": {**JOIN["inputs"], "p": sb.relation(where="state = 'VT'")},
    "on": ["a.item = b.item", "a.who = p.id"],
    "group_by": "p.state",
}
QUESTIONS: dict[str, dict[str, Any]] = {
    "spread by the key": {**JOIN, "every": "5 seconds"},
    "with a relation": {**WITH_PEOPLE, "every": "5 seconds"},
    "ranked": {**JOIN, "every": "5 seconds", "group_by": "a.item", "order_by": "n", "k": 2},
    "changes": {**JOIN, "group_by": "a.item", "aggregates": {"n": "COUNT(*)"}},
    "added up": {
        **JOIN,
        "every": "5 seconds",
        "group_by": "b.who",
        "aggregates": {"n": "COUNT(*)", "total": "SUM(a.who)", "low": "MIN(a.price)", "late": "MAX(b.ts)"},
        "having": "n > 10",
        "order_by": ["total", "n ASC"],
        "k": 2,
    },
    "decimals, added up": {
        **JOIN,
        "every": "5 seconds",
        "group_by": "b.who",
        "aggregates": {"total": "SUM(a.cost)", "low": "MIN(b.cost)", "high": "MAX(b.cost)", "n": "COUNT(a.wide)"},
        "order_by": "total",
        "k": 3,
    },
    "decimals, by the key": {
        **JOIN,
        "every": "5 seconds",
        "aggregates": {"total": "SUM(b.wide)", "low": "MIN(a.wide)", "mean": "AVG(a.cost)", "whole": "AVG(b.who)"},
    },
    "sums of floats, not by the key": {**JOIN, "every": "5 seconds", "group_by": "b.who"},
    "one stream, ranked": {
        "inputs": {"a": sb.stream_input(sb.sliding("30 seconds", on="ts"), where="price > 5")},
        "every": "5 seconds",
        "group_by": ["item", "who"],
        "aggregates": {"n": "COUNT(*)", "mean": "AVG(price)"},
        "order_by": ["n", "mean"],
        "k": 3,
    },
    "a filter of the user's, ranked": {
        "inputs": {"a": sb.stream_input(sb.sliding("30 seconds", on="ts"), where="half_of(price) > 5")},
        "every": "5 seconds",
        "group_by": "who",
        "aggregates": {"n": "COUNT(*)"},
        "order_by": "n",
        "k": 2,
    },
    # Rows of one cell go to several buckets, and some of them, without an item, come late in each.
    "one stream, one group": {
        "inputs": {"a": sb.sliding("32 seconds", on="ts")},
        "every": "5 seconds",
        "aggregates": {"n": "COUNT(item)", "total": "SUM(who)", "low": "MIN(price)", "high": "MAX(price)"},
    },
}
NOT_ADDED_UP_BY_SPARK = {"changes", "decimals, by the key", "one stream, ranked", "a filter of the user's, ranked"}


@pytest.fixture(autouse=True)
def known_for_one_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(functions._known, "half_of", lambda x: x / 2)


@pytest.fixture(autouse=True)
def few_buckets(spark: SparkSession) -> Iterator[None]:
    """Enough for rows to be spread; each costs a second."""
    spark.conf.set("spark.skyband.buckets", "3")
    yield
    spark.conf.unset("spark.skyband.buckets")


def inputs(question: dict[str, Any]) -> dict[str, Any]:
    return {name: {**DATA, "p": PEOPLE}[name] for name in question["inputs"]}


@pytest.mark.parametrize("name", QUESTIONS)
def test_batch_dataframes_answer_as_tables_do(spark: SparkSession, name: str) -> None:
    question = QUESTIONS[name]
    frames = {name: spark.createDataFrame(table) for name, table in inputs(question).items()}
    answer = sb.join_aggregate(frames, **question)
    expected = sb.join_aggregate({name: shuffled(table) for name, table in inputs(question).items()}, **question)
    assert answer.columns == expected.column_names
    panes = resolve(frames, sb.JoinAggregate(**question)).recipe.panes
    assert (panes is None) == (name in NOT_ADDED_UP_BY_SPARK)
    assert sorted(lines(answer.toArrow()), key=repr) == sorted(lines(expected), key=repr)


def test_what_spark_adds_up_may_have_more_than_64_bits_on_the_way(spark: SparkSession) -> None:
    large = 2**62
    table = pa.table(
        {
            "t": [-2, -2, -2, -1, -1, -1, 3, None],
            "k": [1, 1, 1, 2, 2, 2, None, 1],
            "x": [large, large, large, -large, -large, -large, 5, 1],
            "y": [0.5, None, -0.0, float("nan"), 7.0, 5.0, -3.0, -6.0],
        }
    )
    question: dict[str, Any] = {
        "inputs": {"a": sb.sliding(6, on="t"), "p": sb.relation()},
        "on": "a.k = p.id",
        "every": 4,
        "aggregates": {"total": "SUM(x + 1 - 1)", "mean": "AVG(k)", "low": "MIN(y)", "n": "COUNT(y)"},
    }
    answer = sb.join_aggregate({"a": spark.createDataFrame(table), "p": PEOPLE}, **question)
    expected = lines(sb.join_aggregate({"a": table, "p": PEOPLE}, **question))
    assert lines(answer.toArrow()) == expected == [(0, 0, 1.5, 0.0, 4), (4, 0, 1.5, 0.0, 4)]


@pytest.mark.parametrize("name", ["spread by the key", "with a relation", "added up", "decimals, added up"])
def test_streams_that_stop_and_go_on_answer_as_tables_do(spark: SparkSession, name: str, tmp_path: Path) -> None:
    question = {**QUESTIONS[name], "lateness": "15 seconds"}
    pieces = {name: split(table, 4) for name, table in DATA.items()}
    for half in range(2):
        for name, parts in pieces.items():
            write_batches(tmp_path / name, parts[2 * half : 2 * half + 2], first=2 * half)
        frames: dict[str, Any] = {name: read_batches(spark, tmp_path / name) for name in pieces}
        if "p" in question["inputs"]:
            frames["p"] = PEOPLE
        run_to_files(sb.join_aggregate(frames, **question), tmp_path)
    written = sorted(lines(spark.read.parquet(str(tmp_path / "answers")).toArrow()), key=repr)
    latest = max(int(table["ts"].cast(pa.int64()).to_numpy().max()) for table in DATA.values())
    expected = lines(sb.join_aggregate(inputs(question), **question))
    closed = [line for line in expected if line[0] <= latest - 15_000_000]
    assert written == sorted(closed, key=repr)
    assert len(written) > 5


def test_rows_are_added_up_before_the_shuffle_and_still_counted(spark: SparkSession, tmp_path: Path) -> None:
    first, second = split(trades(800), 2)
    second = pa.concat_tables([second, first.slice(20, 3)])  # at five seconds: late, and the rest of their pane closed
    folder = write_batches(tmp_path / "input", [first, second])
    question = {
        "window": sb.tumbling("10 seconds", on="ts"),
        "group_by": "symbol",
        "aggregates": {"n": "COUNT(*)", "total": "SUM(seq)", "low": "MIN(price)", "top": "MAX(price)"},
    }
    outcome = run_stream(spark, folder, lambda rows: sb.join_aggregate(rows, **question))
    closed = [line for line in lines(sb.join_aggregate(trades(800), **question)) if line[0] <= START_US + 190_000_000]
    assert sorted(outcome.lines) == sorted(closed)
    assert outcome.observed("rows_in") == 803
    assert outcome.observed("rows_late") == 3
    panes_of_files = 2 * 11 + 2 * 12
    assert outcome.observed("rows_gathered") <= 5 * panes_of_files, "a row for each symbol and pane"


def test_what_cannot_be_joined_on_spark_is_said(spark: SparkSession) -> None:
    frames = {name: spark.createDataFrame(table) for name, table in DATA.items()}
    with pytest.raises(sb.InvalidInput, match="b must be a Spark DataFrame"):
        sb.join_aggregate({"a": frames["a"], "b": DATA["b"]}, **JOIN)
    with pytest.raises(sb.InvalidQuery, match="measures time"):
        sb.join_aggregate(frames["a"], window=sb.sliding(5), aggregates={"n": "COUNT(*)"})


def test_a_statement_about_a_join_runs_on_spark(spark: SparkSession) -> None:
    text = """SELECT a.item, COUNT(*) AS n, SUM(b.price) AS total
              FROM a [WINDOW 30 SECONDS EVERY 5 SECONDS ON ts], b [WINDOW 10 SECONDS EVERY 5 SECONDS ON ts]
              WHERE a.item = b.item AND b.price > 5 GROUP BY a.item"""
    frames = {name: spark.createDataFrame(table) for name, table in DATA.items()}
    answer, expected = sb.sql(text, **frames), sb.sql(text, **DATA)
    assert sorted(lines(answer.toArrow()), key=repr) == sorted(lines(expected), key=repr)
    assert expected.num_rows > 20
