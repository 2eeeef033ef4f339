"""Example tests of the stateful operator by itself: no Spark is started."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import TimerValues
from pyspark.sql.streaming.tws_tester import TwsTester

import skyband as sb
from skyband.core.snapshot_pages import join
from skyband.engines.spark import paged_state
from skyband.engines.spark.bucket import BucketRunner
from skyband.engines.spark.bucket_job import TIE
from skyband.engines.spark.clock import Clock
from skyband.engines.spark.pages import Tally, page_batch, read_table
from skyband.engines.spark.processor import PAGES_NAME, STATE_NAME, processor_of
from skyband.errors import SnapshotMismatch
from skyband.problems.rows.planning import plan, specify
from skyband.problems.rows.spark import TopKJob
from skyband.problems.rows.spark_candidates import SCORE

SCHEMA = pa.schema([("t", pa.int64()), (SCORE, pa.float64())])
KEY = (0,)


def job(k: int = 1, **options: Any) -> TopKJob:
    query = sb.TopK(k=k, by=SCORE, window=sb.sliding(20, every=10, on="t"), **options)
    output = pa.schema([("window_start", pa.int64()), ("window_end", pa.int64())])
    return TopKJob(
        window=query.window,
        ticks=query.window.ticks(SCHEMA),
        schema=SCHEMA,
        added=(SCORE,),
        output=output,
        sources=(None, None),
        changes=False,
        is_spread=False,
        fingerprint=query.fingerprint(SCHEMA),
        plan=plan(specify(query, SCHEMA), query.algorithm),
        query=query,
        score=None,
    )


def bucket_of(runner: BucketRunner) -> TwsTester:
    # Spark does not filter late rows, because the watermark's column is inside the pages.
    return TwsTester(processor_of(runner), timeMode="EventTime", eventTimeExtractor=lambda row: 2**60)


def page(*rows: tuple[int, float, int], tally: Tally | None = None) -> Row:
    """A Spark row with a page of (time, score, tie)."""
    times, scores, ties = zip(*rows, strict=True) if rows else ((), (), ())
    columns = pa.array(times, pa.int64()), pa.array(scores, pa.float64()), pa.array(ties, pa.int64())
    table = pa.table(list(columns), [*SCHEMA.names, TIE])
    return Row(**page_batch([(0, table)], tally or Tally(rows_in=len(rows))).to_pylist()[0])


def shown(rows: list[Row]) -> list[tuple[int, float]]:
    """The window's end and the score of each line."""
    tables = [read_table(row.answer) for row in rows if row.answer is not None]
    return [(line["window_end"], line["score"]) for table in tables for line in table.to_pylist()]


def test_a_timer_closes_the_windows_of_a_bucket_that_gets_no_rows() -> None:
    bucket = bucket_of(BucketRunner(job(), Clock(1), 16))
    assert shown(bucket.test(KEY, [page((5, 1.0, 0), (15, 2.0, 0))])) == []
    assert shown(bucket.setWatermark(9)) == []
    assert shown(bucket.setWatermark(10)) == [(10, 1.0)], "half-open: the window [-10, 10) ends where the watermark is"
    assert shown(bucket.setWatermark(100)) == [(20, 2.0), (30, 2.0)]
    assert shown(bucket.setWatermark(200)) == []


def test_one_timer_at_a_time() -> None:
    bucket = bucket_of(BucketRunner(job(), Clock(1), 16))
    timers = []
    for time in (35, 15, 5):  # rows out of order: each window ends before those that hold the row before
        bucket.test(KEY, [page((time, 1.0, 0))])
        timers.append(bucket.peekValueState(STATE_NAME, KEY)[1])
    assert timers == [40, 20, 10]
    assert list(bucket.handle.listTimers()) == [10]
    assert shown(bucket.setWatermark(1_000)) == [(10, 1.0), (20, 1.0), (30, 1.0), (40, 1.0), (50, 1.0)]
    assert bucket.peekValueState(STATE_NAME, KEY)[1] == -1


