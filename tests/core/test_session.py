"""Example tests of a session: rows and clock in, answers and counts out, and what is kept of what."""

from __future__ import annotations

import asyncio
import copy
import datetime as dt
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from tables import ALGORITHMS, batch, shows, table

import skyband as sb
from skyband.core.session import Session
from skyband.problems.rows.codec import RowsCodec

SCHEMA = pa.schema({"t": pa.int64(), "v": pa.float64(), "g": pa.string()})
WINDOW = sb.sliding(20, every=10, on="t")


def rows(*triples: tuple[int | None, float | None, str | None]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in triples], SCHEMA)


# -- counts ---------------------------------------------------------------------------------------------------------


def test_counts_of_rows() -> None:
    session = sb.TopK(k=1, by="v", window=sb.tumbling(10, on="t"), per="g").open(SCHEMA)
    assert session.stats() == sb.Stats()
    session.push(
        rows((1, 5.0, "a"), (None, 9.0, "a"), (12, None, "b"), (3, 7.0, "a"), (13, float("nan"), "c"), (14, 1.0, "d"))
    )
    assert session.stats() == sb.Stats(
        rows_in=6, rows_used=4, rows_late=1, rows_null_time=1, rows_unranked=2, rows_held=1, groups=4
    )


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("seed", range(5))
def test_rows_in_is_the_sum_of_what_happened_to_them(algorithm: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    session = sb.TopK(
        k=2, by="v", window=sb.sliding(20, every=7, on="t"), lateness=5, per="g", algorithm=algorithm
    ).open(SCHEMA)
    for _ in range(5):
        n = int(random.integers(0, 40))
        times = np.cumsum(random.integers(-10, 13, n)) + 30
        session.push(
            pa.record_batch(
                [
                    pa.array(times, mask=random.random(n) < 0.1),
                    pa.array(random.random(n), mask=random.random(n) < 0.1),
                    pa.array(random.choice(["a", "b"], n), mask=random.random(n) < 0.1),
                ],
                schema=SCHEMA,
            )
        )
        stats = session.stats()
        assert stats.rows_in == stats.rows_used + stats.rows_late + stats.rows_null_time
        assert stats.rows_late > 0 or stats.rows_in < 40
        session.check()


def test_a_null_time_is_dropped_and_counted_and_moves_nothing() -> None:
    session = sb.TopK(k=2, by="v", window=sb.tumbling(10, on="t")).open(SCHEMA)
    assert session.push(rows((5, 1.0, "a"), (None, 9.0, "b"), (6, 2.0, "c"))).num_rows == 0
    assert session.push(rows((None, 9.0, "b"))).num_rows == 0
    assert session.finish()["g"].to_pylist() == ["c", "a"]
    assert session.stats().rows_null_time == 2


# -- the clock ------------------------------------------------------------------------------------------------------


def test_advance_closes_windows_whose_end_it_reaches() -> None:
    session = sb.TopK(k=1, by="v", window=WINDOW).open(SCHEMA)
    session.push(rows((5, 1.0, "a")))
    assert session.next_close() == 10
    assert session.advance(9).num_rows == 0
    assert session.advance(10)["window_end"].to_pylist() == [10]
    assert session.next_close() == 20
    assert session.advance(3).num_rows == 0, "the clock does not go back"
    assert session.advance(1_000)["window_end"].to_pylist() == [20]
    assert session.next_close() is None


def test_external_clock_rows_close_nothing() -> None:
    session = Session(RowsCodec(sb.TopK(k=1, by="v", window=WINDOW), SCHEMA, external_clock=True))
    assert session.push(rows((5, 1.0, "a"), (500, 2.0, "b"), (6, 3.0, "c"))).num_rows == 0
    assert session.stats().rows_late == 0
    assert session.advance(20)["score"].to_pylist() == [3.0, 3.0]
    session.push(rows((7, 9.0, "d")))
    assert session.stats().rows_late == 1, "behind the external clock"


def test_advance_takes_a_datetime_for_a_timestamp() -> None:
    stamps = pa.schema({"ts": pa.timestamp("ms", "UTC"), "v": pa.float64()})
    noon = dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC)
    session = sb.TopK(k=1, by="v", window=sb.tumbling("1 hour", on="ts")).open(stamps)
    session.push(pa.record_batch({"ts": pa.array([noon], stamps.field("ts").type), "v": [1.0]}))
    assert session.advance(noon + dt.timedelta(minutes=59)).num_rows == 0
    vienna = (noon + dt.timedelta(hours=1)).astimezone(ZoneInfo("Europe/Vienna"))
    assert session.advance(vienna)["window_end"].to_pylist() == [noon + dt.timedelta(hours=1)]


