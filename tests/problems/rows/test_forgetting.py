"""Oracle, example and restart tests: `forget_after`, with which a group that was silent starts anew."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

import skyband as sb
from skyband.core.calls import Stats
from skyband.core.registry import every_algorithm_of
from skyband.problems.rows.codec import RowsCodec

EXACT = [name for name, each in every_algorithm_of("rows").items() if each.exact]


@pytest.fixture(params=[1, 1024])
def few_codes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silent groups are dropped at once, or hardly ever: that must not change an answer."""
    monkeypatch.setattr(RowsCodec, "few_codes", request.param)


def clock(rows: list[dict[str, Any]], order: str | None) -> list[int | None]:
    """When each row comes: its position, or the largest value of the order column so far."""
    if order is None:
        return list(range(len(rows)))
    values = (row[order] for row in rows)
    return list(itertools.accumulate(values, lambda a, b: b if a is None else a if b is None else max(a, b)))


def with_starts(rows: list[dict[str, Any]], limit: int, order: str | None) -> list[dict[str, Any]]:
    """The definition: each row with the number of times that its group has started so far."""
    last: dict[Any, int | None] = {}
    starts: dict[Any, int] = {}
    found = []
    for row, now in zip(rows, clock(rows, order), strict=True):
        before = last.get(row["g"])
        if now is not None and before is not None and now - before > limit:
            starts[row["g"]] += 1
        last[row["g"]] = now
        found.append({**row, "start": starts.setdefault(row["g"], 0)})
    return found


def live(rows: list[dict[str, Any]], limit: int, order: str | None) -> set[tuple[Any, int]]:
    """Groups that are not silent for too long now, and their current start."""
    at = clock(rows, order)
    last = {row["g"]: (now, row["start"]) for row, now in zip(rows, at, strict=True)}
    return {(g, start) for g, (now, start) in last.items() if now is None or at[-1] - now <= limit}  # type: ignore[operator]


def streams(seeds: int) -> Iterator[tuple[list[dict[str, Any]], random.Random]]:
    for seed in range(seeds):
        choose, at = random.Random(seed), -50
        rows = []
        for number in range(choose.choice([30, 90])):
            at += choose.choice([0, 1, 1, 2, 40])
            order_value = None if choose.random() < 0.1 else at - choose.choice([0, 0, 3])
            group = choose.choice([None, 1, 2, 3, 3, 3, number])  # some never return
            rows.append({"g": group, "s": choose.choice([None, 1, 2, 3, 9]), "n": number, "at": order_value})
        yield rows, choose


def lines(answer: pa.Table) -> list[tuple[Any, ...]]:
    columns = [
        name for name in ("window_end", "at_", "at", "change", "g", "rank", "score", "n") if name in answer.schema.names
    ]
    return sorted((tuple(row[name] for name in columns) for row in answer.to_pylist()), key=repr)


LIMIT = 7
ONE_GROUP = {"mintopk_published"}  # algorithms that answer no query with `per`
SCHEMA = pa.schema({"g": pa.int64(), "s": pa.int64(), "n": pa.int64(), "at": pa.int64()})


@pytest.mark.usefixtures("few_codes")
@pytest.mark.parametrize("algorithm", EXACT)
def test_every_algorithm_starts_groups_anew(algorithm: str) -> None:
    answered = 0
    for order, emit in itertools.product([None, "at"], ["windows", "changes", "entries"]):
        window = sb.sliding(4, every=2, order=order)
        ties = "rank" if algorithm == "tied" else None
        options: dict[str, Any] = {"k": 2, "by": "s", "window": window, "emit": emit, "ties": ties}
        query = sb.TopK(per="g", forget_after=LIMIT, algorithm=algorithm, **options)
        try:
            query.open(SCHEMA)
        except sb.InvalidQuery:
            continue  # an algorithm for other queries
        answered += 1
        definition = sb.TopK(per=("g", "start"), algorithm="recompute", **options)
        for rows, choose in streams(6):
            check_stream(query, definition, rows, choose)
    assert answered or algorithm in ONE_GROUP


def check_stream(query: sb.TopK, definition: sb.TopK, rows: list[dict[str, Any]], choose: random.Random) -> None:
    """`definition` has every start of a group as a group of its own, and forgets nothing."""
    expected = with_starts(rows, LIMIT, query.window.order)
    table = pa.Table.from_pylist(rows, SCHEMA)
    oracle = definition.open(SCHEMA.append(pa.field("start", pa.int64())))
    told = pa.Table.from_pylist(expected, oracle.schema)
    session, i = query.open(SCHEMA), 0
    while i < len(rows):
        step = choose.choice([1, 1, 2, 7, 20])
        assert lines(session.push(table.slice(i, step))) == lines(oracle.push(told.slice(i, step)))
        i += step
        session.check()
        if choose.random() < 0.3:
            session = query.open(SCHEMA, session.snapshot())
    kept = live(expected, LIMIT, query.window.order)
    assert session.stats().groups == len(kept)
    assert session.stats().rows_unranked == oracle.stats().rows_unranked
    now = [row["n"] for row in oracle.top().to_pylist() if (row["g"], row["start"]) in kept]
    assert sorted(session.top()["n"].to_pylist()) == sorted(now)


