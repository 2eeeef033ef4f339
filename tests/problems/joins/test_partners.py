"""Example, oracle and restart tests: LEFT, SEMI and ANTI joins of windows, compared with recomputing every answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.problems.joins.codec import JoinsCodec

AUCTIONS = pa.table({"t": [1, 2, 6], "id": [7, 8, None], "seller": ["Ann", "Bo", "Cy"]})
BIDS = pa.table({"t": [3, 4, 11], "id": [7, 7, 8], "price": [10, None, 30]})
EXAMPLE: dict[str, Any] = {
    "inputs": {"a": sb.sliding(12, on="t"), "b": sb.sliding(4, on="t")},
    "on": "a.id = b.id",
    "group_by": "a.seller",
    "every": 4,
}


def lines(answer: pa.Table) -> list[str]:
    return [" ".join(str(value) for value in row.values()) for row in answer.to_pylist()]


def test_rows_without_a_partner_stay_with_nulls() -> None:
    counts = {"rows": "COUNT(*)", "bids": "COUNT(b.*)", "total": "SUM(b.price)", "filled": "SUM(COALESCE(b.price, -1))"}
    answer = sb.join_aggregate({"a": AUCTIONS, "b": BIDS}, **EXAMPLE, aggregates=counts, how={"b": "left"})
    assert lines(answer) == [
        "4 Ann 1 1 10 10",
        "4 Bo 1 0 None -1",
        "8 Ann 1 1 None -1",
        "8 Bo 1 0 None -1",
        "8 Cy 1 0 None -1",
        "12 Ann 1 0 None -1",
        "12 Bo 1 1 30 30",
        "12 Cy 1 0 None -1",
        "16 Cy 1 0 None -1",
    ]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("semi", ["4 Ann 1", "8 Ann 1", "12 Bo 1"]),
        ("anti", ["4 Bo 1", "8 Bo 1", "8 Cy 1", "12 Ann 1", "12 Cy 1", "16 Cy 1"]),
    ],
)
def test_rows_with_a_partner_and_rows_without(how: str, expected: list[str]) -> None:
    answer = sb.join_aggregate({"a": AUCTIONS, "b": BIDS}, **EXAMPLE, aggregates={"rows": "COUNT(*)"}, how={"b": how})
    assert lines(answer) == expected


def test_changes_say_when_a_partner_comes_and_leaves() -> None:
    query: dict[str, Any] = {**EXAMPLE, "every": None, "aggregates": {"rows": "COUNT(*)", "bids": "COUNT(b.*)"}}
    answer = sb.join_aggregate({"a": AUCTIONS, "b": BIDS}, **query, how={"b": "left"})
    assert lines(answer) == [
        "1 upsert Ann 1 0",
        "2 upsert Bo 1 0",
        "3 upsert Ann 1 1",
        "4 upsert Ann 2 2",
        "6 upsert Cy 1 0",
        "11 upsert Ann 1 0",
        "11 upsert Bo 1 1",
    ]


# -- compared with recomputation ---------------------------------------------------------------------------------------


def streams(seed: int, n: int = 150) -> dict[str, pa.Table]:
    """Ever new keys, null keys, both zeros and NaN, rows that come late, and pauses."""
    rng = np.random.default_rng(seed)

    def some(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.array([None if rng.random() < 0.1 else values[i] for i in rng.integers(0, len(values), n)], kind)

    def stream(spread: int) -> pa.Table:
        t = np.arange(n) // 2 + rng.integers(-6, 1, n) + np.where(np.arange(n) > n // 2, 40, 0)
        ids = pa.array(np.arange(n) // 12 + rng.integers(0, spread, n), mask=rng.random(n) < 0.1)
        f, g = some([0.0, -0.0, float("nan"), 1.5], pa.float64()), some(["x", "y", "z"], pa.string())
        return pa.table({"t": t, "id": ids, "f": f, "g": g, "n": some([1, -7, 2**40], pa.int64())})

    return {"a": stream(4), "b": stream(3)}


SIZES = {
    "sliding": (sb.sliding(16, on="t"), sb.sliding(9, on="t")),
    "landmark": (sb.landmark(on="t"), sb.sliding(5, on="t")),
    "both landmark": (sb.sliding(20, on="t"), sb.landmark(on="t")),
    "arrivals": (sb.sliding(20, order="t"), sb.sliding(7, order="t")),
}
AGGREGATES = {"rows": "COUNT(*)", "sum": "SUM(a.n)", "mean": "AVG(a.f)", "kinds": "COUNT(DISTINCT a.g)"}
OF_LEFT = {
    **AGGREGATES,
    "bs": "COUNT(b.*)",
    "total": "SUM(b.n)",
    "mean_b": "AVG(b.f)",
    "of_b": "COUNT(DISTINCT b.g)",
    "filled": "SUM(COALESCE(b.n, 5)) ",
    "half": "SUM(COALESCE(b.f, 0.5))",
}
WAYS: dict[str, dict[str, Any]] = {
    "windows": {"every": 4, "lateness": 3},
    "changes of windows": {"every": 4, "emit": "changes"},
    "changes": {},
    "the best": {"every": 4, "order_by": ["rows", "sum"], "k": 3},
}


def asked(sizes: str, way: str, how: str) -> dict[str, Any]:
    inputs, options = SIZES[sizes], dict(WAYS[way])
    if sizes == "arrivals":
        options.pop("lateness", None)
    groups = {"left": ["a.g", "b.g", "b.id"], "semi": ["a.g"], "anti": ["a.g", "a.id"]}[how]
    return {
        "inputs": dict(zip("ab", inputs, strict=True)),
        "on": ["a.id = b.id"] if how == "left" else ["a.id = b.id", "b.f = a.f"],
        "group_by": groups,
        "aggregates": OF_LEFT if how == "left" else AGGREGATES,
        "how": {"b": how},
        **options,
    }


def in_any_order(answer: pa.Table) -> list[str]:
    return sorted(lines(answer))


@pytest.mark.parametrize("how", ["left", "semi", "anti"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("sizes", SIZES)
def test_sessions_agree_with_recomputation_and_go_on_where_they_stopped(
    sizes: str, way: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cells are forgotten all the time, and each session is saved and opened again after every push."""
    data, options = streams(len(sizes + way + how)), asked(sizes, way, how)
    schemas = {name: table.schema for name, table in data.items()}
    monkeypatch.setattr(JoinsCodec, "few_codes", 8)
    found: dict[str, list[str]] = {}
    for plan in ("recompute", "late", "early:b", "multiply"):
        query = sb.JoinAggregate(**options, plan=plan)
        session, answers = query.open(schemas), []
        rng = np.random.default_rng(1)
        taken = {"a": 0, "b": 0}
        while any(taken[name] < len(data[name]) for name in "ab"):
            name, some = "ab"[rng.integers(2)], int(rng.integers(0, 20))
            answers.append(session.push(data[name].slice(taken[name], some), name))
            taken[name] += some
            session.check()
            session = query.open(schemas, session.snapshot())
        found[plan] = in_any_order(pa.concat_tables([*answers, session.finish()]))
    assert len(found["recompute"]) > 15
    for plan, answer in found.items():
        assert answer == found["recompute"], plan


