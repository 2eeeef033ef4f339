"""Example tests: whole numbers and decimals that float64 cannot tell apart, in every way of asking."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb

WINDOW = sb.tumbling(4)
BIG = 2**53


def scores(values: pa.Array, **asked: Any) -> pa.ChunkedArray:
    """What four rows with these scores are shown with."""
    rows = pa.table({"x": values, "id": list(range(len(values)))})
    return sb.top_k(rows, **{"k": 4, "by": "x", "window": WINDOW, **asked}).column("score")


@pytest.mark.parametrize(
    ("given", "best_first"),
    [
        (pa.array([BIG + 1, BIG, None, 7]), [BIG + 1, BIG, 7]),
        (pa.array([2**63 - 2, 2**63 - 1, -(2**63), 1 - 2**63]), [2**63 - 1, 2**63 - 2, 1 - 2**63, -(2**63)]),
        (pa.array([2**64 - 2, 2**64 - 1, 0, 2**63], pa.uint64()), [2**64 - 1, 2**64 - 2, 2**63, 0]),
        (pa.array([3, None, -1, 3], pa.int8()), [3, 3, -1]),
        (pa.array([0.5, 1.25, None, 0.1], pa.float32()), [1.25, 0.5, np.float32(0.1)]),
        (
            pa.array([Decimal(BIG) / 100, Decimal(BIG + 1) / 100, None, Decimal("-0.01")], pa.decimal128(18, 2)),
            [Decimal(BIG + 1) / 100, Decimal(BIG) / 100, Decimal("-0.01")],
        ),
        (pa.array([Decimal("12.5"), Decimal("12.25")], pa.decimal128(38, 18)), [Decimal("12.5"), Decimal("12.25")]),
    ],
    ids=lambda column: str(column.type) if isinstance(column, pa.Array) else "",
)
def test_ranked_exactly_and_shown_in_their_own_type(given: pa.Array, best_first: list[Any]) -> None:
    given = pa.concat_arrays([given, pa.nulls(4 - len(given), given.type)])
    shown = scores(given)
    assert shown.type == given.type
    assert shown.to_pylist() == best_first
    assert scores(given, ascending=True).to_pylist() == best_first[::-1]


def test_a_hash_after_small_numbers_changes_no_answer() -> None:
    """The rows held get other keys: in the middle of windows by count, by value and per group, and after a restart."""
    values = [5, None, 4, 2**63 - 1, 6, -(2**63), 2**62 + 1, 2**62, 4, 2**63 - 2, 3]
    rows = pa.table({"x": pa.array(values), "t": list(range(len(values))), "g": list("abababababa")})
    for window in (sb.sliding(4), sb.sliding(4, on="t"), sb.sliding(4, every=2), sb.sliding(4, every=2, on="t")):
        for per in ((), ("g",)):
            query = sb.TopK(k=2, by="x", window=window, per=per)
            whole, restarted, found = query.open(rows.schema), query.open(rows.schema), []
            expected = whole.push(rows).to_pylist() + whole.finish().to_pylist()
            for i in range(len(values)):
                restarted = query.open(rows.schema, restarted.snapshot())
                found += restarted.push(rows.slice(i, 1)).to_pylist()
                restarted.check()
            found += restarted.finish().to_pylist()
            assert found == expected
            assert {row["score"] for row in found} <= set(values) - {None}


# -- expressions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("x + 1", BIG + 2),
        ("2 * x - x", BIG + 1),
        ("-x", -BIG - 1),
        ("ABS(-x)", BIG + 1),
        ("x % 10", (BIG + 1) % 10),
        ("GREATEST(x, 5)", BIG + 1),
        ("COALESCE(NULL, x)", BIG + 1),
        ("CASE WHEN x > 9007199254740992 THEN x ELSE 0 END", BIG + 1),
        ("IF(x = 9007199254740992, 0, x)", BIG + 1),
        ("x * i - x * i + i", 3),
        ("CASE WHEN i > 5 THEN x * x ELSE i END", 3),
    ],
)
def test_expressions_of_whole_numbers_stay_whole(by: str, expected: int) -> None:
    rows = pa.table({"x": [BIG + 1], "i": pa.array([3], pa.int16())})
    shown = sb.top_k(rows, k=1, by=by, window=sb.tumbling(1)).column("score")
    assert (shown.type, shown.to_pylist()) == (pa.int64(), [expected])


@pytest.mark.parametrize("by", ["x / 2", "x * 0.5", "SQRT(x)", "x ** 2", "GREATEST(x, 0.5)"])
def test_a_float_makes_floats(by: str) -> None:
    rows = pa.table({"x": [BIG + 1]})
    assert sb.top_k(rows, k=1, by=by, window=sb.tumbling(1)).schema.field("score").type == pa.float64()


@pytest.mark.parametrize("by", ["x * x", "x + x", "-x", "ABS(x)", "x * x * x", "x * x - x * x"])
def test_what_does_not_fit_is_refused_and_nothing_is_taken(by: str) -> None:
    rows = pa.table({"x": [1, -(2**63)]})
    session = sb.TopK(k=1, by=by, window=sb.tumbling(1)).open(rows.schema)
    with pytest.raises(sb.InvalidInput, match="does not fit in 64 bits") as error:
        session.push(rows)
    assert repr(by) in str(error.value)
    assert session.stats().rows_in == 0
    assert session.push(rows.slice(0, 1)).num_rows == 1


def test_a_column_in_quotes_or_parentheses_is_the_column() -> None:
    decimals = pa.array([Decimal(BIG) / 10, Decimal(BIG + 1) / 10], pa.decimal128(30, 1))
    for by in ("`x`", "(x)"):
        shown = scores(decimals, by=by, window=sb.tumbling(2))
        assert (shown.type, shown.to_pylist()) == (decimals.type, decimals.to_pylist()[::-1])


# -- functions ------------------------------------------------------------------------------------------------------


def test_a_function_that_gives_integers_is_ranked_by_them() -> None:
    shown = scores(pa.array([BIG, BIG + 1, BIG + 2, BIG + 3]), by=lambda x: x + 1)
    assert (shown.type, shown.to_pylist()) == (pa.int64(), [BIG + 4, BIG + 3, BIG + 2, BIG + 1])


def test_a_function_that_cannot_be_called_with_no_rows_gives_floats() -> None:
    shown = scores(pa.array([1, 2, 3, 4]), by=lambda x: x - x[0])
    assert (shown.type, shown.to_pylist()) == (pa.float64(), [3.0, 2.0, 1.0, 0.0])
    with pytest.raises(sb.InvalidInput, match=r"9007199254740993 .*float64"):
        scores(pa.array([1, 2, 3, BIG + 2]), by=lambda x: x - x[0])


def test_a_function_of_columns_with_nulls() -> None:
    assert scores(pa.array([3, None, 1, 2]), by=lambda x: x + 1).to_pylist() == [4, 3, 2]
    with pytest.raises(sb.InvalidInput, match="beyond"):
        scores(pa.array([2**60, None, 1, 2]), by=lambda x: x + 1)


# -- decimals beyond 64 bits, and what is computed in float64 -------------------------------------------------------


def test_a_decimal_beyond_64_bits_is_refused_by_name() -> None:
    with pytest.raises(sb.InvalidInput, match=r"x is 10000000000000000000 .*Cast the column"):
        scores(pa.array([Decimal(10**19), None, None, None], pa.decimal128(38, 0)))


def test_decimals_that_need_more_digits_than_those_held_leave_room_for() -> None:
    rows = pa.table({"x": pa.array([Decimal(9 * 10**17), Decimal("1e-18")], pa.decimal256(60, 18)), "id": [0, 1]})
    session = sb.TopK(k=1, by="x", window=sb.sliding(2)).open(rows.schema)
    session.push(rows.slice(0, 1))
    with pytest.raises(sb.InvalidInput, match="64 bits"):
        session.push(rows.slice(1))
    assert session.stats().rows_in == 1
    session.push(rows.slice(0, 1))
    assert session.top().column("score").to_pylist() == [Decimal(9 * 10**17)]


QUERIES = pa.table({"id": [1, 2], "least": [0.0, 1.0]})


@pytest.mark.parametrize("ascending", [False, True])
@pytest.mark.parametrize(
    "given",
    [
        pa.array([BIG + 1, BIG, None, 2**61]),
        pa.array([Decimal(BIG + 1) / 100, Decimal(BIG) / 100], pa.decimal128(20, 2)),
    ],
    ids=["int64", "decimal"],
)
def test_subscriptions_to_one_score(given: pa.Array, ascending: bool) -> None:
    rows = pa.table({"x": given, "y": [1.0] * len(given)})
    asked = {"k": 4, "by": "x", "ascending": ascending, "window": sb.tumbling(len(given))}
    for where in (None, "y > q.least"):
        result = sb.top_k(rows, for_each=QUERIES, where=where, **asked)
        shown = [row["score"] for row in result.to_pylist() if row["id"] == 1]
        assert result.schema.field("score").type == given.type
        assert shown == sb.top_k(rows, **asked).column("score").to_pylist()


def test_subscriptions_refuse_what_they_would_round() -> None:
    rows = pa.table({"x": [1, BIG + 1]})
    for asked in ({"by": "x * q.least"}, {"by": "x", "where": "x > q.least"}):
        with pytest.raises(sb.InvalidInput, match=r"x is 9007199254740993 .*float64"):
            sb.top_k(rows, k=1, window=sb.tumbling(2), for_each=QUERIES, **asked)
    with pytest.raises(sb.InvalidInput, match=r"x is 9223372036854775807 .*subscriptions"):
        sb.top_k(pa.table({"x": [2**63 - 1]}), k=1, by="x", window=sb.tumbling(1), for_each=QUERIES)
    queries = pa.table({"id": [1], "least": [BIG + 1]})
    with pytest.raises(sb.InvalidInput, match=r"q.least is 9007199254740993"):
        sb.top_k(rows.slice(0, 1), k=1, by="x * q.least", window=sb.tumbling(1), for_each=queries)


WHOLE = [BIG, BIG + 1, -BIG - 1, -BIG, None, 5, 2**63 - 1, BIG + 1, BIG + 2, -(2**63)]
NONNEGATIVE = [None if x is None else abs(x) for x in WHOLE]


@pytest.mark.parametrize("window", [sb.tumbling(10), sb.sliding(10)], ids=str)
@pytest.mark.parametrize("condition", ["id = q.want", "id <> q.want", "id = q.want AND n <> q.key"])
@pytest.mark.parametrize(
    ("ids", "wanted"),
    [
        (pa.array(WHOLE), pa.array(WHOLE)),
        (pa.array(NONNEGATIVE, pa.uint64()), pa.array([*NONNEGATIVE[1:], 2**64 - 1], pa.uint64())),
        (pa.array(NONNEGATIVE, pa.uint64()), pa.array(WHOLE)),
        (pa.array(WHOLE), pa.array([5, 7, None] * 3 + [5], pa.int32())),
    ],
    ids=["int64", "uint64", "uint64 and int64", "int64 and int32"],
)
def test_subscriptions_compare_whole_numbers_exactly(
    ids: pa.Array, wanted: pa.Array, condition: str, window: sb.Window
) -> None:
    rows = pa.table({"id": ids, "n": range(10)})
    queries = pa.table({"key": range(10), "want": wanted})
    result = sb.top_k(rows, k=10, by="n", where=condition, window=window, emit="entries", for_each=queries)
    assert {(row["key"], row["score"]) for row in result.to_pylist()} == {
        (key, n)
        for key, want in enumerate(wanted.to_pylist())
        for n, x in enumerate(ids.to_pylist())
        if None not in (x, want) and (x != want if "<>" in condition[:5] else x == want)
        if "AND" not in condition or n != key
    }


def test_a_subscription_that_comes_later_finds_whole_numbers_of_the_window() -> None:
    rows = pa.table({"id": [BIG, BIG + 1, BIG + 2, BIG + 1], "n": [0, 1, 2, 3]})
    query = sb.TopKForEach(
        queries=pa.table({"key": [0], "want": [BIG]}), key="key", k=4, by="n", where="id = q.want",
        window=sb.sliding(4), emit="entries", algorithm="scan",
    )  # fmt: skip
    session = query.open(rows.schema)
    assert session.push(rows)["score"].to_pylist() == [0]
    session = query.open(rows.schema, session.snapshot())
    assert session.add(pa.table({"key": [1], "want": [BIG + 1]}), backfill=True)["score"].to_pylist() == [3, 1]
    session = query.open(rows.schema, session.snapshot())
    session.remove([0])
    assert session.push(rows.slice(0, 2))["key"].to_pylist() == [1]


def test_values_across_streams_are_refused_rather_than_rounded() -> None:
    streams = {name: pa.table({"id": [1], "t": [0], "v": [BIG + step]}) for name, step in (("a", 0), ("b", 1))}
    asked = {"k": 1, "id": "id", "value": "v", "combine": "sum", "bounds": (0, 2**60), "window": sb.tumbling(2, on="t")}
    with pytest.raises(sb.InvalidInput, match="9007199254740993"):
        sb.top_k_across(streams, **asked)


# -- statements -----------------------------------------------------------------------------------------------------


def test_statements_rank_exactly_alone_and_together() -> None:
    rows = pa.table({"x": [BIG, BIG + 1, 2**63 - 1, 2**63 - 2], "n": [1, 2, 3, 4]})
    texts = {
        name: f"SELECT n, x - 1 AS less FROM rows [WINDOW {size} ROWS EVERY 2 ROWS] ORDER BY x DESC LIMIT 2"
        for name, size in (("a", 2), ("b", 4))
    }
    alone = {name: sb.sql(text, rows=rows) for name, text in texts.items()}
    assert alone["b"].column("score").to_pylist() == [BIG + 1, BIG, 2**63 - 1, 2**63 - 2]
    assert alone["b"].column("less").to_pylist() == [BIG, BIG - 1, 2**63 - 2, 2**63 - 3]
    together = sb.run_all(texts, rows=rows)
    assert {name: table.to_pylist() for name, table in together.items()} == {
        name: table.to_pylist() for name, table in alone.items()
    }


def test_join_aggregates_are_ranked_exactly() -> None:
    a = pa.table({"t": [0, 0], "g": [1, 2]})
    b = pa.table({"t": [0, 0], "g": [1, 2], "v": [BIG, BIG + 1]})
    asked = {"inputs": {"a": sb.tumbling(10, on="t"), "b": sb.tumbling(10, on="t")}, "on": "a.g = b.g", "every": 10}
    for order_by in ("s DESC", "s + 1 DESC"):
        best = sb.join_aggregate(
            {"a": a, "b": b}, group_by="a.g", aggregates={"s": "SUM(b.v)"}, order_by=order_by, k=1, **asked
        )
        assert best.column("s").to_pylist() == [BIG + 1]