def test_a_group_that_was_silent_starts_anew() -> None:
    rows = pa.table({"g": list("aabbbba"), "s": [9, 1, 5, 6, 7, 8, 2]})
    query = sb.TopK(k=1, by="s", window=sb.sliding(3, every=1), per="g", forget_after=4)
    shown = [(row["g"], row["window_end"], row["score"]) for row in query.open(rows.schema).push(rows).to_pylist()]
    assert shown[-1] == ("a", 1, 2)  # its row with 9 came five rows before its last


def test_memory_follows_the_groups_that_are_not_silent() -> None:
    query = sb.TopK(k=2, by="s", window=sb.sliding(3, every=1), per="g", forget_after=1_000)
    session = query.open(pa.schema({"g": pa.int64(), "s": pa.int64()}))
    largest = 0
    for start in range(0, 50_000, 500):
        ids = list(range(start, start + 500))
        session.push(pa.table({"g": ids, "s": ids}))
        largest = max(largest, len(session.held()))
    assert largest < 4_000  # of 50,000 groups
    assert session.stats().groups <= 1_001


def test_a_duration_measures_the_order_column() -> None:
    start = 1_700_000_000_000_000
    at = pa.array([start, start + 1_000_000, start + 62_000_000], pa.timestamp("us", tz="UTC"))
    rows = pa.table({"g": ["a"] * 3, "s": [9, 1, 2], "at": at})
    ends = []
    for after in ("1 minute", timedelta(minutes=2)):
        answer = sb.top_k(rows, k=1, by="s", window=sb.sliding(5, every=1, order="at"), per="g", forget_after=after)
        ends.append(answer["window_end"].to_pylist())
    assert ends == [[1, 2, 1], [1, 2, 3]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": sb.tumbling(5, on="n"), "per": "g"}, "no meaning in a window by value"),
        ({"window": sb.sliding(5)}, "the query has none: add per="),
        ({"window": sb.sliding(5), "per": "g", "forget_after": 0}, "must be more than 0"),
        ({"window": sb.sliding(5), "per": "g", "forget_after": "1 day"}, "the window counts arrivals"),
        ({"window": sb.sliding(5, order="x"), "per": "g"}, "measures order='x', which is double"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: dict[str, Any], message: str) -> None:
    rows = pa.table({"g": ["a"], "s": [1], "n": [1], "x": [1.5]})
    with pytest.raises(sb.InvalidQuery, match=message):
        sb.top_k(rows, **({"k": 1, "by": "s", "forget_after": 3} | options))


def test_a_snapshot_with_other_codes_is_refused() -> None:
    query = sb.TopK(k=1, by="s", window=sb.sliding(3, every=1), per="g", forget_after=4)
    session = query.open(pa.schema({"g": pa.string(), "s": pa.int64()}))
    session.push(pa.table({"g": ["a", "b"], "s": [1, 2]}))
    codec: Any = session._codec
    codec._forgetting._code[:] = 0, 0
    with pytest.raises(sb.SnapshotCorrupt, match="forget_code"):
        query.open(session.schema, session.snapshot())


def test_its_count_of_groups_is_that_of_live_ones() -> None:
    session = sb.TopK(k=1, by="s", window=sb.sliding(3), per="g", forget_after=1).open(
        pa.schema({"g": pa.string(), "s": pa.int64()})
    )
    session.push(pa.table({"g": ["a", "b", "c"], "s": [1, 2, 3]}))
    stats: Stats = session.stats()
    assert stats.groups == 2


@pytest.mark.parametrize(
    ("said", "order", "after"),
    [
        ("FORGET AFTER 3 ROWS", None, 3),
        ("FORGET AFTER 3", None, 3),
        ("ORDER BY n FORGET AFTER 3", "n", 3),
        ("ORDER BY ts FORGET AFTER 3 MINUTES", "ts", "3 minutes"),
    ],
)
def test_a_statement_says_it_in_the_brackets_of_the_window(said: str, order: str | None, after: str | int) -> None:
    rows = pa.table(
        {
            "n": range(8),
            "g": ["a", "b", "b", "b", "b", "a", "b", "a"],
            "x": [9, 1, 2, 3, 4, 5, 6, 1],
            "ts": pa.array([60_000_000 * minute for minute in range(8)], pa.timestamp("us")),
        }
    )
    found = sb.sql(f"SELECT n FROM rows [WINDOW 3 ROWS EVERY 1 ROWS {said}] ORDER BY x DESC LIMIT 1 BY g", rows=rows)
    window = sb.sliding(3, every=1, order=order)
    expected = sb.top_k(rows, k=1, by="x", window=window, per="g", forget_after=after)
    assert found.to_pylist() == expected.select(found.column_names).to_pylist()
    kept = sb.top_k(rows, k=1, by="x", window=window, per="g")
    assert found.to_pylist() != kept.select(found.column_names).to_pylist()
