"""Example tests of what happens to the rows of a partition before the shuffle: no Spark is started."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.core.plan import Plan
from skyband.engines.spark.bucket_job import BUCKET, PREFIX, TIE
from skyband.engines.spark.gathering import packer
from skyband.engines.spark.pages import Tally, read_table
from skyband.problems.rows.spark import TopKJob
from skyband.problems.rows.spark_candidates import GROUP, SCORE, WEIGHT, weigher

NAN = float("nan")


def job(k: int, window: sb.Window, per: tuple[str, ...] = ()) -> TopKJob:
    fields = [("t", pa.int64()), *((name, pa.int64()) for name in per)]
    schema = pa.schema([*fields, (SCORE, pa.float64())])
    query = sb.TopK(k=k, by=SCORE, window=window, per=per)
    return TopKJob(
        window=window,
        ticks=window.ticks(schema),
        schema=schema,
        added=(SCORE,),
        output=schema,
        sources=(None,) * len(schema),
        changes=False,
        is_spread=bool(per),
        fingerprint="",
        plan=Plan.fixed("mintopk", "nothing is planned here"),
        query=query,
        score=None,
    )


def weights(asked: TopKJob, *batches: tuple[list[int | None], list[float | None]]) -> list[list[int | None]]:
    arrays = [(pa.array(times, pa.int64()), pa.array(scores, pa.float64())) for times, scores in batches]
    return [column.to_pylist() for column in weigher(asked)(iter(arrays))]


def test_a_row_stands_for_those_that_are_ruled_out() -> None:
    asked = job(1, sb.tumbling(10, on="t"))
    #          pane 0: best is 3; pane 1; a null and a NaN score; two rows without a time
    times = [1, 2, 3, 11, 12, 4, 5, None, None]
    scores = [1.0, 3.0, 2.0, 7.0, 7.0, None, NAN, 9.0, None]
    assert weights(asked, (times, scores)) == [[3, 0, None, 2, 0, 2, None, 2, None]]


def test_the_latest_row_of_a_batch_goes_on_to_move_the_watermark() -> None:
    asked = job(1, sb.tumbling(10, on="t"))
    first = ([1, 3, None, 2], [5.0, 1.0, 9.0, 4.0])  # the latest is the worst
    second = ([4, 6, 5], [1.0, None, NAN])  # it has no score, and another row stands for it
    assert weights(asked, first, second, ([None], [1.0])) == [[3, 0, 1, None], [1, 2, None], [1]]
    assert weights(asked, ([4, 5, 6], [1.0, None, NAN])) == [[1, 2, 0]]


def test_the_sum_of_the_weights_is_the_number_of_rows() -> None:
    rng = np.random.default_rng(3)
    batches = []
    for _ in range(4):
        times = [None if rng.random() < 0.1 else int(time) for time in rng.integers(-50, 50, 200)]
        scores = [None if rng.random() < 0.1 else float(score) for score in rng.integers(0, 9, 200)]
        batches.append((times, scores))
    found = weights(job(2, sb.sliding(13, every=5, on="t")), *batches)
    assert sum(weight or 0 for batch in found for weight in batch) == 800
    assert sum(weight is not None for batch in found for weight in batch) < 400


def table(times: list[int], scores: list[float], **others: list[int]) -> pa.Table:
    columns = {PREFIX + "0": times, SCORE: scores, TIE: list(range(len(times))), WEIGHT: [1] * len(times), **others}
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def gathered(asked: TopKJob, rows: pa.Table) -> tuple[pa.Table, Tally]:
    (prepared,) = asked.gatherer().gather(iter(rows.to_batches()))
    return prepared


def test_rows_that_tie_exactly_are_told_apart_by_their_contents() -> None:
    rows, tally = gathered(job(3, sb.tumbling(10, on="t")), table([5] * 1_000, [1.0] * 1_000))
    assert rows.column(TIE).to_pylist() == [997, 998, 999], "the ones that rank first when they come in by tie"
    assert tally.rows_in == 1_000


def test_a_column_that_orders_rows_decides_before_their_contents() -> None:
    asked = job(3, sb.tumbling(10, on="t", order="t"))
    rows, _ = gathered(asked, table([5] * 10, [1.0] * 10))
    assert rows.num_rows == 10


@pytest.mark.parametrize(
    ("size", "every", "ends"), [(20, 10, {20: 2, 30: 2}), (25, 10, {20: 1, 30: 2, 40: 1})], ids=["even", "uneven"]
)
def test_the_tally_says_when_rows_will_be_late(size: int, every: int, ends: dict[int, int]) -> None:
    asked = job(9, sb.sliding(size, every=every, on="t"))
    _, tally = gathered(asked, table([4, 5, 12, 15], [1.0, 2.0, 3.0, 4.0]))
    assert dict(zip(tally.ends.tolist(), tally.rows.tolist(), strict=True)) == ends
    assert tally.late(30) == sum(rows for end, rows in ends.items() if end <= 30)


def test_a_page_for_each_bucket_and_the_counts_with_the_first() -> None:
    asked = job(1, sb.tumbling(10, on="t"), per=("g",))
    rows = table([1, 2, 3, 4], [1.0, 2.0, 3.0, 4.0], **{PREFIX + "1": [7, 8, 7, 9], GROUP: [7, 8, 7, 9]})
    rows = rows.append_column(BUCKET, pa.array([2, 0, 2, 0], pa.int32()))
    (pages,) = packer(asked)(iter(rows.to_batches()))
    assert pages.column("bucket").to_pylist() == [0, 2]
    assert [read_table(page.as_py()).column("g").to_pylist() for page in pages.column("page")] == [[8, 9], [7]]
    assert pages.column("rows_in").to_pylist() == [4, 0]


def test_counts_travel_even_if_no_row_has_a_score() -> None:
    asked = job(1, sb.tumbling(10, on="t"))
    (pages,) = packer(asked)(iter(table([1, 2], [NAN, NAN]).to_batches()))
    assert pages.select(["bucket", "rows_in", "rows_unranked"]).to_pylist() == [
        {"bucket": 0, "rows_in": 2, "rows_unranked": 2}
    ]
    rows = read_table(pages.column("page")[0].as_py())
    assert rows.column("t").to_pylist() == [2], "the latest row alone: it says how far a batch goes"
