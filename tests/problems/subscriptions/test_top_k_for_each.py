"""Example: many queries at once, as a user asks them."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from operator import itemgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import skyband as sb

ROWS = pa.table({"t": [0, 1, 2, 3, 4, 5], "name": list("abcdef"), "x": [1.0, 5.0, 2.0, 8.0, 4.0, None]})
QUERIES = pa.table({"id": ["low", "high"], "x": [0.0, 9.0], "k": [1, 2], "n": [2, 3]})
NEAR = "abs(x - q.x)"


def told(table: pa.Table) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


def test_each_query_has_a_ranking_of_its_own() -> None:
    window = sb.sliding(2, every=2)
    answer = sb.top_k(ROWS, k=1, by=NEAR, ascending=True, window=window, for_each=QUERIES)
    assert answer.column_names == ["id", "window_start", "window_end", "rank", "score", "t", "name", "x"]
    assert told(answer) == [
        ("low", 0, 2, 1, 1.0, 0, "a", 1.0),
        ("high", 0, 2, 1, 4.0, 1, "b", 5.0),
        ("low", 2, 4, 1, 2.0, 2, "c", 2.0),
        ("high", 2, 4, 1, 1.0, 3, "d", 8.0),
        ("low", 4, 6, 1, 4.0, 4, "e", 4.0),
        ("high", 4, 6, 1, 5.0, 4, "e", 4.0),
    ]


def test_k_and_size_may_be_columns() -> None:
    window = sb.sliding(4, every=3, on="t")
    answer = sb.top_k(ROWS, k="q.k", size="q.n", by=NEAR, ascending=True, window=window, for_each=QUERIES.slice(1))
    assert told(answer)[:2] == [("high", 0, 3, 1, 4.0, 1, "b", 5.0), ("high", 0, 3, 2, 7.0, 2, "c", 2.0)]


def test_each_is_answered_as_often_as_it_says_and_sees_what_meets_its_condition() -> None:
    """Each query is what it would be alone, asked of the rows that meet its condition."""
    rng = np.random.default_rng(2)
    names = ["oak", "elm", None, "fir"]
    rows = pa.table(
        {"t": np.arange(300), "name": [names[i] for i in rng.integers(0, 4, 300)], "x": rng.integers(0, 40, 300) / 4}
    )
    queries = pa.table(
        {
            "id": range(6),
            "name": ["oak", "elm", "oak", "ash", None, "fir"],
            "least": [0.0, 3.0, 5.0, 0.0, 0.0, 0.0],
            "often": [10, 20, 40, 10, 10, 30],
        }
    )
    window = sb.sliding(40, every=10, on="t")
    options = {"k": 3, "by": "x", "where": "name = q.name AND x >= q.least", "every": "q.often", "window": window}
    query = sb.TopKForEach(queries=queries.slice(0, 2), **options)
    session = query.open(rows.schema)
    told_so_far = [session.push(rows.slice(0, 105))]
    session.add(queries.slice(2), backfill=True)
    session = query.open(rows.schema, session.snapshot())
    session.remove([1])
    told_so_far += [session.push(rows.slice(105)), session.finish()]
    answer = pa.concat_tables(told_so_far).to_pylist()
    for row in queries.to_pylist():
        mine = [tuple(line.values())[1:] for line in answer if line["id"] == row["id"]]
        seen = rows.filter((pc.field("name") == row["name"]) & (pc.field("x") >= row["least"]))
        alone = told(sb.top_k(seen, k=3, by="x", window=sb.sliding(40, every=row["often"], on="t")))
        first, last = (0, 105) if row["id"] == 1 else (105 if row["id"] > 1 else 0, 400)
        assert mine == [line for line in alone if first < line[1] <= last]
    assert {line["id"] for line in answer} == {0, 1, 2, 5}
    text = """SELECT t, rows.name FROM rows [WINDOW 40 EVERY q.often DOWN TO 10 ON t], queries q
              WHERE rows.name = q.name AND rows.x >= q.least ORDER BY rows.x DESC LIMIT 3 BY q.id"""
    called = sb.top_k(rows, for_each=queries, **options)
    assert told(sb.sql(text, rows=rows, queries=queries)) == told(called)


def test_sizes_on_a_timestamp_are_durations_or_texts() -> None:
    start = datetime(2026, 3, 1, tzinfo=UTC)
    rows = pa.table({"ts": [start + timedelta(minutes=m) for m in range(4)], "x": [4.0, 3.0, 2.0, 1.0]})
    window = sb.sliding("3 minutes", on="ts")
    for sizes in (pa.array(["1 minute", "3 minutes"]), pa.array([timedelta(minutes=1), timedelta(minutes=3)])):
        queries = pa.table({"id": [1, 2], "size": sizes})
        session = sb.TopKForEach(queries=queries, k=1, by="x", size="q.size", window=window).open(rows.schema)
        session.push(rows)
        assert session.top().column("score").to_pylist() == [1.0, 3.0]


@pytest.mark.parametrize("on", [None, "t"])
@pytest.mark.parametrize("algorithm", ["shared", "boxes", None])
def test_they_can_be_asked_before_the_first_window_has_closed(algorithm: str | None, on: str | None) -> None:
    """Those that share a skyband said nothing then: all rows waited for the slide to end."""
    queries = pa.table({"id": ["one", "two"], "k": [1, 2], "n": [6, 3]})
    window = sb.sliding(6, every=3, on=on)
    query = sb.TopKForEach(queries=queries, k="q.k", size="q.n", by="x", window=window, algorithm=algorithm)
    session = query.open(ROWS.schema)
    assert session.top().num_rows == 0
    for rows in (ROWS.slice(0, 1), ROWS.slice(1, 1)):
        assert session.push(rows).num_rows == 0
        session = query.open(ROWS.schema, session.snapshot())
        expected = []
        for name, k, size in zip(*queries.to_pydict().values(), strict=True):
            alone = sb.TopK(k=k, by="x", window=sb.sliding(size, every=3, on=on)).open(ROWS.schema)
            alone.push(ROWS.slice(0, session.stats().rows_in))
            expected += [(name, *line) for line in told(alone.top())]
        assert told(session.top()) == expected
        assert len(expected) == 1 + session.stats().rows_in


def test_queries_come_and_go() -> None:
    session = sb.TopKForEach(queries=QUERIES, k=1, by=NEAR, ascending=True, window=sb.sliding(3)).open(ROWS.schema)
    session.push(ROWS.slice(0, 3))
    late = pa.table({"id": ["late"], "x": [0.0], "k": [1], "n": [1]})
    assert session.add(late).num_rows == 0
    session.remove(["high"])
    assert session.queries.column("id").to_pylist() == ["low", "late"]
    seen = told(session.push(ROWS.slice(3, 1)))
    assert [row[0] for row in seen] == ["low", "low", "late"]  # row a leaves and c enters; d is all that late has seen
    restored = session.query.open(ROWS.schema, session.snapshot())
    assert restored.push(ROWS.slice(4)).equals(session.push(ROWS.slice(4)))
    assert restored.top().equals(session.top())


def test_changes_of_queries_are_taken_as_a_feed_of_a_table_gives_them() -> None:
    session = sb.TopKForEach(queries=QUERIES, k="q.k", by=NEAR, ascending=True, window=sb.sliding(3)).open(ROWS.schema)
    feed = pa.table(
        {
            "_change_type": ["update_preimage", "update_postimage", "insert", "delete", "delete", "insert", "insert"],
            "id": ["low", "low", "new", "high", "nobody", "brief", "brief"],
            "x": [0.0, 1.0, 5.0, None, None, 1.0, 2.0],
            "k": [1, 2, 1, None, None, 1, 0],
            "n": [2, 2, 2, None, None, 2, 2],
            "_commit_version": [1] * 7,
        }
    )
    with pytest.raises(sb.InvalidQuery, match="k must be at least 1"):
        session.change(feed)
    with pytest.raises(sb.InvalidInput, match="update_preimage; got 'Insert'"):
        session.change(feed.set_column(0, "_change_type", pa.array(["Insert"] * 7)))
    with pytest.raises(sb.InvalidInput, match="the column '_change_type'"):
        session.change(QUERIES)
    assert session.queries.column("id").to_pylist() == ["low", "high"], "nothing was taken"
    session.change(feed.slice(0, 6))
    assert session.queries.column("id").to_pylist() == ["low", "new", "brief"]
    session.change(feed, set_aside=True)
    assert session.stats().queries_refused == 1
    assert [row[0] for row in told(session.push(ROWS.slice(0, 2)))] == ["low", "new", "brief", "low", "new", "new"]


@pytest.mark.parametrize("window", [sb.sliding(3), sb.sliding(4, every=2), sb.sliding(3, every=2, on="t")])
def test_rows_that_nobody_will_ask_for_can_be_forgotten(window: sb.Window) -> None:
    query = sb.TopKForEach(queries=QUERIES.slice(0, 0), k=2, by=NEAR, ascending=True, window=window)
    sessions = [query.open(ROWS.schema), query.open(ROWS.schema)]
    for session in sessions:
        session.push(ROWS.slice(0, 3))
    sessions[0].forget_rows()
    assert [session.stats().rows_held > 0 for session in sessions] == [False, True]
    for session in sessions:
        session.add(QUERIES)
        session.forget_rows()  # there are queries now
    forgot, kept = (told(session.push(ROWS.slice(3))) + told(session.finish()) for session in sessions)
    assert forgot == kept
    assert forgot


@pytest.mark.parametrize(("k", "algorithm"), [(3, "shared"), ("q.k", "shared_score")])
def test_with_backfill_rows_are_there_before_any_query(k: int | str, algorithm: str) -> None:
    rows = pa.table({"x": np.random.default_rng(5).random(1_200)})
    queries = pa.table({"id": [1], "k": [3]})
    asked = {"k": k, "by": "x", "window": sb.sliding(1_000, every=500), "backfill": True}
    session = sb.TopKForEach(queries=queries.slice(0, 0), **asked).open(rows.schema)
    assert session.algorithm == algorithm
    session.push(rows)
    session.add(queries)
    expected = sorted(rows.column("x").to_pylist()[500:], reverse=True)[:3]
    assert session.top().column("score").to_pylist() == expected
    with pytest.raises(sb.InvalidQuery, match="a window that ends"):
        sb.TopKForEach(queries=queries, **{**asked, "window": sb.landmark(every=10)})


def test_backfill_gives_what_a_query_from_the_start_has() -> None:
    rng = np.random.default_rng(5)
    rows = pa.table({"x": rng.random(3_000)})
    queries = pa.table({"id": range(40), "x": rng.random(40)})
    for window in (sb.sliding(500), sb.sliding(500, every=100)):
        query = sb.TopKForEach(queries=queries, k=3, by=NEAR, ascending=True, window=window)
        one, other = (
            query.open(rows.schema),
            sb.TopKForEach(queries=queries.slice(0, 1), k=3, by=NEAR, ascending=True, window=window).open(rows.schema),
        )
        one.push(rows.slice(0, 1_000))
        other.push(rows.slice(0, 1_000))
        other.add(queries.slice(1), backfill=True)
        assert other.top().equals(one.top())
        assert other.push(rows.slice(1_000)).equals(one.push(rows.slice(1_000)))


@pytest.mark.parametrize("emit", ["changes", "entries"])
def test_long_streams_get_the_answers_of_one_query_after_the_other(emit: str) -> None:
    """Lists grow, move, are trimmed and filled again: more than the short streams of the conformance suite have."""
    rng = np.random.default_rng(5)
    rows, queries = pa.table({"x": rng.random(3_000)}), pa.table({"id": range(40), "x": rng.random(40)})
    asked = {"k": 3, "by": NEAR, "ascending": True, "window": sb.sliding(500), "emit": emit, "for_each": queries}
    expected, found = (sb.top_k(rows, algorithm=name, **asked) for name in ("relaxed", "boxes"))
    assert found.equals(expected)


@pytest.mark.parametrize("window", [sb.sliding(400), sb.sliding(400, on="t")], ids=["by count", "by value"])
@pytest.mark.parametrize("name", ["scan", "boxes", "boxes(slack=1, parts=16, rows=4)", "cells"])
def test_so_they_do_where_rows_go_away_and_come_back(name: str, window: sb.Window) -> None:
    """Thresholds fall and rise, some queries are outside the range of all rows, and by value some rows come late."""
    rng, number = np.random.default_rng(6), np.arange(3_000)
    late = rng.integers(0, 450, len(number)) * (rng.random(len(number)) < 0.1)
    x = np.round(np.sin(number / 300) + rng.normal(0, 0.1, len(number)), 2)  # many are equal
    rows, queries = pa.table({"t": number - late, "x": x}), pa.table({"id": range(20), "x": np.linspace(-2, 2, 20)})
    asked = {"k": 5, "by": NEAR, "ascending": True, "window": window, "emit": "changes", "for_each": queries}
    found, expected = (told(sb.top_k(rows, algorithm=each, **asked)) for each in (name, "relaxed"))
    assert sorted(found, key=itemgetter(0)) == sorted(expected, key=itemgetter(0))  # each query's in their order


def test_one_skyband_for_all_keeps_what_matters_to_the_largest_k() -> None:
    rng = np.random.default_rng(5)
    rows = pa.table({"x": rng.random(3_000)})
    asked = {"k": "q.k", "by": "x", "size": "q.n", "window": sb.sliding(1_000, every=500)}
    queries = pa.table({"id": [0, 1], "k": [3, 5], "n": [1_000, 700]})
    session = sb.TopKForEach(queries=queries, **asked).open(rows.schema)
    session.push(rows.slice(0, 2_200))
    assert session.algorithm == "shared"
    assert session.stats().rows_held < 100
    more = pa.table({"id": [2], "k": [5], "n": [800]})
    session.add(more, backfill=True)
    x = rows.column("x").to_numpy()
    now = session.top(size=600)
    for q, (k, n) in enumerate([(3, 600), (5, 600), (5, 600)]):
        mine = [row["score"] for row in now.to_pylist() if row["id"] == q]
        assert mine == sorted(x[2_200 - n : 2_200], reverse=True)[:k]
    with pytest.raises(sb.InvalidQuery, match="k up to 5, the largest so far"):
        session.add(pa.table({"id": [3], "k": [6], "n": [1_000]}), backfill=True)
    assert session.queries.num_rows == 3
    session.add(pa.table({"id": [3], "k": [6], "n": [1_000]}))
    answer = [row for row in session.push(rows.slice(2_200)).to_pylist() if row["window_end"] == 2_500]
    seen = {0: x[1_500:2_500], 1: x[1_800:2_500], 2: x[1_700:2_500], 3: x[2_200:2_500]}
    for q, k in enumerate([3, 5, 5, 6]):
        assert [row["score"] for row in answer if row["id"] == q] == sorted(seen[q], reverse=True)[:k]


@pytest.mark.parametrize("count", [0, 1, 5_000])
def test_any_number_of_queries(count: int) -> None:
    rng = np.random.default_rng(3)
    rows = pa.table({"x": rng.random(400), "y": rng.random(400)})
    # Most lie outside the range of the rows.
    queries = pa.table({"id": np.arange(count), "x": rng.uniform(-3, 4, count), "y": rng.uniform(-3, 4, count)})
    by = "(x - q.x)**2 + (y - q.y)**2"
    session = sb.TopKForEach(queries=queries, k=2, by=by, ascending=True, window=sb.sliding(100, every=50)).open(
        rows.schema
    )
    answer = session.push(rows)
    assert answer.num_rows == count * 2 * 8
    x, y = (rows.column(name).to_numpy() for name in "xy")
    last = answer.slice(count * 2 * 7).to_pylist()
    for q in random.Random(7).sample(range(count), min(count, 50)):
        px, py = (queries.column(name)[q].as_py() for name in "xy")
        scores = (x[300:] - px) * (x[300:] - px) + (y[300:] - py) * (y[300:] - py)
        assert [row["score"] for row in last if row["id"] == q] == sorted(scores.tolist())[:2]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"k": "q.m"}, "No column 'm' for k= among the queries"),
        ({"k": 0}, "k must be a whole number"),
        ({"by": "abs(x - q.z)"}, "No column 'z' for a column of the queries"),
        ({"by": "abs(z - q.x)"}, "No column 'z' for a column of the rows"),
        ({"by": "q.id * x"}, "not a number"),
        ({"by": lambda x: x}, "must be an SQL expression"),
        ({"size": "n"}, "is written 'q.size'"),
        ({"size": "q.n", "window": sb.sliding(2)}, "size=3 is larger than the window"),
        ({"size": "q.n", "window": sb.sliding(9, every=3)}, "size=2 is less than the slide"),
        ({"every": "q.n", "window": sb.sliding(3)}, "take sliding(size"),
        ({"every": "q.n", "window": sb.sliding(4, every=2)}, "every=3 must be a multiple of the window's slide"),
        ({"where": " "}, "where must be a condition"),
        ({"where": "name = q.x"}, "not a number. You can only compare it"),
        ({"key": "k"}, None),
        ({"for_each": pa.concat_tables([QUERIES, QUERIES])}, "Two of these queries have the same"),
        ({"for_each": [1, 2]}, "Pass the queries as a table"),
        ({"per": "name"}, "cannot go with for_each="),
        ({"algorithm": "nothing"}, "No algorithm 'nothing'"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_a_row_is_read(options: dict[str, object], says: str | None) -> None:
    asked = {"k": 1, "by": NEAR, "window": sb.sliding(3), "for_each": QUERIES} | options
    if says is None:
        sb.top_k(ROWS, **asked)
        return
    with pytest.raises(sb.SkybandError, match=says.replace("(", r"\(")):
        sb.top_k(ROWS, **asked)


def test_a_statement_asks_the_same() -> None:
    text = "SELECT name, r.x FROM rows r [WINDOW 3 ROWS], queries q WHERE r.x >= q.x ORDER BY r.x - q.x LIMIT 2 BY q.id"
    by = "CASE WHEN x >= q.x THEN x - q.x END"
    called = sb.top_k(ROWS, k=2, by=by, ascending=True, window=sb.sliding(3), for_each=QUERIES)
    assert told(sb.sql(text, rows=ROWS, queries=QUERIES)) == told(
        called.select(["id", "at", "change", "rank", "score", "name", "x"])
    )


def test_in_a_statement_too_k_and_size_may_be_columns() -> None:
    called = sb.top_k(
        ROWS, k="q.k", size="q.n", by=NEAR, ascending=True, window=sb.sliding(3), for_each=QUERIES
    ).select(["id", "at", "change", "rank", "score", "name"])
    ranked = "ROW_NUMBER() OVER (PARTITION BY q.id ORDER BY abs(r.x - q.x))"
    for ending in ("ORDER BY abs(r.x - q.x) LIMIT q.k BY q.id", f"QUALIFY {ranked} <= q.k"):
        text = f"SELECT name FROM rows r [WINDOW q.n UP TO 3 ROWS], queries q {ending}"
        assert told(sb.sql(text, rows=ROWS, queries=QUERIES)) == told(called)
    for text, says in (
        (
            "SELECT name FROM rows [WINDOW rows.t UP TO 3 ROWS] ORDER BY x LIMIT 1",
            "only in a ranking for each query",
        ),
        ("SELECT name FROM rows r [WINDOW r.t UP TO 3 ROWS], queries q ORDER BY r.x LIMIT 1 BY q.id", "no input 'r'"),
        ("SELECT name FROM rows r [WINDOW 3 ROWS], queries q ORDER BY r.x LIMIT q.z BY q.id", "no column 'z'"),
    ):
        with pytest.raises(sb.InvalidQuery, match=says):
            sb.sql(text, rows=ROWS, queries=QUERIES)


def test_a_statement_that_means_a_join_with_a_table_is_told_how_to_write_it() -> None:
    """Not by arguments of Python's."""
    people = pa.table({"id": ["a", "b", "c"], "town": ["x", "y", "x"]})
    comma = (
        "SELECT {} FROM rows r [WINDOW 3 EVERY 3 ON t], people p WHERE r.name = p.id ORDER BY r.x DESC LIMIT 1 BY {}"
    )
    for shown, by, says in (
        ("name", "p.town", "Two rows of 'people' have the same town"),
        ("name, p.town", "p.id", "Here each row of people asks for a ranking, and only id is shown"),
        ("name", "p.town, r.name", "must be BY columns of people"),
    ):
        with pytest.raises(sb.SkybandError, match=says) as caught:
            sb.sql(comma.format(shown, by), rows=ROWS, people=people)
        assert "write JOIN people" in str(caught.value)
        assert "key=" not in str(caught.value)
    joined = comma.replace(", people p WHERE", " JOIN people p ON")
    assert sb.sql(joined.format("name", "p.town"), rows=ROWS, people=people).num_rows
    assert sb.sql(joined.format("name, p.town", "p.id"), rows=ROWS, people=people).num_rows
    assert sb.sql(joined.format("name", "p.town, r.name"), rows=ROWS, people=people).num_rows
    with pytest.raises(sb.InvalidQuery, match="Two of these queries have the same town"):
        sb.top_k(ROWS, k=1, by="x", window=sb.sliding(3), for_each=people, key="town")


