"""Example and restart tests: joins over Arrow tables, fed in one piece or by hand, saved, and refused."""

from __future__ import annotations

import math
import random
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.problems.joins.codec import JoinsCodec
from skyband.problems.joins.planning import open_plan

AUCTIONS = pa.table({"ts": [0, 1, 5, 12], "auctionID": [1, 2, 3, 4], "sellerID": [7, 8, 7, 9]})
BIDS = pa.table(
    {
        "ts": [1, 2, 3, 6, 6, 11, 14],
        "auctionID": [1, 1, 2, 3, 1, None, 4],
        "bidPrice": [10.0, 12.0, 5.0, 30.0, 15.0, 1.0, 2.0],
    }
)
PEOPLE = pa.table({"personID": [7, 8, 9], "name": ["Ann", "Bo", "Cy"], "state": ["VT", "NH", "VT"]})

# Example 1 of Tran and Lee: bids of the last hour for each auction, created up to now, of a seller from Vermont.
PAPER: dict[str, Any] = {
    "inputs": {"A": sb.landmark(on="ts"), "B": sb.sliding(6, on="ts"), "P": sb.relation(where="state = 'VT'")},
    "on": ["A.auctionID = B.auctionID", "A.sellerID = P.personID"],
    "group_by": "A.auctionID",
    "aggregates": {"bids": "COUNT(B.*)"},
}
DATA = {"A": AUCTIONS, "B": BIDS, "P": PEOPLE}
PLANS = ["late", "early:A", "early:B", "early:P", "early:A,B", "early:A,P", "early:B,P", "early:A,B,P", "multiply"]


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize("plan", [*PLANS, "recompute", None])
def test_the_papers_example_by_windows(plan: str | None) -> None:
    answer = sb.join_aggregate(DATA, **PAPER, every=3, plan=plan)
    assert answer.schema.names == ["window_end", "auctionID", "bids"]
    assert rows(answer) == [
        (3, 1, 2),
        (6, 1, 2),
        (9, 1, 1),
        (9, 3, 1),
        (12, 1, 1),
        (12, 3, 1),
        (15, 4, 1),
        (18, 4, 1),
    ]


@pytest.mark.parametrize("plan", [*PLANS, "recompute", None])
def test_the_papers_example_after_every_tuple(plan: str | None) -> None:
    assert rows(sb.join_aggregate(DATA, **PAPER, plan=plan)) == [
        (1, "upsert", 1, 1),
        (2, "upsert", 1, 2),
        (6, "upsert", 3, 1),
        (6, "upsert", 1, 3),
        (11, "upsert", 1, 1),
        (12, "delete", 1, None),
        (12, "delete", 3, None),
        (14, "upsert", 4, 1),
    ]


SALES = pa.table(
    {
        "t": [0, 1, 1, 2, 4, 5, 7, 8],
        "product": ["oak", "elm", "oak", "fir", "elm", "elm", "fir", "oak"],
        "n": [1, 2, 3, 4, 1, 1, 5, 2],
    }
)


def test_the_products_sold_most() -> None:
    answer = sb.join_aggregate(
        SALES,
        window=sb.sliding(6, every=3, on="t"),
        group_by="product",
        aggregates={"sold": "SUM(n)", "sales": "COUNT(*)"},
        order_by="sold",
        k=2,
    )
    assert answer.schema.names == ["window_end", "rank", "product", "sold", "sales"]
    # fir and elm tie in the last window but one: the group's columns decide.
    assert rows(answer) == [
        (3, 1, "fir", 4, 1),
        (3, 2, "oak", 4, 2),
        (6, 1, "elm", 4, 3),
        (6, 2, "fir", 4, 1),
        (9, 1, "fir", 5, 1),
        (9, 2, "elm", 2, 2),
        (12, 1, "fir", 5, 1),
        (12, 2, "oak", 2, 1),
    ]


def test_the_products_sold_most_in_the_last_arrivals() -> None:
    answer = sb.join_aggregate(
        SALES, window=sb.sliding(4, every=4), group_by="product", aggregates={"sold": "SUM(n)"}, order_by="sold", k=1
    )
    assert rows(answer) == [(4, 1, "fir", 4), (8, 1, "fir", 5)]


def test_the_best_as_they_change() -> None:
    answer = sb.join_aggregate(
        SALES, window=sb.sliding(3, on="t"), group_by="product", aggregates={"sold": "SUM(n)"}, order_by="sold", k=1
    )
    assert rows(answer) == [
        (0, "upsert", "oak", 1),
        (1, "delete", "oak", None),
        (1, "upsert", "elm", 2),
        (1, "delete", "elm", None),
        (1, "upsert", "oak", 4),
        (2, "delete", "oak", None),
        (2, "upsert", "fir", 4),
        (5, "delete", "fir", None),
        (5, "upsert", "elm", 2),
        (7, "delete", "elm", None),
        (7, "upsert", "fir", 5),
    ]


