"""Oracle and example tests: several sort keys, strings and times rank rows as DuckDB has them, batch by batch."""

from __future__ import annotations

import os
import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sql.test_statements_duckdb import SIZE, WINDOWED, found, ordered, trades

import skyband as sb

KEYS = ("g", "half", "i", "x", "exact", "moment", "x + i", "CASE WHEN half THEN g ELSE 'm' END", "-i")


def rows(chance: random.Random) -> pa.Table:
    """The same with a decimal and a time."""
    table = trades(chance)
    days = [None if chance.random() < 0.1 else chance.randrange(4) for _ in range(len(table))]
    times = [None if day is None else datetime(2026, 3, 1) + timedelta(days=day) for day in days]
    decimals = pa.array([None if day is None else day * 10 - 7 for day in days], pa.decimal128(9, 2))
    return table.append_column("moment", pa.array(times, pa.timestamp("us"))).append_column("exact", decimals)


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
    monkeypatch.setattr("skyband.core.encoding.scores.FEWEST", 1)
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
        ({"by": ["x ASC"], "ascending": True}, "has its own direction"),
        ({"by": ["many"]}, r"Rows cannot be ordered by 'many', which is list<item: int64>"),
        ({"by": ["x", "nothing"]}, "nothing"),
    ],
)
def test_what_is_no_sort_key_is_refused(options: dict[str, Any], said: str) -> None:
    table = pa.table({"x": [1], "many": [[1, 2]]})
    with pytest.raises(sb.SkybandError, match=said):
        sb.top_k(table, k=1, window=sb.sliding(1, every=1), **options)


SPARK = (
    "SELECT id FROM trades [WINDOW 20 EVERY 10 ON t] ORDER BY g, x DESC NULLS FIRST, id LIMIT 3",
    "SELECT id, g FROM trades [WINDOW 20 EVERY 10 ON t] ORDER BY moment DESC NULLS LAST, d, id LIMIT 2 BY g",
    "SELECT id FROM trades [WINDOW 20 ROWS EVERY 10 ROWS ORDER BY id] ORDER BY LEFT(g, 1) || 'z' DESC, i, id LIMIT 3",
)


@pytest.mark.spark
def test_rows_are_ranked_the_same_on_spark(spark: Any) -> None:
    table = rows(random.Random(5))
    df = spark.createDataFrame(table)
    for statement in SPARK:
        expected, answer = sb.sql(statement, trades=table), sb.sql(statement, trades=df).toArrow()
        assert answer.column_names == expected.column_names, statement
        assert ordered(_values(answer)) == ordered(_values(expected)), statement


@pytest.mark.spark
def test_a_stream_is_ranked_by_several_keys(spark: Any, tmp_path: Path) -> None:
    table = rows(random.Random(6)).drop_columns(["moment"])
    times = pa.array(
        [datetime(2026, 3, 1) + timedelta(seconds=t) for t in table["t"].to_pylist()], pa.timestamp("us", "UTC")
    )
    table = table.append_column("at", times)
    for number, part in enumerate((table.slice(0, 30), table.slice(30))):
        pq.write_table(part, tmp_path / f"{number}.parquet")
        os.utime(tmp_path / f"{number}.parquet", (number, number))
    df = spark.createDataFrame(table)
    stream = spark.readStream.schema(df.schema).option("maxFilesPerTrigger", 1).parquet(str(tmp_path))
    statement = "SELECT id FROM trades [WINDOW 20 SECONDS EVERY 10 SECONDS ON at] ORDER BY g, x DESC, id LIMIT 3"
    query = sb.sql(statement, trades=stream).writeStream.format("memory").queryName("keyed").outputMode("append")
    running = query.trigger(availableNow=True).start()
    running.awaitTermination(600)
    answer, expected = spark.table("keyed").toArrow(), sb.sql(statement, trades=table)
    closed = pc.less_equal(expected["window_end"], pc.max(table["at"]))
    assert ordered(_values(answer)) == ordered(_values(expected.filter(closed)))


def _values(table: pa.Table) -> list[tuple[Any, ...]]:
    return [
        tuple(value.replace(tzinfo=None) if isinstance(value, datetime) else value for value in row.values())
        for row in table.to_pylist()
    ]


FLOATS = st.sampled_from([None, float("nan"), 0.0, -0.0, 1.5, -2.0, float("inf"), -float("inf")])


@settings(max_examples=60)
@given(
    st.lists(FLOATS, min_size=1, max_size=8),
    st.sampled_from(["z", "-(-z)"]),
    st.sampled_from(["ASC", "DESC"]),
    st.sampled_from(["", " NULLS FIRST", " NULLS LAST"]),
    st.sampled_from([1, 3, 8]),
)
def test_every_row_shows_its_own_score(values: list[float | None], key: str, way: str, nulls: str, rows: int) -> None:
    """NaN is ranked as null and both zeros are equal, but no row shows the score of another one."""
    table = pa.table({"t": range(len(values)), "z": pa.array(values, pa.float64())})
    query = sb.TopK(k=8, by=[f"{key} {way}{nulls}", "t DESC"], window=sb.tumbling(100, on="t"))
    session = query.open(table.schema)
    parts = [session.push(table.slice(start, rows)) for start in range(0, len(values), rows)]
    answer = pa.concat_tables([*parts, session.finish()])
    shown = [(row["t"], repr(row["score"])) for row in answer.to_pylist()]
    known = [t for t, value in enumerate(values) if value is not None and value == value]
    known.sort(key=lambda t: (values[t] if way == "ASC" else -values[t], -t))  # type: ignore[operator]
    missing = [t for t in reversed(range(len(values))) if t not in known] if nulls else []
    expected = [*missing, *known] if nulls == " NULLS FIRST" else [*known, *missing]
    assert shown == [(t, repr(values[t])) for t in expected]