def test_statements_that_run_together_read_their_input_once() -> None:
    best, worst = (
        f"SELECT name FROM rows [WINDOW 2 ROWS EVERY 2 ROWS] ORDER BY x {way} LIMIT 1" for way in ("DESC", "ASC")
    )
    reader = pa.RecordBatchReader.from_batches(ROWS.schema, iter(ROWS.to_batches(max_chunksize=1)))
    answers = sb.run_all({"best": best, "worst": worst}, rows=reader)
    assert [answers[name].read_all().column("name").to_pylist() for name in ("best", "worst")] == [
        ["b", "d", "e"],
        ["a", "c", "e"],
    ]


def test_a_batch_that_is_refused_changes_nothing() -> None:
    session = sb.TopKForEach(queries=QUERIES, k=1, by=NEAR, window=sb.sliding(3)).open(ROWS.schema)
    with pytest.raises(sb.InvalidInput, match="differs from that of the first batch"):
        session.push(ROWS.select(["x"]))
    with pytest.raises(sb.InvalidInput, match="There is no query"):
        session.remove(["low", "middle"])
    with pytest.raises(sb.InvalidQuery, match="Two of these queries have the same"):
        session.add(QUERIES)
    assert session.queries.num_rows == 2
    assert session.push(ROWS.slice(0, 1)).num_rows == 2


