"""Oracle tests: functions of several values give what Spark itself gives in UTC, on both engines, in any zone."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import skyband as sb
from skyband import expressions
from skyband.engines.spark import schema_of
from skyband.sql.rows import value_in_spark

WORDS = [
    "ab/cd/e",
    "",
    None,
    "é日本é",
    "a\nb.c",
    "31/01/2024",
    "29/02/2023",
    "2024-02-30 10:11",
    " x ",
    "AAA",
    "\U0001f600a",
    "a,b",
]
OTHERS = ["c", "", "é", None, "b", "/", "2", "0", "x", "A", "a", "é日"]
NUMBERS = [1, -2, 0, None, 12, 14, 1000, -13, 2**40, 31, 29, -(2**62)]
FLOATS = [1.5, -2.5, None, 27.0, 0.1, -8.0, 1e20, 0.0, 1e-9, 123.456, -0.05, float("inf")]
DAYS = [
    date(2024, 1, 31), date(2023, 2, 28), date(2024, 2, 29), None, date(1969, 12, 31), date(1900, 3, 31),
    date(2000, 2, 29), date(2024, 12, 31), date(1970, 1, 1), date(110, 1, 31), date(2026, 11, 30), date(2023, 3, 1),
]  # fmt: skip
TIMES = [
    datetime(2024, 1, 31, 23, 59, 59, 999_999), datetime(2024, 2, 29), datetime(1969, 12, 31, 23, 59, 59, 500_000),
    datetime(2026, 3, 8, 2, 30), datetime(2026, 11, 1, 1, 30, 0, 1), None, datetime(1900, 3, 31, 12),
    datetime(2024, 12, 31, 23, 59, 59), datetime(1970, 1, 1), datetime(2023, 2, 28, 0, 0, 1), datetime(2000, 8, 31, 6),
    datetime(1583, 1, 1),
]  # fmt: skip
ROWS = pa.table(
    {
        "s": WORDS,
        "u": OTHERS,
        "i": pa.array(NUMBERS, pa.int64()),
        "j": pa.array([3, 5, None, 2, 7, 1, 11, 30, 29, 12, 2, 31], pa.int32()),
        "x": FLOATS,
        "b": [True, False, None] * 4,
        "d": DAYS,
        "e": DAYS[5:] + DAYS[:5],
        "ts": pa.array(TIMES, pa.timestamp("us")),
        "tz": pa.array(TIMES[3:] + TIMES[:3], pa.timestamp("us", "UTC")),
        "t2": pa.array(TIMES[7:] + TIMES[:7], pa.timestamp("us")),
    }
)

# What Spark understands as well.
TEXTS = """
d + INTERVAL 1 MONTH | d - INTERVAL 2 YEARS | INTERVAL '3' MONTHS + d | d + INTERVAL 1 MONTH - INTERVAL 1 DAY
d + INTERVAL 13 MONTHS < e | YEAR(d - INTERVAL 1 MONTH) | COALESCE(e, d + INTERVAL 1 YEAR) | ts + INTERVAL 1 MONTH
tz - INTERVAL 11 MONTHS | ts - INTERVAL 100 YEARS | tz + INTERVAL 1 MONTH > tz + INTERVAL 30 DAYS
ADD_MONTHS(d, 1) | ADD_MONTHS(d, j) | ADD_MONTHS(ts, -j) | ADD_MONTHS(tz, 1) | ADD_MONTHS(ADD_MONTHS(d, 1), -1)
DATEADD(MONTH, j, ts) | TIMESTAMPADD(MONTH, -1, tz) | TIMESTAMPADD(QUARTER, j, ts) | DATE_ADD(YEAR, -4, tz)
DATEADD(DAY, j, d) | DATEADD(WEEK, -j, ts) | TIMESTAMPADD(HOUR, j, tz) | TIMESTAMPADD(MINUTE, -90, ts)
TIMESTAMPADD(SECOND, j, tz) | TIMESTAMPADD(MICROSECOND, -j, ts) | TIMESTAMPADD(MILLISECOND, 1500, ts)
DATEADD(MONTH, 1, d) | DATEADD(MONTH, 1, TIMESTAMP_NTZ '2024-01-31 12:00:00') | TIMESTAMPADD(MONTH, j, ts) < t2
DATEDIFF(MONTH, d, e) | DATEDIFF(YEAR, d, e) | DATEDIFF(QUARTER, e, d) | DATEDIFF(WEEK, d, e) | DATEDIFF(DAY, d, e)
TIMESTAMPDIFF(MONTH, ts, t2) | TIMESTAMPDIFF(YEAR, t2, ts) | TIMESTAMPDIFF(QUARTER, ts, t2) | DATE_DIFF(HOUR, ts, t2)
TIMESTAMPDIFF(DAY, ts, t2) | TIMESTAMPDIFF(WEEK, ts, t2) | TIMESTAMPDIFF(MINUTE, ts, t2) | TIMESTAMPDIFF(SECOND, t2, ts)
TIMESTAMPDIFF(MILLISECOND, ts, t2) | TIMESTAMPDIFF(MICROSECOND, ts, t2) | TIMESTAMPDIFF(MONTH, d, tz) | DATEDIFF(d, e)
TIMESTAMPDIFF(MONTH, tz, '2024-01-01') | TIMESTAMPDIFF(DAY, TIMESTAMP '2024-02-28 01:00:00', tz) | DATEDIFF(HOUR, d, tz)
LAST_DAY(d) | LAST_DAY(ts) | LAST_DAY(tz) = d | LAST_DAY('2024-02-01') | NEXT_DAY(d, 'MO') | NEXT_DAY(ts, 'Sunday')
NEXT_DAY(e, 'WED') | MAKE_DATE(2023, j, 29) | MAKE_DATE(2024, 2, j) | MAKE_DATE(j * 100, 1, 1)
MAKE_DATE(YEAR(d), 2, 29)
MONTHS_BETWEEN(d, e) | MONTHS_BETWEEN(ts, t2) | MONTHS_BETWEEN(tz, d) | MONTHS_BETWEEN(d, '2024-02-29')
DAYNAME(d) | MONTHNAME(d) | DAYNAME(ts) | MONTHNAME(tz) || '!' | DAYOFWEEK(d) | DAYOFWEEK(tz) | WEEKDAY(ts) | WEEKDAY(d)
EXTRACT(DOW FROM d) | EXTRACT(DAYOFWEEK FROM ts) | EXTRACT(DOW_ISO FROM d) | EXTRACT(DAYOFWEEK_ISO FROM tz)
EXTRACT(YEAROFWEEK FROM d) | EXTRACT(WEEK FROM d) | EXTRACT(QUARTER FROM tz) | EXTRACT(SECOND FROM ts)
EXTRACT(SECOND FROM tz) * 2 | EXTRACT(SECONDS FROM ts) > 59 | DATE_PART('second', ts) | DATE_PART('dow', d)
DATE_PART('year', ts) | SECOND(ts) | TRUNC(d, 'MM') | TRUNC(ts, 'YEAR') | TRUNC(d, 'quarter') | TRUNC(tz, 'WEEK') < d
UNIX_DATE(d) | UNIX_TIMESTAMP(ts) | UNIX_TIMESTAMP(tz) | UNIX_TIMESTAMP(d) | UNIX_SECONDS(tz) | UNIX_MILLIS(tz)
UNIX_MICROS(tz) | TIMESTAMP_SECONDS(j) | TIMESTAMP_MILLIS(-j) | TIMESTAMP_MICROS(j * 1000003) | FROM_UNIXTIME(j)
FROM_UNIXTIME(-j, 'yyyy-MM-dd') | FROM_UNIXTIME(j * 86400, 'dd/MM/yyyy HH:mm') | TO_DATE(s, 'dd/MM/yyyy') | TO_DATE(s)
TO_TIMESTAMP(s, 'dd/MM/yyyy') | TO_TIMESTAMP(s, 'yyyy-MM-dd HH:mm') | TO_DATE('2024.12', 'yyyy.MM')
LPAD(s, 4, 'xy') | LPAD(s, 3) | RPAD(s, 9, 'é日') | RPAD(s, 0) | LPAD(s, -1, 'a') | LPAD(s, 20, '')
LPAD(u, 2, '0') || s
CONCAT_WS('-', s, u) | CONCAT_WS('', u, 'a', s) | CONCAT_WS(', ', CAST(i AS STRING), s, NULLIF(u, 'c'))
INSTR(s, 'b') | INSTR(s, u) | INSTR(u, s) | INSTR(s, '') | POSITION('b' IN s) | POSITION(u, s) | LOCATE(u, s)
LOCATE('é', s, 2) | LOCATE('/', s, 4) | LOCATE('', s, 3) | LOCATE('a', s, 100) | LOCATE('b', s) + 1 > 2
TRANSLATE(s, 'abé', 'xy') | TRANSLATE(s, '', 'x') | TRANSLATE(s, 'aab', 'xyz') | TRANSLATE(s, '/,.', '   ')
REPEAT(s, 2)
REPEAT(u, 0) | REPEAT(s, -1) | REGEXP_REPLACE(s, '[a-c]', '-') | REGEXP_REPLACE(s, '(a|b).', '')
REGEXP_REPLACE(s, 'é', 'e')
REGEXP_REPLACE(s, '[0-9]+', '#') | s RLIKE '^a' | s RLIKE 'a.b' | NOT s RLIKE '[0-9]{2}' | REGEXP_LIKE(s, 'b\\\\.c')
SUBSTRING_INDEX(s, '/', 1) | SUBSTRING_INDEX(s, '/', -1) | SUBSTRING_INDEX(s, '/', 2) | SUBSTRING_INDEX(s, ',', 0)
SUBSTRING_INDEX(s, 'é', -2) | SUBSTRING_INDEX(s, '/', 9) | OCTET_LENGTH(s) | BIT_LENGTH(u) | LENGTH(LPAD(s, 7))
i DIV 2 | i DIV j | j DIV -3 | i DIV 0 | (i + 1) DIV 1000 * 1000 | PMOD(i, 5) | PMOD(-j, 4) | PMOD(j, -4)
DEGREES(x) | RADIANS(x) | DEGREES(j) | PI() * j | E() | ROUND(i, -2) | ROUND(j, -1) | ROUND(-j, -1)
NVL2(s, u, 'none') | NVL2(i, 1, 0) + 1 | DECODE(j, 3, 'three', 5, 'five', 'other')
DECODE(s, '', 'empty', NULL, 'null')
DECODE(u, s, 1, 2) | ISNULL(s) | ISNOTNULL(i) AND b | NULLIFZERO(i) | ZEROIFNULL(j) | EQUAL_NULL(s, u) | IFNULL(s, u)
NVL(j, 0) | IF(b, d, e) | GREATEST(s, u) | LEAST(d, e) | GREATEST(d, CAST(ts AS DATE)) | LEAST(s, u, 'b')
NULLIF(s, '') | NULLIF(d, e) | COALESCE(u, s, 'x') | s <=> u | d IS DISTINCT FROM e | CASE d WHEN e THEN 1 ELSE 0 END
"""
ALL = [text.strip() for line in TEXTS.strip().splitlines() for text in line.split(" | ")]


def _plain(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    return bool(one == other)


def found(text: str, rows: pa.Table = ROWS) -> list[Any]:
    (batch,) = rows.to_batches()
    return [_plain(value) for value in expressions.bind_value(text, rows.schema).values(batch).to_pylist()]


@pytest.mark.spark
def test_they_give_what_spark_gives_in_utc_whatever_the_zone_of_the_session(spark: Any) -> None:
    names = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled")
    before = [spark.conf.get(name) for name in names]
    try:
        spark.conf.set(names[0], "UTC")
        df = spark.createDataFrame(ROWS)
        schema = schema_of(df)
        spark.conf.set(names[1], "false")
        theirs = df.selectExpr(*(f"{text} AS c{i}" for i, text in enumerate(ALL))).toArrow()
        spark.conf.set(names[1], before[1])
        wrong = []
        for zone in ("UTC", "America/New_York"):
            spark.conf.set(names[0], zone)
            ours = df.selectExpr(*(f"{value_in_spark(text, schema)} AS c{i}" for i, text in enumerate(ALL))).toArrow()
            for i, text in enumerate(ALL):
                here = found(text)
                native, there = ([_plain(one) for one in table.column(i).to_pylist()] for table in (theirs, ours))
                wrong += [(zone, text, *trio) for trio in zip(here, there, native, strict=True)
                          if not (same(trio[0], trio[1]) and same(trio[0], trio[2]))]  # fmt: skip
        assert not wrong
    finally:
        for name, value in zip(names, before, strict=True):
            spark.conf.set(name, value)


DUCKDB = {
    "CHARINDEX('日', s)": "instr(s, '日')",  # which Spark has not by this name
    "IIF(b, s, u)": "if(b, s, u)",
    "d + INTERVAL 1 MONTH": "CAST(d + INTERVAL 1 MONTH AS DATE)",
    "ADD_MONTHS(d, j)": "CAST(d + to_months(j) AS DATE)",
    "ts - INTERVAL 100 YEARS": "ts - INTERVAL 100 YEARS",
    "DATEADD(MONTH, j, ts)": "ts + to_months(j)",
    "LAST_DAY(d)": "last_day(d)",
    "MAKE_DATE(2024, 2, j)": "CASE WHEN j <= 29 THEN make_date(2024, 2, j) END",
    "DAYNAME(d)": "LEFT(dayname(d), 3)",
    "MONTHNAME(d)": "LEFT(monthname(d), 3)",
    "WEEKDAY(ts)": "isodow(ts) - 1",
    "UNIX_DATE(d)": "d - DATE '1970-01-01'",
    "LPAD(s, 4, 'xy')": "lpad(s, 4, 'xy')",
    "RPAD(s, 9, 'é日')": "rpad(s, 9, 'é日')",
    "CONCAT_WS('-', s, u)": "concat_ws('-', s, u)",
    "INSTR(s, u)": "CASE WHEN u = '' AND s IS NOT NULL THEN 1 ELSE instr(s, u) END",
    "TRANSLATE(s, 'abé', 'xy')": "translate(s, 'abé', 'xy')",
    "i DIV j": "CAST(trunc(i::DECIMAL(38, 0) // j) AS BIGINT)",
    "DECODE(j, 3, 'three', 5, 'five', 'other')": "CASE j WHEN 3 THEN 'three' WHEN 5 THEN 'five' ELSE 'other' END",
    "ROUND(i, -2)": "CAST(round(i::DECIMAL(38, 0), -2) AS BIGINT)",
}


@pytest.mark.parametrize("text", [text for text in DUCKDB if " DIV " not in text])
def test_they_give_what_duckdb_gives(text: str) -> None:
    connection = duckdb.connect()
    connection.register("rows", ROWS)
    expected = [row[0] for row in connection.execute(f"SELECT {DUCKDB[text]} FROM rows").fetchall()]
    assert found(text) == expected


@pytest.mark.parametrize("text", ALL)
def test_each_is_computed_here(text: str) -> None:
    assert len(found(text)) == len(ROWS)


def test_the_last_day_of_a_month_is_that_of_a_shorter_one() -> None:
    rows = pa.table({"d": [date(2024, 1, 31), date(2023, 1, 31), date(2024, 2, 29), date(2023, 12, 31)]})
    assert found("d + INTERVAL 1 MONTH", rows) == [
        date(2024, 2, 29),
        date(2023, 2, 28),
        date(2024, 3, 29),
        date(2024, 1, 31),
    ]
    assert found("d - INTERVAL 1 YEAR", rows) == [
        date(2023, 1, 31),
        date(2022, 1, 31),
        date(2023, 2, 28),
        date(2022, 12, 31),
    ]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_every_unit_are_moved(unit: str) -> None:
    moments = [datetime(2024, 1, 31, 10), None, datetime(1969, 12, 31, 23, 59, 59)]
    rows = pa.table({"ts": pa.array(moments, pa.timestamp(unit)), "n": [1, 2, 3]})
    kind = expressions.bind_value("ts + INTERVAL 1 MONTH", rows.schema).type
    assert kind == pa.timestamp(unit)
    assert found("ts + INTERVAL 1 MONTH", rows) == [datetime(2024, 2, 29, 10), None, datetime(1970, 1, 31, 23, 59, 59)]
    later = found("TIMESTAMPADD(MILLISECOND, n, ts)", rows)
    assert later == [datetime(2024, 1, 31, 10, 0, 0, 1000), None, datetime(1969, 12, 31, 23, 59, 59, 3000)]
    assert found("TIMESTAMPDIFF(HOUR, ts, TIMESTAMP_NTZ '2024-01-31 12:30:00')", rows) == [2, None, 474_084]


def test_seconds_have_their_digits_and_the_type_of_a_decimal() -> None:
    assert expressions.bind_value("EXTRACT(SECOND FROM ts)", ROWS.schema).type == pa.decimal128(8, 6)
    assert found("EXTRACT(SECOND FROM ts)")[0] == Decimal("59.999999")
    assert found("SECOND(ts)")[0] == 59


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ts - t2 > INTERVAL 1 MONTH", "A month has no fixed length; it moves a date or a timestamp"),
        ("d > INTERVAL 1 YEAR", "A month has no fixed length"),
        ("d + INTERVAL 1.5 MONTHS", "A month has no fixed length"),
        ("s + INTERVAL 1 MONTH", "A month has no fixed length"),
        ("INTERVAL 1 MONTH - d", "adds something other than a duration"),
        ("INTERVAL 1 MONTH + INTERVAL 1 DAY", "A month has no fixed length"),
        ("ADD_MONTHS(d, x)", "the number must be a whole number"),
        ("ADD_MONTHS(s, 1)", r"write CAST\(x AS DATE\)"),
        ("ADD_MONTHS('2024-02-30', 1)", "is not a time"),
        ("DATEADD(DECADE, 1, ts)", "the unit must be one of MICROSECOND"),
        ("DATEDIFF(MONTH, ts, tz)", "mixes a time with a zone and a time without"),
        ("NEXT_DAY(d, 'NEVER')", "such as 'MO', 'MON' or 'MONDAY'"),
        ("TO_DATE(s, 'EEE')", "a format has yyyy"),
        ("TO_DATE(s, 'yyyy HH')", "TO_TIMESTAMP reads it"),
        ("TO_TIMESTAMP(s, 'HH:mm')", "a format has yyyy"),
        ("UNIX_TIMESTAMP()", "There is no function 'UNIX_TIMESTAMP'"),
        ("EXTRACT(EPOCH FROM ts)", "possible parts: YEAR, YEAROFWEEK"),
        ("EXTRACT(ISODOW FROM ts)", "possible parts: YEAR"),
        ("TRUNC(x, 2)", "TRUNC cuts dates"),
        ("LPAD(s, i)", "a number of characters as written"),
        ("LPAD(i, 3)", "it takes a string"),
        ("REPEAT(s, 1000)", "at most 100 times"),
        ("CONCAT_WS(u, s, s)", "a literal that separates the strings"),
        ("CONCAT_WS('-', i, s)", r"CAST\(x AS STRING\)"),
        ("REGEXP_REPLACE(s, 'a*', 'x')", "matches the empty string"),
        ("REGEXP_REPLACE(s, 'a', '$1')", "without"),
        (r"s RLIKE '\\d'", "differ between engines"),
        ("SUBSTRING_INDEX(s, 'aa', 2)", "of one character"),
        ("TRANSLATE(s, u, 'x')", "two literals"),
        ("x DIV 2", r"CAST\(x / y AS BIGINT\)"),
        ("i * i DIV 2", "may not fit in 64 bits"),
        ("ROUND(CAST(i AS DECIMAL(5, 2)), -1)", "digits behind the point"),
        ("DECODE(i, 1)", "cannot be part of an expression"),
        ("DECODE(i, 1, 'a', 2)", "values have different types"),
        ("DAYNAME(d) + 1", "is not a number"),
        ("s RLIKE 'a' + 1", "."),
    ],
)
def test_what_engines_would_do_differently_is_refused(text: str, why: str) -> None:
    with pytest.raises(sb.SkybandError, match=why):
        expressions.bind_value(text, ROWS.schema)
