"""Example tests of the stateful operator by itself: no Spark is started."""

from __future__ import annotations

import subprocess
import sys
from collections import OrderedDict
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import TimerValues
from pyspark.sql.streaming.tws_tester import TwsTester

import skyband as sb
from skyband.core.snapshot_pages import DIGEST_BYTES, join
from skyband.engines.spark import kept_state
from skyband.engines.spark.bucket import BucketRunner
from skyband.engines.spark.bucket_job import TIE
from skyband.engines.spark.clock import Clock
from skyband.engines.spark.journal import _digest, digest_of, repeat
from skyband.engines.spark.kept_state import Stored, key_of, packed, unpacked
from skyband.engines.spark.pages import Tally, page_batch, read_table
from skyband.engines.spark.processor import PAGES_NAME, STATE_NAME, processor_of
from skyband.errors import SkybandError, SnapshotCorrupt, SnapshotMismatch
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


KEPT = {  # how a state may be kept, and what makes it so
    "one value": {"small_bytes": 1 << 30},
    "pages": {"small_bytes": 0, "new_bytes": 0, "journal_share": 0},
    "one page": {"small_bytes": 0, "new_bytes": 1 << 30, "journal_share": 0},
    "journal": {"small_bytes": 0},
    "long journal": {"small_bytes": 0, "journal_share": 20},
}


