"""Example tests: the best of each group, as streaming engines are asked for them, and what decides between ties."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import skyband as sb

# Of each x the values 1 to 5, and 3 once more, later.
PAIRS = [(x, y) for x in (1, 2, 3) for y in (1, 2, 3, 4, 5)] + [(1, 3), (2, 3), (3, 3)]
POINTS = pa.table({"at": range(18), "x": [x for x, _ in PAIRS], "y": [y for _, y in PAIRS]})
ALL = "points [WINDOW 100 EVERY 100 ON at]"


def rows(statement: str, **inputs: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in sb.sql(statement, **inputs).to_pylist())


def numbered(rank: str, condition: str) -> str:
    return f"SELECT x, y, window_end - 100 AS w FROM (SELECT *, window_end, {rank} AS n FROM {ALL}) WHERE {condition}"


@pytest.mark.parametrize(
    ("rank", "condition", "best"),
    [
        ("ROW_NUMBER() OVER (PARTITION BY x ORDER BY y)", "n <= 3", [(x, y) for x in (1, 2, 3) for y in (1, 2, 3)]),
        (
            "ROW_NUMBER() OVER (PARTITION BY x ORDER BY y)",
            "n <= 3 AND n > 1",
            [(x, y) for x in (1, 2, 3) for y in (2, 3)],
        ),
        (
            "ROW_NUMBER() OVER (PARTITION BY FLOOR(x / 2) ORDER BY 6 - y, x)",
            "n <= 3",
            [(1, 3), (1, 4), (1, 5), (2, 4), (2, 5), (3, 5)],
        ),
        ("RANK() OVER (ORDER BY y)", "n <= 4", [(x, y) for x in (1, 2, 3) for y in (1, 2)]),
        ("DENSE_RANK() OVER (ORDER BY y DESC)", "n = 2", [(1, 4), (2, 4), (3, 4)]),
        ("RANK() OVER (PARTITION BY x ORDER BY y)", "n <= 3", [(x, y) for x in (1, 2, 3) for y in (1, 2, 3, 3)]),
        ("RANK() OVER (PARTITION BY x ORDER BY x)", "n <= 1", sorted(PAIRS)),
    ],
)
def test_the_best_of_each_group(rank: str, condition: str, best: list[tuple[int, int]]) -> None:
    assert rows(numbered(rank, condition), points=POINTS) == [(*pair, 0) for pair in best]


def test_a_column_that_nobody_shows_still_ranks() -> None:
    ranked = f"SELECT ROW_NUMBER() OVER (PARTITION BY x ORDER BY y) AS n FROM {ALL}"
    assert sb.sql(f"SELECT 1 AS one FROM ({ranked}) WHERE n <= 1", points=POINTS)["one"].to_pylist() == [1, 1, 1]
    best = f"SELECT y FROM {ALL} ORDER BY y LIMIT 10"
    assert sb.sql(f"SELECT COUNT(*) AS n FROM ({best})", points=POINTS)["n"].to_pylist() == [10]


SALES = pa.table(
    {
        "minute": [5, 6, 7, 8, 9, 11, 13, 15, 17],
        "price": [4, 4, 2, 2, 5, 2, 1, 3, 6],
        "item": list("ACGBDBEHF"),
        "shop": ["p", "q", "p", "r", "s", "r", "p", "q", "t"],
    }
)


def test_the_best_of_each_window() -> None:
    ranked = "SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY price DESC) AS n FROM {}"
    best = f"SELECT window_end, price, item FROM ({ranked}) WHERE n <= 3"
    assert rows(best.format("TUMBLE(sales, minute, 10)"), sales=SALES) == [
        *((10, 4, "A"), (10, 4, "C"), (10, 5, "D")),
        *((20, 2, "B"), (20, 3, "H"), (20, 6, "F")),
    ]
    summed = "SELECT window_start, window_end, shop, SUM(price) AS price, COUNT(*) AS n FROM TUMBLE(sales, minute, 10) "
    summed += "GROUP BY window_start, window_end, shop"
    number = "ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY price DESC) AS rn"
    best = f"SELECT window_end, price, shop, n FROM (SELECT *, {number} FROM ({summed})) WHERE rn <= 3"
    assert rows(best, sales=SALES) == [
        *((10, 4, "q", 1), (10, 5, "s", 1), (10, 6, "p", 2)),
        *((20, 2, "r", 1), (20, 3, "q", 1), (20, 6, "t", 1)),
    ]


def test_of_equal_rows_the_more_recent_is_best_at_each_moment() -> None:
    table = pa.table({"a": [1, 1, 1], "b": [1, 0, 0], "c": [7, 8, 9]})
    answer = sb.sql("SELECT c FROM t [WINDOW 100 ROWS] ORDER BY b LIMIT 1 BY a", t=table)
    told = list(zip(answer["change"].to_pylist(), answer["c"].to_pylist(), strict=True))
    assert told == [("enter", 7), ("leave", 7), ("enter", 8), ("leave", 8), ("enter", 9)]


def test_a_key_behind_the_first_decides_between_ties() -> None:
    keys = {"pk": [2, 1, 3, 4, 0], "v": [1, 1, 1, 2, 1]}
    best = "SELECT pk FROM t [WINDOW UNTIL NOW EVERY 4 ROWS] ORDER BY {} LIMIT 2"
    first = pa.table({name: values[:4] for name, values in keys.items()})
    assert sb.sql(best.format("v"), t=first)["pk"].to_pylist() == [3, 1]
    assert sb.sql(best.format("v, pk"), t=first)["pk"].to_pylist() == [1, 2]
    every = best.replace("4 ROWS", "5 ROWS")
    assert sb.sql(every.format("v, pk"), t=pa.table(keys))["pk"].to_pylist() == [0, 1]
    ties = "SELECT pk FROM t [WINDOW UNTIL NOW EVERY 5 ROWS] ORDER BY v FETCH FIRST 2 ROWS WITH TIES"
    assert sorted(sb.sql(ties, t=pa.table(keys))["pk"].to_pylist()) == [0, 1, 2, 3]
