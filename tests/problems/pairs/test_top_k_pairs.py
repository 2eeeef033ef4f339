"""Example tests: pairs from Arrow data to Arrow data."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.core.registry import every_algorithm_of

READINGS = pa.table(
    {
        "t": [0, 1, 2, 3, 4, 5, 6, 7],
        "mote": ["a", "b", "a", "c", "b", "a", "c", "b"],
        "heat": [20.0, 25.0, 20.5, 30.0, 25.25, 29.0, None, 20.0],
    }
)
NEAREST = "abs(a.heat - b.heat)"
EXACT = [name for name, each in every_algorithm_of("pairs").items() if each.exact]


def lines(table: pa.Table, *columns: str) -> list[tuple[Any, ...]]:
    return list(zip(*(table.column(name).to_pylist() for name in columns), strict=True))


def test_windows_of_arrivals() -> None:
    found = sb.top_k_pairs(READINGS, k=2, by=NEAREST, ascending=True, window=sb.sliding(4, every=4))
    assert found.column_names == [
        *("window_start", "window_end", "rank", "score"),
        *("a_t", "a_mote", "a_heat", "b_t", "b_mote", "b_heat"),
    ]
    assert lines(found, "window_end", "rank", "score", "a_t", "b_t") == [
        (4, 1, 0.5, 0, 2),
        (4, 2, 4.5, 1, 2),
        (8, 1, 3.75, 4, 5),
        (8, 2, 5.25, 4, 7),
    ]


def test_ties_go_to_the_younger_older_row_then_to_the_younger_other() -> None:
    rows = pa.table({"x": [1.0, 1.0, 1.0, 1.0]})
    found = sb.top_k_pairs(rows, k=6, by="a.x + b.x", window=sb.tumbling(4))
    order = sb.TopKPairs(k=6, by="a.x + b.x", window=sb.tumbling(4)).open(rows.schema)
    answer = order._operator.push(_batch(rows))
    assert list(zip(answer.a.tolist(), answer.b.tolist(), strict=True)) == [
        (2, 3), (1, 3), (1, 2), (0, 3), (0, 2), (0, 1)
    ]  # fmt: skip
    assert found.num_rows == 6


def _batch(rows: pa.Table) -> Any:
    from skyband.problems.pairs.operator import Batch

    return Batch(np.array([rows.column("x").to_numpy()]), np.empty((0, 4)), np.empty(0, np.int64), 0)


def test_colours() -> None:
    window = sb.tumbling(8)
    same = sb.top_k_pairs(READINGS, k=1, by=NEAREST, ascending=True, window=window, same="mote")
    assert lines(same, "a_mote", "b_mote", "score") == [("b", "b", 0.25)]
    different = sb.top_k_pairs(READINGS, k=1, by=NEAREST, ascending=True, window=window, different="mote")
    assert lines(different, "a_mote", "b_mote", "score", "a_t", "b_t") == [("a", "b", 0.0, 0, 7)]
    both = sb.top_k_pairs(
        READINGS, k=9, by=NEAREST, ascending=True, window=window, same="mote", different=["mote", "heat"]
    )
    assert lines(both, "a_mote", "score")[0] == ("b", 0.25)
    assert all(a == b for a, b in lines(both, "a_mote", "b_mote"))


def test_where_and_changes() -> None:
    found = sb.top_k_pairs(READINGS, k=1, by=NEAREST, window=sb.sliding(3), where="a.heat < b.heat AND b.t < 5")
    assert lines(found, "at", "change", "score", "a_t", "b_t") == [
        (2, "enter", 5.0, 0, 1),
        (4, "leave", 5.0, 0, 1),
        (4, "enter", 9.5, 2, 3),
        (6, "leave", 9.5, 2, 3),
    ]


def test_times_out_of_order() -> None:
    shuffled = READINGS.take([1, 0, 3, 2, 4, 7, 5, 6])
    asked = {"k": 3, "by": NEAREST, "ascending": True, "window": sb.sliding(4, every=2, on="t")}
    in_order = sb.top_k_pairs(READINGS, lateness=3, **asked)
    assert sb.top_k_pairs(shuffled, lateness=3, **asked) == in_order
    assert in_order.schema.field("window_end").type == pa.int64()


def test_a_function_of_two_rows() -> None:
    text = sb.top_k_pairs(READINGS, k=2, by="a.heat - b.heat", window=sb.tumbling(8))
    function = sb.top_k_pairs(READINGS, k=2, by=lambda a, b: a.heat - b.heat, window=sb.tumbling(8))
    assert text == function


def test_a_function_that_raises_leaves_the_session_as_it_was() -> None:
    def picky(a: Any, b: Any) -> float:
        if b.heat > 100:
            raise ValueError("too hot")
        return a.heat - b.heat

    query = sb.TopKPairs(k=2, by=picky, window=sb.sliding(3))
    session, other = query.open(READINGS.schema), query.open(READINGS.schema)
    expected = [other.push(READINGS.slice(0, 4)), other.push(READINGS.slice(4))]
    assert session.push(READINGS.slice(0, 4)) == expected[0]
    bad = pa.table({"t": [9, 9], "mote": ["a", "a"], "heat": [1.0, 200.0]})
    with pytest.raises(sb.InvalidExpression, match=r"'picky' failed on a pair of rows: ValueError: too hot"):
        session.push(bad)
    session.check()
    assert session.push(READINGS.slice(4)) == expected[1]
    assert session.stats() == other.stats()


@pytest.mark.parametrize(
    "algorithm", [*(each.name for each in every_algorithm_of("pairs").values() if each.exact), None]
)
@pytest.mark.parametrize("window", [sb.sliding(5), sb.sliding(5, every=2), sb.sliding(5, every=2, on="t")], ids=str)
def test_snapshots(algorithm: str | None, window: sb.Window) -> None:
    query = sb.TopKPairs(
        k=3, by=NEAREST, ascending=True, window=window, different="mote", emit="changes", algorithm=algorithm
    )
    whole = query.open(READINGS.schema)
    expected = [whole.push(READINGS), whole.finish()]
    session = query.open(READINGS.schema)
    found = []
    for i in range(READINGS.num_rows):
        found.append(session.push(READINGS.slice(i, 1)))
        session.check()
        session = query.open(READINGS.schema, session.snapshot())
    found.append(session.finish())
    assert pa.concat_tables(found) == pa.concat_tables(expected)
    assert session.stats() == whole.stats()


def test_a_snapshot_of_another_query_is_refused() -> None:
    query = sb.TopKPairs(k=3, by=NEAREST, window=sb.sliding(5))
    other = sb.TopKPairs(k=3, by=NEAREST, window=sb.sliding(5), where="a.t < b.t")
    with pytest.raises(sb.SnapshotMismatch):
        other.open(READINGS.schema, query.open(READINGS.schema).snapshot())


def test_questions() -> None:
    session = sb.TopKPairs(k=3, by=NEAREST, ascending=True, window=sb.sliding(8)).open(READINGS.schema)
    session.push(READINGS)
    assert lines(session.top(k=1), "window_start", "window_end", "rank", "a_t", "b_t") == [(0, 8, 1, 0, 7)]
    assert lines(session.top(k=2, size=4), "rank", "a_t", "b_t") == [(1, 4, 5), (2, 4, 7)]
    many = session.top_many([(1, 8), (2, 4), (1, 1)])
    assert lines(many, "question", "rank", "a_t", "b_t") == [(0, 1, 0, 7), (1, 1, 4, 5), (1, 2, 4, 7)]
    for question in ((4, 8), (1, 9), (1, "1 hour"), 7):
        with pytest.raises(sb.InvalidQuery):
            session.top_many([question])


def test_readers_and_frames() -> None:
    asked = {"k": 1, "by": NEAREST, "ascending": True, "window": sb.sliding(4, every=2)}
    expected = sb.top_k_pairs(READINGS, **asked)
    assert sb.top_k_pairs(READINGS.to_reader(3), **asked).read_all() == expected
    assert sb.top_k_pairs(iter(READINGS.to_batches()), **asked).read_all() == expected


def test_timestamps_and_colours_that_come_and_go() -> None:
    n = 5_000
    rng = np.random.default_rng(3)
    rows = pa.table(
        {
            "ts": pa.array(np.arange(n) * 1_000_000, pa.timestamp("us", "UTC")),
            "user": [f"u{i // 2}" for i in range(n)],
            "x": rng.random(n),
        }
    )
    query = sb.TopKPairs(
        k=2, by="abs(a.x - b.x)", same="user", window=sb.sliding("8 seconds", every="4 seconds", on="ts")
    )
    session = query.open(rows.schema)
    found = [session.push(batch) for batch in rows.to_batches(max_chunksize=500)]
    table = pa.concat_tables(found)
    assert table.column("window_end")[0].as_py() == datetime(1970, 1, 1, 0, 0, 4, tzinfo=UTC)
    assert all(a == b for a, b in lines(table, "a_user", "b_user"))
    assert len(session._codec._colours[0]) < 2_100, "colours that nobody has are forgotten"
    assert table.num_rows == 2 * (n // 4 - 1)
    again = query.open(rows.schema, session.snapshot())
    assert again.finish() == session.finish()


MISTAKES: list[tuple[dict[str, Any], type[sb.SkybandError], str]] = [
    ({"k": 0}, sb.InvalidQuery, "k must be"),
    ({"k": 1_000_001}, sb.InvalidQuery, "k must be at most 1,000,000 for pairs"),
    ({"by": ""}, sb.InvalidQuery, "by is empty"),
    ({"by": "a.heet"}, sb.UnknownColumn, "Did you mean 'heat'"),
    ({"same": "moat"}, sb.UnknownColumn, "same="),
    ({"same": "mote", "different": "mote"}, sb.InvalidQuery, "no pair can be both"),
    ({"where": 3}, sb.InvalidQuery, "where must be"),
    ({"where": "a.heat"}, sb.InvalidExpression, "is not a condition"),
    ({"window": 3}, sb.InvalidQuery, "window must come from"),
    ({"algorithm": "supreme"}, sb.InvalidQuery, "only scores pairs"),
    ({"algorithm": "quantum"}, sb.InvalidQuery, "No algorithm"),
    ({"algorithm": "threshold", "by": "a.heat + b.heat"}, sb.InvalidQuery, "cannot answer this"),
    ({"emit": "windows", "window": sb.sliding(4)}, sb.InvalidQuery, "every"),
]


@pytest.mark.parametrize(("change", "error", "message"), MISTAKES)
def test_mistakes(change: dict[str, Any], error: type[sb.SkybandError], message: str) -> None:
    asked: dict[str, Any] = {"k": 1, "by": NEAREST, "window": sb.tumbling(4)} | change
    with pytest.raises(error, match=message):
        sb.top_k_pairs(READINGS, **asked)


@pytest.mark.parametrize("size", [1, 2])
def test_windows_too_small_for_two_rows(size: int) -> None:
    found = sb.top_k_pairs(READINGS, k=1, by=NEAREST, window=sb.sliding(size))
    assert (found.num_rows == 0) == (size == 1)


def test_a_scan_of_many_rows_agrees_with_numpy() -> None:
    """Enough rows for every loop to run over whole blocks, and more pairs than there is room for to pass at once."""
    n, size = 3_000, 700
    rng = np.random.default_rng(1)
    for shape in (rng.random(n), np.repeat(rng.random(n // 100), 100), np.arange(n) * 1.0, np.zeros(n)):
        rows = pa.table({"x": shape, "y": rng.random(n)})
        found = {
            algorithm: sb.top_k_pairs(
                rows, k=5, by="abs(a.x - b.x)", ascending=True, window=sb.sliding(size, every=500), algorithm=algorithm
            )
            for algorithm in ("staircase", "threshold")
        }
        expected = [_nearest(shape[max(0, end - size) : end], 5) for end in range(500, n + 1, 500)]
        for table in found.values():
            assert np.array(table.column("score")).reshape(-1, 5).tolist() == expected
        assert found["staircase"] == found["threshold"]


def _nearest(x: np.ndarray[Any, Any], k: int) -> list[float]:
    a, b = np.triu_indices(len(x), 1)
    return np.sort(np.abs(x[a] - x[b]))[:k].tolist()


def test_flooded() -> None:
    """Every new pair is better than all before: more candidates than there is room for."""
    n = 1_200
    rows = pa.table({"x": np.arange(n) * 1.0})
    by: Callable[[str], pa.Table] = lambda algorithm: sb.top_k_pairs(  # noqa: E731
        rows, k=3, by="b.x * b.x - a.x", window=sb.sliding(1_000), algorithm=algorithm
    )
    few, many = by("staircase(room=1, batch=3)"), by("staircase")
    assert few == many
    last = many.slice(many.num_rows - 3)
    assert lines(last, "a_x", "b_x") == [(200.0, 1199.0), (201.0, 1199.0), (202.0, 1199.0)]


def test_many_colours() -> None:
    """Rows are looked up by colour when there are many; a condition on numbers sweeps them all."""
    n = 4_000
    rng = np.random.default_rng(5)
    rows = pa.table({"c": rng.integers(0, 100, n), "x": rng.random(n), "t": np.arange(n) + rng.integers(-40, 40, n)})
    for window in (sb.sliding(1_500), sb.sliding(1_500, every=100), sb.sliding(1_500, on="t")):
        by_colour = sb.top_k_pairs(rows, k=4, by="abs(a.x - b.x)", ascending=True, window=window, same="c")
        swept = sb.top_k_pairs(rows, k=4, by="abs(a.x - b.x)", ascending=True, window=window, where="a.c = b.c")
        assert by_colour == swept
        assert by_colour.num_rows > 50


# -- whole numbers, times and strings ----------------------------------------------------------------------------------

BIG = 2**53


def ranked(rows: pa.Table, by: str, **asked: Any) -> list[tuple[Any, ...]]:
    found = sb.top_k_pairs(rows, **({"k": 9, "by": by, "window": sb.tumbling(rows.num_rows)} | asked))
    return lines(found, "score", "a_i", "b_i")


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64(), pa.timestamp("ns"), pa.duration("us"), pa.time64("ns")])
@pytest.mark.parametrize("algorithm", ["staircase", "threshold", "naive", "recompute"])
def test_whole_numbers_beyond_float64_are_exact(kind: pa.DataType, algorithm: str) -> None:
    rows = pa.table({"i": [0, 1, 2], "n": pa.array([BIG + 1, BIG, BIG + 3], pa.int64()).cast(kind)})
    asked = {"ascending": True, "algorithm": algorithm}
    assert ranked(rows, "abs(a.n - b.n)", **asked) == [(1, 0, 1), (2, 0, 2), (3, 1, 2)]
    assert ranked(rows, "abs(a.n - b.n)", where="a.n = b.n", **asked) == []
    assert ranked(rows, "abs(a.n - b.n)", where="a.n < b.n", **asked) == [(2, 0, 2), (3, 1, 2)]


def test_what_a_score_is_shown_as() -> None:
    schema = pa.schema(
        [("n", pa.int64()), ("small", pa.int8()), ("x", pa.float32()), ("d", pa.decimal128(9, 3)), ("ts", pa.date32())]
    )
    shown = {
        "a.n - b.n": pa.int64(),
        "a.small * b.small + 1": pa.int64(),
        "case when a.x > 1 then 1 else 0 end": pa.int64(),
        "a.ts - b.ts": pa.int64(),
        "a.d + b.n": pa.decimal128(38, 3),
        "a.n + 0.5": pa.float64(),
        "a.n / b.n": pa.float64(),
        "sqrt(a.n)": pa.float64(),
        "a.small + b.x": pa.float64(),
        "(a.n - b.n) ** 2": pa.float64(),
    }
    for by, kind in shown.items():
        session = sb.TopKPairs(k=1, by=by, window=sb.sliding(3)).open(schema)
        assert session.output_schema.field("score").type == kind, by
        assert session.push(schema.empty_table()).schema == session.output_schema


def test_a_number_that_64_bits_may_not_hold_is_refused() -> None:
    rows = pa.table({"i": [0, 1], "n": [2**61, 2**62 - 5]})
    with pytest.raises(sb.InvalidInput, match=r"'a.n \* b.n' can be from .* Skyband rejected the batch"):
        ranked(rows, "a.n * b.n")
    assert ranked(rows, "1.0 * a.n * b.n") == [(float(2**61) * float(2**62 - 5), 0, 1)]
    with pytest.raises(sb.InvalidInput, match="cannot tell from null"):
        ranked(pa.table({"i": [0], "n": [-(2**63)]}), "a.n - b.n")
    with pytest.raises(sb.InvalidInput, match="'n' does not fit in 64 bits"):
        ranked(pa.table({"i": [0], "n": pa.array([2**63], pa.uint64())}), "a.n - b.n")
    with pytest.raises(sb.InvalidInput, match="a function gets numbers as float64"):
        ranked(pa.table({"i": [0, 1], "n": [BIG + 1, 0]}), lambda a, b: a.n - b.n)  # type: ignore[arg-type]


def test_only_live_rows_count_for_what_64_bits_may_hold() -> None:
    query = sb.TopKPairs(k=1, by="abs(a.n - b.n)", window=sb.sliding(2))
    schema = pa.schema([("n", pa.int64())])
    session = query.open(schema)
    for n in (-(2**62) - 9, 0, 0, 2**62 + 9):  # the first and the last would be too far apart
        table = session.push(pa.table({"n": [n]}))
        session = query.open(schema, session.snapshot())
    assert lines(table, "change", "score") == [("leave", 0), ("enter", 2**62 + 9)]
    with pytest.raises(sb.InvalidInput, match="can be from"):
        session.push(pa.table({"n": [-(2**62)]}))
    session.check()


def test_times_are_microseconds_or_nanoseconds() -> None:
    rows = pa.table({"i": [0, 1], "s": pa.array([1, 3], pa.timestamp("s", "UTC")), "d": pa.array([1, 2], pa.date32())})
    assert ranked(rows, "b.s - a.s") == [(2_000_000, 0, 1)]
    assert ranked(rows, "b.d - a.d") == [(86_400_000_000, 0, 1)]
    fine = rows.append_column("ns", pa.array([5, 7], pa.timestamp("ns")))
    assert ranked(fine, "b.s - a.s + b.ns - a.ns") == [(2_000_000_002, 0, 1)]


def test_labels_of_strings_come_and_go() -> None:
    """Each string lies between the two before, so that labels run out; and none is kept longer than its row."""
    n = 3_000
    rng = np.random.default_rng(2)
    texts = ["a" * (i % 90 + 1) + "b" + str(rng.integers(0, 50)) for i in range(n)]
    rows = pa.table({"i": np.arange(n), "s": texts, "x": rng.random(n)})
    query = sb.TopKPairs(
        k=2, by="a.x + b.x", window=sb.sliding(40, every=20), where="a.s < b.s AND a.s > 'aab' AND b.s <> 'ab7'"
    )
    session = query.open(rows.schema)
    found = pa.concat_tables([session.push(batch) for batch in rows.to_batches(max_chunksize=7)])
    expected = []
    for end in range(20, n + 1, 20):
        live = range(max(0, end - 40), end)
        fits = [
            (rows["x"][a].as_py() + rows["x"][b].as_py(), a, b)
            for a in live
            for b in range(a + 1, end)
            if "aab" < texts[a] < texts[b] != "ab7"
        ]
        expected += sorted(fits, reverse=True)[:2]
    assert lines(found, "score", "a_i", "b_i") == expected
    assert len(session._codec._columns.labels) < 1_100, "strings that no row has are forgotten"


@pytest.mark.parametrize("form", ["abs(a.x{0} - b.x{0})", "{1} * (a.x{0} - b.x{0}) ** 2", "a.x{0} * b.x{0}"])
def test_sums_of_many_terms_are_what_their_terms_are(form: str) -> None:
    n, width = 60, 40
    rng = np.random.default_rng(4)
    values = rng.random((width, n))
    rows = pa.table({"i": np.arange(n), **{f"x{c}": values[c] for c in range(width)}})
    by = " + ".join(form.format(c, c + 0.25) for c in range(width))
    found = sb.top_k_pairs(rows, k=5, by=f"sqrt({by})", window=sb.sliding(50, every=30), ascending=True)
    for late in ("staircase(batch=7)", "recompute"):
        assert found == sb.top_k_pairs(
            rows, k=5, by=f"sqrt({by})", window=sb.sliding(50, every=30), ascending=True, algorithm=late
        )

    def score(a: int, b: int) -> float:
        x, y, total = values[:, a], values[:, b], 0.0
        for c in range(width):
            gap = x[c] - y[c]
            total += {"abs": abs(gap), "{1}": (c + 0.25) * (gap * gap), "a.x": x[c] * y[c]}[form[:3]]
        return float(np.sqrt(total))

    expected = sorted((score(a, b), -a, -b) for a in range(10, 60) for b in range(a + 1, 60))[:5]
    assert lines(found.slice(found.num_rows - 5), "score", "a_i", "b_i") == [(s, -a, -b) for s, a, b in expected]


def test_best_pairs_that_expire_are_told_one_by_one() -> None:
    """The oldest rows make the best pairs, so that with every row some of the answer leave: also with late rows."""
    n = 900
    rng = np.random.default_rng(6)
    t = np.arange(n) - rng.integers(0, 80, n) * (rng.random(n) < 0.5)
    for when in (np.arange(n), t):
        rows = pa.table({"t": when, "x": np.arange(n) * 1.0})
        found = {
            algorithm: sb.top_k_pairs(
                iter(rows.to_batches()), k=4, by="a.x + b.x", ascending=True, window=sb.sliding(90, on="t"),
                algorithm=algorithm,
            ).read_all()
            for algorithm in ("staircase", "staircase(batch=5, room=1)", "naive")
        }  # fmt: skip
        assert found["staircase"] == found["naive"] == found["staircase(batch=5, room=1)"]
        assert found["staircase"].num_rows > n