SYMBOLS = ["oak", "elm", None, "fir"]


def trades(n: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "t": np.sort(rng.integers(0, n // 2, n)),
            "symbol": [SYMBOLS[i] for i in rng.integers(0, 4, n)],
            "price": rng.integers(0, 30, n) / 2,
            "side": rng.integers(0, 2, n),
        }
    )


def watchers(n: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    symbols = ["oak", "elm", "oak", None, "ash"]
    return pa.table(
        {
            "id": np.arange(n),
            "symbol": [symbols[i] for i in rng.integers(0, 5, n)],
            "side": rng.integers(0, 2, n).astype(np.float64),
            "k": rng.integers(1, 5, n),
            "size": rng.integers(10, 40, n),
        }
    )


@pytest.mark.parametrize("emit", ["windows", "changes", "entries"])
@pytest.mark.parametrize("window", [sb.sliding(40, every=10), sb.sliding(40, every=10, on="t")])
@pytest.mark.parametrize("where", ["symbol = q.symbol", "q.side = side AND price > 2 AND symbol = q.symbol"])
def test_queries_that_see_the_same_rows_share_a_skyband(emit: str, window: sb.Window, where: str) -> None:
    rows, queries = trades(400, 5), watchers(60, 6)
    asked = {"k": "q.k", "size": "q.size", "by": "price", "where": where, "window": window, "emit": emit}
    expected = sb.top_k(rows, for_each=queries, algorithm="boxes", **asked)
    query = sb.TopKForEach(queries=queries, **asked)
    session = query.open(rows.schema)
    assert session.algorithm == "shared"
    told_so_far = [session.push(rows.slice(0, 133))]
    session = query.open(rows.schema, session.snapshot())
    told_so_far += [session.push(rows.slice(133)), session.finish()]
    assert pa.concat_tables(told_so_far).equals(expected)
    assert expected.num_rows > 500


def test_so_do_queries_with_the_same_parameters() -> None:
    rows = trades(300, 7)
    queries = pa.table({"id": np.arange(40), "at": [3.0, 9.5] * 20, "k": np.arange(40) % 6 + 1})
    asked = {"k": "q.k", "by": "abs(price - q.at)", "ascending": True, "window": sb.sliding(50, every=20)}
    query = sb.TopKForEach(queries=queries, **asked)
    assert query.open(rows.schema).algorithm == "shared"
    assert "queries have 2 different scores, and one skyband of each answers" in str(sb.explain(query))
    assert sb.top_k(rows, for_each=queries, **asked).equals(sb.top_k(rows, for_each=queries, algorithm="scan", **asked))
    few = sb.TopKForEach(queries=queries.slice(0, 3), **asked)
    assert few.open(rows.schema).algorithm != "shared"


def test_a_refused_query_leaves_no_trace() -> None:
    """Of a symbol that nobody asked for no row was kept, so nobody can see those of before."""
    rows, queries = trades(90, 8), watchers(30, 9).filter(pc.field("symbol") == "oak")
    query = sb.TopKForEach(queries=queries, k=2, by="price", where="symbol = q.symbol", window=sb.sliding(20, every=10))
    sessions = [query.open(rows.schema), query.open(rows.schema)]
    elm = pa.table({"id": [99], "symbol": ["elm"], "side": [0.0], "k": [1], "size": [20]})
    for session in sessions:
        assert session.algorithm == "shared"
        session.push(rows.slice(0, 25))
    with pytest.raises(sb.InvalidQuery, match="no query had this score"):
        sessions[0].add(elm, backfill=True)
    assert sessions[0].queries.equals(sessions[1].queries)
    before = [session.add(elm) for session in sessions]
    assert before[0].equals(before[1])
    told_so_far = [session.push(rows.slice(25, 26)) for session in sessions]
    assert told_so_far[0].equals(told_so_far[1])
    # By now whatever is in the window came after the first to ask for it.
    again = elm.set_column(0, "id", pa.array([100]))
    sessions[0].add(again, backfill=True)
    seen = sessions[0].push(rows.slice(51, 9))
    assert told(seen.filter(pc.field("id") == 99).drop_columns("id")) == told(
        seen.filter(pc.field("id") == 100).drop_columns("id")
    )
    assert seen.filter(pc.field("id") == 100).num_rows == 2


@pytest.mark.parametrize("window", [sb.sliding(8), sb.sliding(16, on="t"), sb.sliding(16, every=4, on="t")])
@pytest.mark.parametrize("algorithm", ["scan", "boxes", "cells"])
def test_lines_are_in_the_order_in_which_they_became_known(window: sb.Window, algorithm: str) -> None:
    """Row by row, and for each query by query, whichever algorithm it is."""
    rows = trades(120, 3)
    queries = pa.table({"id": np.arange(6), "at": [3.0, 9.5, 1.0, 0.0, 14.0, 7.0], "n": [8, 8, 4, 5, 7, 6]})
    asked = {"k": 2, "by": "abs(price - q.at)", "window": window, "for_each": queries, "emit": "changes", "size": "q.n"}
    assert sb.top_k(rows, algorithm=algorithm, **asked).equals(sb.top_k(rows, algorithm="recompute", **asked))


def test_an_algorithm_for_one_query_takes_its_options() -> None:
    asked = {"k": 2, "by": NEAR, "window": sb.sliding(3), "for_each": QUERIES}
    expected = sb.top_k(ROWS, **asked)
    assert sb.top_k(ROWS, algorithm="relaxed(gamma=0.5)", **asked).equals(expected)
    with pytest.raises(sb.InvalidQuery, match="'relaxed' has no option 'delta'"):
        sb.top_k(ROWS, algorithm="relaxed(delta=0.5)", **asked)
