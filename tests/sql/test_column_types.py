"""Oracle tests: a statement over a column of any type gives what it gives over the same values in an ordinary type, or
Skyband refuses it by name. No error of another library comes through."""

from __future__ import annotations

from datetime import date, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skyband as sb

WINDOW = "FROM t [WINDOW 4 EVERY 4 ON t]"
STATEMENTS = {
    "sorted by it": f"SELECT id {WINDOW} ORDER BY x LIMIT 3",
    "by it, nulls last": f"SELECT id {WINDOW} ORDER BY x NULLS LAST LIMIT 3",
    "by it, then another": f"SELECT id {WINDOW} ORDER BY x DESC, id LIMIT 3",
    "by another, then it": f"SELECT id {WINDOW} ORDER BY id % 2, x NULLS FIRST LIMIT 3",
    "for each of it": f"SELECT id {WINDOW} ORDER BY id LIMIT 1 BY x",
    "grouped by it": f"SELECT x, COUNT(*) AS n {WINDOW} GROUP BY x",
    "ranked groups": f"SELECT x, COUNT(*) AS n {WINDOW} GROUP BY x ORDER BY n DESC, x LIMIT 2",
    "aggregates": f"SELECT COUNT(x) AS n, COUNT(DISTINCT x) AS d {WINDOW}",
    "the smallest": f"SELECT MIN(x) AS low, MAX(x) AS high {WINDOW}",
    "filtered aggregates": f"SELECT COUNT(x) FILTER (WHERE id > 1) AS n, MIN(x) FILTER (WHERE id > 1) AS low {WINDOW}",
    "the sum": f"SELECT SUM(x) AS s {WINDOW}",
    "looked up": "SELECT id FROM t WHERE x IN (SELECT x FROM u)",
    "joined with a table": "SELECT t.id, u.id AS other FROM t JOIN u ON t.x = u.x",
    "joined windows": "SELECT COUNT(*) AS n FROM t [WINDOW 4 EVERY 4 ON t] JOIN u [WINDOW 4 EVERY 4 ON t] ON t.x = u.x",
    "known": "SELECT id FROM t WHERE x IS NOT NULL",
    "compared": "SELECT id, x = y AS e, x > y AS g FROM t",
    "chosen": "SELECT COALESCE(x, y) AS c, CASE WHEN id > 1 THEN x END AS d, NULLIF(x, y) AS e FROM t",
    "the larger": "SELECT GREATEST(x, y) AS c FROM t",
    "a number": "SELECT x + y AS s, x * 2 AS p, -x AS m, ABS(x) AS a FROM t",
    "a text": "SELECT UPPER(x) AS u, LENGTH(x) AS n, x || y AS j, x LIKE 'a%' AS l, x IN ('a', 'b') AS i FROM t",
    "itself": "SELECT x FROM t",
}


def _dictionary(kind: pa.DataType) -> pa.DataType:
    return pa.dictionary(pa.int8(), kind)


WHOLE = [None, 0, 1, 2, 3]
CENTS = [None, Decimal("0.00"), Decimal("1.25"), Decimal("-3.50"), Decimal("99.99")]
HUNDREDS = [None, Decimal(0), Decimal(100), Decimal(-300), Decimal(900)]
TEXTS = [None, "", "a", "ab", "b"]
FLOATS = [None, 0.0, -0.0, 1.5, -2.0, float("nan"), float("inf")]
# Each type, its values, and the ordinary type that says what is right.
TYPES: dict[str, tuple[pa.DataType, list[Any], pa.DataType]] = {
    str(kind): (kind, values, plain)
    for kind, values, plain in [
        (_dictionary(pa.string()), TEXTS, pa.string()),
        (pa.large_string(), TEXTS, pa.string()),
        (pa.string_view(), TEXTS, pa.string()),
        (pa.run_end_encoded(pa.int32(), pa.string()), TEXTS, pa.string()),
        (_dictionary(pa.int64()), WHOLE, pa.int64()),
        (_dictionary(pa.uint8()), WHOLE, pa.uint8()),
        (_dictionary(pa.float64()), FLOATS, pa.float64()),
        (_dictionary(pa.decimal128(5, 2)), CENTS, pa.decimal128(5, 2)),
        (_dictionary(pa.timestamp("ms")), WHOLE, pa.timestamp("ms")),
        (_dictionary(pa.bool_()), [None, True, False], pa.bool_()),
        (pa.float16(), FLOATS, pa.float32()),
        (pa.decimal32(5, 2), CENTS, pa.decimal128(5, 2)),
        (pa.decimal64(15, 2), CENTS, pa.decimal128(15, 2)),
        (pa.decimal128(5, -2), HUNDREDS, pa.decimal128(7, 0)),
        (pa.decimal256(20, 2), CENTS, pa.decimal128(20, 2)),
        (pa.decimal256(40, 2), CENTS, pa.decimal128(30, 2)),
        (pa.decimal256(40, -2), HUNDREDS, pa.decimal128(30, 0)),
        (pa.date64(), [None, *(date(1970, 1, day) for day in (1, 2, 3))], pa.date32()),
        (pa.time32("s"), [None, *(time(0, 0, second) for second in (0, 1, 2))], pa.time64("us")),
        (pa.uint64(), WHOLE, pa.int64()),
    ]
}
# No ordinary type says more, but none may let an error of Arrow or of polars through.
ODD: dict[str, pa.Array] = {
    str(column.type): column
    for column in [
        pa.array([b"a", None, b"b"]),
        pa.array([b"ab", None, b"cd"], pa.binary(2)),
        pa.array([[1], None, []]),
        pa.array([{"a": 1}, None, {"a": 2}]),
        pa.array([None, None, None]),
        pa.array([1, None, 2], pa.duration("ns")),
        pa.array([1, None, 2], pa.time64("ns")),
        pa.nulls(3, pa.month_day_nano_interval()),
    ]
}


