"""Oracle tests: the rows of a join of windows, as DuckDB has them, window by window; and the same on Spark."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from sql.test_lookups import check_same
from sql.test_statements_duckdb import ordered

import skyband as sb

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAN = float("nan")


def tables(seed: int, rows: int = 40) -> dict[str, pa.Table]:
    """Streams with nulls, repeated rows, NaN, and times that come twice; and a table."""
    chance = random.Random(seed)

    def some(values: list[Any]) -> pa.Array:
        return pa.array([None if chance.random() < 0.1 else chance.choice(values) for _ in range(rows)])

    def times() -> list[int]:
        return sorted(chance.randrange(40) for _ in range(rows))

    return {
        "a": pa.table({"t": times(), "k": some([1, 2, 3, 4]), "s": some(["x", "y", "z"]), "f": some([1.5, NAN, -2.0])}),
        "b": pa.table({"t": times(), "k": some([1, 2, 3, 5]), "s": some(["x", "y"]), "n": some([1, 2, 2**60])}),
        "p": pa.table({"s": ["x", "x", "y", None], "name": ["n1", "n2", None, "n4"]}),
    }


# What follows FROM, and the sizes of windows: of a, and of b.
JOINS = [
    ("a.s, b.n", "{a} JOIN {b} ON a.k = b.k", "", (10, 10)),
    ("a.t, a.f, b.t, b.s", "{a} JOIN {b} ON a.k = b.k AND a.s = b.s", "", (10, 5)),
    ("a.t + b.t AS both, COALESCE(a.s, '-') || b.s AS name", "{a}, {b}", "a.k = b.k AND a.t <= b.t", (20, 10)),
    ("b.n, p.name", "{a} JOIN {b} ON a.k = b.k JOIN p ON p.s = b.s", "a.f > 0 OR b.n = 2", (10, 10)),
    ("a.t, b.n, p.name", "{a} JOIN {b} ON a.k = b.k LEFT JOIN p ON p.s = b.s AND p.name <> 'n2'", "", (10, 10)),
    ("a.t, b.t", "{a} JOIN {b} ON a.k = b.k", "b.t BETWEEN a.t AND a.t + 3 AND NOT (a.s = b.s)", (10, 10)),
    ("a.t, b.n", "{a} JOIN {b} ON a.k = b.k", "EXISTS (SELECT 1 FROM p WHERE p.s = a.s)", (10, 10)),
]  # fmt: skip


def statement(what: str, joined: str, where: str, sizes: tuple[int, int]) -> str:
    streams = {name: f"{name} [WINDOW {size} EVERY 5 ON t]" for name, size in zip("ab", sizes, strict=True)}
    return f"SELECT {what} FROM {joined.format(**streams)}{f' WHERE {where}' if where else ''}"


def in_duckdb(what: str, joined: str, where: str, sizes: tuple[int, int], data: dict[str, pa.Table]) -> list[Any]:
    connection = duckdb.connect()
    for name, table in data.items():
        connection.register(name if name == "p" else f"all_{name}", table)
    found = []
    for end in range(5, 80, 5):
        streams = {
            name: f"(SELECT * FROM all_{name} WHERE t >= {end - size} AND t < {end}) AS {name}"
            for name, size in zip("ab", sizes, strict=True)
        }
        text = f"SELECT {what} FROM {joined.format(**streams)}{f' WHERE {where}' if where else ''}"
        found += [(end, *row) for row in connection.execute(text).fetchall()]
    return ordered(found)


def lines(answer: Any) -> list[Any]:
    table = answer.toArrow() if hasattr(answer, "toArrow") else answer
    columns = [column.to_pylist() for column in table.columns]  # two may be called alike
    return ordered(list(zip(*columns, strict=True)))


@pytest.mark.parametrize("asked", JOINS, ids=[each[0] for each in JOINS])
@pytest.mark.parametrize("seed", [1, 2])
def test_every_window_has_the_rows_that_duckdb_has(asked: tuple[Any, ...], seed: int) -> None:
    data = tables(seed)
    expected = in_duckdb(*asked, data)
    assert expected
    check_same(lines(sb.sql(statement(*asked), **data)), expected)
    as_streams = data | {name: data[name].to_reader(max_chunksize=7) for name in "ab"}
    check_same(lines(sb.sql(statement(*asked), **as_streams).read_all()), expected)


def test_no_row_is_shown_where_one_side_is_empty() -> None:
    data = tables(3)
    assert not sb.sql(statement(*JOINS[0]), **(data | {"b": data["b"].slice(0, 0)})).num_rows


def test_explain_says_that_rows_are_counted_groups() -> None:
    said = str(sb.sql(f"EXPLAIN {statement(*JOINS[0])}", **tables(1)))
    assert "COUNT(*) AS count for each" in said
    assert "a join of 2 inputs" in said


@pytest.mark.spark
def test_the_same_on_spark(spark: SparkSession) -> None:
    data = tables(4)
    there = {name: spark.createDataFrame(table) for name, table in data.items()}
    for asked in JOINS:
        check_same(lines(sb.sql(statement(*asked), **there)), in_duckdb(*asked, data))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SELECT a.s FROM a JOIN b ON a.k = b.k WINDOW [10 ON t]", "emits all rows of a join when a window closes"),
        (
            "SELECT a.s FROM a JOIN b ON a.k = b.k WINDOW [10 EVERY 5 ON t] EMIT CHANGES",
            "rows of a join when a window closes",
        ),
        ("SELECT a.s FROM a JOIN b ON a.k < b.k WINDOW [10 EVERY 5 ON t]", "ranks neither pairs of one input"),
        ("SELECT a.s FROM a JOIN b ON a.k = b.s WINDOW [10 EVERY 5 ON t]", "must have the same type"),
        ("SELECT a.s FROM a JOIN b ON a.k = b.k AND a.s + b.n > 3 WINDOW [10 EVERY 5 ON t]", "s"),
    ],
)
def test_what_is_no_row_of_a_join_is_refused(text: str, why: str) -> None:
    with pytest.raises(sb.InvalidSql, match=why):
        sb.sql(text, **tables(1))
