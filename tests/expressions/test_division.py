"""Oracle tests: division by zero, in every place where an expression may stand, is the same on both engines.

The rule stands in docs/sql.md: a number divided by zero is infinite, and has its sign; 0 / 0 and x % 0 are null.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import skyband as sb

INF = math.inf
NUMBERS = (1, -1, 0, None, 2)
ZEROS = (0, 0, 0, 0, 1)
ROWS = pa.table(
    {
        "id": range(5),
        "t": range(5),
        "i": pa.array(NUMBERS, pa.int64()),
        "f": pa.array(NUMBERS, pa.float64()),
        "d": pa.array([None if n is None else Decimal(n) for n in NUMBERS], pa.decimal128(10, 2)),
        "iz": pa.array(ZEROS, pa.int64()),
        "fz": pa.array([0.0, -0.0, 0.0, -0.0, 1.0]),
        "dz": pa.array([Decimal(n) for n in ZEROS], pa.decimal128(10, 2)),
    }
)
W = "[WINDOW 8 EVERY 8 ON t]"
QUOTIENTS = ("i / iz", "f / fz", "d / dz", "i / fz", "d / iz", "f / dz")
EXPECTED = {
    "SELECT id, {} AS q FROM t": [(0, INF), (1, -INF), (2, None), (3, None), (4, 2.0)],
    "SELECT id FROM t WHERE {} > 0": [(0,), (4,)],
    "SELECT id FROM t WHERE NOT {} > 0": [(1,)],
    "SELECT id FROM t WHERE {} IS NULL": [(2,), (3,)],
    "SELECT id, COALESCE({}, 7.5) AS q FROM t": [(0, INF), (1, -INF), (2, 7.5), (3, 7.5), (4, 2.0)],
    "SELECT id, CASE WHEN {} > 0 THEN 'x' ELSE 'y' END AS q FROM t": [(0, "x"), (1, "y"), (2, "y"), (3, "y"), (4, "x")],
    f"SELECT id FROM t {W} ORDER BY {{}} DESC LIMIT 5": [(0, 8, 1, INF, 0), (0, 8, 2, 2.0, 4), (0, 8, 3, -INF, 1)],
    f"SELECT {{}} AS k, COUNT(*) AS n FROM t {W} GROUP BY {{}}": [(8, -INF, 1), (8, 2.0, 1), (8, None, 2), (8, INF, 1)],
}
REMAINDERS = {
    "SELECT id, {} AS q FROM t": [(0, None), (1, None), (2, None), (3, None), (4, 0)],
    "SELECT id FROM t WHERE {} IS NULL": [(0,), (1,), (2,), (3,)],
}
GROUPED = {
    f"SELECT id, MAX(i) / MIN(iz) AS q FROM t {W} GROUP BY id": [
        (8, 0, INF),
        (8, 1, -INF),
        (8, 2, None),
        (8, 3, None),
        (8, 4, 2.0),
    ],
    f"SELECT id, COUNT(*) AS n FROM t {W} GROUP BY id HAVING MAX(f) / MIN(fz) > 0": [(8, 0, 1), (8, 4, 1)],
    f"SELECT g, COUNT(i / iz) AS n FROM (SELECT *, 1 AS g FROM t) AS u {W} GROUP BY g": [(8, 1, 3)],
    f"SELECT a.id AS x, b.id AS y FROM t AS a {W}, t AS b {W} WHERE a.id < b.id AND a.f / b.fz > 0 "
    "ORDER BY a.id + b.id LIMIT 9": [
        (0, 8, 1, 1.0, 0, 1),
        (0, 8, 2, 2.0, 0, 2),
        (0, 8, 3, 3.0, 0, 3),
        (0, 8, 4, 4.0, 0, 4),
    ],
}
ALL = [
    *((statement.format(one, one), lines) for one in QUOTIENTS for statement, lines in EXPECTED.items()),
    *(
        (statement.format(one), lines)
        for one in ("i % iz", "f % fz", "d % dz")
        for statement, lines in REMAINDERS.items()
    ),
    *GROUPED.items(),
]


def lines_of(answer: Any) -> list[tuple[Any, ...]]:
    table = answer if isinstance(answer, pa.Table) else answer.toArrow()
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


@pytest.mark.parametrize(("statement", "lines"), ALL)
def test_division_by_zero_is_as_the_page_says(statement: str, lines: list[tuple[Any, ...]]) -> None:
    assert lines_of(sb.sql(statement, t=ROWS)) == sorted(lines, key=repr)


@pytest.mark.spark
def test_division_by_zero_is_the_same_on_spark(spark: Any) -> None:
    rows = spark.createDataFrame(ROWS)
    some = [each for each in ALL if each[0].startswith("SELECT id") or "f / fz" in each[0]]
    for statement, lines in some:
        assert lines_of(sb.sql(statement, t=rows)) == sorted(lines, key=repr), statement


@pytest.mark.parametrize("x", [math.nan, INF, -INF])
def test_what_is_no_number_stays_so(x: float) -> None:
    rows = pa.table({"x": [x], "z": [0.0]})
    assert sb.sql("SELECT x / z AS q FROM rows", rows=rows)["q"].to_pylist() == [None if math.isnan(x) else x]