def test_windows_are_utc_instants_across_a_change_of_daylight_saving_time() -> None:
    """FAILURES 7: on 31 March 2024 in Vienna the hour from 2 to 3 does not exist; on 27 October it exists twice."""
    zone = ZoneInfo("Europe/Vienna")
    for day, hours in ((dt.datetime(2024, 3, 31, tzinfo=zone), 23), (dt.datetime(2024, 10, 27, tzinfo=zone), 25)):
        start, end = day.astimezone(dt.UTC), (day + dt.timedelta(days=1)).astimezone(dt.UTC)
        assert end - start == dt.timedelta(hours=hours)
        halves = [start + i * dt.timedelta(minutes=30) for i in range(2 * hours)]
        stream = pa.table(
            {"ts": pa.array(halves, pa.timestamp("us", "Europe/Vienna")), "v": [float(i) for i in range(len(halves))]}
        )
        result = sb.top_k(stream, k=2, by="v", window=sb.tumbling("1 hour", on="ts"))
        assert result.num_rows == len(halves), "every hour has its two rows, none is lost or doubled"
        assert [moment.astimezone(dt.UTC) for moment in result["window_start"].to_pylist()[::2]] == halves[::2]
        lengths = {
            e - s
            for s, e in zip(
                *(result[c].cast(pa.int64()).to_pylist() for c in ("window_start", "window_end")), strict=True
            )
        }
        assert lengths == {3_600_000_000}


# -- asking ---------------------------------------------------------------------------------------------------------


def test_top_asks_for_any_k_and_size() -> None:
    session = sb.TopK(k=3, by="v", window=sb.sliding(100, on="t"), ad_hoc=True).open(SCHEMA)
    session.push(rows((1, 9.0, "a"), (50, 5.0, "b"), (99, 7.0, "c"), (99, 1.0, "d")))
    assert session.top()["g"].to_pylist() == ["a", "c", "b"]
    assert session.top(k=1, size=50)["g"].to_pylist() == ["c"]
    assert shows(
        session.top(size=50),
        """
        window_start  window_end  rank  score  t   g
        49            99          1     7      99  c
        49            99          2     5      50  b
        49            99          3     1      99  d
        """,
    )
    assert session.top(size=49)["g"].to_pylist() == ["c", "d"]


def test_top_changes_nothing() -> None:
    asked, unasked = (sb.TopK(k=2, by="v", window=WINDOW, emit="entries").open(SCHEMA) for _ in range(2))
    said: dict[sb.Session, list[pa.Table]] = {asked: [], unasked: []}
    for i in range(60):
        some = rows((i, float(i * 7 % 13), "a"))
        for session, results in said.items():
            results.append(session.push(some))
        asked.top()
        asked.top(1)
    assert pa.concat_tables(said[asked]).equals(pa.concat_tables(said[unasked]))


def test_top_by_time_takes_durations() -> None:
    stamps = pa.schema({"ts": pa.timestamp("s"), "v": pa.float64()})
    session = sb.TopK(k=2, by="v", window=sb.sliding("1 hour", on="ts")).open(stamps)
    session.push(pa.record_batch({"ts": pa.array([0, 1800, 3599], pa.timestamp("s")), "v": [3.0, 2.0, 1.0]}))
    assert session.top(size="30 minutes")["score"].to_pylist() == [2.0, 1.0]
    assert session.top(size=dt.timedelta(hours=1))["score"].to_pylist() == [3.0, 2.0]


