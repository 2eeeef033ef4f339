"""Example: what independent attacks through the public API found, each as small as it can be shown."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb

EXACT = pa.table({"t": [1, 1], "g": ["b", "a"], "i": [2**53 + 1, 2**53]})
ONE = sb.tumbling(10, on="t")


@pytest.mark.parametrize(
    "argument", ["COALESCE(i, 0)", "ABS(i)", "CASE WHEN i > 0 THEN i ELSE 0 END", "GREATEST(i, 1)", "NULLIF(i, 0)"]
)
def test_arguments_of_whole_numbers_stay_whole(argument: str) -> None:
    best = sb.join_aggregate(
        EXACT, window=ONE, group_by="g", aggregates={"m": f"MAX({argument})"}, order_by="m", k=1
    ).to_pylist()
    assert [(row["g"], row["m"]) for row in best] == [("b", 2**53 + 1)]
    total = sb.join_aggregate(EXACT, window=ONE, aggregates={"s": f"SUM({argument})"})
    assert total["s"].to_pylist() == [2**54 + 1]


def test_a_sum_of_whole_numbers_that_does_not_fit_is_refused_whatever_its_argument() -> None:
    rows = pa.table({"t": [1] * 3, "i": [2**62] * 3})
    with pytest.raises(sb.AggregateOverflow):
        sb.join_aggregate(rows, window=ONE, aggregates={"s": "SUM(ABS(i))"})


def test_recompute_goes_on_when_no_group_was_known() -> None:
    schema = pa.schema({"ts": pa.int64(), "j": pa.int64(), "g": pa.string(), "v": pa.float64()})
    rows = [pa.Table.from_pylist([{"ts": ts, "j": 0, "g": "a", "v": 1.0}], schema) for ts in (3, 6, 7)]
    query = sb.JoinAggregate(
        inputs={"x": sb.sliding(4, on="ts"), "y": sb.sliding(4, on="ts")},
        on="x.j = y.j",
        group_by="x.g",
        aggregates={"s": "SUM(x.v)"},
        order_by="s",
        k=2,
        plan="recompute",
    )
    schemas = {"x": schema, "y": schema}
    session = query.open(schemas)
    session.push(rows[0], "x")
    session.push(rows[1], "y")
    session = query.open(schemas, session.snapshot())
    other = rows[2].set_column(1, "j", pa.array([1]))
    assert session.push(other, "x").to_pylist() == [{"at": 7, "change": "delete", "g": "a", "s": None}]


@pytest.mark.parametrize("by", ["least(i, 18446744073709551616)", "i + 18446744073709551616 - 18446744073709551616"])
def test_a_literal_beyond_64_bits_is_refused_not_rounded(by: str) -> None:
    with pytest.raises(sb.InvalidExpression, match="18446744073709551616 does not fit in 64 bits"):
        sb.top_k(EXACT, k=2, by=by, window=ONE)


def test_a_literal_beyond_float64_is_refused_in_scores_of_many_queries() -> None:
    with pytest.raises(sb.InvalidExpression, match=r"9007199254740993 in .* is beyond 2\*\*53"):
        sb.top_k(EXACT, k=2, by="i - i + q.id + 9007199254740993", window=ONE, for_each=pa.table({"id": [1]}))


def test_small_decimals_are_keys_and_put_rows_in_order() -> None:
    kind = pa.decimal64(10, 2)
    rows = pa.table({"p": pa.array([Decimal("2.00"), Decimal("1.00")], kind), "s": [1.0, 2.0]})
    assert sb.top_k(rows, k=1, by="s", per="p", window=sb.tumbling(1))["score"].to_pylist() == [1.0, 2.0]
    first = sb.top_k(rows, k=1, by="s", window=sb.tumbling(1, order="p"))
    assert first["score"].to_pylist() == [2.0, 1.0]
    half = rows.set_column(0, "p", pa.array(np.array([2, 1], np.float16)))
    assert sb.top_k(half, k=1, by="s", window=sb.tumbling(1, order="p"))["score"].to_pylist() == [2.0, 1.0]


def test_what_is_nested_too_deeply_is_refused() -> None:
    deep = "(" * 2_000 + "{}" + ")" * 2_000
    with pytest.raises(sb.InvalidExpression, match="nested too deeply"):
        sb.top_k(EXACT, k=1, by=deep.format("i"), window=ONE)
    with pytest.raises(sb.InvalidExpression, match="nested too deeply"):
        sb.join_aggregate(EXACT, window=ONE, aggregates={"s": f"SUM({deep.format('i')})"})


@pytest.mark.parametrize("restarted", [False, True])
def test_one_row_far_ahead_closes_a_million_windows_and_no_more(restarted: bool) -> None:
    query = sb.TopK(k=1, by="i", window=sb.landmark(every=1, on="t"))
    rows = pa.table({"t": [0, 1], "i": [1, 2]})
    session = query.open(rows.schema)
    session.push(rows)
    if restarted:
        session = query.open(rows.schema, session.snapshot())
    far = pa.table({"t": [2, 4_070_908_800], "i": [3, 4]})
    with pytest.raises(
        sb.InvalidInput, match=r"Row 1 .* would close .* windows by itself, and one row may .* 1,000,000"
    ):
        session.push(far)
    assert session.push(far.slice(0, 1))["score"].to_pylist() == [2], "nothing of the batch was taken"
    aside = sb.TopK(k=1, by="i", window=sb.landmark(every=1, on="t"), max_jump=1000).open(rows.schema)
    aside.push(rows)
    aside.push(far)
    assert aside.stats().rows_jumped == 1
    many = sb.top_k(pa.table({"t": [0, 2**40], "i": [1, 2]}), k=1, by="i", window=sb.sliding(50, every=1, on="t"))
    assert many.num_rows == 100, "of a window that ends, few windows hold a row"


FINE = sb.sliding(10**12, every=1, on="t")


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize(
    "query",
    [
        sb.TopK(k=1, by="i", window=FINE),
        sb.TopK(k=1, by="i", window=FINE, emit="changes"),
        sb.TopKPairs(k=1, by="a.i - b.i", window=FINE),
    ],
    ids=["rows", "changes", "pairs"],
)
def test_the_end_closes_a_million_windows_and_no_more(query: Any, restarted: bool) -> None:
    rows = pa.table({"t": [0, 1, 2], "i": [1, 2, 3]})
    session = query.open(rows.schema)
    session.push(rows)
    if restarted:
        session = query.open(rows.schema, session.snapshot())
    with pytest.raises(sb.InvalidInput, match=r"Each row is in 1,000,000,000,000 windows\. The end .* 1,000,000\."):
        session.finish()
    assert session.advance(5).num_rows, "it goes on"


def test_so_does_the_end_of_a_table_in_groups() -> None:
    with pytest.raises(sb.InvalidInput, match=r"The end of the input would close 1,000,000,000,000 of them"):
        sb.join_aggregate(EXACT, window=FINE, aggregates={"n": "COUNT(*)"})


def test_a_row_may_be_in_a_million_windows() -> None:
    most = sb.sliding(10**6, every=1, on="t")
    assert sb.top_k(pa.table({"t": [7], "i": [1]}), k=1, by="i", window=most).num_rows == 10**6


@pytest.mark.parametrize("questions", [None, 7])
def test_questions_are_a_list(questions: Any) -> None:
    session = sb.TopK(k=1, by="i", window=ONE).open(EXACT.schema)
    with pytest.raises(sb.InvalidQuery, match=r"top_many takes a list of \(k, size\)"):
        session.top_many(questions)


def test_a_key_that_no_column_can_hold_is_refused() -> None:
    session = sb.TopKForEach(queries=pa.table({"id": [1]}), k=1, by="i", window=ONE, key="id").open(EXACT.schema)
    with pytest.raises(sb.InvalidInput, match="These are not values of the key 'id'"):
        session.remove([2**70])


@pytest.mark.parametrize("algorithm", ["mintopk", "pretopk", "relaxed", "staircase", "recompute"])
def test_the_last_window_closes_also_where_it_ends_beyond_every_time(algorithm: str) -> None:
    last = 2**62 - 1  # the largest time that is taken
    rows = pa.table({"t": [last - 2, last], "s": [1.0, 2.0]})
    shown = sb.top_k(rows, k=1, by="s", window=sb.sliding(4, every=2, on="t"), algorithm=algorithm)
    assert shown["window_end"].to_pylist() == [2**62 - 2, 2**62, 2**62 + 2]


FAR = pa.table({"t": [2**62 - 5, 2**62 - 1], "g": ["x", "x"]})


@pytest.mark.parametrize("plan", ["late", "recompute"])
@pytest.mark.parametrize("other", [sb.landmark(on="t"), sb.relation()], ids=["landmark", "relation"])
def test_a_join_closes_windows_that_end_beyond_every_time(other: Any, plan: str) -> None:
    shown = sb.join_aggregate(
        {"a": FAR, "b": FAR},
        inputs={"a": other, "b": sb.sliding(6, on="t")},
        on="a.g = b.g",
        aggregates={"n": "COUNT(*)"},
        every=2,
        plan=plan,
    )
    assert shown["window_end"].to_pylist() == [2**62 + end for end in (-4, -2, 0, 2, 4)]


@pytest.mark.parametrize("algorithm", ["staircase", "totals", "sorted_lists", "recompute"])
def test_across_streams_a_landmark_window_may_end_beyond_every_time(algorithm: str) -> None:
    rows = pa.table({"t": FAR["t"], "g": ["x", "y"], "v": [0.25, 0.75]})
    window, streams = sb.landmark(every=3, on="t"), {"p": rows, "q": rows.slice(0, 1)}
    best = sb.top_k_across(streams, k=1, id="g", value="v", combine="sum", window=window, algorithm=algorithm)
    assert best.select(["window_end", "score"]).to_pylist()[-1] == {"window_end": 2**62 + 2, "score": 0.75}


@pytest.mark.parametrize("size", [2**62 - 1, 2**61])
def test_a_window_whose_end_would_not_fit_in_64_bits_is_refused(size: int) -> None:
    """Across streams it never ended; elsewhere ends came out negative."""
    with pytest.raises(sb.InvalidQuery, match=r"size must be less than 2\*\*61"):
        sb.sliding(size, every=size, on="t")
    sb.sliding(2**61 - 1, on="t")


def test_across_streams_nothing_is_left_to_ask_for_when_every_row_has_gone() -> None:
    rows = pa.table({"stream": ["s", "s"], "t": [0, 1], "g": ["x", "y"], "v": [0.5, None]})
    query = sb.TopKAcross(
        k=1, stream="stream", streams=["s"], id="g", value="v", repeat="sum", window=sb.tumbling(1, on="t")
    )
    session = query.open(rows.schema)
    session.push(rows)
    assert session.top().num_rows == 0


def test_a_snapshot_of_partitions_of_which_some_rows_were_cut_is_taken() -> None:
    scores = [*range(100, 80, -1), 81.5, *range(80, 71, -1)]  # the first row of the third ten outranks one before
    rows = pa.table({"s": pa.array(scores, pa.float64())})
    query = sb.TopK(k=1, by="s", window=sb.sliding(1000), algorithm="partitioned(partition=10)")
    session = query.open(rows.schema)
    session.push(rows)
    assert query.open(rows.schema, session.snapshot()).top()["score"].to_pylist() == [100.0]


@pytest.mark.parametrize("nothing", [[], (), iter([])], ids=["list", "tuple", "iterator"])
def test_a_push_of_no_batches_does_nothing(nothing: Any) -> None:
    session = sb.TopK(k=1, by="t", window=sb.tumbling(2)).open(FAR.schema)
    assert session.push(nothing).num_rows == 0
    assert session.stats().rows_in == 0
    with pytest.raises(sb.InvalidInput, match="its columns are unknown"):
        sb.top_k([], k=1, by="t", window=sb.tumbling(2))


@pytest.mark.parametrize("plan", ["late", "recompute"])
def test_groups_that_no_longer_meet_having_go_before_others_come(plan: str) -> None:
    rows = pa.table({"t": [1, 2, 3, 3, 4], "g": ["y", "y", "x", "w", "x"]})
    told = sb.join_aggregate(
        rows, window=sb.sliding(3, on="t"), group_by="g", aggregates={"n": "COUNT(*)"}, having="n > 1", plan=plan
    )
    assert [tuple(line.values()) for line in told.to_pylist()] == [
        (2, "upsert", "y", 2),
        (4, "delete", "y", None),
        (4, "upsert", "x", 2),
    ]


def test_backfill_sees_rows_from_before_a_query_for_the_same_value() -> None:
    schema = pa.schema({"t": pa.int64(), "x": pa.float64(), "y": pa.float64(), "g": pa.string()})
    queries = pa.schema({"id": pa.int64(), "a": pa.float64(), "g": pa.string()})
    session = sb.TopKForEach(
        queries=queries.empty_table(),
        k=1,
        by="abs(x - q.a)",
        where="g = q.g",
        key="id",
        window=sb.sliding(2, every=1, on="t"),
        algorithm="boxes",
    ).open(schema)
    session.push(pa.table([[0], [9.0], [0.0], ["v"]], schema=schema))
    session.add(pa.table([[1], [0.0], ["v"]], schema=queries))  # it sees only what comes after it
    session.push(pa.table([[0], [5.0], [0.0], ["v"]], schema=schema))
    session.add(pa.table([[2], [0.0], ["v"]], schema=queries), backfill=True)
    shown = session.finish().select(["id", "window_end", "score"])
    assert [tuple(line.values()) for line in shown.to_pylist()] == [(1, 1, 5.0), (2, 1, 9.0), (1, 2, 5.0), (2, 2, 9.0)]
