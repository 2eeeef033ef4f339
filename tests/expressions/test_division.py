"""Oracle tests: division by zero, in every place where an expression may stand, is the same on both engines.

The rule stands in docs/sql.md: a number divided by zero is infinite, and has its sign; 0 / 0 and x % 0 are null. NaN
stays NaN, which is a key like any other, and never ranked.
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


NAN = math.nan
STRANGE = pa.table(
    {
        "id": range(7),
        "t": range(7),
        "g": [1] * 7,
        "x": [NAN, None, INF, -INF, 0.0, 1.0, -1.0],
        "z": [0.0, 0.0, -0.0, -0.0, 0.0, -0.0, 0.0],
    }
)
SHOWN = {
    "x / z": [NAN, None, INF, -INF, None, INF, -INF],
    "x / 0": [NAN, None, INF, -INF, None, INF, -INF],
    "x / z + 1": [NAN, None, INF, -INF, None, INF, -INF],
    "x / z / 2": [NAN, None, INF, -INF, None, INF, -INF],
    "z / x": [NAN, None, 0.0, 0.0, None, 0.0, 0.0],
    "x % z": [None] * 7,
    "x * 1": [NAN, None, INF, -INF, 0.0, 1.0, -1.0],
    "x - x": [NAN, None, NAN, NAN, 0.0, 0.0, 0.0],
    "COALESCE(x, 5)": [NAN, 5.0, INF, -INF, 0.0, 1.0, -1.0],
    "LN(x)": [NAN, None, INF, None, -INF, 0.0, None],
    "LOG(2, x)": [NAN, None, INF, None, -INF, 0.0, None],
    "SQRT(x)": [NAN, None, INF, NAN, 0.0, 1.0, NAN],
    "CASE WHEN x / z > 0 THEN 1 ELSE 0 END": [1, 0, 1, 0, 0, 1, 0],
    "CASE WHEN x / z IS NULL THEN 1 ELSE 0 END": [0, 1, 0, 0, 1, 0, 0],
}
ASKED = {
    f"SELECT id FROM t {W} ORDER BY x / z DESC LIMIT 9": [
        (0, 8, 1, INF, 5),
        (0, 8, 2, INF, 2),
        (0, 8, 3, -INF, 6),
        (0, 8, 4, -INF, 3),
    ],
    f"SELECT g, MAX(x / z) AS m, COUNT(x / z) AS n FROM t {W} GROUP BY g": [(8, 1, INF, 4)],
    f"SELECT x * 1 AS k, COUNT(*) AS n FROM t {W} WHERE id < 2 OR id = 5 GROUP BY x * 1": [
        (8, NAN, 1),
        (8, None, 1),
        (8, 1.0, 1),
    ],
    f"SELECT id FROM t {W} WHERE id < 2 OR id = 5 ORDER BY id LIMIT 1 BY x * 1": [
        (0, 8, NAN, 1, 0, 0),
        (0, 8, None, 1, 1, 1),
        (0, 8, 1.0, 1, 5, 5),
    ],
}


def check_strange(rows: Any) -> None:
    listed = ", ".join(f"{text} AS c{i}" for i, text in enumerate(SHOWN))
    shown = lines_of(sb.sql(f"SELECT id, {listed} FROM t", t=rows))
    for i, (text, values) in enumerate(SHOWN.items()):
        found = [None if line[1 + i] is None else line[1 + i] + 0 for line in shown]  # + 0: of the two zeros one
        assert repr(found) == repr(values), text
    for statement, lines in ASKED.items():
        assert repr(lines_of(sb.sql(statement, t=rows))) == repr(sorted(lines, key=repr)), statement


def test_what_is_no_number_stays_so() -> None:
    check_strange(STRANGE)


@pytest.mark.spark
def test_what_is_no_number_stays_so_on_spark(spark: Any) -> None:
    check_strange(spark.createDataFrame(STRANGE))


def test_many_divisions_are_each_written_once() -> None:
    text = "x" + " / z" * 60
    assert sb.sql(f"SELECT {text} AS q FROM t", t=STRANGE)["q"].to_pylist()[4:] == [None, INF, -INF]
