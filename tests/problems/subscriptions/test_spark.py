"""Oracle tests: queries on Spark that are a DataFrame or a stream themselves, which stops and goes on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conformance.subscriptions.questions import COMMON, QUERIES, QUESTIONS, ROWS
from engines.spark.streams import Line, lines, read_batches, run_stream, run_to_files, split, trades, write_batches
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import skyband as sb

pytestmark = pytest.mark.spark

TIME, EACH_ARRIVAL = QUESTIONS["time"].options, QUESTIONS["each arrival"].options


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_batches(tmp_path_factory.mktemp("subscriptions") / "input", split(trades(ROWS), 3))


def test_queries_may_be_a_dataframe(spark: SparkSession, folder: Path) -> None:
    expected = QUESTIONS["time"].expected
    queries = spark.createDataFrame(QUERIES)
    answer = sb.top_k(spark.read.parquet(str(folder)), **{**TIME, "for_each": queries}).toArrow()
    assert answer.column_names == expected.column_names
    assert sorted(lines(answer), key=str) == sorted(lines(expected), key=str)
    assert answer.num_rows >= 100


def test_a_statement_and_what_is_refused(spark: SparkSession, folder: Path) -> None:
    rows = spark.read.parquet(str(folder))
    text = """SELECT seq FROM trades t [WINDOW 50 ROWS EVERY 50 ROWS ORDER BY seq], people q
              ORDER BY abs(t.price - q.price) LIMIT 2 BY q.id"""
    people = spark.createDataFrame([("a", 1.0), ("b", 9.0)], "id string, price double")
    assert sb.sql(text, trades=rows, people=people).count() == 2 * 2 * (ROWS // 50)
    with pytest.raises(sb.InvalidQuery, match="Spark has no arrival order"):
        sb.top_k(rows, **COMMON, window=sb.sliding(30))
    with pytest.raises(sb.InvalidQuery, match="The queries are a Spark DataFrame, but the rows are not"):
        sb.top_k(trades(ROWS), **{**COMMON, "for_each": people}, window=sb.sliding(30))
    stream = read_batches(spark, folder)
    with pytest.raises(sb.InvalidQuery, match="says in the column '_change_type'"):
        sb.top_k(stream, **{**COMMON, "for_each": stream}, window=sb.sliding(30, order="seq"))
    changes = stream.withColumn("_change_type", sf.lit("insert"))
    with pytest.raises(sb.InvalidQuery, match="their order is unknown"):
        sb.top_k(rows, **{**COMMON, "k": 1, "for_each": changes}, window=sb.sliding(30, order="seq"))
    with pytest.raises(sb.InvalidQuery, match="has a watermark on 'ts'"):
        sb.top_k(stream, **{**COMMON, "for_each": changes.withWatermark("ts", "1 second")}, window=sb.sliding(30))


def changes(*changes: tuple[str, str, float | None, int | None, int]) -> pa.Table:
    names = ["_change_type", "id", "price", "k", "_commit_version"]
    types = [pa.string(), pa.string(), pa.float64(), pa.int64(), pa.int64()]
    columns = zip(*changes, strict=True) if changes else [[]] * len(names)
    table = pa.table([pa.array(list(column), t) for column, t in zip(columns, types, strict=True)], names)
    same = {"symbol": "S1", "often": "10 seconds"}
    for name, value in same.items():
        table = table.append_column(name, pa.array([value] * len(changes), pa.string()))
    return table


# One table for each micro-batch.
CHANGES = [
    changes(*(("insert", name, 7.0 * i, i % 3 + 1, 1) for i, name in enumerate("abcdef"))),
    changes(
        ("delete", "a", None, None, 3),
        ("insert", "a", 11.0, 2, 2),  # of an earlier version, so it is gone again
        ("insert", "g", 11.0, 2, 2),
        ("delete", "nobody", None, None, 3),
    ),
    changes(),
    changes(
        ("update_preimage", "b", 7.0, 2, 4),
        ("update_postimage", "b", 30.0, 1, 4),
        ("insert", "h", 5.0, 0, 4),  # cannot be: k is 0
        ("what?", "c", 5.0, 1, 4),
    ),
]


def driven(options: dict[str, Any], rows: Sequence[pa.Table]) -> list[Line]:
    """What the embedded engine says, told what came in each micro-batch: first the queries, then the rows."""
    queries = changes().drop_columns(["_change_type", "_commit_version"])
    asked = {name: option for name, option in options.items() if name != "for_each"}
    session = sb.TopKForEach(queries=queries, **asked).open(rows[0].schema)
    said = []
    for table, changed in zip(rows, CHANGES, strict=True):
        in_order = changed.sort_by("_commit_version")
        said += [session.change(in_order, set_aside=True), session.push(table)]
    assert session.stats().queries_refused == 2
    return sorted((line for answer in said for line in lines(answer)), key=str)


def test_queries_come_and_go_and_the_stream_stops_and_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    text = """SELECT * FROM rows [WINDOW 20 SECONDS EVERY q.often DOWN TO 5 SECONDS ON ts], people q
              WHERE rows.symbol <> q.symbol ORDER BY abs(rows.price - q.price) LIMIT q.k BY q.id"""
    rows = split(trades(ROWS), len(CHANGES))
    sources = {"rows": rows, "changes": CHANGES}
    for begin, end in ((0, 2), (2, 4)):
        for name, tables in sources.items():
            write_batches(tmp_path / name, tables[begin:end], first=begin)
        stream, changed = (read_batches(spark, tmp_path / name) for name in sources)
        run_to_files(sb.sql(text, rows=stream, people=changed), tmp_path)
    written = lines(spark.read.parquet(str(tmp_path / "answers")).toArrow())
    expected = driven(TIME, rows)
    assert sorted(written, key=str) == expected
    assert {line[0] for line in expected} == set("abcdefg")


def test_queries_that_come_see_what_is_in_the_window(spark: SparkSession, tmp_path: Path) -> None:
    options = {**EACH_ARRIVAL, "backfill": True}
    rows = split(trades(100), len(CHANGES))
    folder, changed = write_batches(tmp_path / "rows", rows), write_batches(tmp_path / "changes", CHANGES)
    outcome = run_stream(
        spark, folder, lambda df: sb.top_k(df, **{**options, "for_each": read_batches(spark, changed)}), mode="update"
    )
    assert sorted(outcome.lines, key=str) == driven(options, rows)
    assert outcome.observed("queries_refused") == 2
    assert outcome.observed("rows_in") == 100


def test_workers_know_the_functions_that_a_score_calls(spark: SparkSession) -> None:
    sb.function("twice", lambda value: 2 * value)
    rows = pa.table({"t": range(40), "x": [float(i % 7) for i in range(40)]})
    window = sb.sliding(20, every=10, on="t")
    for ask, asked in (
        (sb.top_k, {"k": 1, "by": "twice(x) - q.price", "window": window, "for_each": QUERIES.slice(0, 2)}),
        (sb.top_k_pairs, {"k": 1, "by": "twice(a.x) - b.x", "window": window}),
    ):
        told = ask(spark.createDataFrame(rows.to_pandas()), **asked).toArrow().to_pylist()
        expected = ask(rows, **asked).to_pylist()
        assert sorted(map(str, told)) == sorted(map(str, expected))
        assert told
