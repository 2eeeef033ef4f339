"""Example tests: what each name of a statement means, and statements that say the same in other words."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import skyband as sb

TRADES = pa.table(
    {
        "id": [0, 1, 2, 3, 4, 5],
        "t": [0, 1, 2, 3, 4, 5],
        "Symbol": ["OAK", "ELM", "OAK", "FIR", "ELM", None],
        "venue": ["x", "y", "y", "x", "x", "y"],
        "price": [10.0, 20.0, 90.0, 5.0, None, 40.0],
        "volume": [1, 2, 3, 4, 5, 6],
    }
)
BIDS = pa.table({"id": [0, 0, 3, 4], "t": [1, 2, 3, 4], "price": [7, 8, 9, 10]})
WINDOW = "10 EVERY 10 ON t"


def rows(statement: str, *columns: str) -> list[tuple[Any, ...]]:
    statement = statement.replace("[w]", f"[WINDOW {WINDOW}]").replace("[W]", f"WINDOW [{WINDOW}]")
    answer = sb.sql(statement, trades=TRADES, bids=BIDS)
    return [tuple(row[name] for name in columns or answer.column_names[1:]) for row in answer.to_pylist()]


def test_a_query_in_with_may_give_a_name_a_new_meaning() -> None:
    again = "WITH c AS (SELECT id, t, 99 - price AS price FROM trades) SELECT id FROM c [w] ORDER BY price DESC LIMIT 1"
    assert rows(again, "id", "score") == [(3, 94.0)]
    twice = f"WITH b AS (SELECT *, price * 2 AS p FROM trades), {again.removeprefix('WITH ').replace('trades', 'b')}"
    assert rows(twice.replace("99 - price", "99 - p"), "id", "score") == [(3, 89.0)]


def test_a_query_in_with_has_the_columns_it_shows_and_no_others() -> None:
    with pytest.raises(sb.InvalidSql, match="There is no column 'volume'"):
        rows("WITH c AS (SELECT id, t, price FROM trades) SELECT volume FROM c [w] ORDER BY price LIMIT 1")
    with pytest.raises(sb.InvalidSql, match="There is no column 't'"):
        rows("WITH c AS (SELECT id, price FROM trades) SELECT id FROM c [w] ORDER BY price LIMIT 1")


def test_a_window_measures_the_column_that_with_computes() -> None:
    statement = "WITH c AS (SELECT id, t * 4 AS t, price FROM trades) SELECT id FROM c [w] ORDER BY price DESC LIMIT 1"
    assert rows(statement, "window_end", "id") == [(10, 2), (20, 3), (30, 5)]


def test_a_window_inside_with_keeps_its_column_whatever_is_shown() -> None:
    inside = "WITH c AS (SELECT id, price, 'x' AS t FROM trades [w]) SELECT id, t FROM c ORDER BY price DESC LIMIT 1"
    assert rows(inside, "id", "t") == [(2, "x")]


def test_with_may_name_its_columns_and_a_query_may_stand_in_from() -> None:
    assert rows("WITH c(x, y, t) AS (SELECT id, price, t FROM trades) SELECT x FROM c [w] ORDER BY y LIMIT 1", "x") == [
        (3,)
    ]
    assert rows(
        "SELECT id FROM (SELECT * FROM trades WHERE volume < 3) AS s [w] ORDER BY price DESC LIMIT 1", "id"
    ) == [(1,)]
    nested = "SELECT id FROM (SELECT * FROM (SELECT id, t, price AS p FROM trades) AS a) AS b [w] ORDER BY p LIMIT 1"
    assert rows(nested, "id") == [(3,)]


def test_names_of_aggregates_in_order_by_and_having() -> None:
    grouped = "SELECT symbol, SUM(price) AS price FROM trades [w] WHERE symbol IS NOT NULL GROUP BY symbol"
    assert rows(f"{grouped} HAVING price > 15", "price") == [(20.0,), (100.0,)]
    assert rows(f"{grouped} HAVING SUM(price) > 15 ORDER BY price DESC LIMIT 1", "price") == [(100.0,)]
    assert rows(f"{grouped} ORDER BY SUM(price) LIMIT 1", "symbol") == [("FIR",)]
    assert rows(f"{grouped} ORDER BY 2 DESC LIMIT 1", "symbol") == [("OAK",)]


def test_in_group_by_and_inside_over_a_column_comes_before_a_name() -> None:
    with pytest.raises(sb.InvalidSql, match="venue is neither grouped by nor aggregated"):
        rows("SELECT venue AS symbol, COUNT(*) AS n FROM trades [w] GROUP BY symbol")
    over = "SELECT id, 0 - price AS price FROM trades [w] QUALIFY ROW_NUMBER() OVER (ORDER BY price DESC) = 1"
    assert rows(over, "id") == [(2,)]
    assert rows("SELECT id, 0 - price AS price FROM trades [w] ORDER BY price DESC LIMIT 1", "id") == [(3,)]


def test_order_by_a_number_is_by_a_column() -> None:
    assert rows("SELECT id, price AS p FROM trades [w] ORDER BY 2 DESC LIMIT 1", "id") == [(2,)]
    assert rows("SELECT venue, COUNT(*) AS n FROM trades [w] GROUP BY 1") == [("x", 3), ("y", 3)]
    with pytest.raises(sb.InvalidSql, match="There is no column 3: the SELECT list has 2"):
        rows("SELECT id, price AS p FROM trades [w] ORDER BY 3 LIMIT 1")


def test_names_are_found_in_any_case() -> None:
    said = "SELECT tr.ID, SYMBOL S FROM Trades TR [WINDOW 9 EVERY 9 ON T] WHERE Tr.Volume < 3 ORDER BY PRICE LIMIT 1"
    assert rows(said, "ID", "S") == [(0, "OAK")]
    assert rows("SELECT Venue, MAX(Price) AS Top FROM trades [w] GROUP BY VENUE HAVING TOP > 20", "Venue") == [("y",)]
    assert rows(
        "WITH C AS (SELECT ID AS Key, T, PRICE FROM trades) SELECT kEY FROM c [w] ORDER BY c.price LIMIT 1"
    ) == [(10, 1, 5.0, 3)]


def test_columns_that_differ_in_case_alone_are_told_apart_as_they_are_written() -> None:
    both = pa.table({"t": [0, 1], "x": [1, 2], "X": [4, 3]})
    statement = "SELECT t FROM both [WINDOW 2 EVERY 2 ON t] ORDER BY {} DESC LIMIT 1"
    assert sb.sql(statement.format("x"), both=both)["t"].to_pylist() == [1]
    assert sb.sql(statement.format("X"), both=both)["t"].to_pylist() == [0]
    mixed = pa.table({"t": [0, 1], "pX": [1, 2], "Px": [4, 3]})
    with pytest.raises(sb.InvalidSql, match="'px' may be pX or Px"):
        sb.sql(statement.format("px"), both=mixed)


def test_groups_by_columns_of_one_name() -> None:
    joined = "SELECT {} FROM trades a, bids b WHERE a.id = b.id GROUP BY a.id, b.id {} [W]"
    assert rows(joined.format("a.id AS x, b.id AS y, COUNT(*) AS n", "")) == [(0, 0, 2), (3, 3, 1), (4, 4, 1)]
    assert rows(joined.format("b.id, SUM(b.price) AS s", "HAVING a.id > 0 ORDER BY b.id DESC LIMIT 1"), "id", "s") == [
        (4, 10)
    ]


def test_groups_by_an_expression() -> None:
    halves = "SELECT FLOOR(volume / 4) AS half, COUNT(*) AS n FROM trades [w] GROUP BY {}"
    for written in ("FLOOR(volume / 4)", "half", "1"):
        assert rows(halves.format(written)) == [(0.0, 3), (1.0, 3)]
    kinds = "SELECT CASE WHEN volume > 4 THEN 'many' ELSE venue END AS kind, MAX(id) AS m FROM trades [w] GROUP BY kind"
    assert rows(kinds) == [("many", 5), ("x", 3), ("y", 2)]
    best = "SELECT id FROM trades [w] WHERE price > 0 ORDER BY price DESC LIMIT 1 BY volume % 2"
    assert sorted(rows(best, "id")) == [(2,), (5,)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT COUNT(1) AS n FROM trades [w]", "SELECT COUNT(*) AS n FROM trades [w]"),
        (
            "SELECT id FROM trades [w] ORDER BY price DESC FETCH FIRST 2 ROWS ONLY",
            "SELECT id FROM trades [w] ORDER BY price DESC LIMIT 2",
        ),
        (
            "SELECT id FROM trades [w] QUALIFY 2 >= ROW_NUMBER() OVER (ORDER BY price DESC)",
            "SELECT id FROM trades [w] ORDER BY price DESC LIMIT 2",
        ),
        (
            "SELECT id, COUNT(*) AS n FROM trades a JOIN bids b USING (id) GROUP BY id [W]",
            "SELECT a.id, COUNT(*) AS n FROM trades a, bids b WHERE (a.id = b.id) AND (a.id = b.id) GROUP BY a.id [W]",
        ),
        (
            "SELECT a.id, b.id FROM trades a JOIN trades b USING (venue) WHERE a.id < b.id ORDER BY b.id LIMIT 3 [W]",
            "SELECT a.id, b.id FROM trades a, trades b WHERE a.id<b.id AND a.venue=b.venue ORDER BY b.id LIMIT 3 [W]",
        ),
        (
            "SELECT venue, COUNT(*) FILTER (WHERE price > 9) AS n FROM trades [w] GROUP BY 1",
            "SELECT venue, SUM(CASE WHEN price > 9 THEN 1 ELSE 0 END) AS n FROM trades [w] GROUP BY 1",
        ),
        (
            "SELECT venue, SUM(volume) FILTER (WHERE id < 4) AS s FROM trades [w] GROUP BY 1",
            "SELECT venue, SUM(CASE WHEN id < 4 THEN volume END) AS s FROM trades [w] GROUP BY 1",
        ),
        (
            "SELECT id, ROW_NUMBER() OVER (ORDER BY price DESC) AS n FROM trades [w] QUALIFY n <= 2",
            "SELECT id, ROW_NUMBER() OVER (ORDER BY price DESC) AS n FROM trades [w] QUALIFY n < 3",
        ),
        (
            "SELECT price * 2 AS p, p + 1 AS q FROM trades [w] ORDER BY q DESC LIMIT 2",
            "SELECT price * 2 AS p, price * 2 + 1 AS q FROM trades [w] ORDER BY price * 2 + 1 DESC LIMIT 2",
        ),
    ],
)
def test_the_same_in_other_words(one: str, other: str) -> None:
    assert rows(one) == rows(other) != []


def test_an_error_in_a_text_with_carriage_returns_is_shown_in_its_place() -> None:
    with pytest.raises(sb.InvalidSql) as caught:
        sb.sql("SELECT id\r\nFROM trades [WINDOW 10 EVERY 10 ON t]\r\nORDER BY prise LIMIT 1", trades=TRADES)
    assert str(caught.value).split("\n")[1:5] == [
        "  SELECT id",
        "  FROM trades [WINDOW 10 EVERY 10 ON t]",
        "  ORDER BY prise LIMIT 1",
        "           ^",
    ]


def test_a_column_of_the_groups_is_shown_under_every_name_it_is_given() -> None:
    rows = pa.table({"t": [1, 2], "id": [0, 1], "g": ["a", "b"]})
    for asked, names in {
        "g AS v, g AS w, id": ["v", "w", "id"],
        "g, G, id": ["id"],  # the group is there already
        "UPPER(g) AS u, g AS v": ["u", "v"],
    }.items():
        answer = sb.sql(f"SELECT {asked} FROM rows [WINDOW 10 EVERY 10 ON t] ORDER BY id LIMIT 1 BY g", rows=rows)
        assert answer.column_names == ["window_start", "window_end", "g", "rank", "score", *names]
        assert all(answer[name].to_pylist() == answer["g"].to_pylist() for name in names if name in ("v", "w"))


def test_a_star_does_not_leave_out_a_column_that_differs_only_in_case() -> None:
    rows = pa.table({"t": [1, 2], "x": [1, 2], "X": [20, 10]})
    for asked in ("SELECT * FROM rows", "SELECT rows.* FROM rows", "WITH w AS (SELECT * FROM rows) SELECT X FROM w"):
        with pytest.raises(sb.InvalidSql, match="The star stands for 'x' and 'X', which differ only in case"):
            sb.sql(asked, rows=rows)
    assert sb.sql("SELECT x AS a, X AS b FROM rows", rows=rows).to_pylist() == [{"a": 1, "b": 20}, {"a": 2, "b": 10}]
    assert sb.sql("SELECT COUNT(*) AS n FROM rows [WINDOW 9 EVERY 9 ON t]", rows=rows)["n"].to_pylist() == [2]


@pytest.mark.parametrize("word", ["any", "create", "drop", "glob", "grant", "insert", "into", "rlike", "values", "xor"])
def test_words_that_no_query_needs_are_names_as_in_spark(word: str) -> None:
    table = pa.table({word: [1, 2], "x": [3, 5]})
    assert sb.sql(
        f"SELECT {word}, ({word}) AS a, ({word} + x) * 2 AS b FROM t WHERE {word} > 1", t=table
    ).to_pylist() == [{word: 2, "a": 2, "b": 14}]
    ranked = f"SELECT x AS {word}, t.{word} AS y FROM t [WINDOW 2 ROWS EVERY 2 ROWS] ORDER BY t.{word} DESC LIMIT 1"
    assert sb.sql(ranked, t=table).select([word, "y"]).to_pylist() == [{word: 5, "y": 2}]
    grouped = f"SELECT {word}, COUNT(*) AS n FROM t [WINDOW 2 ROWS EVERY 2 ROWS] GROUP BY {word} HAVING MAX({word}) > 1"
    assert sb.sql(grouped, t=table).select([word, "n"]).to_pylist() == [{word: 2, "n": 1}]