def kept_as(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    for name, value in KEPT[how].items():
        monkeypatch.setattr(kept_state, name, value)


def stored_in(bucket: TwsTester) -> Stored:
    """What the state says; nothing else is in it."""
    stored = Stored.read(bucket.peekValueState(STATE_NAME, KEY)[4:])
    found = {key: content for (key,), (content,) in bucket.peekMapState(PAGES_NAME, KEY).items()}
    assert stored.root is not None
    whole = {digest: unpacked(page) for digest, page in found.items() if len(digest) == DIGEST_BYTES}
    _, pages = join(stored.root, stored.depth, whole.get, nbytes=stored.snapshot_bytes)
    entries = list(map(key_of, range(stored.entries)))
    assert found.keys() == {*pages, *entries}
    assert sum(len(found[entry]) for entry in entries) == stored.journal_bytes
    assert stored.journal == (digest_of(found[entries[-1]]) if entries else b"")
    return stored


@pytest.mark.parametrize("workers", [1, 2, 0], ids=["one worker", "two workers in turns", "a new worker each time"])
@pytest.mark.parametrize("how", [how for how in KEPT if how != "one value"])
def test_all_ways_to_keep_a_state_answer_alike(monkeypatch: pytest.MonkeyPatch, how: str, workers: int) -> None:
    plain, bucket = (bucket_of(BucketRunner(job(k=3), Clock(1), 16)) for _ in range(2))
    random = np.random.default_rng(1)
    expected, found, lengths = [], [], []
    known: list[OrderedDict[Any, Any]] = [OrderedDict(), OrderedDict()]
    for number in range(60):
        rows = [(5 * number + int(time), float(score), 0) for time, score in random.integers(0, 20, (40, 2))]
        for each, lines, way in ((plain, expected, "one value"), (bucket, found, how)):
            with monkeypatch.context() as patch:
                kept_as(patch, way)
                # A worker knows what it has done itself; another one, what was so when it last had the bucket.
                patch.setattr(kept_state, "_kept", known[number % workers] if workers else OrderedDict())
                lines += shown(each.test(KEY, [page(*rows)])) + shown(each.setWatermark(5 * number + 1))
        lengths.append(stored_in(bucket).entries)
    assert found == expected
    assert stored_in(plain).depth == 0
    if "journal" in how:
        assert len(set(lengths)) > 3
        ends = any(after < before for before, after in pairwise(lengths))
        assert ends == (how == "journal"), "a snapshot ends a journal"
    else:
        assert set(lengths) == {0}


@pytest.mark.parametrize("how", KEPT)
def test_a_session_is_not_trusted_where_the_committed_state_is_another(
    monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """A micro-batch that failed after this worker had done its part is done again, from the state before it."""
    kept_as(monkeypatch, how)
    bucket = bucket_of(BucketRunner(job(k=2), Clock(1), 16))
    for row in ((5, 1.0, 0), (5, 0.5, 1)):
        bucket.test(KEY, [page(row)])
    value, pages = bucket.peekValueState(STATE_NAME, KEY), dict(bucket.peekMapState(PAGES_NAME, KEY))
    for row in ((6, 9.0, 0), (6, 8.0, 0)):
        bucket.test(KEY, [page(row)])  # not committed:
    bucket.updateValueState(STATE_NAME, KEY, value)
    bucket.updateMapState(PAGES_NAME, KEY, pages)
    bucket.test(KEY, [page((6, 2.0, 0))])  # the same number of entries as what was not committed
    bucket.test(KEY, [page((7, 3.0, 0))])
    assert shown(bucket.setWatermark(10)) == [(10, 3.0), (10, 2.0)]


def test_a_journal_holds_at_most_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is written is at most three times the entries: a snapshot is written once they have half its bytes."""
    kept_as(monkeypatch, "journal")
    bucket = bucket_of(BucketRunner(job(k=500), Clock(1), 16))
    random = np.random.default_rng(1)
    most = 0.0
    for number in range(50):
        bucket.test(KEY, [page(*((number + int(t), float(random.random()), 0) for t in random.integers(0, 20, 30)))])
        bucket.setWatermark(number + 1)
        stored = stored_in(bucket)
        most = max(most, stored.journal_bytes / (stored.nbytes - stored.journal_bytes))
    assert 0.2 < most <= 0.5


def test_a_session_for_which_a_worker_has_no_room_has_no_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be repeated, ever longer, in each micro-batch."""
    kept_as(monkeypatch, "long journal")
    monkeypatch.setattr(kept_state, "_MOST_BYTES", 0)
    monkeypatch.setattr(kept_state, "_dropped", set())
    bucket = bucket_of(BucketRunner(job(), Clock(1), 16))
    entries = []
    for number in range(4):
        bucket.test(KEY, [page((5, float(number), 0))])
        entries.append(stored_in(bucket).entries)
    assert entries == [0, 0, 0, 0]
    assert shown(bucket.setWatermark(10)) == [(10, 3.0)]


@pytest.mark.parametrize("damage", ["missing", "changed", "shortened"])
def test_a_damaged_journal_is_refused(monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    kept_as(monkeypatch, "long journal")
    bucket = bucket_of(BucketRunner(job(), Clock(1), 16))
    for number in range(4):
        bucket.test(KEY, [page((5, float(number), 0))])
    pages = dict(bucket.peekMapState(PAGES_NAME, KEY))
    (entry,) = pages[(key_of(1),)]
    changed = {"missing": [], "changed": [entry[:-1] + bytes([entry[-1] ^ 1])], "shortened": [entry[:-1]]}[damage]
    others = {key: content for key, content in pages.items() if key != (key_of(1),)}
    bucket.updateMapState(PAGES_NAME, KEY, others | {(key_of(1),): (content,) for content in changed})
    kept_state._kept.clear()
    with pytest.raises(SnapshotCorrupt, match="journal"):
        bucket.test(KEY, [page((5, 1.0, 0))])


HOSTILE = {
    "no list": b"{",
    "a list of something else": b"[1]",
    "no name of a call": b'[{"number": 1}]',
    "a call that nothing can do": b'[{"call": "snapshot", "number": 1, "flags": null, "bytes": 0}]',
    "a time beyond 64 bits": b'[{"call": "advance", "number": 1e40, "flags": null, "bytes": 0}]',
    "more rows than there are": b'[{"call": "push", "number": null, "flags": null, "bytes": 99}]',
    "rows that are none": b'[{"call": "push", "number": null, "flags": null, "bytes": 4}]',
    "no rows": b'[{"call": "push", "number": null, "flags": null, "bytes": 0}]',
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_a_made_up_journal_raises_no_raw_error(content: bytes) -> None:
    """Its digests fit: who can write to a checkpoint can compute them."""
    session = job().open(0, None, external_clock=True)
    whole = len(content).to_bytes(4, "little") + content + b"rows"
    with pytest.raises(SkybandError):
        repeat(session, [_digest(b"", whole) + whole], b"")


@pytest.mark.parametrize("data", [b"\x05\0\0\0five?", b"\xff\xff\xff\xff", packed(b"a page")[:-1]])
def test_a_damaged_page_is_refused(data: bytes) -> None:
    assert unpacked(packed(b"a page")) == b"a page"
    with pytest.raises(SnapshotCorrupt, match="A page of a bucket's snapshot is damaged"):
        unpacked(data)


def test_a_state_of_before_there_were_journals_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    kept_as(monkeypatch, "one value")
    bucket = bucket_of(BucketRunner(job(), Clock(1), 16))
    bucket.test(KEY, [page((5, 1.0, 0))])
    value = bucket.peekValueState(STATE_NAME, KEY)
    bucket.updateValueState(STATE_NAME, KEY, (*value[:-3], None, None, None))
    kept_state._kept.clear()
    assert shown(bucket.setWatermark(10)) == [(10, 1.0)]


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
