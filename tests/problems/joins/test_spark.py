"""Oracle and restart tests: joins on Spark that stop and go on, and what Spark adds up before the shuffle."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conformance.joins.questions import DATA, JOIN, OPTIONS, PEOPLE, QUESTIONS
from engines.spark.streams import (
    INSTANTS,
    START_US,
    lines,
    read_batches,
    run_stream,
    run_to_files,
    split,
    trades,
    write_batches,
)
from pyspark.sql import SparkSession

import skyband as sb
from skyband.expressions import functions
from skyband.problems.joins.spark import resolve

pytestmark = pytest.mark.spark

NOT_ADDED_UP_BY_SPARK = {
    "different values, changes",
    "changes",
    "anti, changes",
    "strings, changes",
    "decimals, by the key",
    "one stream, ranked",
    "a filter of the user's, ranked",
}


@pytest.fixture(autouse=True)
def known_for_one_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(functions._known, "half_of", lambda x: x / 2)


@pytest.fixture(autouse=True)
def few_buckets(spark: SparkSession) -> Iterator[None]:
    """Enough for rows to be spread; each costs a second."""
    spark.conf.set("spark.skyband.buckets", "3")
    yield
    spark.conf.unset("spark.skyband.buckets")


@pytest.mark.parametrize("name", QUESTIONS)
def test_spark_adds_up_what_it_can_before_the_shuffle(spark: SparkSession, name: str) -> None:
    frames = {name: spark.createDataFrame(table) for name, table in QUESTIONS[name].inputs.items()}
    panes = resolve(frames, sb.JoinAggregate(**OPTIONS[name])).job.panes
    assert (panes is None) == (name in NOT_ADDED_UP_BY_SPARK)


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
    question, tables = {**OPTIONS[name], "lateness": "15 seconds"}, QUESTIONS[name].inputs
    pieces = {name: split(table, 4) for name, table in DATA.items()}
    for half in range(2):
        for name, parts in pieces.items():
            write_batches(tmp_path / name, parts[2 * half : 2 * half + 2], first=2 * half)
        frames: dict[str, Any] = {name: read_batches(spark, tmp_path / name) for name in pieces}
        if "p" in question["inputs"]:
            frames["p"] = PEOPLE
        run_to_files(sb.join_aggregate(frames, **question), tmp_path)
    written = sorted(lines(spark.read.parquet(str(tmp_path / "answers")).toArrow()), key=repr)
    latest = min(int(tables[name]["ts"].cast(pa.int64()).to_numpy().max()) for name in frames if name != "p")
    expected = lines(sb.join_aggregate(tables, **question))
    closed = [line for line in expected if line[0] <= latest - 15_000_000]
    assert written == sorted(closed, key=repr)
    assert len(written) > 5


@pytest.mark.parametrize("measured", ["instants", "wall clock", "whole numbers"])
def test_windows_wait_for_the_slowest_stream(spark: SparkSession, tmp_path: Path, measured: str) -> None:
    """A micro-batch brings four times as much of one stream as of the other, and both stop in the middle."""
    count = np.arange(1_600)
    times = pa.array(count) if measured == "whole numbers" else pa.array(START_US + count * 1_000, INSTANTS)
    if measured == "wall clock":
        times = times.cast(pa.timestamp("us"))
    random, tables = np.random.default_rng(3), {}
    for name in ("a", "b"):
        tables[name] = pa.table({"t": times, "k": random.integers(0, 20, 1_600), "v": random.integers(0, 100, 1_600)})
    size, every = (400, 100) if measured == "whole numbers" else ("400 milliseconds", "100 milliseconds")
    question: dict[str, Any] = {
        "inputs": dict.fromkeys(tables, sb.sliding(size, on="t")),
        "on": "a.k = b.k",
        "group_by": "a.k",
        "aggregates": {"n": "COUNT(*)", "total": "SUM(b.v)"},
        "every": every,
    }
    pieces = {"a": split(tables["a"], 4), "b": split(tables["b"], 16)}
    for half in range(2):
        for name, parts in pieces.items():
            middle = len(parts) // 2
            chosen = parts[:middle] if half == 0 else parts[middle:]
            write_batches(tmp_path / name, chosen, first=middle * half)
        frames = {name: read_batches(spark, tmp_path / name) for name in pieces}
        run_to_files(sb.join_aggregate(frames, **question), tmp_path)
    latest = 1_599 if measured == "whole numbers" else START_US + 1_599_000
    closed = [line for line in lines(sb.join_aggregate(tables, **question)) if line[0] <= latest]
    written = lines(spark.read.parquet(str(tmp_path / "answers")).toArrow())
    assert sorted(written) == sorted(closed)
    assert len(closed) > 200


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
    with pytest.raises(sb.InvalidQuery, match="windows of a join measure a column"):
        sb.join_aggregate(frames["a"], window=sb.sliding(5), aggregates={"n": "COUNT(*)"})
    counted = {name: sb.sliding(5, order="ts") for name in "ab"}
    with pytest.raises(sb.InvalidQuery, match="Windows of arrivals work in one process"):
        sb.join_aggregate(frames, **{**JOIN, "inputs": counted})


def test_a_statement_about_a_join_runs_on_spark(spark: SparkSession) -> None:
    text = """SELECT a.item, COUNT(*) AS n, SUM(b.price) AS total
              FROM a [WINDOW 30 SECONDS EVERY 5 SECONDS ON ts], b [WINDOW 10 SECONDS EVERY 5 SECONDS ON ts]
              WHERE a.item = b.item AND b.price > 5 GROUP BY a.item"""
    frames = {name: spark.createDataFrame(table) for name, table in DATA.items()}
    answer, expected = sb.sql(text, **frames), sb.sql(text, **DATA)
    assert sorted(lines(answer.toArrow()), key=repr) == sorted(lines(expected), key=repr)
    assert expected.num_rows > 20


def test_groups_of_a_table_are_deleted_when_its_last_row_has_passed_them(spark: SparkSession) -> None:
    """A bucket that closed windows up to its own last row lost the deletes of all groups but those beside it."""
    table = pa.table({"t": [1, 2, 3, 4, 25], "g": list("abcdz")})
    options: dict[str, Any] = {"window": sb.tumbling(10, on="t"), "group_by": "g", "aggregates": {"n": "COUNT(*)"}}
    expected = lines(sb.join_aggregate(table, **options, emit="changes"))
    assert sum(line[1] == "delete" for line in expected) == 4
    said = sb.join_aggregate(spark.createDataFrame(table), **options, emit="changes")
    assert sorted(map(repr, lines(said.toArrow()))) == sorted(map(repr, expected))