def test_pages_of_several_partitions_come_in_by_time_then_tie() -> None:
    bucket = bucket_of(BucketRunner(job(k=3, emit="changes"), Clock(1), 16))
    bucket.test(KEY, [page((7, 1.0, 5), (3, 1.0, 0)), page((7, 1.0, 9))])
    table = read_table(bucket.setWatermark(10)[0].answer)
    assert table.column("t").to_pylist() == [7, 7, 3], "equal scores: the later one first"


@pytest.mark.parametrize(("rows_first", "expected"), [(False, [(10, 1.0)]), (True, [(10, 9.0)])])
def test_rows_come_in_before_windows_close_only_below_another_stateful_operator(
    rows_first: bool, expected: list[tuple[int, float]]
) -> None:
    bucket = bucket_of(BucketRunner(job(), Clock(1, rows_first=rows_first), 16))
    bucket.test(KEY, [page((5, 1.0, 0))])
    rows = bucket.processor.handleInputRows(KEY, iter([page((5, 9.0, 0))]), TimerValues(0, currentWatermarkInMs=10))
    assert shown(list(rows)) == expected


def test_late_rows_that_were_ruled_out_early_are_counted() -> None:
    bucket = bucket_of(BucketRunner(job(), Clock(1), 16))
    bucket.test(KEY, [page((5, 1.0, 0))])
    bucket.setWatermark(20)
    tally = Tally(rows_in=12, ends=pa.array([20, 30]).to_numpy(), rows=pa.array([7, 5]).to_numpy())
    rows = bucket.test(KEY, [page((5, 3.0, 0), (15, 2.0, 0), tally=tally)])
    assert [(row.rows_in, row.rows_late) for row in rows] == [(12, 7)]


@pytest.mark.parametrize("other", [BucketRunner(job(k=2), Clock(1), 16), BucketRunner(job(), Clock(1), 8)])
def test_the_state_of_another_query_is_refused(other: BucketRunner) -> None:
    bucket = bucket_of(BucketRunner(job(), Clock(1), 16))
    bucket.test(KEY, [page((5, 1.0, 0))])
    stranger = bucket_of(other)
    stranger.updateValueState(STATE_NAME, KEY, bucket.peekValueState(STATE_NAME, KEY))
    with pytest.raises(SnapshotMismatch, match="Another query"):
        stranger.test(KEY, [page((5, 1.0, 0))])


@pytest.mark.parametrize("forgetful", [False, True], ids=["the worker stays", "another worker each time"])
def test_state_in_pages_answers_as_state_in_one_value(monkeypatch: pytest.MonkeyPatch, forgetful: bool) -> None:
    """What is in the state is what its root leads to, no more, whoever ran the micro-batch before."""
    whole = bucket_of(BucketRunner(job(k=3), Clock(1), 16))
    paged = bucket_of(BucketRunner(job(k=3), Clock(1), 16))
    random = np.random.default_rng(1)
    for number in range(30):
        rows = [(10 * number + int(time), float(score), 0) for time, score in random.integers(0, 20, (40, 2))]
        expected = shown(whole.test(KEY, [page(*rows)])) + shown(whole.setWatermark(10 * number + 1))
        with monkeypatch.context() as patch:
            patch.setattr(paged_state, "whole_bytes", 0)
            patch.setattr(paged_state, "new_bytes", 0)
            found = shown(paged.test(KEY, [page(*rows)])) + shown(paged.setWatermark(10 * number + 1))
        assert found == expected
        *_, depth, root = paged.peekValueState(STATE_NAME, KEY)
        pages = {digest: content for (digest,), (content,) in paged.peekMapState(PAGES_NAME, KEY).items()}
        assert depth > 0
        assert join(root, depth, pages.get)[1] == pages, "no page is left that nothing leads to"
        if forgetful:
            paged_state._kept.clear()


