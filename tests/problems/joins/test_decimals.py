"""Oracle and example tests: joins add up decimals exactly, in the column's own scale, and round a mean once."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from conformance.suite import examples
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb

EVERY_PLAN = ["late", "early:a", "early:b", "early", "multiply", None]
EXTREMES = {"low": "MIN(a.x)", "high": "MAX(a.x)"}
LINEAR = {"n": "COUNT(*)", "have": "COUNT(a.x)", "total": "SUM(a.x)", "mean": "AVG(a.x)", "m": "AVG(b.n)"}

# Hundredths: a few, and as many as 18 digits hold, of both signs; sums of sixteen rows and two matches fit in 64 bits.
HUNDREDTHS = st.one_of(
    st.none(), st.integers(-30, 30), st.integers(-(10**9), 10**9), st.sampled_from([10**17 - 1, -(10**17) + 1, 1, -1])
)
WHOLE = st.one_of(st.none(), st.integers(-3, 3), st.sampled_from([2**53 + 1, -(2**53) - 1, 2**58, 2**58 + 1]))
ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), HUNDREDTHS), min_size=1, max_size=16)
OTHERS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), WHOLE), min_size=1, max_size=8)


def decimals(numbers: list[int | None], kind: pa.DataType) -> pa.Array:
    return pa.array([None if n is None else Decimal(n).scaleb(-kind.scale) for n in numbers], kind)


def tables(rows: list[Any], others: list[Any], kind: pa.DataType) -> dict[str, pa.Table]:
    """Rows of two streams; the first of each row says how long after the one before it comes."""
    times = [[sum(gap for gap, *_ in of[: i + 1]) for i in range(len(of))] for of in (rows, others)]
    return {
        "a": pa.table({"t": times[0], "g": [g for _, g, _ in rows], "x": decimals([x for *_, x in rows], kind)}),
        "b": pa.table(
            {"t": times[1], "g": [g for _, g, _ in others], "n": pa.array([n for *_, n in others], pa.int64())}
        ),
    }


def by_hand(data: dict[str, pa.Table], sizes: dict[str, int], end: int, g: int) -> dict[str, Any] | None:
    """What the group is in the window that ends there, with Python's own numbers."""
    a, b = (
        [row for row in data[name].to_pylist() if row["g"] == g and end - size <= row["t"] < end]
        for name, size in sizes.items()
    )
    if not a or not b:
        return None
    x = [row["x"] for row in a if row["x"] is not None] * len(b)
    n = [row["n"] for row in b if row["n"] is not None] * len(a)
    with localcontext(prec=60):
        return {
            "window_end": end,
            "g": g,
            "n": len(a) * len(b),
            "have": len(x),
            "total": sum(x) if x else None,
            "mean": float(sum(map(Fraction, x)) / len(x)) if x else None,
            "m": float(Fraction(sum(n), len(n))) if n else None,
            "low": min(x, default=None),
            "high": max(x, default=None),
        }


@pytest.mark.parametrize("plan", EVERY_PLAN)
@examples(40)
@given(ROWS, OTHERS, st.sampled_from([pa.decimal128(18, 2), pa.decimal128(30, 4), pa.decimal256(50, 0)]), st.booleans())
def test_rows_that_come_and_go_leave_exact_decimals(
    plan: str | None, rows: list[Any], others: list[Any], kind: pa.DataType, restarts: bool
) -> None:
    data, sizes = tables(rows, others, kind), {"a": 6, "b": 9}
    aggregates = LINEAR if plan == "multiply" else {**LINEAR, **EXTREMES}
    query = sb.JoinAggregate(
        inputs={name: sb.sliding(size, on="t") for name, size in sizes.items()},
        on="a.g = b.g",
        group_by="a.g",
        aggregates=aggregates,
        every=3,
        plan=plan,
    )
    schemas = {name: table.schema for name, table in data.items()}
    session, answers = query.open(schemas), []
    for start in range(0, 16, 4):
        for name, table in data.items():
            answers.append(session.push(table.slice(start, 4), name))
            session.check()
            if restarts:
                session = query.open(schemas, session.snapshot())
    answers.append(session.finish())
    answer = pa.concat_tables(answers)
    assert answer.schema.field("total").type == pa.decimal128(38, kind.scale)
    ends = range(0, 80, 3)
    expected = [line for end in ends for g in (0, 1) if (line := by_hand(data, sizes, end, g))]
    shown = ["window_end", "g", *aggregates]
    assert answer.to_pylist() == [{name: line[name] for name in shown} for line in expected]
    if plan != "multiply":
        assert {answer.schema.field(name).type for name in EXTREMES} == {kind}


def test_decimals_are_what_duckdb_says() -> None:
    hundredths = [10, 20, None, -99999999999999999, 99999999999999999, 1, 7, 12345678901234567, -3, 10**16, None, 33]
    rows = [(1, i % 2, x) for i, x in enumerate(hundredths)]
    data = tables(rows, [(2, i % 2, i) for i in range(6)], pa.decimal128(18, 2))
    aggregates = {"total": "SUM(a.x)", "low": "MIN(a.x)", "high": "MAX(a.x)", "n": "COUNT(a.x)"}
    answer = sb.join_aggregate(
        data,
        inputs={"a": sb.sliding(6, on="t"), "b": sb.sliding(8, on="t")},
        on="a.g = b.g",
        group_by="a.g",
        aggregates=aggregates,
        every=2,
    )
    connection = duckdb.connect()
    for name, table in data.items():
        connection.register(name, table)
    text = ", ".join(f"{text} AS {name}" for name, text in aggregates.items())
    expected = []
    for end in range(0, 30, 2):
        found = connection.execute(
            f"SELECT {end}, a.g, {text} FROM (SELECT * FROM a WHERE t >= {end - 6} AND t < {end}) AS a, "
            f"(SELECT * FROM b WHERE t >= {end - 8} AND t < {end}) AS b WHERE a.g = b.g GROUP BY a.g ORDER BY a.g"
        )
        expected += found.fetchall()
        types = found.description
    assert [tuple(row.values()) for row in answer.to_pylist()] == expected
    assert [str(each[1]) for each in types[2:5]] == ["DECIMAL(38,2)", "DECIMAL(18,2)", "DECIMAL(18,2)"]
    assert answer.schema.types[2:5] == [pa.decimal128(38, 2), pa.decimal128(18, 2), pa.decimal128(18, 2)]


