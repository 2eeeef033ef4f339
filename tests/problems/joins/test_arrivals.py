"""Example and oracle tests: joins whose windows count arrivals, each those of its own stream."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb

AUCTIONS = pa.table({"seq": [0, 2, 6], "id": [1, 2, 1], "seller": ["Ann", "Bo", "Cy"]})
BIDS = pa.table({"seq": [1, 3, 4, 5, 7], "id": [1, 2, 1, 2, 1], "price": [10, 5, 12, 7, 3]})
DATA = {"a": AUCTIONS, "b": BIDS}
QUERY: dict[str, Any] = {
    "inputs": {"a": sb.sliding(2, order="seq"), "b": sb.sliding(3, order="seq")},
    "on": "a.id = b.id",
    "group_by": "a.id",
    "aggregates": {"n": "COUNT(*)", "total": "SUM(b.price)", "low": "MIN(b.price)", "newest": "MAX(a.seq)"},
}
PLANS = ["late", "early:a", "early:b", "early:a,b", "recompute", None]


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize("plan", PLANS)
def test_an_answer_after_each_arrival(plan: str | None) -> None:
    answer = sb.join_aggregate(DATA, **QUERY, plan=plan)
    assert answer.schema.names == ["at", "change", "id", "n", "total", "low", "newest"]
    assert rows(answer) == [
        (2, "upsert", 1, 1, 10, 10, 0),
        (4, "upsert", 2, 1, 5, 5, 2),
        (5, "upsert", 1, 2, 22, 10, 0),
        (6, "upsert", 1, 1, 12, 12, 0),  # the bid of 10 is no longer among the last three
        (6, "upsert", 2, 2, 12, 5, 2),
        (7, "upsert", 1, 1, 12, 12, 6),  # of two auctions, the first has left for the third
        (8, "upsert", 1, 2, 15, 3, 6),
        (8, "upsert", 2, 1, 7, 7, 2),
    ]


@pytest.mark.parametrize("plan", PLANS)
def test_an_answer_every_two_arrivals_of_all_streams(plan: str | None) -> None:
    assert rows(sb.join_aggregate(DATA, **QUERY, every=2, plan=plan)) == [
        (2, 1, 1, 10, 10, 0),
        (4, 1, 1, 10, 10, 0),
        (4, 2, 1, 5, 5, 2),
        (6, 1, 1, 12, 12, 0),
        (6, 2, 2, 12, 5, 2),
        (8, 1, 2, 15, 3, 6),
        (8, 2, 1, 7, 7, 2),
    ]


def test_a_slide_that_the_input_does_not_complete_gives_no_answer() -> None:
    answer = sb.join_aggregate({"a": AUCTIONS, "b": BIDS.slice(0, 4)}, **QUERY, every=2)
    assert answer["window_end"].to_pylist()[-1] == 6


def test_a_landmark_counts_all_arrivals() -> None:
    inputs = {"a": sb.landmark(order="seq"), "b": sb.sliding(1, order="seq")}
    answer = sb.join_aggregate(DATA, **{**QUERY, "inputs": inputs, "aggregates": {"n": "COUNT(*)"}})
    assert rows(answer) == [
        (2, "upsert", 1, 1),
        (4, "delete", 1, None),
        (4, "upsert", 2, 1),
        (5, "delete", 2, None),
        (5, "upsert", 1, 1),
        (6, "delete", 1, None),
        (6, "upsert", 2, 1),
        (8, "delete", 2, None),
        (8, "upsert", 1, 2),
    ]


def test_a_session_counts_rows_as_they_are_pushed() -> None:
    inputs = {"a": sb.sliding(3), "b": sb.sliding(3)}
    query = sb.JoinAggregate(**{**QUERY, "inputs": inputs, "aggregates": {"n": "COUNT(*)"}}, every=3)
    session = query.open({"a": AUCTIONS.schema, "b": BIDS.schema})
    assert rows(session.push(BIDS.slice(0, 2), "b")) == []
    assert rows(session.push(AUCTIONS.slice(0, 2), "a")) == [(3, 1, 1)]  # the fourth waits for the next answer
    assert session.next_close() is None
    session = query.open({"a": AUCTIONS.schema, "b": BIDS.schema}, session.snapshot())
    assert rows(session.push(BIDS.slice(2), "b")) == [(6, 1, 1), (6, 2, 2)]
    assert rows(session.finish()) == []
    assert session.stats().rows_late == 0


def test_rows_that_a_filter_drops_take_their_place() -> None:
    inputs = {"a": sb.sliding(2, order="seq"), "b": sb.stream_input(sb.sliding(1, order="seq"), where="price > 6")}
    answer = sb.join_aggregate(DATA, **{**QUERY, "inputs": inputs, "aggregates": {"n": "COUNT(*)"}})
    assert rows(answer)[:3] == [(2, "upsert", 1, 1), (4, "delete", 1, None), (5, "upsert", 1, 1)]


# -- the definition, once more -----------------------------------------------------------------------------------------


def recomputed(order: list[str], data: dict[str, pa.Table], sizes: dict[str, int], every: int) -> list[Any]:
    """After every so many rows: the lowest and highest of each group of all combinations of the last rows of each."""
    taken, found = dict.fromkeys(data, 0), []
    for position, name in enumerate(order, start=1):
        taken[name] += 1
        if position % every:
            continue
        live = {
            each: data[each].slice(max(0, taken[each] - size), min(size, taken[each])).to_pylist()
            for each, size in sizes.items()
        }
        groups = defaultdict(list)
        for a in live["a"]:
            for b in live["b"]:
                if a["id"] == b["id"]:
                    for c in live["c"]:
                        if b["who"] == c["who"]:
                            groups[c["kind"]].append((a["x"], b["x"], c["x"]))
        for kind, some in sorted(groups.items()):
            a, b, c = zip(*some, strict=True)
            found.append((position, kind, len(some), min(a), max(b), min(c), sum(b)))
    return found


@pytest.mark.parametrize("plan", ["late", "early:a,b,c", "early:b", None])
@pytest.mark.parametrize("every", [1, 7])
def test_extremes_of_three_streams_that_count_apart(plan: str | None, every: int) -> None:
    """Which row of a combination goes first is unknown when it comes: streams come at changing rates."""
    rng = np.random.default_rng(11)
    n, sizes = 400, {"a": 40, "b": 25, "c": 60}

    def table() -> pa.Table:
        return pa.table(
            {
                "id": rng.integers(0, 5, n),
                "who": rng.integers(0, 4, n),
                "kind": rng.integers(0, 3, n),
                "x": np.arange(n) // 3 + rng.integers(-20, 20, n),
            }
        )

    data = {name: table() for name in sizes}
    shares = np.repeat([[0.8, 0.1, 0.1], [0.1, 0.1, 0.8], [0.3, 0.4, 0.3]], 60, axis=0)
    order = ["abc"[rng.choice(3, p=share)] for share in shares]
    query = sb.JoinAggregate(
        inputs={name: sb.sliding(size) for name, size in sizes.items()},
        on=["a.id = b.id", "b.who = c.who"],
        group_by="c.kind",
        aggregates={"n": "COUNT(*)", "a": "MIN(a.x)", "b": "MAX(b.x)", "c": "MIN(c.x)", "s": "SUM(b.x)"},
        every=every,
        plan=plan,
    )
    session = query.open({name: each.schema for name, each in data.items()})
    taken, found = dict.fromkeys(data, 0), []
    for name in order:
        found += rows(session.push(data[name].slice(taken[name], 1), name))
        taken[name] += 1
        session.check()
    assert found == recomputed(order, data, sizes, every)
    assert len(found) > len(order) // every


# -- what cannot be asked ----------------------------------------------------------------------------------------------


def test_the_order_of_rows_of_different_tables_has_to_be_named() -> None:
    inputs = {"a": sb.sliding(2, order="seq"), "b": sb.sliding(3)}
    with pytest.raises(sb.InvalidQuery, match=r"the order of their rows .* order='seq'\) for b"):
        sb.join_aggregate(DATA, **{**QUERY, "inputs": inputs})


def test_the_columns_that_say_so_must_be_comparable() -> None:
    times = AUCTIONS.set_column(0, "seq", pa.array([0, 2, 6], pa.timestamp("s")))
    with pytest.raises(sb.InvalidInput, match=r"a.seq is timestamp\[s\], b.seq is int64"):
        sb.join_aggregate({"a": times, "b": BIDS}, **QUERY)


def test_times_of_different_units_put_rows_in_one_order() -> None:
    def with_times(table: pa.Table, unit: str, factor: int) -> pa.Table:
        seconds = pa.array([number * factor for number in table["seq"].to_pylist()], pa.timestamp(unit))
        return table.set_column(0, "seq", seconds)

    data = {"a": with_times(AUCTIONS, "s", 1), "b": with_times(BIDS, "ms", 1000)}
    aggregates = {"n": "COUNT(*)", "total": "SUM(b.price)"}
    asked = {**QUERY, "aggregates": aggregates}
    assert rows(sb.join_aggregate(data, **asked)) == rows(sb.join_aggregate(DATA, **asked))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"inputs": {"a": sb.sliding(2), "b": sb.sliding(3, on="seq")}}, "a counts arrivals, but that of b measures"),
        ({"every": 3}, "every=3 is larger than the window of a, 2"),
        ({"every": "1 minute"}, "is a duration"),
        ({"lateness": 1, "every": 2}, "no meaning in a window of arrivals"),
    ],
)
def test_what_cannot_be_asked_is_said(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(sb.InvalidQuery, match=said):
        sb.JoinAggregate(**{**QUERY, **changed})


def test_time_does_not_close_windows_of_arrivals() -> None:
    session = sb.JoinAggregate(**QUERY, every=2).open({"a": AUCTIONS.schema, "b": BIDS.schema})
    with pytest.raises(sb.InvalidQuery, match="Only windows by value"):
        session.advance(3)


def test_in_sql() -> None:
    asked = """SELECT a.id, COUNT(*) AS n, SUM(b.price) AS total FROM auction AS a [WINDOW 2 ROWS ORDER BY seq],
               bid AS b [WINDOW 3 ROWS EVERY 2 ROWS ORDER BY seq] WHERE a.id = b.id AND b.price > 5 GROUP BY a.id"""
    answer = sb.sql(asked, auction=AUCTIONS, bid=BIDS)
    # WHERE comes before the window: the bids of 5 and 3 take no place in it.
    assert rows(answer) == [(2, 1, 1, 10), (4, 1, 2, 22), (6, 1, 2, 22), (6, 2, 1, 7)]


def test_an_order_beyond_64_bits_with_a_sign_is_refused_by_name() -> None:
    rows = pa.table({"ts": pa.array([1, 2**63 + 5], pa.uint64()), "k": [1, 1]})
    window = sb.sliding(2, order="ts")
    with pytest.raises(sb.InvalidInput, match="Column 'ts' does not fit in 64 bits with a sign"):
        sb.join_aggregate(
            {"a": rows, "b": rows}, inputs={"a": window, "b": window}, on="a.k = b.k", aggregates={"n": "COUNT(*)"}
        )
