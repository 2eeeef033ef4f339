"""Oracle and example tests: a silent stream holds up no other, and one wrong time does not make the rest late."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tables import shows, table

import skyband as sb
from skyband.core.registry import every_algorithm_of
from skyband.problems.across.combining import ADD, Combine
from skyband.problems.across.operator import AcrossBatch, AcrossSpec
from skyband.windows import FOREVER, Ticks

ASKED: dict[str, Any] = {"k": 2, "id": "flow", "value": "size"}
SCHEMA = pa.schema({"t": pa.int64(), "flow": pa.string(), "size": pa.float64()})

Batches = list[list[tuple[int, int, int, int]]]  # of rows: stream, object, sixteenths, time


@st.composite
def batches_of_any_stream(draw: st.DrawFn) -> Batches:
    row = st.tuples(st.integers(0, 2), st.integers(0, 6), st.integers(0, 16), st.integers(0, 60))
    rows, first = draw(st.lists(row, max_size=40)), 0
    batches = []
    for size in [*draw(st.lists(st.integers(0, 9), max_size=8)), len(rows)]:
        batches.append(rows[first : first + size])
        first += size
    return batches


@st.composite
def batches_of_one_stream(draw: st.DrawFn) -> Batches:
    """As sessions take them: `push(rows, stream=)`. Times are near each other, so that whole batches are behind."""
    row = st.tuples(st.integers(0, 2), st.integers(0, 16), st.integers(0, 12))
    drawn = draw(st.lists(st.tuples(st.integers(0, 2), st.lists(row, max_size=3)), max_size=12))
    return [[(stream, *each) for each in rows] for stream, rows in drawn]


def batch(rows: list[tuple[int, int, int, int]], first: int) -> AcrossBatch:
    stream, code, value, time = (np.array(column) for column in zip(*rows, strict=True)) if rows else [np.empty(0)] * 4
    return AcrossBatch(
        stream.astype(np.int32), code.astype(np.int32), value / 16, time.astype(np.int64), first, 7
    )  # fmt: skip


@pytest.mark.parametrize("algorithm", ["totals", "recompute"])
@given(
    st.one_of(batches_of_any_stream(), batches_of_one_stream()),
    st.one_of(st.integers(0, 30), st.integers(1, 6)),
    st.integers(0, 5),
)
@example([[(0, 0, 0, 4)], [(0, 0, 0, 0)], [(1, 0, 0, 4), (2, 0, 0, 4)]], 1, 0)  # a batch that is wholly behind
def test_windows_wait_for_the_slowest_stream_but_not_longer_than_allowed(
    algorithm: str, batches: Batches, idle_after: int, lateness: int
) -> None:
    """As if somebody outside said, before each row, how far all streams have come, or how far the first has, less."""

    def spec(lateness: int, idle_after: int) -> AcrossSpec:
        combine = Combine(ADD, (1.0,) * 3)
        ticks = Ticks(12, 4, lateness, by_count=False)
        return AcrossSpec(2, ticks, combine=combine, low=(0.0,) * 3, high=(1.0,) * 3, repeat=1, idle_after=idle_after)

    operator, oracle = (
        every_algorithm_of("across")[algorithm].open(spec(lateness, idle_after)),
        every_algorithm_of("across")["recompute"].open(spec(FOREVER, 0)),
    )
    expected, found, reached = [], [], [-(2**40)] * 3
    for position, row in enumerate(row for rows in batches for row in rows):
        reached[row[0]] = max(reached[row[0]], row[3])
        expected.append(oracle.advance(max(min(reached), max(reached) - idle_after) - lateness))
        expected.append(oracle.push(batch([row], position)))
    first = 0
    for rows in batches:
        found.append(operator.push(batch(rows, first)))
        first += len(rows)
        state = operator.state()
        operator = every_algorithm_of("across")[algorithm].open(spec(lateness, idle_after))
        operator.restore(state)
    for column in range(7):
        columns = [
            np.concatenate([answer[column].ravel() for answer in answers]) if answers else []
            for answers in (expected, found)
        ]
        np.testing.assert_array_equal(*columns)
    assert operator.late == oracle.late


def test_a_silent_stream_holds_up_no_other() -> None:
    query = sb.TopKAcross(streams=["r1", "r2"], window=sb.tumbling(10, on="t"), idle_after=15, **ASKED)
    session = query.open(SCHEMA)

    def push(t: int, stream: str) -> pa.Table:
        row = pa.table({"t": [t], "flow": [f"{stream} {t}"], "size": [0.5]}, SCHEMA)
        return session.push(row, stream=stream)

    assert push(1, "r1").num_rows == push(2, "r2").num_rows == 0
    assert push(12, "r1").num_rows == 0, "r2 may still say something of the first window"
    assert push(9, "r2").num_rows == 0
    assert push(24, "r1").num_rows == 0
    assert push(25, "r1")["flow"].to_pylist() == ["r2 9", "r2 2"], "r2 is too far behind to be waited for"
    assert push(8, "r2").num_rows == 0
    assert session.stats().rows_late == 1


def test_one_time_far_ahead_is_set_aside_and_counted() -> None:
    rows = table("t v\n 1 5\n 2 6\n 900000 7\n 3 8\n 4 9\n 12 1")
    query = sb.TopK(k=1, by="v", window=sb.tumbling(10, on="t"), max_jump=100)
    session = query.open(rows.schema)
    first = session.push(rows.slice(0, 3))
    session = query.open(rows.schema, session.snapshot())
    answer = pa.concat_tables([first, session.push(rows.slice(3)), session.finish()])
    assert shows(answer, "window_start window_end rank score t\n 0 10 1 9 4\n 10 20 1 1 12")
    stats = session.stats()
    assert (stats.rows_in, stats.rows_used, stats.rows_late, stats.rows_jumped) == (6, 5, 0, 1)
    believing = sb.TopK(k=1, by="v", window=sb.tumbling(10, on="t")).open(rows.schema)
    believing.push(rows)
    assert believing.stats().rows_late == 3, "which is what it is for"


def test_two_in_a_row_move_the_clock() -> None:
    rows = table("t v\n 1 5\n 500 6\n 501 7\n 502 8\n 3 9")
    session = sb.TopK(k=1, by="v", window=sb.tumbling(10, on="t"), max_jump=100).open(rows.schema)
    session.push(rows)
    stats = session.stats()
    assert (stats.rows_jumped, stats.rows_late, stats.rows_used) == (1, 1, 3)


def test_a_jump_with_many_queries() -> None:
    """As with one query; also after a restart."""
    queries = pa.table({"id": [1], "at": [0.0]})
    asked = {"k": 1, "by": "v - q.at", "window": sb.tumbling(10, on="t"), "max_jump": 100}
    rows = pa.table({"t": [1, 2, 5_000, 3, 12, 25], "v": [1.0, 2.0, 99.0, 3.0, 4.0, 5.0]})
    alone = sb.top_k(rows, **asked | {"by": "v + 0"})
    assert sb.top_k(rows, for_each=queries, **asked).drop_columns(["id"]).equals(alone)
    query = sb.TopKForEach(queries=queries, **asked)
    session = query.open(rows.schema)
    for i in range(len(rows)):
        session.push(rows.slice(i, 1))
        session = query.open(rows.schema, session.snapshot())
    stats = session.stats()
    assert (stats.rows_in, stats.rows_used, stats.rows_late, stats.rows_jumped) == (6, 5, 0, 1)


def test_a_jump_across_streams() -> None:
    query = sb.TopKAcross(streams=["r1", "r2"], window=sb.tumbling(10, on="t"), max_jump=50, **ASKED)
    session = query.open(SCHEMA)
    session.push(pa.table({"t": [1, 999], "flow": ["p", "q"], "size": [0.5, 0.5]}, SCHEMA), stream="r1")
    session.push(pa.table({"t": [2], "flow": ["p"], "size": [0.25]}, SCHEMA), stream="r2")
    assert session.finish()["score"].to_pylist() == [0.75]
    assert session.stats().rows_jumped == 1


@pytest.mark.parametrize(
    ("window", "options", "said"),
    [
        (sb.sliding(10), {"idle_after": 5}, "idle_after=5 has no meaning here"),
        (sb.sliding(10, on="t"), {"idle_after": 5}, "only windows by value with `every` wait"),
        (sb.sliding(10), {"max_jump": 5}, "max_jump=5 has no meaning in a window of arrivals"),
        (sb.tumbling(10, on="t"), {"max_jump": 0}, "max_jump must be more than 0"),
    ],
)
def test_refusals(window: sb.Window, options: dict[str, int], said: str) -> None:
    with pytest.raises(sb.InvalidQuery, match=said):
        sb.TopKAcross(streams=["r1"], window=window, **ASKED, **options)


# -- several readers ------------------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5), st.integers(0, 16)), max_size=30),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5), st.integers(0, 16)), max_size=30),
    st.integers(1, 8),
)
def test_readers_are_put_together_by_time(left: list[Any], right: list[Any], size: int) -> None:
    tables = {}
    for name, rows in (("r1", sorted(left)), ("r2", sorted(right))):
        t, flow, value = zip(*rows, strict=True) if rows else ((), (), ())
        tables[name] = pa.table({"t": t, "flow": [f"f{n}" for n in flow], "size": np.array(value, float) / 16}, SCHEMA)
    asked: dict[str, Any] = {**ASKED, "window": sb.sliding(8, every=4, on="t"), "repeat": "last"}
    expected = sb.top_k_across(tables, **asked)
    readers = {name: rows.to_reader(max_chunksize=size) for name, rows in tables.items()}
    answer = sb.top_k_across(readers, **asked)
    assert isinstance(answer, pa.RecordBatchReader)
    assert answer.read_all().equals(expected)
    mixed = {"r1": tables["r1"], "r2": tables["r2"].to_reader(max_chunksize=size)}
    assert sb.top_k_across(mixed, **asked).read_all().equals(expected)


@pytest.mark.parametrize("far", [2**62, 2**63, 2**200, -(2**62), -(2**63)])
def test_a_watermark_that_no_row_can_have_is_refused(far: int) -> None:
    """`advance(2**63)` never came back."""
    session = sb.TopK(k=1, by="s", window=sb.sliding(2, every=1, on="t")).open(
        pa.schema({"t": pa.int64(), "s": pa.int64()})
    )
    session.push(pa.table({"t": [5], "s": [1]}))
    with pytest.raises(
        sb.InvalidQuery, match=r"no row has a time of ±2\*\*62 or beyond. To close all windows, use finish"
    ):
        session.advance(far)
    assert session.finish().num_rows == 2