def one_group(column: pa.Array, **aggregates: str) -> pa.Table:
    table = pa.table({"t": range(len(column)), "x": column})
    return sb.join_aggregate(table, window=sb.tumbling(100, on="t"), aggregates=aggregates)


@pytest.mark.parametrize(
    "kind", [pa.decimal32(5, 2), pa.decimal64(10, 2), pa.decimal128(5, -2), pa.decimal256(60, 15), pa.decimal128(20, 0)]
)
def test_decimals_of_every_width(kind: pa.DataType) -> None:
    values = [Decimal("300"), None, Decimal("-100"), Decimal("200")]
    answer = one_group(pa.array(values, kind), s="SUM(x)", a="AVG(x)", low="MIN(x)", high="MAX(x)", n="COUNT(x)")
    assert answer.to_pylist()[0] == {
        "window_end": 100, "s": Decimal(400), "a": 400 / 3, "low": Decimal(-100), "high": Decimal(300), "n": 3,
    }  # fmt: skip
    assert answer.schema.field("low").type == kind
    assert answer.schema.field("s").type == pa.decimal128(38, max(0, kind.scale))


def test_no_decimals_have_no_sum() -> None:
    answer = one_group(pa.array([None, None], pa.decimal128(9, 2)), s="SUM(x)", a="AVG(x)", low="MIN(x)", n="COUNT(x)")
    assert [row | {"window_end": 0} for row in answer.to_pylist()] == [
        {"window_end": 0, "s": None, "a": None, "low": None, "n": 0}
    ]


def test_a_sum_of_decimals_that_does_not_fit_is_refused_by_name() -> None:
    most = pa.array([Decimal(10**18 - 1).scaleb(-2)] * 10, pa.decimal128(18, 2))
    assert one_group(most.slice(0, 9), s="SUM(x)")["s"].to_pylist() == [Decimal(9 * (10**18 - 1)).scaleb(-2)]
    with pytest.raises(
        sb.AggregateOverflow, match="'s': A sum of decimals, in units of their last digit, exceeds 64 bits"
    ):
        one_group(most, s="SUM(x)")
    assert one_group(most, s="AVG(x)")["s"].to_pylist() == [float(Decimal(10**18 - 1).scaleb(-2))], "a mean always fits"
    assert one_group(most, s="SUM(CAST(x AS DOUBLE))")["s"].to_pylist() == [float(Decimal(10**19 - 10).scaleb(-2))]


def test_a_decimal_beyond_64_bits_is_refused_by_name_and_nothing_is_taken() -> None:
    wide = pa.array([Decimal("1.5"), Decimal("12.5")], pa.decimal128(38, 18))
    query = sb.JoinAggregate(inputs=sb.tumbling(100, on="t"), aggregates={"s": "SUM(x)", "n": "COUNT(*)"})
    session = query.open(pa.schema([("t", pa.int64()), ("x", wide.type)]))
    with pytest.raises(
        sb.InvalidInput, match=r"'SUM\(x\)': x is 12\.50* for a row, .* more than 64 bits .* SUM\(CAST\(x AS DOUBLE\)\)"
    ):
        session.push(pa.table({"t": [0, 1], "x": wide}))
    session.push(pa.table({"t": [0], "x": wide.slice(0, 1)}))
    assert session.finish().to_pylist() == [
        {"window_end": 100, "s": Decimal("1.5").quantize(Decimal(10) ** -18), "n": 1}
    ]
    assert one_group(wide, n="COUNT(x)")["n"].to_pylist() == [2], "to count them takes no digits"
    assert one_group(wide, s="SUM(CAST(x AS DOUBLE))")["s"].to_pylist() == [14.0]


@pytest.mark.parametrize("emit", ["windows", "changes"])
def test_the_best_groups_by_a_sum_of_decimals(emit: Any) -> None:
    """Float64 could not tell them apart."""
    x = decimals([10**17 + 1, 10**17 + 2, 10**17], pa.decimal128(18, 2))
    table = pa.table({"t": [0, 0, 0], "g": ["p", "q", "r"], "x": x})
    answer = sb.join_aggregate(
        table,
        window=sb.tumbling(10, on="t"),
        group_by="g",
        aggregates={"s": "SUM(x)"},
        order_by="s",
        k=2,
        emit=emit,
    )
    best = [row["g"] for row in answer.to_pylist() if row.get("change", "upsert") == "upsert"]
    assert best == (["q", "p"] if emit == "windows" else ["p", "q"])


def test_a_snapshot_that_took_decimals_for_floats_is_not_read() -> None:
    query = sb.JoinAggregate(inputs=sb.tumbling(10, on="t"), aggregates={"s": "SUM(x)"}, plan="late")
    schema = pa.schema([("t", pa.int64()), ("x", pa.decimal128(9, 2))])
    session = query.open(schema)
    state = session._operator.state()
    del state["live 0 scales"]
    with pytest.raises(KeyError, match="live 0 scales"):  # which the session takes for another version's
        query.open(schema)._operator.restore(state)
