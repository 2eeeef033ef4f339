"""Oracle and example tests: several sort keys, strings and times rank rows as DuckDB has them, batch by batch."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from sql.test_statements_duckdb import SIZE, WINDOWED, found, ordered, trades

import skyband as sb
from skyband.core.encoding import order_keys

KEYS = ("g", "half", "i", "x", "d", "moment", "x + i", "CASE WHEN half THEN g ELSE 'm' END", "-i")


def rows(chance: random.Random) -> pa.Table:
    """The same with a decimal and a time."""
    table = trades(chance)
    days = [None if chance.random() < 0.1 else chance.randrange(4) for _ in range(len(table))]
    times = [None if day is None else datetime(2026, 3, 1) + timedelta(days=day) for day in days]
    decimals = pa.array([None if day is None else day * 10 - 7 for day in days], pa.decimal128(9, 2))
    return table.append_column("moment", pa.array(times, pa.timestamp("us"))).append_column("d", decimals)


def asked(chance: random.Random) -> tuple[str, str]:
    """A statement, and DuckDB's."""
    keys = chance.sample(KEYS, chance.randint(1, 3))
    ours, theirs = [], []
    for key in keys:
        way, nulls = chance.choice(["", " ASC", " DESC"]), chance.choice(["", " NULLS FIRST", " NULLS LAST"])
        ours.append(f"{key}{way}{nulls}")
        theirs.append(f"{key}{way}{nulls or (' NULLS LAST' if way == ' DESC' else ' NULLS FIRST')}")
    k, per = chance.randint(1, 4), chance.choice(["", "", "g"])
    statement = f"SELECT id FROM trades [WINDOW {SIZE} EVERY {SIZE} ON t] "
    if chance.random() < 0.5:
        statement += f"ORDER BY {', '.join(ours)} LIMIT {k}{f' BY {per}' if per else ''}"
    else:
        parts = f"PARTITION BY {per} " if per else ""
        statement += f"QUALIFY ROW_NUMBER() OVER ({parts}ORDER BY {', '.join(ours)}) <= {k}"
    numbered = f"ROW_NUMBER() OVER (PARTITION BY w{', g' if per else ''} ORDER BY {', '.join(theirs)}, t DESC)"
    ranked = "TRUE" if "NULLS" in ours[0] else f"({keys[0]}) IS NOT NULL"
    inner = f"SELECT w, {numbered} AS n, id FROM {WINDOWED.format('trades')} WHERE {ranked}"
    return statement, f"SELECT w, n, id FROM ({inner}) WHERE n <= {k}"


@pytest.mark.parametrize("seed", range(4))
def test_rows_are_ranked_as_duckdb_ranks_them(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order_keys, "FEWEST", 1)
    chance = random.Random(seed)
    table = rows(chance)
    connection = duckdb.connect()
    connection.register("trades", table)
    for _ in range(15):
        statement, theirs = asked(chance)
        reader = pa.RecordBatchReader.from_batches(
            table.schema, table.to_batches(max_chunksize=chance.choice([1, 7, 90]))
        )
        answer = sb.sql(statement, trades=reader).read_all()
        assert ordered(found(answer)) == ordered(connection.execute(theirs).fetchall()), statement


@pytest.mark.parametrize("per", [(), "g"])
def test_stopping_anywhere_changes_nothing(per: Any) -> None:
    table = rows(random.Random(3))
    query = sb.TopK(k=3, by=["g ASC NULLS LAST", "x", "moment ASC"], window=sb.sliding(20, every=5, on="t"), per=per)
    assert query.by == ("g ASC NULLS LAST", "x", "moment ASC")
    straight, session, parts = query.open(table.schema), query.open(table.schema), []
    for batch in table.to_batches(max_chunksize=9):
        parts.append(session.push(batch))
        assert parts[-1].equals(straight.push(batch))
        session = query.open(table.schema, session.snapshot())
    assert session.finish().equals(straight.finish())


def test_the_score_is_the_first_key_in_its_own_type() -> None:
    table = pa.table({"t": [0, 1, 2], "name": ["b", None, "a"], "n": [1, 2, 3]})
    best = "SELECT n FROM rows [WINDOW 3 EVERY 3 ON t] ORDER BY {} LIMIT 3"
    for order, scores, numbers in (
        ("name", ["a", "b"], [3, 1]),
        ("name DESC", ["b", "a"], [1, 3]),
        ("name NULLS FIRST", [None, "a", "b"], [2, 3, 1]),
        ("name NULLS LAST, n", ["a", "b", None], [3, 1, 2]),
    ):
        answer = sb.sql(best.format(order), rows=table)
        assert answer.schema.field("score").type == pa.string()
        assert (answer["score"].to_pylist(), answer["n"].to_pylist()) == (scores, numbers), order


def test_a_column_that_ranks_is_shown_by_its_name_where_it_is_asked_for() -> None:
    table = pa.table({"t": [0, 1], "price": [1.5, 2.5]})
    best = "SELECT {} FROM rows [WINDOW 2 EVERY 2 ON t] ORDER BY price DESC LIMIT 1"
    assert sb.sql(best.format("price"), rows=table).to_pylist() == [
        {"window_start": 0, "window_end": 2, "rank": 1, "score": 2.5, "price": 2.5}
    ]
    assert "price" not in sb.sql(best.format("*"), rows=table).column_names


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"by": []}, "by names no sort key"),
        ({"by": ["x", 3]}, "A sort key is a text such as 'price'"),
        ({"by": ["x ASC"], "ascending": True}, "each says its own way"),
        ({"by": ["many"]}, r"Rows cannot be ordered by 'many', which is list<item: int64>"),
        ({"by": ["x", "nothing"]}, "nothing"),
    ],
)
def test_what_is_no_sort_key_is_refused(options: dict[str, Any], said: str) -> None:
    table = pa.table({"x": [1], "many": [[1, 2]]})
    with pytest.raises(sb.SkybandError, match=said):
        sb.top_k(table, k=1, window=sb.sliding(1, every=1), **options)


@pytest.mark.spark
def test_on_spark_several_sort_keys_are_refused_by_name(spark: Any) -> None:
    statement = "SELECT id FROM rows [WINDOW 2 EVERY 2 ON t] ORDER BY name, id LIMIT 1"
    df = spark.createDataFrame([(1, 0, "a")], "id long, t long, name string")
    with pytest.raises(sb.InvalidQuery, match="On Spark rows are ranked by one number, not by name ASC, id ASC"):
        sb.sql(statement, rows=df)
