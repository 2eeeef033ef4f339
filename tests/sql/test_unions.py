"""Example and oracle tests: UNION ALL makes one input of several, on both engines."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import skyband as sb

A = pa.table({"t": [0, 2, 4, 6], "x": [1, 2, 3, None], "g": ["a", None, "a", "b"]})
B = pa.table({"T": [1, 3, 5, 7], "y": [1.5, 9.5, None, 0.5], "g": ["x", "y", "x", "y"]})
EMPTY = A.slice(0, 0)
BOTH = "SELECT t, x, g FROM a UNION ALL SELECT t, y, g FROM b"
ASKED = f"SELECT t, g FROM ({BOTH}) AS u [WINDOW 4 EVERY 2 ON t] ORDER BY x DESC LIMIT 2"


def lines(answer: pa.Table) -> list[tuple[object, ...]]:
    return sorted((tuple(row.values()) for row in answer.to_pylist()), key=repr)


def test_plain_rows_are_those_of_duckdb() -> None:
    a, b = A, B
    expected = duckdb.sql(BOTH).fetchall()
    assert sorted(map(repr, lines(sb.sql(BOTH, a=a, b=b)))) == sorted(map(repr, expected))


TWICE = "SELECT t, x FROM a UNION ALL SELECT t, t FROM b UNION ALL SELECT a.t, c.t FROM a JOIN a c ON a.g = c.g"


def test_only_the_first_part_names_columns() -> None:
    a, b = A, B
    assert sorted(map(repr, lines(sb.sql(TWICE, a=a, b=b)))) == sorted(map(repr, duckdb.sql(TWICE).fetchall()))
    with pytest.raises(sb.InvalidSql, match="Two columns of 'the answer' are called 't'"):
        sb.sql("SELECT t, t FROM b UNION ALL SELECT t, x FROM a", a=a, b=b)


def test_a_union_is_the_same_as_its_rows_in_one_table() -> None:
    whole = pa.table(
        {"t": range(8), "x": [1, 1.5, 2, 9.5, 3, None, None, 0.5], "g": ["a", "x", None, "y", "a", "x", "b", "y"]}
    )
    expected = sb.sql("SELECT t, g FROM w [WINDOW 4 EVERY 2 ON t] ORDER BY x DESC LIMIT 2", w=whole)
    assert sb.sql(ASKED, a=A, b=B).equals(expected)
    assert sb.sql(ASKED.replace("FROM b", "FROM b UNION ALL SELECT * FROM none"), a=A, b=B, none=EMPTY).equals(expected)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (pa.array(["a"]), pa.array(["b"], pa.large_string()), pa.large_string()),
        (pa.array(["a"]), pa.array(["b"]).dictionary_encode(), pa.string()),
        (pa.array([1], pa.timestamp("us")), pa.array([2], pa.timestamp("ns")), pa.timestamp("ns")),
        (pa.array([Decimal("1.10")]), pa.array([Decimal("10.234")]), pa.decimal128(5, 3)),
        (pa.array([1], pa.int8()), pa.array([200], pa.uint8()), pa.int16()),
        (pa.array([2**53 + 1]), pa.array([1.5]), pa.float64()),
        (pa.array([2**53 + 1]), pa.array([2**64 - 1], pa.uint64()), pa.decimal128(20, 0)),
        (pa.array([-1], pa.int8()), pa.array([2**64 - 1], pa.uint64()), pa.decimal128(20, 0)),
        (pa.array([None], pa.null()), pa.array([3]), pa.int64()),
    ],
)
def test_types_that_differ_have_one_that_holds_both(first: pa.Array, second: pa.Array, expected: pa.DataType) -> None:
    for x, y in ((first, second), (second, first)):
        found = sb.sql("SELECT v FROM p UNION ALL SELECT v FROM q", p=pa.table({"v": x}), q=pa.table({"v": y}))
        assert found.schema.field("v").type == expected
        assert found["v"].to_pylist() == [*_plain(x, expected), *_plain(y, expected)]


def _plain(values: pa.Array, expected: pa.DataType) -> list[object]:
    plain = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
    return plain.cast(expected, safe=False).to_pylist()  # type: ignore[no-any-return]


def test_names_in_with_are_those_around_the_union() -> None:
    statement = (
        "WITH a AS (SELECT t, x * 2 AS x FROM a), both_of(at, v) AS (WITH c AS (SELECT * FROM a WHERE x > 2) "
        "SELECT * FROM c UNION ALL (SELECT t, y FROM b)) SELECT at, v FROM both_of WHERE v > 4"
    )
    assert lines(sb.sql(statement, a=A, b=B)) == [(3, 9.5), (4, 6.0)]


def test_an_input_may_be_read_more_than_once() -> None:
    twice = "SELECT COUNT(*) AS n FROM (SELECT t FROM a UNION ALL SELECT t FROM a) AS u [WINDOW 8 EVERY 8 ON t]"
    assert sb.sql(twice, a=A)["n"].to_pylist() == [8]


def test_streams_in_this_process_are_refused_by_name() -> None:
    with pytest.raises(sb.InvalidInput, match=r"only tables: the order of the rows of 'a \+ b' is unknown"):
        sb.sql(ASKED, a=A.to_reader(), b=B)


def test_several_statements_and_a_started_one() -> None:
    answers = sb.run_all({"one": ASKED, "rows": BOTH, "other": "SELECT t FROM a"}, a=A, b=B)
    assert answers["one"].equals(sb.sql(ASKED, a=A, b=B))
    assert answers["rows"].num_rows == 8
    assert answers["other"].num_rows == 4


@pytest.mark.spark
def test_spark_gives_the_same(spark: SparkSession) -> None:
    a, b = spark.createDataFrame(A), spark.createDataFrame(B)
    assert lines(sb.sql(ASKED, a=a, b=b).toArrow()) == lines(sb.sql(ASKED, a=A, b=B))
    for statement in (BOTH, TWICE):
        assert lines(sb.sql(statement, a=a, b=b).toArrow()) == lines(sb.sql(statement, a=A, b=B))


@pytest.mark.spark
def test_streams_on_spark_are_put_together(spark: SparkSession, tmp_path: Path) -> None:
    for name, rows in (("a", A), ("b", B)):
        spark.createDataFrame(rows).coalesce(1).write.parquet(str(tmp_path / name))
    streams = {
        name: spark.readStream.schema(spark.read.parquet(str(tmp_path / name)).schema).parquet(str(tmp_path / name))
        for name in ("a", "b")
    }
    query = (
        sb.sql(ASKED + " EMIT CHANGES", **streams)
        .writeStream.format("memory")
        .queryName("united")
        .outputMode("update")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    shown = {(row.t, row.g) for row in spark.table("united").collect()}
    assert {(3, "y"), (2, None)} <= shown
