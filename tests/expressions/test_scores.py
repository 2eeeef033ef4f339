"""Example tests: what a score's text means, value by value, on every engine."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.expressions import bind

INF, NAN = math.inf, math.nan

#                  0     1     2    3     4    5
COLUMNS = {
    "a": pa.array([1.0, -2.5, 0.0, None, NAN, INF]),
    "i": pa.array([7, -7, 0, None, 3, 2], pa.int32()),
    "z": pa.array([0.0] * 6),
    "d": pa.array([1, 2, 3, 4, 5, 6]).cast(pa.decimal128(21, 2)),
    "u": pa.array([0, 1, 2, 3, 4, 2**64 - 1], pa.uint64()),
    "s": pa.array(["B", "S", None, "B", "x", ""]),
    "c": pa.array(["B", "S", None, "B", "x", ""]).dictionary_encode(),
    "b": pa.array([True, False, None, True, False, True]),
    "Net worth": pa.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
    "select": pa.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
}
ROWS = pa.record_batch(COLUMNS)

# A null score and a NaN score are the same: not ranked. Both are nan here.
MEANING: dict[str, list[float]] = {
    # numbers are float64
    "a": [1, -2.5, 0, NAN, NAN, INF],
    "i": [7, -7, 0, NAN, 3, 2],
    "d": [1, 2, 3, 4, 5, 6],
    "u": [0, 1, 2, 3, 4, 2.0**64],
    "a + i": [8, -9.5, 0, NAN, NAN, INF],
    "a - 1": [0, -3.5, -1, NAN, NAN, INF],
    "-a": [-1, 2.5, 0, NAN, NAN, -INF],
    "a * i": [7, 17.5, 0, NAN, NAN, INF],
    "i / 2": [3.5, -3.5, 0, NAN, 1.5, 1],
    "5 / 2 * 2": [5] * 6,
    "2 + 3 * 4": [14] * 6,
    "(2 + 3) * 4": [20] * 6,
    "1 - - 1": [2] * 6,
    "1.5e3": [1500] * 6,
    "`Net worth` * 2": [2, 4, 6, 8, 10, 12],
    "Net worth": [1, 2, 3, 4, 5, 6],
    "select": [1, 2, 3, 4, 5, 6],
    "`select` + 1": [2, 3, 4, 5, 6, 7],
    # division and logarithms as in IEEE 754
    "a / z": [INF, -INF, NAN, NAN, NAN, INF],
    "1 / z": [INF] * 6,
    "-1 / z": [-INF] * 6,
    "0 / z": [NAN] * 6,
    "i / 0": [INF, -INF, NAN, NAN, INF, INF],
    "i % 3": [1, -1, 0, NAN, 0, 2],
    "i % z": [NAN] * 6,
    "a % 2": [1, -0.5, 0, NAN, NAN, NAN],
    "LN(a)": [0, NAN, -INF, NAN, NAN, INF],
    "LOG(i)": [math.log(7), NAN, -INF, NAN, math.log(3), math.log(2)],
    "LOG(2, i)": [math.log2(7), NAN, -INF, NAN, math.log2(3), 1],
    "LOG2(i)": [math.log2(7), NAN, -INF, NAN, math.log2(3), 1],
    "LOG10(i)": [math.log10(7), NAN, -INF, NAN, math.log10(3), math.log10(2)],
    "EXP(a)": [math.e, math.exp(-2.5), 1, NAN, NAN, INF],
    "EXP(1000)": [INF] * 6,
    "SQRT(a)": [1, NAN, 0, NAN, NAN, INF],
    # powers
    "a ** 2": [1, 6.25, 0, NAN, NAN, INF],
    "2 ** i": [128, 2.0**-7, 1, NAN, 8, 4],
    "POWER(a, 2)": [1, 6.25, 0, NAN, NAN, INF],
    "POW(i, 3)": [343, -343, 0, NAN, 27, 8],
    "2 * a ** 2": [2, 12.5, 0, NAN, NAN, INF],
    # functions; the greatest and the least of what there is: null and NaN are not
    "ABS(a)": [1, 2.5, 0, NAN, NAN, INF],
    "SIGN(a)": [1, -1, 0, NAN, NAN, 1],
    "FLOOR(a)": [1, -3, 0, NAN, NAN, INF],
    "CEIL(a)": [1, -2, 0, NAN, NAN, INF],
    "CEILING(a)": [1, -2, 0, NAN, NAN, INF],
    "SIN(i)": [math.sin(7), math.sin(-7), 0, NAN, math.sin(3), math.sin(2)],
    "COS(i)": [math.cos(7), math.cos(-7), 1, NAN, math.cos(3), math.cos(2)],
    "TAN(i)": [math.tan(7), math.tan(-7), 0, NAN, math.tan(3), math.tan(2)],
    "ATAN2(a, i)": [math.atan2(1, 7), math.atan2(-2.5, -7), 0, NAN, NAN, math.pi / 2],
    "GREATEST(i, 1)": [7, 1, 1, 1, 3, 2],
    "LEAST(i, 1)": [1, -7, 0, 1, 1, 1],
    "GREATEST(a, 1)": [1, 1, 1, 1, 1, INF],
    "LEAST(a, 1)": [1, -2.5, 0, 1, 1, 1],
    "greatest(i, 1, 5)": [7, 5, 5, 5, 5, 5],
    # null
    "COALESCE(a, 0)": [1, -2.5, 0, 0, NAN, INF],
    "NULLIF(i, 7)": [NAN, -7, 0, NAN, 3, 2],
    "a + NULL": [NAN] * 6,
    "IF(a IS NULL, 1, 0)": [0, 0, 0, 1, 0, 0],
    "IF(a IS NOT NULL, 1, 0)": [1, 1, 1, 0, 1, 1],
    # comparisons and conditions: null is neither
    "IF(i > 2, 1, 0)": [1, 0, 0, 0, 1, 0],
    "IF(i >= 2, 1, 0)": [1, 0, 0, 0, 1, 1],
    "IF(i = 2, 1, 0)": [0, 0, 0, 0, 0, 1],
    "IF(i == 2, 1, 0)": [0, 0, 0, 0, 0, 1],
    "IF(i <> 2, 1, 0)": [1, 1, 1, 0, 1, 0],
    "IF(i != 2, 1, 0)": [1, 1, 1, 0, 1, 0],
    "IF(i IN (7, 3), 1, 0)": [1, 0, 0, 0, 1, 0],
    "IF(i NOT IN (7, 3), 1, 0)": [0, 1, 1, 0, 0, 1],
    "IF(i BETWEEN 0 AND 3, 1, 0)": [0, 0, 1, 0, 1, 1],
    "IF(b, 1, 2)": [1, 2, 2, 1, 2, 1],
    "IF(NOT b, 1, 2)": [2, 1, 2, 2, 1, 2],
    "IF(b AND i > 0, 1, 0)": [1, 0, 0, 0, 0, 1],
    "IF(b OR i > 0, 1, 0)": [1, 0, 0, 1, 1, 1],
    "CASE WHEN i > 2 THEN i WHEN i < 0 THEN -i END": [7, 7, NAN, NAN, 3, NAN],
    "CASE i WHEN 7 THEN 1 WHEN -7 THEN 2 ELSE 3 END": [1, 2, 3, 3, 3, 3],
    # text
    "CASE WHEN s = 'B' THEN i ELSE 0 END": [7, 0, 0, NAN, 0, 0],
    "CASE s WHEN 'B' THEN 1 WHEN 'S' THEN 2 END": [1, 2, NAN, 1, NAN, NAN],
    "IF(s <> 'B', 1, 0)": [0, 1, 0, 0, 1, 1],
    "IF(s < 'C', 1, 0)": [1, 0, 0, 1, 0, 1],
    "IF(s IN ('B', 'S'), 1, 0)": [1, 1, 0, 1, 0, 0],
    "IF(c = 'B', 1, 0)": [1, 0, 0, 1, 0, 0],
    "IF(s = '', 1, 0)": [0, 0, 0, 0, 0, 1],
    # spelling
    "  a  +  1  ": [2, -1.5, 1, NAN, NAN, INF],
    "a -- the amount": [1, -2.5, 0, NAN, NAN, INF],
    "coalesce(a, 0)": [1, -2.5, 0, 0, NAN, INF],
}


@pytest.mark.parametrize("text", MEANING)
def test_meaning(text: str) -> None:
    scores = bind(text, ROWS.schema).evaluate(ROWS)
    assert scores.dtype == np.float64
    np.testing.assert_allclose(scores, MEANING[text], rtol=1e-15)


@pytest.mark.parametrize(("text", "divisor"), [("x / 1000", 1000), ("x / (2 * 5)", 10), ("x / 3 + 0", 3)])
def test_division_by_a_constant_is_exact(text: str, divisor: int) -> None:
    """Multiplying by 1 / 1000 instead, as polars would, gives another number for every seventh x."""
    rows = pa.record_batch({"x": [float(i) for i in range(2000)]})
    assert bind(text, rows.schema).evaluate(rows).tolist() == [i / divisor for i in range(2000)]


@pytest.mark.parametrize("text", MEANING)
def test_meaning_does_not_depend_on_the_batch(text: str) -> None:
    score = bind(text, ROWS.schema)
    by_row = [score.evaluate(ROWS.slice(i, 1)).tolist() for i in range(ROWS.num_rows)]
    np.testing.assert_allclose(np.concatenate(by_row), MEANING[text], rtol=1e-15)
    assert len(score.evaluate(ROWS.slice(0, 0))) == 0


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("a", ["a"]),
        ("a + i", ["a", "i"]),
        ("i + a * i", ["i", "a"]),
        ("3", []),
        ("IF(b, `Net worth`, 0)", ["b", "Net worth"]),
    ],
)
def test_columns_read(text: str, columns: list[str]) -> None:
    assert list(bind(text, ROWS.schema).columns) == columns


REFUSED = [
    *("SUM(a)", "MAX(a)", "COUNT(*)", "ROW_NUMBER() OVER (ORDER BY a)", "RANK() OVER ()"),
    *("SELECT 1", "(SELECT 1)", "a FROM t", "a; a", "DROP TABLE a", "a AS b", "t.a", "*"),
    *("RAND()", "NOW()", "UUID()", "CURRENT_TIMESTAMP"),
    *("a || 'x'", "UPPER(s)", "CAST(a AS BINARY)", "a & 1", "a LIKE 'x'", "s RLIKE 'x'"),
    *("__import__('os')", "lambda: 1", "a.__class__", "a[0]", "{a}", "a if a else 0", "@a", "a := 1"),
    *("a +", "(a", "a)", "a b", "1 2", "'open", "`a", "CASE WHEN a THEN"),
    *("NULL", "TRUE", "'text'", "a > 1", "s", "b", "a AND b", "s = 'B'"),
    *("a + s", "s * 2", "ABS(s)", "a + b"),
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_a_score_is_refused_before_a_row_is_read(text: str) -> None:
    with pytest.raises(sb.InvalidExpression) as error:
        bind(text, ROWS.schema)
    assert text in str(error.value)


# -- functions ------------------------------------------------------------------------------------------------------


def test_a_function_gets_the_columns_it_names_as_numpy() -> None:
    def worth(i, a):  # type: ignore[no-untyped-def]
        assert isinstance(i, np.ndarray)
        assert isinstance(a, np.ndarray)
        return np.where(i > 0, i * 10, a)

    np.testing.assert_array_equal(bind(worth, ROWS.schema).evaluate(ROWS), [70, -2.5, 0, NAN, 30, 20])


def test_a_function_of_text() -> None:
    score = bind(lambda s: np.array([len(x or "") for x in s]), ROWS.schema)
    assert score.evaluate(ROWS).tolist() == [1, 1, 0, 1, 1, 0]
    assert score.spark_sql is None


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a: a[:2], r"the function '<lambda>' must return one number for each row: 6 rows in, shape \(2,\) out"),
        (lambda a: 5.0, r"6 rows in, shape \(\) out"),
        (lambda a: np.stack([a, a]), r"6 rows in, shape \(2, 6\) out"),
        (lambda a: a > 0, "must give numbers, got bool"),
        (lambda s: s, "must give numbers, got object"),
        (lambda a: a + 1j, "must give numbers, got complex128"),
    ],
)
def test_a_function_that_does_not_give_a_number_a_row(function, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(sb.InvalidExpression, match=message):
        bind(function, ROWS.schema).evaluate(ROWS)


def test_a_function_may_give_arrow_or_integers() -> None:
    assert bind(lambda d: pa.array([1, None, 3, 4, 5, 6]), ROWS.schema).evaluate(ROWS)[2] == 3.0
    assert bind(lambda u: np.arange(6, dtype=np.int8), ROWS.schema).evaluate(ROWS).dtype == np.float64


def test_a_function_by_score_through_top_k() -> None:
    rows = pa.table({"price": [2.0, 3.0, 5.0], "volume": [9, 1, 2]})
    result = sb.top_k(rows, k=1, by=lambda price, volume: price * volume, window=sb.tumbling(3))
    assert result.to_pylist() == [
        {"window_start": 0, "window_end": 3, "rank": 1, "score": 18.0, "price": 2.0, "volume": 9}
    ]


def test_a_float_column_is_not_copied() -> None:
    numbers = np.random.default_rng(0).random(1000)
    batch = pa.record_batch({"v": numbers})
    assert np.shares_memory(bind("v", batch.schema).evaluate(batch), batch.column("v").to_numpy())
