"""Oracle tests: the questions of Nexmark that can be asked, compared with DuckDB; plain rows on both engines."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from sql.nexmark import ASKED, CANNOT
from sql.test_statements_duckdb import ordered
from sql.test_values import same

import skyband as sb


def tables(seed: int = 3) -> dict[str, pa.Table]:
    chance = random.Random(seed)
    dense = [datetime(2026, 3, 1, 23, 59) + timedelta(milliseconds=700 * number) for number in range(240)]
    bids = {
        "auction": [chance.randrange(12) for _ in dense],
        "bidder": [chance.randrange(9) for _ in dense],
        "price": pa.array([None if chance.random() < 0.05 else p for p in chance.sample(range(10, 3_000), len(dense))]),
        "channel": chance.choices(["Apple", "google", "Facebook", "channel-7", None], k=len(dense)),
        "url": chance.choices(
            ["https://a.b/c/d/e/item.htm?query=1&channel_id=77", "https://a.b/x", "&channel_id=5&z=1", "", None],
            k=len(dense),
        ),
        "date_time": pa.array(dense, pa.timestamp("us")),
        "extra": ["".join(chance.choices("abcc", k=5)) for _ in dense],
    }
    people = {"id": list(range(40)), "name": [f"n{number % 7}" for number in range(40)]}
    people |= {"date_time": dense[:200:5], "state": chance.choices(["OR", "ID", "CA", None], k=40)}
    auctions = {"id": list(range(60)), "seller": chance.choices(range(40), k=60), "date_time": dense[::4]}
    auctions["category"] = chance.choices([10, 11, None], k=60)
    auctions["expires"] = [moment + timedelta(seconds=chance.randrange(5, 120)) for moment in dense[::4]]
    side = pa.table({"key": range(0, 12, 2), "value": [f"v{number}" for number in range(6)]})
    return {"bid": pa.table(bids), "person": pa.table(people), "auction": pa.table(auctions), "side": side}


TABLES = tables()


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


def test_every_question_of_the_suite_is_listed() -> None:
    numbers = [*range(23), *range(101, 107)]
    assert sorted([*ASKED, *CANNOT], key=lambda name: int(name[1:])) == [f"q{number}" for number in numbers]


@pytest.mark.parametrize("name", ASKED)
def test_a_question_is_answered_as_duckdb_answers_it(name: str) -> None:
    asked, connection = ASKED[name], duckdb.connect()
    for called, table in TABLES.items():
        connection.register(called, table)
    answer = sb.sql(asked.ours, **{one: table for one, table in TABLES.items() if one in asked.ours})
    if asked.last_window:
        ends = answer["window_end"].to_pylist()
        answer = answer.filter(pa.array([end == max(ends) for end in ends])).remove_column(0)
    expected = ordered(connection.execute(asked.duckdb).fetchall())
    found = ordered(rows(answer))
    assert found
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert all(map(same, one, other)), (one, other)


PLAIN = [name for name, asked in ASKED.items() if "window" not in asked.ours.lower()]


def test_plain_rows_come_as_they_were_given() -> None:
    statement, bids = ASKED["q2"].ours, TABLES["bid"]
    whole = sb.sql(statement, bid=bids)
    assert sb.sql(statement, bid=bids.to_reader(max_chunksize=7)).read_all().equals(whole)
    assert sb.sql(statement, bid=bids.to_pandas()).equals(whole.to_pandas())
    assert sb.run_all({"a": statement}, bid=bids)["a"].equals(whole)
    assert sb.sql("SELECT * FROM bid", bid=bids).equals(bids)


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("EXPLAIN SELECT price FROM bid", "neither ranks nor groups"),
        ("SELECT price FROM bid EMIT CHANGES", "There is no ORDER BY"),
        ("SELECT price, PRICE FROM bid", "Two columns of 'the answer' are called 'PRICE'"),
        ("SELECT price FROM bid WHERE prise > 3", "Did you mean 'price'"),
        ("SELECT price FROM bid UNION SELECT price FROM bid", "UNION drops duplicates"),
    ],
)
def test_what_is_no_plain_row_is_refused(statement: str, why: str) -> None:
    with pytest.raises(sb.InvalidSql, match=why):
        sb.sql(statement, bid=TABLES["bid"])


@pytest.mark.spark
def test_plain_rows_are_the_same_on_spark(spark: Any) -> None:
    bids = TABLES["bid"].set_column(5, "date_time", TABLES["bid"]["date_time"].cast(pa.timestamp("us", "UTC")))
    df = spark.createDataFrame(bids)
    for name in PLAIN:
        here = {"bid": bids, "side": TABLES["side"]}
        there = {"bid": df, "side": spark.createDataFrame(TABLES["side"])}
        expected, answer = sb.sql(ASKED[name].ours, **here), sb.sql(ASKED[name].ours, **there).toArrow()
        assert answer.column_names == expected.column_names
        found, known = ([_utc(row) for row in rows(table)] for table in (answer, expected))
        assert (sorted(found, key=str) == sorted(known, key=str)) if "JOIN" in ASKED[name].ours else found == known, (
            name
        )


def _utc(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(value.astimezone(UTC) if isinstance(value, datetime) else value for value in row)
