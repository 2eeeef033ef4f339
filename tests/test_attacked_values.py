"""Examples from attacks: values and types that were answered wrongly, or refused with wrong words."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import skyband as sb
from skyband import expressions

ONE = sb.tumbling(100, on="t")
WINDOW = "FROM t [WINDOW 9 EVERY 9 ON t]"


def value(text: str, rows: pa.Table) -> list[Any]:
    return expressions.bind_value(text, rows.schema).values(rows.to_batches()[0]).to_pylist()


# -- decimals ----------------------------------------------------------------------------------------------------------

DECIMALS = pa.table(
    {
        "d": pa.array([Decimal("1.1")], pa.decimal128(38, 20)),
        "e": pa.array([Decimal("1.000000000000001")], pa.decimal128(16, 15)),
        "h": pa.array([Decimal("1.5")], pa.decimal128(38, 30)),
        "x": pa.array([Decimal("-1.55")], pa.decimal128(5, 2)),
    }
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("d * d", "'d . d' has 40 digits after the point"),
        ("d * d = 1.21", "has 40 digits after the point"),
        ("e * e * e", "has 45 digits after the point"),
        ("h + 1", "'h' is decimal128.38, 30.: expressions compute with decimals of up to 28 digits"),
        ("h > 1", "CAST.h AS DOUBLE. computes in float64"),
        ("x * 1.00000000000000000000000000001", "has more than 28 digits"),
    ],
)
def test_decimals_never_become_floats_silently(text: str, why: str) -> None:
    with pytest.raises(sb.InvalidExpression, match=why):
        value(text, DECIMALS)


def test_the_advice_about_decimals_can_be_followed() -> None:
    assert value("CAST(d AS DECIMAL(10, 5)) * CAST(d AS DECIMAL(10, 5)) = 1.21", DECIMALS) == [True]
    assert value("CAST(h AS DOUBLE) + 1", DECIMALS) == [2.5]
    assert value("h IS NULL", DECIMALS) == [False]
    assert value("CAST(x AS BIGINT)", DECIMALS) == [-1]
    assert value("CAST(FLOOR(x) AS INT)", DECIMALS) == [-2]
    assert value("CAST(ROUND(x) AS BIGINT)", DECIMALS) == [-2]
    assert value("CAST(CAST(x AS BIGINT) AS STRING)", DECIMALS) == ["-1"]
    assert value("CAST(x * 100 AS TINYINT)", DECIMALS) == [None]


def test_pairs_compute_with_decimals_of_negative_scale_exactly() -> None:
    numbers = [Decimal("9007199254740993000"), Decimal("9007199254740992000")]
    rows = pa.table({"x": pa.array(numbers, pa.decimal128(20, -3)), "p": [1, 2]})
    best = sb.top_k_pairs(rows, k=1, by="a.x - b.x", window=sb.tumbling(2))
    assert best["score"].to_pylist() == [1000]
    assert sb.top_k_pairs(rows, k=1, by="a.p + b.p", where="a.x <> b.x", window=sb.tumbling(2)).num_rows == 1


@pytest.mark.parametrize("kind", [pa.decimal32(5, 2), pa.decimal64(10, 2), pa.decimal128(5, -2), pa.decimal256(40, 2)])
def test_decimals_of_every_width_are_keys(kind: pa.DataType) -> None:
    rows = pa.table({"x": pa.array([Decimal(200), Decimal(100), Decimal(200)], kind), "t": [0, 1, 2]})
    grouped = sb.join_aggregate(rows, window=ONE, group_by="x", aggregates={"n": "COUNT(*)"})
    assert [(row["x"], row["n"]) for row in grouped.to_pylist()] == [(Decimal(100), 1), (Decimal(200), 2)]
    assert grouped.schema.field("x").type == kind
    best = sb.top_k(rows, k=1, by="t", per="x", window=ONE)
    assert [(row["x"], row["score"]) for row in best.to_pylist()] == [(Decimal(200), 2), (Decimal(100), 1)]


@pytest.mark.parametrize(
    ("column", "first"),
    [
        (pa.array([1.5, 2.5], pa.float16()), 2.5),
        (pa.array([Decimal(100), Decimal(200)], pa.decimal128(5, -2)), Decimal(200)),
        (pa.array([Decimal(1), Decimal(2)], pa.decimal64(5, 2)), Decimal(2)),
        (pa.array(["a", "b"]).dictionary_encode(), "b"),
    ],
)
def test_sort_keys_of_any_type_are_shown_in_it(column: pa.Array, first: Any) -> None:
    answer = sb.top_k(pa.table({"x": column, "t": [0, 1]}), k=1, by=["x", "t"], window=ONE)
    assert answer["score"].to_pylist() == [first]
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    assert answer.schema.field("score").type == kind


# -- numbers -----------------------------------------------------------------------------------------------------------


def test_a_power_of_a_half_is_that_of_ieee_754() -> None:
    rows = pa.table({"x": [-math.inf, -0.0, 0.0, 4.0, -1.0, math.inf, math.nan, None]})
    for text in ("POWER(x, 0.5)", "x ** (1.0 - 0.5)"):
        found = value(text, rows)
        assert [repr(each) for each in found] == ["inf", "0.0", "0.0", "2.0", "nan", "inf", "nan", "None"], text


def test_a_cast_of_what_does_not_fit_is_null() -> None:
    rows = pa.table({"u": pa.array([2**64 - 1, 1], pa.uint64())})
    assert value("CAST(u AS BIGINT)", rows) == [None, 1]
    assert value("CAST(u AS INT)", rows) == [None, 1]
    assert value("CAST(u AS BIGINT) + 1", rows) == [None, 2]


@pytest.mark.parametrize("text", ["CASE WHEN NULL THEN 1 ELSE 2 END", "IF(NULL, 1, 2)", "IF(NOT (NULL), 1, 2)"])
def test_null_is_a_condition_that_is_not_met(text: str) -> None:
    assert value(text, DECIMALS) == [2]
    assert value("CASE x WHEN NULL THEN 1 ELSE 2 END", DECIMALS) == [2]


# -- aggregates --------------------------------------------------------------------------------------------------------

KINDS = pa.table(
    {
        "t": [0, 1, 2],
        "g": ["a", None, "b"],
        "ts": pa.array([5, 3, None], pa.timestamp("us")),
        "d": pa.array([2, 1, None], pa.date32()),
        "clock": pa.array([2, 1, None], pa.time32("s")),
        "u": pa.array([2**64 - 1, None, 1], pa.uint64()),
        "b": [True, None, False],
        "x": [1.0, math.nan, None],
    }
)
AGGREGATES = {
    "COUNT(g) FILTER (WHERE t < 2)": 1,
    "COUNT(UPPER(g))": 2,
    "COUNT(g LIKE 'a%')": 2,
    "COUNT(u)": 2,
    "COUNT(u) FILTER (WHERE t < 2)": 1,
    "COUNT(b) FILTER (WHERE t > 0)": 1,
    "COUNT(x)": 1,
    "COUNT(x) FILTER (WHERE t < 2)": 1,
    "COUNT(ts + INTERVAL 1 SECOND)": 2,
    "MIN(ts) FILTER (WHERE t < 1)": datetime(1970, 1, 1, microsecond=5),
    "MAX(ts + INTERVAL 1 SECOND)": datetime(1970, 1, 1, second=1, microsecond=5),
    "MIN(d)": date(1970, 1, 2),
    "MAX(d) FILTER (WHERE t > 0)": date(1970, 1, 2),
    "MIN(clock)": datetime(1970, 1, 1, second=1).time(),
    "COUNT(DISTINCT u)": 2,
}


@pytest.mark.parametrize("text", AGGREGATES)
def test_aggregates_take_what_they_need_no_number_of(text: str) -> None:
    assert sb.sql(f"SELECT {text} AS v {WINDOW}", t=KINDS)["v"].to_pylist() == [AGGREGATES[text]]


@pytest.mark.spark
def test_so_they_do_on_spark(spark: Any) -> None:
    texts = [text for text in AGGREGATES if "(u)" not in text and "DISTINCT u" not in text and "clock" not in text]
    listed = ", ".join(f"{text} AS v{i}" for i, text in enumerate(texts))
    df = spark.createDataFrame(KINDS.select(["t", "g", "ts", "d", "b", "x"]))
    (row,) = sb.sql(f"SELECT {listed} {WINDOW}", t=df).toArrow().to_pylist()
    found = [row[f"v{i}"] for i in range(len(texts))]
    plain = [each.replace(tzinfo=None) if isinstance(each, datetime) else each for each in found]
    assert dict(zip(texts, plain, strict=True)) == {text: AGGREGATES[text] for text in texts}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("AVG(b)", "'AVG.b.' adds up numbers, but 'b' is bool. MIN, MAX and COUNT accept it"),
        ("SUM(g)", "'SUM.g.' adds up numbers, but 'g' is string. MIN, MAX and COUNT accept it"),
        ("SUM(d)", "'SUM.d.' adds up numbers, but 'd' is date32.day.. MIN, MAX and COUNT accept it"),
        ("AVG(UPPER(g))", "adds up numbers, but 'UPPER.g.' is string"),
    ],
)
def test_an_aggregate_says_what_it_does_not_take(text: str, why: str) -> None:
    with pytest.raises(sb.InvalidSql, match=why):
        sb.sql(f"SELECT {text} AS v {WINDOW}", t=KINDS)


# -- scores that are shown ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keys", [["x NULLS LAST"], ["x", "t"], ["-(-x) NULLS LAST", "t"]])
def test_a_row_shows_its_own_score_not_one_that_is_equal(keys: list[str]) -> None:
    rows = pa.table({"t": [0, 1, 2, 3], "x": [0.0, -0.0, math.nan, None]})
    for batches in ([rows], [rows.slice(i, 1) for i in range(4)]):
        session = sb.TopK(k=4, by=keys, window=ONE).open(rows.schema)
        answer = pa.concat_tables([*map(session.push, batches), session.finish()])
        assert answer.num_rows == (4 if "NULLS" in keys[0] else 2)
        assert [repr(row["score"]) for row in answer.to_pylist()] == [repr(row["x"]) for row in answer.to_pylist()]


# -- words -------------------------------------------------------------------------------------------------------------


def test_the_advice_about_directions_is_a_sort_key() -> None:
    with pytest.raises(sb.InvalidQuery, match=r"by=\['s ASC', …\]"):
        sb.TopK(k=1, by=["s ASC", "t"], ascending=True, window=ONE)


def test_subscriptions_name_a_column_as_it_was_written() -> None:
    with pytest.raises(sb.InvalidExpression, match="'x' in 'x' is not a number"):
        sb.top_k(pa.table({"x": [True]}), k=1, by="x", window=sb.tumbling(1), for_each=pa.table({"id": [1]}))


@pytest.mark.parametrize("below", ["", "deeper"])
def test_a_store_says_that_its_place_is_a_file(tmp_path: Path, below: str) -> None:
    place = tmp_path / "file"
    place.touch()
    with pytest.raises(sb.InvalidInput, match=r"A store is a folder, but .* is a file"):
        sb.Store(place / below)


@pytest.mark.parametrize(
    ("x", "y", "target"),
    [
        (pa.timestamp("s"), pa.timestamp("us"), "TIMESTAMP_NTZ"),
        (pa.timestamp("s"), pa.date32(), "DATE"),
        (pa.decimal128(5, 2), pa.decimal128(7, 3), "DECIMAL(7, 3)"),
        (pa.string(), pa.int64(), "BIGINT"),
        (pa.int64(), pa.float64(), "BIGINT"),
    ],
)
def test_the_advice_about_joined_types_can_be_followed(x: pa.DataType, y: pa.DataType, target: str) -> None:
    a, b = (pa.table({"x": pa.array(["0" if kind == pa.string() else 0], kind)}) for kind in (x, y))
    with pytest.raises(sb.InvalidSql, match=f"CAST.x AS {target.replace('(', '.').replace(')', '.')}. AS y"):
        sb.sql("SELECT a.x FROM a JOIN b ON a.x = b.x", a=a, b=b)
    statement = f"""SELECT a.y FROM (SELECT *, CAST(x AS {target}) AS y FROM a) AS a
        JOIN (SELECT *, CAST(x AS {target}) AS y FROM b) AS b ON a.y = b.y"""
    assert sb.sql(statement, a=a, b=b).num_rows == 1


# -- windows, options and functions ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"size": 2, "every": 0}, "every must be more than 0, got 0"),
        ({"size": 1, "every": 2}, "every=2 is larger than size=1"),
        ({"size": -1, "every": 1}, "size must be more than 0, got -1"),
        ({"size": 1.5, "every": None}, "size must be a whole number, a duration or a timedelta, got 1.5"),
        ({"size": "1 hour", "every": None}, "A duration needs the column"),
        ({"size": 2**61, "every": None}, "must be less than 2..61"),
        ({"size": None, "every": 1, "on": 3}, "on must be the name of a column, got 3"),
    ],
)
def test_a_window_checks_itself(given: dict[str, Any], why: str) -> None:
    with pytest.raises(sb.InvalidQuery, match=why):
        sb.Window(**given)


@pytest.mark.parametrize("option", ["ascending", "ad_hoc"])
@pytest.mark.parametrize("given", ["no", 0, None])
def test_flags_are_true_or_false(option: str, given: object) -> None:
    with pytest.raises(sb.InvalidQuery, match=f"{option} must be True or False, got {given!r}"):
        sb.TopK(k=1, by="x", window=sb.tumbling(3), **{option: given})


@pytest.mark.parametrize("restored", [False, True])
def test_an_error_of_the_users_function_stays_what_it_is(restored: bool) -> None:
    def score(x: Any) -> Any:
        if (x == 77).any():
            raise ValueError("no score for 77")
        return x

    query, schema = sb.TopK(k=2, by=score, window=sb.sliding(5)), pa.schema({"x": pa.int64()})
    session = query.open(schema)
    session.push(pa.table({"x": [1, 2]}))
    if restored:
        session = query.open(schema, session.snapshot())
    with pytest.raises(ValueError, match="no score for 77") as error:
        session.push(pa.table({"x": [77]}))
    assert error.value.__notes__ == ["the function 'score' raised this; it is not an error of Skyband."]
    assert session.push(pa.table({"x": [5]})).num_rows == 2  # 5 enters, 1 leaves: the failed batch changed nothing


def test_numbers_that_arrow_cannot_hold_are_refused_by_name() -> None:
    pd = pytest.importorskip("pandas")
    with pytest.raises(sb.InvalidInput, match="Cannot read this DataFrame as Arrow data"):
        sb.top_k(pd.DataFrame({"x": [2**70, 1]}), k=1, by="x", window=sb.tumbling(2))