def test_many_questions_at_once() -> None:
    session = sb.TopK(k=3, by="v", window=sb.sliding(100, on="t")).open(SCHEMA)
    session.push(rows((1, 9.0, "a"), (50, 5.0, "b"), (99, 7.0, "c"), (99, 1.0, "d")))
    assert shows(
        session.top_many([(2, 50), (1, None), (3, 1)]),
        """
        question  window_start  window_end  rank  score  t   g
        0         49            99          1     7      99  c
        0         49            99          2     5      50  b
        1         -1            99          1     9      1   a
        2         98            99          1     7      99  c
        2         98            99          2     1      99  d
        """,
    )
    assert session.top_many([]).num_rows == 0


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("per", [(), ("g",)], ids=["all", "per g"])
@pytest.mark.parametrize("window", [WINDOW, sb.landmark(every=10, on="t"), sb.sliding(4, every=2)], ids=str)
def test_many_questions_are_answered_as_one_by_one(algorithm: str, per: tuple[str, ...], window: sb.Window) -> None:
    session = sb.TopK(k=3, by="v", window=window, per=per, ascending=True, algorithm=algorithm).open(SCHEMA)
    session.push(rows(*((i % 17, i * 7 % 13, "abc"[i % 3]) for i in range(40))))
    questions = [(3, None), (1, None), (None, None), (2, None)]
    many = session.top_many(questions)
    each = [session.top(k, size) for k, size in questions]
    assert many["question"].to_pylist() == [i for i, answer in enumerate(each) for _ in range(answer.num_rows)]
    assert many.drop_columns("question").equals(pa.concat_tables(each))
    assert many.num_rows >= 7


def test_a_column_called_question_is_not_lost() -> None:
    session = sb.TopK(k=1, by="v", window=sb.sliding(5)).open(pa.schema({"v": pa.float64(), "question": pa.string()}))
    session.push(pa.record_batch({"v": [1.0], "question": ["why"]}))
    assert session.top_many([(1, 5)]).column_names == [
        *("question", "window_start", "window_end", "rank", "score", "question_")
    ]


def test_many_questions_may_have_units_or_be_wrong() -> None:
    stamps = pa.schema({"ts": pa.timestamp("s"), "v": pa.float64()})
    session = sb.TopK(k=2, by="v", window=sb.sliding("1 hour", on="ts")).open(stamps)
    session.push(pa.record_batch({"ts": pa.array([0, 1800, 3599], pa.timestamp("s")), "v": [3.0, 2.0, 1.0]}))
    many = session.top_many([(1, "30 minutes"), (2, dt.timedelta(hours=1))])
    assert many["score"].to_pylist() == [2.0, 3.0, 2.0]
    for question, message in (
        ((3, None), "from 1 to the query's 2, got 3"),
        ((1, 30), "size=30 has no unit"),
        ((1, "2 hours"), "larger than the query's window"),
        (1, "A question is a k and a size"),
    ):
        with pytest.raises(sb.InvalidQuery, match=message):
            session.top_many([(1, None), question])


def test_ascending_asks_and_answers_with_the_scores_as_given() -> None:
    session = sb.TopK(k=2, by="v", window=WINDOW, ascending=True).open(SCHEMA)
    session.push(rows((1, 3.0, "a"), (2, -1.0, "b"), (3, 0.0, "c")))
    assert session.top()["score"].to_pylist() == [-1.0, 0.0]
    result = session.finish()
    assert result["score"].to_pylist() == [-1.0, 0.0] * 2
    assert str(result["score"][1].as_py()) == "0.0", "not -0.0"


