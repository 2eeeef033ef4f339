"""Oracle and restart tests: MIN and MAX of strings, booleans and times, whatever comes, goes and gets new labels."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.problems.joins.codec import JoinsCodec
from skyband.problems.joins.labels import OrderLabels
from skyband.problems.joins.query import JoinAggregate

PLANS = ["late", "early", "early:a", "recompute"]
WORDS = ["", "a", "A", "ab", "aa", "é", "日本", "\U0001f600", "\uffff", "z", "O'Brien", "a\0b", None, None]


def stream(chance: random.Random, rows: int = 60, words: list[str | None] = WORDS) -> pa.Table:
    """Rows with many nulls and ties."""
    return pa.table(
        {
            "t": sorted(chance.randrange(40) for _ in range(rows)),
            "g": [chance.choice(["p", "q", None]) for _ in range(rows)],
            "x": pa.array([chance.choice(words) for _ in range(rows)], pa.string()),
            "b": pa.array([chance.choice([True, False, None]) for _ in range(rows)], pa.bool_()),
            "d": pa.array([chance.choice([None, date(1969, 12, 31), date(2024, 2, 29)]) for _ in range(rows)]),
        }
    )


def extremes(values: list[Any]) -> tuple[Any, Any]:
    known = [value for value in values if value is not None]
    return (min(known), max(known)) if known else (None, None)


@pytest.mark.parametrize("room", [1, 2, 62])
def test_labels_order_as_values_do_whatever_comes_and_goes(room: int) -> None:
    chance = random.Random(room)
    labels, known = OrderLabels(pa.string(), room=room), dict[str, int]()
    for step in range(200):
        prefix = chance.choice("abc")
        some = [f"{prefix}{step:04}", chance.choice(WORDS), f"{prefix}{chance.random()}"][: chance.randrange(1, 4)]
        codes = labels.encode(pa.array(some, pa.string()))
        if (moved := labels.moved()) is not None:
            old = np.array(list(known.values()), np.int64)
            known = dict(zip(known, moved.of(old).tolist(), strict=True))
        found, there = labels.labels(codes)
        assert there.tolist() == [value is not None for value in some]
        known |= {value: int(label) for value, label in zip(some, found, strict=True) if value is not None}
        assert sorted(known, key=known.__getitem__) == sorted(known), "labels order as values do"
        assert len(set(known.values())) == len(known)
        back = labels.values(np.array([*known.values(), 0]), np.array([True] * len(known) + [False]))
        assert back.to_pylist() == [*known, None]
        if chance.random() < 0.1:
            kept = {value: label for value, label in known.items() if chance.random() < 0.5}
            places = labels.encode(pa.array(list(kept), pa.string()))
            labels.keep(np.unique(places).astype(np.int64))
            known = kept
        if chance.random() < 0.1:
            again = OrderLabels(pa.string(), room=room)
            again.restore(labels.state())
            labels = again


def test_a_run_of_values_seldom_gets_new_labels() -> None:
    """Names with a counter, each behind the one before it, between names that are there already."""
    labels, moves = OrderLabels(pa.string()), 0
    labels.encode(pa.array(["a", "b", "c", "d"]))
    for step in range(3000):
        way = step if step % 3 else 3000 - step
        labels.encode(pa.array([f"{'abc'[step % 3]}{way:05}"]))
        moves += labels.moved() is not None
    assert moves == 0


@pytest.mark.parametrize("plan", PLANS[:2] + PLANS[3:])
@pytest.mark.parametrize("room", [1, 62])
@pytest.mark.parametrize("every", [None, 5])
def test_of_one_stream(plan: str, room: int, every: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JoinsCodec, "label_room", room)
    monkeypatch.setattr(JoinsCodec, "few_codes", 1)
    rows = stream(random.Random(1))
    names = {"low": "MIN(x)", "high": "MAX(x)", "least": "MIN(b)", "most": "MAX(b)", "first": "MIN(d)", "n": "COUNT(x)"}
    query = (
        JoinAggregate(
            inputs=sb.sliding(10, every=every, on="t"), group_by="g", aggregates=names, plan=plan, emit="windows"
        )
        if every
        else JoinAggregate(inputs=sb.sliding(10, on="t"), group_by="g", aggregates=names, plan=plan)
    )
    session, found = query.open(rows.schema), list[dict[str, Any]]()
    for start in range(0, len(rows), 7):
        found += session.push(rows.slice(start, 7)).to_pylist()
        session = query.open(rows.schema, session.snapshot())
        session.check()
    found += session.finish().to_pylist()
    held = rows.to_pylist()
    if every:
        ends = sorted({row["window_end"] for row in found})
        expected = {}
        for end in ends:
            for group in ("p", "q", None):
                here = [row for row in held if end - 10 <= row["t"] < end and row["g"] == group]
                if here:
                    expected[end, group] = of(here)
        assert {(row["window_end"], row["g"]): tuple(row[name] for name in names) for row in found} == expected
        return
    shown: dict[Any, Any] = {}
    for row in found:
        if row["change"] == "delete":
            del shown[row["g"]]
        else:
            shown[row["g"]] = tuple(row[name] for name in names)
    last = max(row["t"] for row in held)
    live = {g: of([row for row in held if row["t"] > last - 10 and row["g"] == g]) for g in ("p", "q", None)}
    assert shown == {group: line for group, line in live.items() if group in shown}
    assert len(shown) >= 2


def of(rows: list[dict[str, Any]]) -> tuple[Any, ...]:
    low, high = extremes([row["x"] for row in rows])
    least, most = extremes([row["b"] for row in rows])
    first, _ = extremes([row["d"] for row in rows])
    return low, high, least, most, first, sum(row["x"] is not None for row in rows)


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("room", [1, 62])
def test_of_a_join(plan: str, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JoinsCodec, "label_room", room)
    monkeypatch.setattr(JoinsCodec, "few_codes", 1)
    chance = random.Random(2)
    a, b = stream(chance), stream(chance)
    query = JoinAggregate(
        inputs={"a": sb.sliding(10, on="t"), "b": sb.sliding(5, on="t")},
        on="a.g = b.g",
        group_by="a.g",
        aggregates={"low": "MIN(a.x)", "high": "MAX(b.x)", "also": "MAX(a.x)", "total": "SUM(a.t)"},
        every=5,
        plan=plan,
    )
    session, found = query.open({"a": a.schema, "b": b.schema}), list[dict[str, Any]]()
    for start in range(0, 60, 7):
        for name, rows in (("a", a), ("b", b)):
            found += session.push(rows.slice(start, 7), name).to_pylist()
        session = query.open({"a": a.schema, "b": b.schema}, session.snapshot())
    found += session.finish().to_pylist()
    expected = []
    for end in range(5, 60, 5):
        for group in ("p", "q"):
            ones = [row for row in a.to_pylist() if end - 10 <= row["t"] < end and row["g"] == group]
            others = [row for row in b.to_pylist() if end - 5 <= row["t"] < end and row["g"] == group]
            if ones and others:
                low, also = extremes([row["x"] for row in ones])
                high = extremes([row["x"] for row in others])[1]
                total = sum(row["t"] for row in ones) * len(others)
                expected.append({"window_end": end, "g": group, "low": low, "high": high, "also": also, "total": total})
    assert found == expected


@pytest.mark.parametrize("plan", ["late", "early", "recompute"])
def test_the_best_groups_as_they_change_keep_their_values(plan: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The labels of what is shown are renewed, too: nothing is shown twice."""
    chance = random.Random(3)
    words = [f"{chance.choice('abc')}{n}" for n in range(40)]
    rows = stream(chance, words=[*words, None])
    query = JoinAggregate(
        inputs=sb.sliding(10, on="t"), group_by="g", aggregates={"low": "MIN(x)", "n": "COUNT(*)"}, order_by="low",
        k=1, plan=plan,
    )  # fmt: skip

    def run() -> list[dict[str, Any]]:
        session = query.open(rows.schema)
        return [line for i in range(len(rows)) for line in session.push(rows.slice(i, 1)).to_pylist()]

    expected = run()
    monkeypatch.setattr(JoinsCodec, "label_room", 1)
    monkeypatch.setattr(JoinsCodec, "few_codes", 1)
    assert run() == expected
    assert len(expected) > 20


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["b", None, "a", "é"]),
        pa.array(["b", None, "a", "é"], pa.large_string()),
        pa.array(["b", None, "a", "é"]).dictionary_encode(),
        pa.array([b"b", None, b"\xff", b""]),
        pa.array([True, None, False]),
        pa.array([None, None], pa.string()),
        pa.array([date(1969, 12, 31), None, date(1970, 1, 1)]),
        pa.array([datetime(1969, 12, 31), None, datetime(1970, 1, 1)], pa.timestamp("ms")),
        pa.array([datetime(1969, 12, 31, tzinfo=UTC), None], pa.timestamp("ns", "UTC")),
    ],
)
def test_an_extreme_has_the_type_of_its_values(values: pa.Array) -> None:
    rows = pa.table({"t": pa.array([1] * len(values), pa.int64()), "x": values})
    answer = sb.join_aggregate(rows, window=sb.tumbling(10, on="t"), aggregates={"low": "MIN(x)", "high": "MAX(x)"})
    (low,), (high,) = answer["low"].to_pylist(), answer["high"].to_pylist()
    assert (low, high) == extremes(values.to_pylist())
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    assert answer.schema.field("low").type == answer.schema.field("high").type == kind


@pytest.mark.parametrize("plan", ["late", "early"])
def test_values_that_are_gone_are_forgotten(plan: str) -> None:
    query = JoinAggregate(
        inputs=sb.sliding(50, every=10, on="t"), group_by="g", aggregates={"low": "MIN(x)", "high": "MAX(x)"}, plan=plan
    )
    schema = pa.schema({"t": pa.int64(), "g": pa.int64(), "x": pa.string()})
    session, longest = query.open(schema), 0
    for start in range(0, 60_000, 2_000):
        times = range(start, start + 2_000)
        rows = pa.table({"t": times, "g": [t % 3 for t in times], "x": [f"value {t:06}" for t in times]}, schema=schema)
        answer = session.push(rows)
        ends = answer["window_end"].to_pylist()
        assert [int(one[6:]) // 10 for one in answer["high"].to_pylist()] == [end // 10 - 1 for end in ends]
        longest = max(longest, len(session.snapshot()))
    session.check()
    assert longest < 1_000_000