def test_groups_come_and_go_with_having() -> None:
    answer = sb.join_aggregate(
        SALES, window=sb.sliding(3, on="t"), group_by="product", aggregates={"sold": "SUM(n)"}, having="sold >= 4"
    )
    assert rows(answer) == [
        (1, "upsert", "oak", 4),
        (2, "upsert", "fir", 4),
        (4, "delete", "oak", None),
        (5, "delete", "fir", None),
        (7, "upsert", "fir", 5),
    ]


def test_the_last_row_of_a_group_takes_the_group_with_it() -> None:
    session = sb.JoinAggregate(
        inputs=sb.sliding(2, on="t"), group_by="g", aggregates={"n": "COUNT(*)", "s": "SUM(x)"}
    ).open(pa.schema([("t", pa.int64()), ("g", pa.string()), ("x", pa.float64())]))
    batch = pa.table({"t": [0, 5], "g": ["a", "b"], "x": [0.1, 0.2]})
    assert rows(session.push(batch)) == [
        (0, "upsert", "a", 1, 0.1),
        (5, "delete", "a", None, None),
        (5, "upsert", "b", 1, 0.2),
    ]
    assert session.stats().groups == 1


# -- exactness ---------------------------------------------------------------------------------------------------------


def test_sums_equal_fsum_of_the_live_rows_over_long_runs() -> None:
    """Numbers of very different sizes come and go: what is left must not remember them."""
    random = np.random.default_rng(1)
    n, size = 100_000, 50
    x = random.standard_normal(n) * 10.0 ** random.integers(-9, 10, n)
    table = pa.table({"t": np.arange(n), "x": x})
    answer = sb.join_aggregate(table, window=sb.sliding(size, every=size // 2, on="t"), aggregates={"s": "SUM(x)"})
    ends, sums = answer["window_end"].to_numpy(), answer["s"].to_numpy()
    assert len(ends) == n // (size // 2) + 1
    assert all(total == math.fsum(x[max(0, end - size) : end]) for end, total in zip(ends, sums, strict=True))


def test_whole_numbers_are_exact_beyond_what_a_float_holds() -> None:
    table = pa.table({"t": [0, 1, 2], "x": [2**62, 1, -(2**62)]})
    answer = sb.join_aggregate(table, window=sb.sliding(2, on="t"), aggregates={"s": "SUM(x)", "m": "MAX(x)"})
    assert rows(answer) == [
        (0, "upsert", 2**62, 2**62),
        (1, "upsert", 2**62 + 1, 2**62),
        (2, "upsert", 1 - 2**62, 1),
    ]


def test_a_sum_of_whole_numbers_that_does_not_fit_is_an_error() -> None:
    table = pa.table({"t": [0, 1], "x": [2**62, 2**62]})
    with pytest.raises(sb.AggregateOverflow, match="'s': A sum of whole numbers exceeds 64 bits"):
        sb.join_aggregate(table, window=sb.sliding(5, every=5, on="t"), aggregates={"n": "COUNT(*)", "s": "SUM(x)"})


def test_an_argument_that_does_not_fit_is_refused_and_the_session_goes_on() -> None:
    query = sb.JoinAggregate(inputs=sb.sliding(9, on="t"), aggregates={"s": "SUM(x * 2)"})
    session = query.open(pa.schema([("t", pa.int64()), ("x", pa.int64())]))
    with pytest.raises(sb.InvalidInput, match="Skyband rejected the batch"):
        session.push(pa.table({"t": [0, 1], "x": [1, 2**62]}))
    assert rows(session.push(pa.table({"t": [0], "x": [4]}))) == [(0, "upsert", 8)]


def test_nulls_and_nan_are_no_value() -> None:
    table = pa.table({"t": [0, 1, 2], "x": [None, float("nan"), 2.5], "w": ["u", None, "v"]})
    answer = sb.join_aggregate(
        table,
        window=sb.tumbling(1, on="t"),
        aggregates={"n": "COUNT(*)", "c": "COUNT(x)", "w": "COUNT(w)", "s": "SUM(x)", "a": "AVG(x)", "m": "MIN(x)"},
    )
    assert rows(answer) == [(1, 1, 0, 1, None, None, None), (2, 1, 0, 0, None, None, None), (3, 1, 1, 1, 2.5, 2.5, 2.5)]


def test_every_row_matches_every_other_and_nothing_explodes() -> None:
    """A million matches a row, if rows were joined; cells are multiplied instead."""
    n = 100_000
    table = pa.table({"t": np.arange(n), "one": np.ones(n, np.int64), "x": np.arange(n) % 7})
    answer = sb.join_aggregate(
        {"a": table, "b": table},
        inputs={"a": sb.landmark(on="t"), "b": sb.landmark(on="t")},
        on="a.one = b.one",
        aggregates={"n": "COUNT(*)", "s": "SUM(a.x)"},
        every=n,
    )
    assert rows(answer) == [(n, n * n, n * int(table["x"].to_numpy().sum()))]


@pytest.mark.parametrize("plan", [None, "late", "early:a"])
def test_groups_that_explode_are_refused(plan: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pair is a group of its own, which no plan can hold in less."""
    monkeypatch.setattr("skyband.problems.joins.codec.open_plan", partial(open_plan, most_groups=800))
    table = pa.table({"t": range(40), "one": [1] * 40, "x": range(40), "y": range(40)})
    session = sb.JoinAggregate(
        inputs={"a": sb.landmark(on="t"), "b": sb.landmark(on="t")},
        on="a.one = b.one",
        group_by=("a.x", "b.y"),
        aggregates={"n": "COUNT(*)"},
        every=10,
        plan=plan,
    ).open({"a": table.schema, "b": table.schema})
    session.push(table.slice(0, 25), "a")
    assert session.push(table.slice(0, 25), "b").num_rows == 10**2 + 20**2
    session.push(table.slice(25), "a")
    with pytest.raises(sb.TooManyGroups, match="more than 800 groups"):
        session.push(table.slice(25), "b")
    with pytest.raises(sb.SessionFailed, match="The join gives more than"):
        session.push(table.slice(25), "b")


def test_groups_that_are_gone_do_not_count() -> None:
    """Fifteen thousand pairs come and go, a few at a time."""
    n = 5_000
    table = pa.table(
        {"t": range(n), "one": [1] * n, "x": [i % 171 for i in range(n)], "y": [i % 173 for i in range(n)]}
    )
    session = sb.JoinAggregate(
        inputs={"a": sb.sliding(2, on="t"), "b": sb.sliding(2, on="t")},
        on="a.one = b.one",
        group_by=("a.x", "b.y"),
        aggregates={"n": "COUNT(*)", "low": "MIN(a.x)"},
        every=1,
    ).open({"a": table.schema, "b": table.schema})
    for start in range(0, n, 100):
        session.push(table.slice(start, 100), "a")
        answer = session.push(table.slice(start, 100), "b")
        assert all(row["low"] == row["x"] for row in answer.slice(answer.num_rows - 4).to_pylist())
    assert len(session._operator._groups.rows) < 2 * 4096
    session.check()


# -- by hand -----------------------------------------------------------------------------------------------------------


def test_two_streams_by_hand_close_with_the_slower() -> None:
    query = sb.JoinAggregate(**{**PAPER, "every": 3})
    session = query.open({name: table.schema for name, table in DATA.items()})
    session.push(PEOPLE, "P")
    assert session.push(AUCTIONS, "A").num_rows == 0
    assert session.next_close() is None, "no bids yet"
    assert rows(session.push(BIDS.slice(0, 4), "B")) == [(3, 1, 2), (6, 1, 2)]
    assert session.next_close() == 9
    assert rows(session.advance(9)) == [(9, 3, 1)]
    with pytest.raises(sb.InvalidInput, match="relation"):
        session.push(PEOPLE, "P")
    with pytest.raises(sb.InvalidInput, match="Say whose rows these are: one of A, B, P"):
        session.push(BIDS)
    session.push(BIDS.slice(4), "B")
    stats = session.stats()
    assert (stats.rows_in, stats.rows_used, stats.rows_late, stats.rows_unranked) == (14, 14, 0, 2)


@pytest.mark.parametrize("emit", ["windows", "changes"])
@pytest.mark.parametrize("ranked", [{}, {"order_by": "bids", "k": 1}])
def test_a_snapshot_after_every_batch_changes_nothing(emit: Any, ranked: dict[str, Any]) -> None:
    query = sb.JoinAggregate(**{**PAPER, "every": 3, "emit": emit, **ranked})
    schemas = {name: table.schema for name, table in DATA.items()}
    whole, session = query.open(schemas), query.open(schemas)
    pieces = [("P", PEOPLE), *((name, DATA[name].slice(i, 1)) for i in range(7) for name in "AB")]
    for name, piece in pieces:
        session = query.open(schemas, session.snapshot())
        session.check()
        assert session.push(piece, name).equals(whole.push(piece, name))
    assert query.open(schemas, session.snapshot()).finish().equals(whole.finish())


def test_a_snapshot_can_be_opened_with_another_plan() -> None:
    schemas = {name: table.schema for name, table in DATA.items()}
    sessions = [sb.JoinAggregate(**PAPER, every=3, plan=plan).open(schemas) for plan in ("late", "multiply")]
    for session in sessions:
        session.push(PEOPLE, "P")
        session.push(AUCTIONS.slice(0, 3), "A")
        session.push(BIDS.slice(0, 4), "B")
    moved = sb.JoinAggregate(**PAPER, every=3, plan="early:B").open(schemas, sessions[0].snapshot())
    assert moved.algorithm == "early:B"
    moved.check()
    assert moved.finish().equals(sessions[1].finish())
    with pytest.raises(sb.SnapshotMismatch, match="'recompute' cannot read it"):
        sb.JoinAggregate(**PAPER, every=3, plan="recompute").open(schemas, sessions[0].snapshot())


def test_readers_give_readers() -> None:
    data = {"A": AUCTIONS.to_reader(1), "B": iter(BIDS.to_batches(2)), "P": PEOPLE}
    answer = sb.join_aggregate(data, **PAPER)
    assert isinstance(answer, pa.RecordBatchReader)
    assert answer.read_all().equals(sb.join_aggregate(DATA, **PAPER))


def test_joined_columns_may_be_of_different_widths() -> None:
    a = pa.table({"t": [0], "k": pa.array([1], pa.int8()), "s": pa.array(["x"]).dictionary_encode()})
    b = pa.table({"t": [0], "k": pa.array([1], pa.uint32()), "s": pa.array(["x"], pa.large_string())})
    answer = sb.join_aggregate(
        {"a": a, "b": b},
        inputs={"a": sb.landmark(on="t"), "b": sb.landmark(on="t")},
        on=["a.k = b.k", "a.s = b.s"],
        group_by=["a.s", "b.k"],
        aggregates={"n": "COUNT(*)"},
    )
    assert rows(answer) == [(0, "upsert", "x", 1, 1)]


# -- what is refused ---------------------------------------------------------------------------------------------------


def ask(**changed: Any) -> pa.Table:
    return sb.join_aggregate(DATA, **{**PAPER, "every": 3, **changed})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"on": "A.auctionID = B.auctionID"}, "No join condition connects P with A"),
        ({"on": ["A.auctionID = B.bidPrice", "A.sellerID = P.personID"]}, "A.auctionID is int64, B.bidPrice is double"),
        ({"on": "A.auctionID < B.auctionID"}, "sets two columns equal"),
        ({"on": "A.x = B.auctionID"}, "No column 'x'"),
        ({"on": ["A.auctionID = C.auctionID"]}, "there is no input 'C'"),
        ({"group_by": "auctionID"}, "could be A.auctionID or B.auctionID"),
        ({"group_by": "B.price"}, "Did you mean 'bidPrice'"),
        ({"aggregates": {"s": "SUM(A.ts + B.ts)"}}, "must be about columns of one input"),
        ({"aggregates": {"s": "MEDIAN(B.bidPrice)"}}, "is not one of Skyband's aggregates"),
        ({"aggregates": {"s": "SUM(DISTINCT B.bidPrice)"}}, "DISTINCT works only with COUNT"),
        ({"aggregates": {"s": "COUNT(DISTINCT B.bidPrice, B.ts)"}}, "DISTINCT takes one column, got 2"),
        ({"aggregates": {"s": "COUNT(DISTINCT B.bidPrice + 1)"}}, "DISTINCT takes a column"),
        ({"aggregates": {"s": "COUNT(DISTINCT B.prise)"}}, "No column 'prise'"),
        ({"aggregates": {"s": "SUM(P.name)"}}, "adds up numbers, but .name. is string"),
        ({"aggregates": {"s": "MIN(UPPER(P.name))"}}, "MIN and MAX of strings take a column, and 'UPPER"),
        ({"aggregates": {"rank": "COUNT(*)"}}, "cannot be called 'rank'"),
        ({"aggregates": {}}, "aggregates must be"),
        ({"having": "bids"}, "must be true or false"),
        ({"having": "bits > 1"}, "No column 'bits'"),
        ({"k": 3}, "needs order_by"),
        ({"every": 10}, "larger than the window of B"),
        ({"every": "1 minute"}, "must both be durations or both be numbers"),
        ({"emit": "entries"}, "a group changes with its rows. Possible: windows, changes"),
        ({"plan": "early:Q"}, "names no input: 'Q'"),
        ({"plan": "fast"}, "No plan 'fast'"),
        ({"plan": "multiply", "aggregates": {"m": "MIN(B.bidPrice)"}}, "not a product"),
        ({"emit": "changes", "order_by": "bids", "k": 1, "having": "bids > 1"}, "without having"),
    ],
)
def test_what_cannot_be_asked_is_said(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(sb.InvalidQuery, match=said):
        ask(**changed)


def test_another_querys_snapshot_is_refused() -> None:
    schemas = {name: table.schema for name, table in DATA.items()}
    saved = sb.JoinAggregate(**PAPER).open(schemas).snapshot()
    with pytest.raises(sb.SnapshotMismatch):
        sb.JoinAggregate(**{**PAPER, "having": "bids > 1"}).open(schemas, saved)


@pytest.mark.parametrize("emit", ["windows", "changes"])
@pytest.mark.parametrize("ranked", [{}, {"order_by": "n", "k": 3}])
@pytest.mark.parametrize("plan", ["late", "early:a", "recompute"])
def test_keys_that_are_gone_are_forgotten(emit: Any, ranked: dict[str, Any], plan: str, monkeypatch: Any) -> None:
    """Ever new keys and groups: what is held stays within the window, and the answer is as before."""
    rng = np.random.default_rng(3)
    n = 400

    def table(groups: int) -> pa.Table:
        ids = np.arange(n) // 8 + rng.integers(0, 3, n)
        return pa.table({"t": np.arange(n), "id": ids, "g": rng.integers(0, groups, n) + np.arange(n) // 50})

    data = {"a": table(2), "b": table(3)}
    query = sb.JoinAggregate(
        inputs={"a": sb.sliding(16, on="t"), "b": sb.sliding(24, on="t")},
        on="a.id = b.id",
        group_by=["a.g", "b.g"],
        aggregates={"n": "COUNT(*)"},
        every=8,
        emit=emit,
        plan=plan,
        **ranked,
    )
    schemas = {name: each.schema for name, each in data.items()}

    def answers(forget_at: int) -> tuple[pa.Table, int]:
        monkeypatch.setattr(JoinsCodec, "few_codes", forget_at)
        session, found, most = query.open(schemas), [], 0
        for i in range(0, n, 10):
            found += [session.push(data[name].slice(i, 10), name) for name in "ab"]
            session.check()
            most = max(most, sum(map(len, session._codec._codes.inputs)))
        return pa.concat_tables([*found, session.finish()]), most

    (expected, all_cells), (answer, cells) = answers(10**9), answers(16)
    assert answer.equals(expected)
    assert cells < all_cells / 2


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_row_without_a_key_closes_no_landmark_that_another_stream_has_not_reached(rows: int) -> None:
    a, b = pa.table({"t": [0, 5, 9], "k": [1, 2, None]}), pa.table({"t": [0], "k": [1]})
    query: dict[str, Any] = {
        "inputs": {"a": sb.landmark(on="t"), "b": sb.landmark(on="t")},
        "on": "a.k = b.k",
        "aggregates": {"n": "COUNT(*)"},
        "every": 3,
    }
    assert sb.join_aggregate({"a": a, "b": b}, **query)["window_end"].to_pylist() == [3, 6]
    streams = {"a": iter(a.to_batches(max_chunksize=rows)), "b": iter(b.to_batches())}
    assert sb.join_aggregate(streams, **query).read_all()["window_end"].to_pylist() == [3, 6]


def test_rows_that_are_read_ahead_are_those_they_were_when_cells_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """One stream is read further than the other: what is forgotten in between must not give its rows other keys."""
    chance = random.Random(1)

    def rows() -> pa.Table:
        times = sorted(chance.randrange(6000) for _ in range(3000))
        return pa.table({"t": times, "g": [chance.randrange(2000) for _ in times]})

    query: dict[str, Any] = {
        "inputs": {"a": sb.sliding(100, on="t"), "b": sb.sliding(200, on="t")},
        "on": "a.g = b.g",
        "group_by": "a.g",
        "aggregates": {"n": "COUNT(*)", "last": "MAX(b.t)"},
    }
    streams = {"a": rows(), "b": rows()}
    expected = sb.join_aggregate(streams, **query)
    monkeypatch.setattr(JoinsCodec, "few_codes", 1)
    batches = {name: iter(table.to_batches(max_chunksize=70)) for name, table in streams.items()}
    found = sb.join_aggregate(batches, **query).read_all()
    assert expected.num_rows > 300
    assert found.to_pylist() == expected.to_pylist()