# -- what is kept ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [1, 50, 500])
def test_rows_stored_do_not_grow_with_the_stream(batch_size: int) -> None:
    random = np.random.default_rng(0)
    session = sb.TopK(k=5, by="v", window=sb.sliding(100, every=20, on="t")).open(SCHEMA)
    sizes = []
    for first in range(0, 2_000, batch_size):
        n = min(batch_size, 2_000 - first)
        names = [f"row {i}" for i in range(first, first + n)]
        session.push(pa.record_batch([np.arange(first, first + n), random.random(n), names], schema=SCHEMA))
        sizes.append(len(session.snapshot()))
    assert max(sizes[len(sizes) // 2 :]) <= 2 * max(sizes[: len(sizes) // 2])
    assert session.stats().rows_held < 60


def test_a_batch_is_not_kept_alive_by_a_few_of_its_rows() -> None:
    """A kept row is copied out of its batch: memory follows the rows held, not the batches they came in."""
    session = sb.TopK(k=1, by="v", window=sb.landmark(every=100, on="t")).open(SCHEMA)
    allocated = []
    for i in range(40):
        n = 20_000
        names = pa.array([f"a rather long name for row {j} of {i}" for j in range(200)] * 100)
        session.push(pa.record_batch([np.full(n, i), np.full(n, float(i)), names], schema=SCHEMA))
        del names
        allocated.append(pa.total_allocated_bytes())
    assert allocated[-1] < allocated[5] + 5_000_000


@pytest.mark.parametrize("algorithm", ["mintopk", "relaxed"])
@pytest.mark.parametrize("emit", ["windows", "changes"])
def test_groups_that_die_are_forgotten(algorithm: str, emit: sb.queries.Emit) -> None:
    """100,000 keys, each seen once, a few thousand at a time: what is kept is those of the last windows."""
    query = sb.TopK(k=1, by="v", window=sb.sliding(20, every=10, on="t"), per="g", emit=emit, algorithm=algorithm)
    session = query.open(SCHEMA)
    most, shown = 0, 0
    for i in range(100):
        keys = [f"key {i * 1_000 + j}" for j in range(1_000)]
        shown += session.push(pa.record_batch([np.full(1_000, 10 * i), np.ones(1_000), keys], schema=SCHEMA)).num_rows
        most = max(most, session.stats().groups)
    assert most <= 20_000
    assert len(session.snapshot()) < 2_000_000
    shown += session.finish().num_rows
    assert shown == 100_000 * 2 if emit == "windows" else shown >= 100_000


def test_a_group_that_comes_back_starts_afresh() -> None:
    session = sb.TopK(k=1, by="v", window=sb.tumbling(10, on="t"), per="g").open(SCHEMA)
    for i in range(30):
        keys = ["same", *(f"{i} {j}" for j in range(500))] if i % 10 == 0 else [f"{i} {j}" for j in range(500)]
        n = len(keys)
        session.push(pa.record_batch([np.full(n, 10 * i), np.full(n, float(i)), keys], schema=SCHEMA))
        session.check()
        assert session.top()["g"].to_pylist() == keys, "every key with its own row"


# -- bad batches ----------------------------------------------------------------------------------------------------


def test_a_batch_with_another_schema_changes_nothing() -> None:
    session = sb.TopK(k=2, by="v", window=WINDOW, per="g").open(SCHEMA)
    session.push(rows((1, 1.0, "a")))
    before = session.snapshot()
    for wrong in (
        rows((2, 9.0, "x")).rename_columns(["t", "v", "key"]),
        rows((2, 9.0, "x")).select(["v", "t", "g"]),
        rows((2, 9.0, "x")).select(["t", "v"]),
        batch("t v g\n2 9 5"),
        pa.record_batch({"t": [2], "v": [9], "g": ["x"]}),
    ):
        with pytest.raises(sb.InvalidInput, match=r"differs from that of the first batch.*Skyband rejected the batch"):
            session.push(wrong)
    assert session.snapshot() == before
    session.push(rows((2, 3.0, "a")))
    assert session.finish()["score"].to_pylist() == [3.0, 1.0, 3.0, 1.0]


def test_all_or_nothing_of_a_table_with_a_bad_row_in_a_later_chunk() -> None:
    session = sb.TopK(k=1, by="v", window=sb.tumbling(2, on="t")).open(SCHEMA)
    good = pa.Table.from_batches([rows((1, 1.0, "a"), (5, 2.0, "b"))])
    with pytest.raises(sb.InvalidInput, match=r"'t' has values of ±2\*\*62 or beyond"):
        session.push(pa.concat_tables([good, pa.Table.from_batches([rows((2**62, 1.0, "c"))])]))
    assert session.stats() == sb.Stats(groups=1)
    assert session.push(good)["g"].to_pylist() == ["a"]


def test_a_function_that_fails_on_a_batch_leaves_the_session_as_it_was() -> None:
    def fails_above_ten(v: np.ndarray) -> np.ndarray:
        if v.max(initial=0) > 10:
            raise RuntimeError("too hot")
        return v

    session = sb.TopK(k=1, by=fails_above_ten, window=WINDOW, per="g").open(SCHEMA)
    session.push(rows((1, 1.0, "a")))
    before = session.stats()
    with pytest.raises(RuntimeError, match="too hot"):
        session.push(rows((15, 11.0, "b")))
    assert session.stats() == before
    assert session.push(rows((15, 2.0, "a")))["score"].to_pylist() == [1.0]


def test_an_empty_batch_is_fine_anywhere() -> None:
    for per in ((), ("g",)):
        for window in (WINDOW, sb.sliding(5, on="t"), sb.sliding(5), sb.landmark(every=2)):
            session = sb.TopK(k=1, by="v * 1", window=window, per=per).open(SCHEMA)
            for some in (rows(), rows((1, 1.0, "a")), rows(), table("t v g\n3 2 b", v=pa.float64()).slice(0, 0)):
                session.push(some)
            assert session.stats().rows_in == 1
            session.check()


@pytest.mark.parametrize("time", [2**62, -(2**62), 2**63 - 1, -(2**63)])
def test_times_beyond_what_windows_measure_are_refused(time: int) -> None:
    session = sb.TopK(k=1, by="v", window=WINDOW).open(SCHEMA)
    with pytest.raises(sb.InvalidInput, match=r"'t' has values of ±2\*\*62 or beyond"):
        session.push(rows((time, 1.0, "a")))
    assert session.stats().rows_in == 0


# -- threads --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("every", [10, None])
def test_threads_take_turns(every: int | None) -> None:
    """Without turns the interpreter crashed: one call grew the arrays that another was writing to."""
    session = sb.TopK(k=50, by="v", window=sb.sliding(1_000, every=every), ad_hoc=True).open(SCHEMA)
    rng = np.random.default_rng(3)
    parts = [[rng.random(int(n)) for n in rng.integers(1, 60, 100)] for _ in range(4)]

    def feed(mine: list[np.ndarray]) -> list[pa.Table]:
        answers = []
        for scores in mine:
            answers.append(session.push(pa.table([[0] * len(scores), scores, ["a"] * len(scores)], schema=SCHEMA)))
            session.top(k=3, size=10)
            assert session.stats().rows_held > 0
        return answers

    with ThreadPoolExecutor(len(parts)) as pool:
        answers = [answer for found in pool.map(feed, parts) for answer in found]
    pushed = np.concatenate([scores for mine in parts for scores in mine])
    session.check()
    assert session.stats().rows_in == len(pushed)
    assert session.top(k=50).num_rows == 50
    if every:
        ends = sorted({end for answer in answers for end in answer["window_end"].to_pylist()})
        assert ends == list(range(every, len(pushed) + 1, every)), "each window is shown, by one of the calls"


def test_a_coroutine_pushes_in_a_thread() -> None:
    """As docs/reference/top-k.md says."""

    async def fed() -> pa.Table:
        session = sb.TopK(k=1, by="v", window=sb.tumbling(2)).open(SCHEMA)
        await asyncio.to_thread(session.push, rows((1, 5.0, "a")))
        return await asyncio.to_thread(session.push, rows((2, 7.0, "b")))

    assert asyncio.run(fed())["score"].to_pylist() == [7.0]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_session_is_not_copied(copied: Callable[[Session], object]) -> None:
    session = sb.TopK(k=1, by="v", window=sb.tumbling(10, on="t"), per="g").open(SCHEMA)
    with pytest.raises(sb.SessionCopied, match=r"session\.snapshot\(\)"):
        copied(session)
