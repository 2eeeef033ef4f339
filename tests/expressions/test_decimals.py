"""Oracle and example tests: expressions over decimals lose no digit, on either engine."""

from __future__ import annotations

import decimal
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import skyband as sb
from skyband.expressions import bind_condition, bind_value

ROWS = pa.record_batch(
    {
        "price": pa.array(map(Decimal, ("0.37", "-12.50", "999.99")), pa.decimal128(9, 2)),
        "wide": pa.array(map(Decimal, ("12345678901234567.123456", "-0.000001", "7")), pa.decimal128(24, 6)),
        "n": pa.array([3, -4, 2**40], pa.int64()),
        "x": pa.array([0.5, 2.0, -1.0]),
    }
)


class Texts:
    """Sums and products of decimals by chance: as SQL, and as Python computes them."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def one(self, depth: int) -> tuple[str, str]:
        if depth == 0 or self._chance.random() < 0.2:
            name = self._chance.choice(("price", "wide", "n", "2", "0.125", "10.0"))
            return name, name if name in ROWS.schema.names else f"D('{name}')"
        (a, ours), (b, theirs) = self.one(depth - 1), self.one(depth - 1)
        sign = self._chance.choice("+-")
        return self._chance.choice(
            [
                (f"({a} {sign} {b})", f"({ours} {sign} {theirs})"),
                (f"(-{a})", f"(-{ours})"),
                (f"ABS({a})", f"abs({ours})"),
                (f"GREATEST({a}, {b})", f"max({ours}, {theirs})"),
                (f"(price * {a})", f"(price * {ours})"),
                (f"CASE WHEN {a} < {b} THEN {a} ELSE {b} END", f"min({ours}, {theirs})"),
                (f"FLOOR({a})", f"{ours}.to_integral_value('ROUND_FLOOR')"),
                (f"CEIL({a})", f"{ours}.to_integral_value('ROUND_CEILING')"),
            ]
        )


def row(number: int) -> dict[str, Any]:
    values = {name: ROWS.column(name)[number].as_py() for name in ("price", "wide", "n")}
    return {name: Decimal(value) for name, value in values.items()}


def test_sums_and_products_are_those_of_python() -> None:
    texts, compared = Texts(random.Random(7)), 0
    for _ in range(200):
        ours, theirs = texts.one(3)
        try:
            given = bind_value(f"price * 0 + {ours}", ROWS.schema)
            values = given.values(ROWS).to_pylist()
        except (
            sb.InvalidInput,
            sb.InvalidExpression,
        ):  # it takes more than 38 digits, or a part of it more than 64 bits
            continue
        if not pa.types.is_decimal(given.type):  # with more than 38 digits after the point
            continue
        with decimal.localcontext(prec=120):
            assert values == [eval(theirs, {"D": Decimal, **row(number)}) for number in range(3)], ours
        compared += 1
    assert compared > 100


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("price * 3 = 1.11", [True, False, False]),
        ("price IN (0.37, 999.99)", [True, False, True]),
        ("price NOT IN (0.370, -12.5)", [False, False, True]),
        ("wide > 12345678901234567.123455", [True, False, False]),
        ("wide = 12345678901234567.123456", [True, False, False]),
        ("wide BETWEEN -0.000001 AND 0", [False, True, False]),
        ("price % 0.1 = 0.07", [True, False, False]),
        ("price > x", [False, False, True]),
        (f"price IN ({', '.join(f'0.{i}' for i in range(10, 60))})", [True, False, False]),
    ],
)
def test_decimals_are_compared_digit_by_digit(text: str, met: list[bool]) -> None:
    assert bind_condition(text, ROWS.schema, used_as="WHERE").evaluate(ROWS).tolist() == met


def test_beside_floats_and_in_quotients_decimals_are_floats() -> None:
    for text, first in (
        ("price * x", 0.185),
        ("price / 2", 0.185),
        ("CAST(price AS DOUBLE)", 0.37),
        ("price * 1e0", 0.37),
    ):
        given = bind_value(text, ROWS.schema)
        assert given.type == pa.float64()
        assert given.values(ROWS)[0].as_py() == first


def test_a_decimal_of_more_digits_than_are_computed_with_is_refused() -> None:
    kind = pa.decimal128(38, 10)
    small, large = (pa.record_batch({"d": pa.array([Decimal(text)], kind)}) for text in ("1.5", f"{10**20}.5"))
    double = bind_value("d * 2", small.schema)
    assert double.values(small).to_pylist() == [Decimal(3)]
    with pytest.raises(sb.InvalidInput, match=r"more than 28 digits.*CAST\(d AS DOUBLE\)"):
        double.values(large)
    assert bind_value("CAST(d AS DOUBLE) * 2", large.schema).values(large).to_pylist() == [2e20 + 1]


@pytest.mark.spark
def test_spark_gives_the_same_decimals(spark: Any) -> None:
    texts = [
        *(
            "price * 2",
            "price + n",
            "wide * price",
            "-wide",
            "price - 0.125",
            "FLOOR(wide)",
            "CEIL(price)",
            "price % 7",
        ),
        *(
            "price * price * price",
            "COALESCE(NULL, wide)",
            "CASE WHEN price > 0.3 THEN wide ELSE n END",
        ),
        *(
            "(wide + 1) * x",
            "price * x",
            "CAST(wide AS DOUBLE)",
            "GREATEST(price, n, 0.001)",
            "wide / 3",
        ),
    ]
    bound = {text: bind_value(text, ROWS.schema) for text in texts}
    df = spark.createDataFrame(pa.Table.from_batches([ROWS]))
    given = df.selectExpr(*(f"{one.spark_sql} AS `{number}`" for number, one in enumerate(bound.values()))).toArrow()
    for column, (text, one) in zip(given.columns, bound.items(), strict=True):
        assert column.to_pylist() == one.values(ROWS).to_pylist(), text
        assert column.type == one.type, text


@pytest.mark.parametrize("digits", [18, 38])
def test_decimals_without_a_fraction_stay_exact(digits: int) -> None:
    large = 90071992547409931  # float64 has its neighbours only
    rows = pa.table({"x": pa.array([Decimal(large), Decimal(5), None], pa.decimal128(digits, 0))})
    for text, expected in {
        "x % 10": [1, 5],
        "x + 0.5": [Decimal(large) + Decimal("0.5"), Decimal("5.5")],
        "-x": [-large, -5],
        "x * 2": [2 * large, 10],
        "CAST(x AS DECIMAL(20, 1))": [Decimal(large), Decimal(5)],
        "CAST(x AS BIGINT)": [large, 5],
        "CAST(x AS DOUBLE)": [float(large), 5.0],
        "COALESCE(x, 0.5)": [Decimal(large), Decimal(5), Decimal("0.5")],
        f"x = {large + 1}": [False, False],
        f"x IN ({large - 1})": [False, False],
        f"x > {large - 1}.5": [True, False],
    }.items():
        found = sb.sql(f"SELECT {text} AS z FROM rows", rows=rows)["z"].to_pylist()
        assert found == (expected if len(expected) == 3 else [*expected, None]), text
