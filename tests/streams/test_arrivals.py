"""Examples: streams that arrive in random order, unevenly or late, and as late as they say."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.errors import InvalidInput, InvalidQuery, UnknownColumn
from skyband.streams.arrivals import late, resampled, uneven
from skyband.streams.orders import SCHEMA, uniform

Change = Callable[..., pa.RecordBatchReader]

MARKS = pa.table({"time": [30, 10, 20], "mark": ["a", "b", None]})


def resampled_rows(rows: int, **options: int) -> pa.RecordBatchReader:
    return resampled(MARKS, rows, **options)


def uneven_rows(rows: int, **options: int) -> pa.RecordBatchReader:
    return uneven(uniform(rows, batch_rows=1_234), **options)


def late_rows(rows: int, **options: int) -> pa.RecordBatchReader:
    return late(uniform(rows, batch_rows=1_234), share=0.1, at_most=100, **options)


each_change = pytest.mark.parametrize("change", [resampled_rows, uneven_rows, late_rows])


def times(reader: pa.RecordBatchReader) -> np.ndarray:
    return reader.read_all().column("time").cast(pa.int64()).to_numpy()


def behind(time: np.ndarray) -> np.ndarray:
    """How far each row is behind the largest time so far."""
    return np.maximum.accumulate(time) - time


def at(values: Iterable[int | None], kind: pa.DataType | None = None) -> pa.RecordBatchReader:
    return pa.table({"time": pa.array(values, kind or pa.int64())}).to_reader()


@each_change
@pytest.mark.parametrize("batch_rows", [999, 65_536, 100_000])
def test_batches_of_any_length_hold_the_same_rows(change: Change, batch_rows: int) -> None:
    batches = list(change(150_000, batch_rows=batch_rows))
    assert pa.Table.from_batches(batches).equals(change(150_000, batch_rows=150_000).read_all())
    assert {batch.num_rows for batch in batches[:-1]} == {batch_rows}


@each_change
def test_a_shorter_stream_is_the_beginning_of_a_longer_one(change: Change) -> None:
    rows = 70_000 - 200  # what is held back at the end of a stream comes without a delay
    assert change(70_000).read_all().slice(0, rows).equals(change(140_000).read_all().slice(0, rows))


@each_change
def test_a_seed_gives_the_same_rows_and_another_gives_others(change: Change) -> None:
    assert change(100, seed=5).read_all().equals(change(100, seed=5).read_all())
    assert not change(100, seed=5).read_all().equals(change(100, seed=6).read_all())


@each_change
@pytest.mark.parametrize("rows", [0, 1, 65_536, 65_537])
def test_a_stream_is_as_long_as_it_was(change: Change, rows: int) -> None:
    table = change(rows).read_all()
    assert table.num_rows == rows
    assert table.schema == (MARKS.schema if change is resampled_rows else SCHEMA)


@each_change
def test_no_more_is_made_than_is_read(change: Change) -> None:
    assert change(10**12, batch_rows=10).read_next_batch().equals(change(1_000, batch_rows=10).read_next_batch())


@pytest.mark.parametrize("batch_rows", [1, 7, 1_000])
@pytest.mark.parametrize("change", [uneven, lambda reader: late(reader, share=0.3, at_most=20)])
def test_it_does_not_matter_how_the_input_is_cut(change: Change, batch_rows: int) -> None:
    assert change(uniform(3_000, batch_rows=batch_rows)).read_all().equals(change(uniform(3_000)).read_all())


def test_a_sample_has_every_row_about_as_often_and_new_times() -> None:
    table = resampled(MARKS, 90_000).read_all()
    assert (table.column("time").to_numpy() == np.arange(90_000)).all()
    for count in table.column("mark").value_counts():
        assert abs(count["counts"].as_py() - 30_000) < 600


def test_a_sample_is_in_random_order() -> None:
    source = pa.table({"value": np.arange(1_000.0)})
    value = resampled(source, 100_000).read_all().column("value").to_numpy()
    assert abs(np.corrcoef(value[:-1], value[1:])[0, 1]) < 0.02
    assert len(np.unique(value[:1_000])) < 700  # with replacement: 1 - 1/e of them


def test_the_time_of_a_sample_is_a_column_of_its_own() -> None:
    assert resampled(MARKS, 2, column="at").read_all().column_names == ["time", "mark", "at"]
    assert resampled(MARKS.select(["time"]), 3).read_all().to_pydict() == {"time": [0, 1, 2]}


def test_a_sample_is_drawn_from_all_chunks() -> None:
    chunks = pa.concat_tables([MARKS, MARKS.slice(1), MARKS])
    assert resampled(chunks, 1_000).read_all().equals(resampled(chunks.combine_chunks(), 1_000).read_all())


def test_uneven_times_are_busy_and_quiet_in_turn() -> None:
    time = times(uneven(uniform(400_000), phase=20_000, contrast=8))
    assert (np.diff(time) >= 0).all()
    gap = np.diff(time[::1_000]) / 1_000  # the units of time a row takes
    is_busy = gap < 1
    assert abs(np.median(gap[is_busy]) - 2 / 9) < 0.03
    assert abs(np.median(gap[~is_busy]) - 16 / 9) < 0.1
    assert 5 <= np.count_nonzero(np.diff(is_busy)) <= 60  # a phase is 20 of these gaps, on average


def test_uneven_times_take_one_unit_a_row_on_average() -> None:
    assert abs(times(uneven(uniform(300_000), phase=100))[-1] / 300_000 - 1) < 0.1


def test_without_contrast_arrivals_are_as_dense_everywhere() -> None:
    gap = np.diff(times(uneven(uniform(300_000), contrast=1))[::10_000]) / 10_000
    assert np.abs(gap - 1).max() < 0.06


def test_uneven_changes_nothing_but_times() -> None:
    table = uneven(uniform(1_000)).read_all()
    assert table.drop(["time"]).equals(uniform(1_000).read_all().drop(["time"]))


def test_uneven_times_outgrow_a_narrow_column() -> None:
    assert uneven(at([1, 2], pa.int8())).schema.field("time").type == pa.int64()


@pytest.mark.parametrize("share", [0.01, 0.05, 0.2])
def test_a_share_is_late_and_none_by_more_than_allowed(share: float) -> None:
    late_by = behind(times(late(uniform(200_000), share=share, at_most=50)))
    assert abs((late_by > 0).mean() / share - 1) < 0.05
    assert late_by.max() == 50
    assert abs(late_by[late_by > 0].mean() - 25.5) < 0.5


@pytest.mark.parametrize("share", [0.0, 0.1, 0.9, 1.0])
@pytest.mark.parametrize("at_most", [1, 3, 1_000, 100_000])
def test_late_rows_are_the_same_rows(share: float, at_most: int) -> None:
    """Also when times repeat, have gaps, and are held back for longer than a block."""
    given = uneven(uniform(150_000)).read_all()
    delivered = late(given.to_reader(), share=share, at_most=at_most).read_all()
    assert behind(delivered.column("time").to_numpy()).max() <= at_most
    assert delivered.sort_by("id").equals(given.combine_chunks())


def test_rows_on_time_keep_their_order() -> None:
    table = late(uneven(uniform(50_000)), share=0.1, at_most=50).read_all()
    on_time = table.filter(behind(table.column("time").to_numpy()) == 0)
    assert (np.diff(on_time.column("time").to_numpy()) >= 0).all()
    assert np.mean(np.diff(on_time.column("id").to_numpy()) > 0) > 0.98  # all but those held back and yet not late


def test_which_rows_are_late_has_nothing_to_do_with_their_scores() -> None:
    table = late(uniform(65_536, seed=1), share=0.1, at_most=50, seed=1).read_all()
    is_late = behind(table.column("time").to_numpy()) > 0
    assert abs(table.column("score").to_numpy()[is_late].mean() - 0.5) < 0.02


def test_a_row_held_back_comes_after_the_rows_of_the_time_it_is_due() -> None:
    given = pa.table({"time": np.repeat(np.arange(5_000), 3), "id": np.arange(15_000)})
    table = late(given.to_reader(), share=0.01, at_most=1).read_all()
    time = table.column("time").to_numpy()
    is_late = behind(time) > 0
    assert is_late.any()
    assert set(time[1:][is_late[1:]] - time[:-1][is_late[1:]]) <= {-1, 0}
    following = np.flatnonzero(is_late)[:-1] + 1
    assert set(time[following] - time[following - 1]) <= {0, 2}


def test_only_the_rows_held_back_wait_even_if_time_stands_still() -> None:
    read = 0

    def standing_still() -> Iterator[pa.RecordBatch]:
        nonlocal read
        while True:
            read += 1_000
            yield pa.record_batch({"time": np.zeros(1_000, np.int64)})

    forever = pa.RecordBatchReader.from_batches(at([]).schema, standing_still())
    assert late(forever, share=0.1, at_most=10, batch_rows=50_000).read_next_batch().num_rows == 50_000
    assert read == 66_000  # one block


def test_timestamps_are_late_by_a_duration() -> None:
    second = 1_000_000
    given = at(range(0, 10_000 * second, second), pa.timestamp("us", tz="UTC"))
    late_by = behind(times(late(given, share=0.1, at_most="1 minute")))
    assert 50 * second < late_by.max() <= 60 * second


def test_a_query_with_this_lateness_drops_no_row_and_with_less_it_does() -> None:
    window = sb.sliding(20, every=1, on="time")
    for lateness, drops in ((40, False), (15, True)):
        session = sb.TopK(k=2, by="score", window=window, lateness=lateness).open(SCHEMA)
        for batch in late(uniform(2_000), share=0.2, at_most=40, batch_rows=100):
            session.push(batch)
        assert (session.stats().rows_late > 0) is drops


def test_late_and_in_order_give_the_same_answer() -> None:
    query = {"k": 3, "by": "score", "window": sb.sliding(100, every=10, on="time"), "lateness": 25}
    in_order = sb.top_k(uniform(2_000).read_all(), **query)
    assert sb.top_k(late(uniform(2_000), share=0.2, at_most=25).read_all(), **query).equals(in_order)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: resampled(MARKS.slice(0, 0), 1), InvalidInput, "the table given has none"),
        (lambda: resampled(MARKS, -1), InvalidInput, "rows must be a whole number of at least 0, got -1"),
        (lambda: resampled(MARKS, 1, seed=-1), InvalidInput, "seed must be a whole number of at least 0, got -1"),
        (lambda: uneven(at([1]), column="tiem"), UnknownColumn, "Did you mean 'time'"),
        (lambda: uneven(at([1], pa.timestamp("s"))), InvalidInput, r"'time' is timestamp\[s\]. Give an integer"),
        (lambda: uneven(at([1]), phase=0), InvalidInput, "phase must be a whole number of at least 1, got 0"),
        (lambda: uneven(at([1]), contrast=0.5), InvalidInput, "contrast must be a number of at least 1, got 0.5"),
        (lambda: uneven(at([1]), batch_rows=0), InvalidInput, "batch_rows must be a whole number of at least 1"),
        (lambda: late(at([1]), share=0.1, at_most=5, column="ts"), UnknownColumn, "No column 'ts'"),
        (lambda: late(at([1]), share=5, at_most=5), InvalidInput, "share must be a number from 0 to 1, got 5"),
        (lambda: late(at([1]), share=0.1, at_most=0), InvalidQuery, "at_most must be more than 0, got 0"),
        (lambda: late(at([1]), share=0.1, at_most="1 s"), InvalidQuery, "at_most is a duration"),
        (lambda: late(at([1], pa.float64()), share=0.1, at_most=5), InvalidQuery, "'time' is double"),
        (lambda: late(at([1], pa.timestamp("s")), share=0.1, at_most=5), InvalidQuery, "at_most=5 has no unit"),
    ],
)
def test_what_cannot_be_made_is_refused_at_once(make: Change, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, 5, 4], "in column 'time' 4 comes after 5"),
        ([*range(65_536), 3], "in column 'time' 3 comes after 65535"),
        ([1, None], "column 'time' has 1 nulls"),
    ],
)
def test_times_that_cannot_be_made_late_are_refused_when_read(values: list[int | None], message: str) -> None:
    reader = late(at(values), share=0.1, at_most=5)
    with pytest.raises(InvalidInput, match=message):
        reader.read_all()