@pytest.mark.parametrize("new_bytes", [0, 1 << 22], ids=["in pages", "in one value"])
def test_a_session_is_not_trusted_where_the_committed_state_is_another(
    monkeypatch: pytest.MonkeyPatch, new_bytes: int
) -> None:
    """A micro-batch that failed after this worker had done its part is done again, from the state before it."""
    monkeypatch.setattr(paged_state, "whole_bytes", 0)
    monkeypatch.setattr(paged_state, "new_bytes", new_bytes)
    bucket = bucket_of(BucketRunner(job(), Clock(1), 16))
    bucket.test(KEY, [page((5, 1.0, 0))])
    value, pages = bucket.peekValueState(STATE_NAME, KEY), dict(bucket.peekMapState(PAGES_NAME, KEY))
    assert bool(pages) == (new_bytes == 0)
    bucket.test(KEY, [page((6, 9.0, 0))])  # not committed:
    bucket.updateValueState(STATE_NAME, KEY, value)
    bucket.updateMapState(PAGES_NAME, KEY, pages)
    bucket.test(KEY, [page((6, 2.0, 0))])
    assert shown(bucket.setWatermark(10)) == [(10, 2.0)]


@pytest.mark.parametrize("forgetful", [False, True], ids=["the worker stays", "another worker each time"])
def test_what_is_mostly_new_is_one_value_and_what_grows_slowly_is_pages(
    monkeypatch: pytest.MonkeyPatch, forgetful: bool
) -> None:
    monkeypatch.setattr(paged_state, "whole_bytes", 0)
    bucket = bucket_of(BucketRunner(job(k=500), Clock(1), 16))
    plain = bucket_of(BucketRunner(job(k=500), Clock(1), 16))
    random = np.random.default_rng(1)
    depths = []
    for number, (start, rows) in enumerate([(0, 4_000), (0, 1), (0, 1), (40, 4_000), (40, 1), (80, 1)], start=1):
        pushed = page(*((start + int(t), float(random.random()), 0) for t in random.integers(0, 20, rows)))
        found = shown(bucket.test(KEY, [pushed])) + shown(bucket.setWatermark(start + number))
        with monkeypatch.context() as patch:
            patch.setattr(paged_state, "whole_bytes", 1 << 30)
            assert found == shown(plain.test(KEY, [pushed])) + shown(plain.setWatermark(start + number))
        *_, depth, root = bucket.peekValueState(STATE_NAME, KEY)
        pages = {digest: content for (digest,), (content,) in bucket.peekMapState(PAGES_NAME, KEY).items()}
        assert join(root, depth, pages.get)[1] == pages, "no page is left that nothing leads to"
        depths.append(depth)
        if forgetful:
            paged_state._kept.clear()
    assert depths[0] == 0
    assert depths[2] > 0
    assert depths[3] == 0


def test_the_clock_rounds_up_and_knows_when_there_is_no_watermark_yet() -> None:
    clock = Clock(ticks_per_ms=1_000)
    assert clock.ticks(0) is None
    assert clock.ticks(5) == 5_000
    assert [clock.ms(ticks) for ticks in (4_999, 5_000, 5_001)] == [5, 5, 6]
    shifted = Clock(ticks_per_ms=30, shift_ms=2**50)
    assert shifted.ticks(2**50 - 2) == -60
    assert shifted.ms(-60) == 2**50 - 2


def test_where_only_its_state_is_asked_for_nothing_of_ours_is_imported() -> None:
    program = """if True:
        import pickle, sys
        class Handle:
            def getValueState(self, *asked):
                print(asked[0])
            def getMapState(self, *asked):
                print(asked[0])
        pickle.load(sys.stdin.buffer).init(Handle())
        print(sorted(name for name in sys.modules if name.startswith(("skyband", "numba", "pandas"))))
    """
    packed = cloudpickle.dumps(processor_of(BucketRunner(job(), Clock(1), 16)))
    done = subprocess.run([sys.executable, "-c", program], input=packed, capture_output=True, check=True)
    assert done.stdout.decode().split("\n")[:3] == [STATE_NAME, PAGES_NAME, "[]"]