@pytest.mark.parametrize("empty", ["a", "b"])
@pytest.mark.parametrize("how", ["left", "semi", "anti"])
def test_one_side_may_be_empty(how: str, empty: str) -> None:
    data, options = streams(3), asked("sliding", "windows", how)
    data[empty] = data[empty].slice(0, 0)
    answer = sb.join_aggregate(data, **options)
    assert in_any_order(answer) == in_any_order(sb.join_aggregate(data, **options, plan="recompute"))
    assert (answer.num_rows > 0) == (empty == "b" and how != "semi")


def test_three_inputs() -> None:
    data = streams(4) | {"c": streams(5)["a"], "d": streams(6)["b"]}
    options: dict[str, Any] = {
        "inputs": {name: sb.sliding(size, on="t") for name, size in zip("abcd", (9, 16, 5, 20), strict=True)},
        "on": ["a.id = b.id", "a.g = c.g", "b.f = d.f"],
        "group_by": ["a.g", "c.id"],
        "aggregates": {"rows": "COUNT(*)", "cs": "COUNT(c.*)", "sum": "SUM(b.n)"},
        "how": {"c": "left", "d": "anti"},
        "every": 4,
    }
    expected = in_any_order(sb.join_aggregate(data, **options, plan="recompute"))
    assert len(expected) > 15
    for plan in (None, "late", "early:a,c", "multiply"):
        assert in_any_order(sb.join_aggregate(data, **options, plan=plan)) == expected


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"how": {"c": "left"}}, "how= names no input: 'c'"),
        ({"how": {"b": "outer"}}, "got 'outer' for 'b'"),
        ({"how": "left"}, "how= says, by name, how an input is joined"),
        ({"how": {"a": "left", "b": "left"}}, "must be with one other stream, which is joined by an inner join"),
        ({"inputs": {"a": sb.sliding(9, on="t"), "b": sb.relation()}, "how": {"b": "left"}}, "'b' is a relation"),
        ({"inputs": {"a": sb.relation(), "b": sb.sliding(9, on="t")}, "how": {"b": "left"}}, "one other stream"),
        ({"aggregates": {"low": "MIN(a.n)"}}, "COUNT, SUM and AVG"),
        ({"group_by": "b.g", "how": {"b": "semi"}}, "only whether it has rows matters"),
        ({"aggregates": {"n": "SUM(b.n)"}, "how": {"b": "anti"}}, "only whether it has rows matters"),
    ],
)
def test_what_cannot_be_asked_is_said(changed: dict[str, Any], said: str) -> None:
    options = {
        "inputs": {"a": sb.sliding(9, on="t"), "b": sb.sliding(9, on="t")},
        "on": "a.id = b.id",
        "aggregates": {"n": "COUNT(*)"},
        "how": {"b": "left"},
        "every": 3,
    }
    with pytest.raises(sb.InvalidQuery, match=said):
        sb.join_aggregate(streams(1), **(options | changed))


def test_inner_is_what_is_not_said() -> None:
    options: dict[str, Any] = {**EXAMPLE, "aggregates": {"n": "COUNT(*)"}}
    said = sb.JoinAggregate(**options, how={"a": "inner", "b": "inner"})
    assert said == sb.JoinAggregate(**options)
    schemas = {"a": AUCTIONS.schema, "b": BIDS.schema}
    assert said.fingerprint(schemas) == sb.JoinAggregate(**options).fingerprint(schemas)
    with pytest.raises(sb.SnapshotMismatch):
        sb.JoinAggregate(**options, how={"b": "left"}).open(schemas, said.open(schemas).snapshot())