def made(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return made(values, kind.value_type).dictionary_encode().cast(kind)
    if pa.types.is_run_end_encoded(kind):
        import pyarrow.compute as pc

        return pc.run_end_encode(pa.array(values, kind.value_type), kind.run_end_type)
    if pa.types.is_float16(kind):
        return pa.array([None if value is None else np.float16(value) for value in values], kind)
    return pa.array(values, kind)


def tables(first: list[Any], second: list[Any], kind: pa.DataType) -> dict[str, pa.Table]:
    columns = {"x": made(first, kind), "y": made(second, kind), "t": range(len(first)), "id": range(len(first))}
    return {"t": pa.table(columns), "u": pa.table(columns).slice(1, 2).select(["t", "id", "x"])}


def answer(statement: str, inputs: dict[str, pa.Table]) -> list[dict[str, Any]] | str:
    try:
        given = sb.sql(statement, t=inputs["t"], **({"u": inputs["u"]} if " u" in statement else {}))
    except sb.SkybandError as error:
        return f"refused: {error}"
    return [{name: _plain(value) for name, value in row.items()} for row in given.to_pylist()]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return repr(value)
    return value.isoformat()[:10] if hasattr(value, "isoformat") and hasattr(value, "year") else value


def _drawn(values: list[Any]) -> st.SearchStrategy[tuple[list[Any], list[Any]]]:
    column = st.lists(st.sampled_from(values), min_size=6, max_size=6)
    return st.tuples(column, column)


# What is refused for the odd type alone, by name.
REFUSED = {("halffloat", name) for name in ("for each of it", "grouped by it", "ranked groups", "looked up")}
REFUSED |= {("halffloat", name) for name in ("aggregates", "joined with a table", "joined windows")}
IN_EXPRESSIONS = ("compared", "chosen", "the larger", "a number", "known", "filtered aggregates")
REFUSED |= {(kind, name) for kind in ("decimal256(40, 2)", "decimal256(40, -2)") for name in IN_EXPRESSIONS}


def check(kind: str, name: str, first: list[Any], second: list[Any]) -> None:
    column_type, _, plain = TYPES[kind]
    found = answer(STATEMENTS[name], tables(first, second, column_type))
    expected = answer(STATEMENTS[name], tables(first, second, plain))
    if isinstance(found, str):
        assert isinstance(expected, str) or (kind, name) in REFUSED, (name, found)
    else:
        assert found == expected, name


@pytest.mark.parametrize("kind", TYPES)
def test_a_column_of_any_type_is_as_good_as_one_of_its_values(kind: str) -> None:
    values = TYPES[kind][1]
    for name in STATEMENTS:
        check(kind, name, [*values, values[1]], [values[-1], *values])


@settings(max_examples=60)
@given(st.sampled_from(list(TYPES)), st.sampled_from(list(STATEMENTS)), st.data())
def test_so_it_is_with_any_values(kind: str, name: str, data: st.DataObject) -> None:
    check(kind, name, *data.draw(_drawn(TYPES[kind][1])))


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS)
@pytest.mark.parametrize("column", ODD.values(), ids=ODD)
def test_no_error_of_another_library_comes_through(statement: str, column: pa.Array) -> None:
    rows = pa.table({"x": column, "y": column, "t": range(3), "id": range(3)})
    answer(statement, {"t": rows, "u": rows.slice(1, 2).select(["t", "id", "x"])})
