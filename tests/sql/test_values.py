"""Oracle and example tests: an expression has the value of each row that DuckDB gives it, whatever is null."""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import skyband as sb
from skyband import expressions

BIG = 9007199254740993  # of which float64 knows the neighbours only


def table(chance: random.Random, rows: int = 60) -> pa.Table:
    """Few values, and many nulls."""

    def column(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.array([None if chance.random() < 0.2 else chance.choice(values) for _ in range(rows)], kind)

    moments = [datetime(2026, 3, 1), datetime(2026, 3, 1, 0, 5), datetime(2026, 3, 2, 12), datetime(1969, 12, 31, 23)]
    return pa.table(
        {
            "i": column([-3, 0, 1, 2, 7, BIG, BIG - 1], pa.int64()),
            "j": column([-2, 0, 1, 5], pa.int32()),
            "x": column([-1.5, 0.0, 0.25, 3.0, 8.5], pa.float64()),
            "s": column(["", "a", "ab", "B", "zoo", "é日"], pa.string()),
            "u": column(["a", "b", "B"], pa.string()),
            "b": column([True, False], pa.bool_()),
            "c": column([True, False], pa.bool_()),
            "n": column(moments, pa.timestamp("us")),
            "d": column([date(2026, 3, 1), date(2026, 3, 2), date(2024, 2, 29), date(1969, 12, 31)], pa.date32()),
        }
    )


class Texts:
    """Expressions by chance."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def _one_of(self, *texts: str) -> str:
        return self._chance.choice(texts)

    def number(self, depth: int) -> str:
        if depth <= 0 or self._chance.random() < 0.25:
            return self._one_of("i", "j", "x", "0", "1", "2.5", str(BIG), "-1")
        a, b, met = self.number(depth - 1), self.number(depth - 1), self.condition(depth - 1)
        sign, few = self._one_of("+", "-", "*"), self._one_of("2", "5", "3")
        return self._one_of(
            *(f"({a} {sign} {b})", f"({a} {sign} {b})", f"({a} % {few})", f"({a} / {few})", f"ABS({a})"),
            *(f"COALESCE({a}, {b})", f"GREATEST({a}, {b})", f"LEAST({a}, {b})", f"NULLIF({a}, {b})"),
            *(f"CASE WHEN {met} THEN {a} ELSE {b} END", f"CASE WHEN {met} THEN {a} END"),
            *(f"LENGTH({self.string(depth - 1)})", f"YEAR({self.day(depth - 1)})", f"DAY({self.day(depth - 1)})"),
            f"INSTR({self.string(depth - 1)}, 'a')",
        )

    def string(self, depth: int) -> str:
        if depth <= 0 or self._chance.random() < 0.4:
            return self._one_of("s", "u", "'a'", "'B'", "''")
        a, b, met = self.string(depth - 1), self.string(depth - 1), self.condition(depth - 1)
        return self._one_of(
            *(f"COALESCE({a}, {b})", f"CASE WHEN {met} THEN {a} ELSE {b} END", f"NULLIF({a}, {b})"),
            *(f"({a} || {b})", f"UPPER({a})", f"LOWER({a})", f"SUBSTRING({a}, 2, 1)", f"TRIM({a})"),
            *(f"LPAD({a}, 3, 'éb')", f"RPAD({a}, 2, ' ')", f"CONCAT_WS('-', {a}, {b})", f"REPEAT({a}, 2)"),
            *(f"TRANSLATE({a}, 'abé', 'ba')", f"GREATEST({a}, {b})", f"LEAST({a}, {b})"),
        )

    def day(self, depth: int) -> str:
        if depth <= 0 or self._chance.random() < 0.3:
            return self._one_of("d", "d", "DATE '2024-01-31'")
        inner, count = self.day(depth - 1), self._one_of("1 MONTH", "2 YEARS", "13 MONTHS", "1 YEAR")
        sign = self._one_of("+", "-")
        return self._one_of(
            f"LAST_DAY({inner})", f"CAST({inner} {sign} INTERVAL {count} AS DATE)", f"COALESCE({inner}, d)"
        )

    def moment(self, depth: int) -> str:
        if depth <= 0 or self._chance.random() < 0.5:
            return self._one_of("n", "n", "TIMESTAMP '2026-03-01 00:05:00'")
        inner = self.moment(depth - 1)
        span = self._one_of("INTERVAL 5 MINUTES", "INTERVAL '1' DAY", "INTERVAL 1 MONTH", "INTERVAL 3 YEARS")
        return self._one_of(f"COALESCE({inner}, n)", f"({inner} + {span})", f"({inner} - {span})")

    def condition(self, depth: int) -> str:
        if depth <= 0 or self._chance.random() < 0.15:
            return self._one_of("b", "c", "(i IS NULL)", "(x > 1)", "(s = u)", "TRUE", "FALSE")
        sign, no = self._one_of("=", "<>", "<", "<=", ">", ">="), self._one_of("", "NOT ")
        a, b = self.number(depth - 1), self.number(depth - 1)
        s, t = self.string(depth - 1), self.string(depth - 1)
        m, k = self.moment(depth - 1), self.moment(depth - 1)
        p, q = self.condition(depth - 1), self.condition(depth - 1)
        null = self._one_of("", ", NULL")
        return self._one_of(
            *(f"({a} {sign} {b})", f"({a} {sign} {b})", f"({s} {sign} {t})", f"({m} {sign} {k})"),
            *(f"(d + INTERVAL 2 DAYS {sign} '2026-03-04')", f"(DATE_TRUNC('week', d) {sign} {m})"),
            *(f"CAST({a} AS BOOLEAN)", f"({self.day(depth - 1)} {sign} {self.day(depth - 1)})"),
            *(f"(n {sign} '2026-03-01 00:05:00')", f"(d {sign} '2026-03-02')", f"(d {no}IN ('2026-03-01'{null}))"),
            *(f"({p} AND {q})", f"({p} OR {q})", f"(NOT {p})", f"({p} = {q})", f"({p} <> {q})"),
            *(f"({a} IS {no}NULL)", f"({s} IS {no}NULL)", f"({p} IS {no}NULL)", f"({m} IS {no}NULL)"),
            *(f"({p} IS {no}TRUE)", f"({p} IS {no}FALSE)", f"({a} IS {no}DISTINCT FROM {b})"),
            *(f"({a} {no}IN ({b}, 1{null}))", f"({s} {no}IN ('a', {t}{null}))", f"({a} {no}BETWEEN 0 AND {b})"),
            *(f"({s} {no}LIKE 'a%')", f"({s} LIKE '_')", f"CASE WHEN {p} THEN {q} ELSE b END"),
        )


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) or isinstance(other, float):
        return one is not None and other is not None and math.isclose(one, other, rel_tol=1e-12)
    if isinstance(one, datetime) and isinstance(other, datetime):  # of a constant, DuckDB's has no zone
        one = one.replace(tzinfo=other.tzinfo)
    return bool(one == other)


@pytest.mark.parametrize("seed", range(5))
def test_expressions_have_the_values_that_duckdb_gives_them(seed: int) -> None:
    chance = random.Random(seed)
    rows, texts = table(chance), Texts(chance)
    (batch,) = rows.to_batches()
    connection = duckdb.connect()
    connection.register("rows", rows)
    compared = 0
    for _ in range(100):
        kind = chance.choice([texts.number, texts.string, texts.moment, *[texts.condition] * 3])
        text = kind(chance.choice([1, 2, 3]))
        try:
            expected = [line[0] for line in connection.execute(f"SELECT {text} FROM rows").fetchall()]
        except duckdb.OutOfRangeException:
            continue  # an overflow, which is an error here, too, or fits in the 126 bits that we compute in
        found = expressions.bind_value(text, rows.schema).values(batch).to_pylist()
        wrong = [place for place, pair in enumerate(zip(found, expected, strict=True)) if not same(*pair)]
        assert not wrong, (text, rows.slice(wrong[0], 1).to_pylist(), found[wrong[0]], expected[wrong[0]])
        compared += 1
    assert compared > 80


def test_whole_numbers_stay_whole() -> None:
    rows = pa.table({"id": [BIG, BIG - 1], "t": [0, 1]})
    statement = f"SELECT t FROM rows [WINDOW 2 EVERY 2 ON t] WHERE id {{}} {BIG} ORDER BY id LIMIT 2"
    assert sb.sql(statement.format("="), rows=rows)["t"].to_pylist() == [0]
    assert sb.sql(statement.format("<"), rows=rows)["t"].to_pylist() == [1]


def test_times_with_a_zone_are_compared_with_what_is_written_in_utc() -> None:
    rows = pa.table({"ts": pa.array([datetime(2026, 3, 1, 0, minute, tzinfo=UTC) for minute in (5, 10)])})
    (batch,) = rows.to_batches()
    for text in (
        "ts > '2026-03-01 00:07:00'",
        "ts > '2026-03-01 02:07:00+02:00'",
        "ts - INTERVAL 1 HOUR > '2026-02-28 23:07'",
    ):
        assert expressions.bind_value(text, rows.schema).values(batch).to_pylist() == [False, True], text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("s > 3", "s is text, 3 is a number"),
        ("n > 'yesterday'", "'yesterday' in \"n > 'yesterday'\" is not a time."),
        ("n + 3", "Possible: ts \\+ INTERVAL 10 MINUTES"),
        ("n - n > INTERVAL 2 MONTHS", "A month has no fixed length"),
        ("x + UPPER(s)", "'UPPER\\(s\\)' in 'x \\+ UPPER\\(s\\)' is not a number"),
        ("SUBSTRING(s, 0, 2)", "SUBSTRING counts from 1"),
        ("CAST(x AS BINARY)", "CAST is to STRING, BIGINT"),
    ],
)
def test_errors_speak_of_what_was_written(text: str, said: str) -> None:
    with pytest.raises(sb.InvalidExpression, match=said):
        expressions.bind_value(text, table(random.Random(0)).schema)
