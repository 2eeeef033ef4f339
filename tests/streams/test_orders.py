"""Examples: scores in random and in other orders, the same for everyone and in any cut."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from skyband.errors import InvalidInput
from skyband.streams.orders import SCHEMA, bursty, daily_cycle, falling, random_walk, rising, uniform

Stream = Callable[..., pa.RecordBatchReader]

BLOCK = 65_536  # many properties could break where one block ends and the next begins
each_order = pytest.mark.parametrize("order", [uniform, rising, falling, random_walk, daily_cycle, bursty])


def scores(reader: pa.RecordBatchReader) -> np.ndarray:
    return reader.read_all().column("score").to_numpy()


@each_order
@pytest.mark.parametrize("batch_rows", [999, BLOCK, 100_000])
def test_batches_of_any_length_hold_the_same_rows(order: Stream, batch_rows: int) -> None:
    batches = list(order(150_000, batch_rows=batch_rows))
    assert pa.Table.from_batches(batches).equals(order(150_000, batch_rows=150_000).read_all())
    assert {batch.num_rows for batch in batches[:-1]} == {batch_rows}


@each_order
def test_a_shorter_stream_is_the_beginning_of_a_longer_one(order: Stream) -> None:
    assert order(70_000, ids=9).read_all().equals(order(140_000, ids=9).read_all().slice(0, 70_000))


@each_order
def test_a_seed_gives_the_same_rows_and_another_gives_others(order: Stream) -> None:
    assert order(100, seed=5).read_all().equals(order(100, seed=5).read_all())
    assert not order(100, seed=5).read_all().equals(order(100, seed=6).read_all())


@each_order
@pytest.mark.parametrize("rows", [0, 1, BLOCK, BLOCK + 1])
def test_a_stream_has_the_length_and_the_columns_asked_for(order: Stream, rows: int) -> None:
    table = order(rows).read_all()
    assert table.schema == SCHEMA
    assert table.num_rows == rows
    assert (table.column("time").to_numpy() == np.arange(rows)).all()
    assert table.column("id").equals(table.column("time"))


@each_order
def test_ids_are_as_many_as_asked_for(order: Stream) -> None:
    assert set(order(1_000, ids=7).read_all().column("id").to_pylist()) == set(range(7))


@each_order
def test_no_more_is_made_than_is_read(order: Stream) -> None:
    assert order(10**12, batch_rows=10).read_next_batch().equals(order(10).read_next_batch())


def test_rising_and_falling_never_stand_still() -> None:
    assert (np.diff(scores(rising(150_000))) > 0).all()
    assert (np.diff(scores(falling(150_000))) < 0).all()


def test_a_random_walk_goes_far_in_small_steps_also_from_block_to_block() -> None:
    score = scores(random_walk(200_000, step=0.5))
    steps = np.diff(score, prepend=0)
    assert abs(steps.std() - 0.5) < 0.01
    assert np.abs(steps).max() < 0.5 * 6
    assert np.ptp(score) > 0.5 * 100
    assert np.corrcoef(score[:-100], score[100:])[0, 1] > 0.99


def test_steps_of_a_random_walk_are_independent() -> None:
    steps = np.diff(scores(random_walk(200_000)))
    assert abs(np.corrcoef(steps[:-1], steps[1:])[0, 1]) < 0.01


def test_a_cycle_returns_every_period() -> None:
    score = scores(daily_cycle(150_000, period=1_000, noise=0))
    assert np.allclose(score[1_000:], score[:-1_000])
    assert np.allclose(score[:1_000:250], [0, 1, 0, -1])


def test_noise_is_around_the_cycle() -> None:
    noise = scores(daily_cycle(100_000, period=1_000, noise=0.3)) - scores(daily_cycle(100_000, period=1_000, noise=0))
    assert abs(noise.mean()) < 0.01
    assert abs(noise.std() - 0.3) < 0.01


def test_bursts_are_above_everything_else_and_fall() -> None:
    score = scores(bursty(400_000, every=5_000, length=300))
    is_high = score >= 1
    assert score[~is_high].min() >= 0
    assert 1 < score[is_high].min() < score[is_high].max() <= 2
    begins = np.flatnonzero(np.diff(score, prepend=0) * is_high > 0)  # a rise to a high score
    assert 60 < len(begins) < 100
    for begin, following in pairwise([*begins, len(score)]):
        end = min(begin + 300, following)
        assert is_high[begin:end].all()
        assert (np.diff(score[begin:end]) < 0).all()
        assert not is_high[end:following].any()


def test_a_burst_goes_on_in_the_next_block() -> None:
    score = scores(bursty(4 * BLOCK, every=BLOCK, length=20_000))
    assert ((score[BLOCK - 1 : -1 : BLOCK] > 1) & (score[BLOCK::BLOCK] > 1)).any()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rising(-1), "rows must be a whole number of at least 0, got -1"),
        (lambda: rising(2.5), "rows must be a whole number of at least 0, got 2.5"),
        (lambda: rising(1, batch_rows=0), "batch_rows must be a whole number of at least 1, got 0"),
        (lambda: rising(1, seed=-3), "seed must be a whole number of at least 0, got -3"),
        (lambda: uniform(1, ids=0), "ids must be a whole number of at least 1, got 0"),
        (lambda: random_walk(1, step=float("nan")), "step must be a number of at least 0, got nan"),
        (lambda: random_walk(1, step=float("inf")), "step must be a number of at least 0, got inf"),
        (lambda: daily_cycle(1, period=0), "period must be a whole number of at least 1, got 0"),
        (lambda: daily_cycle(1, noise=-0.1), "noise must be a number of at least 0, got -0.1"),
        (lambda: bursty(1, every=0), "every must be a whole number of at least 1, got 0"),
        (lambda: bursty(1, length=0), "length must be a whole number of at least 1, got 0"),
    ],
)
def test_what_cannot_be_made_is_refused_at_once(make: Stream, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()


def test_scores_are_uniform_and_times_count_up() -> None:
    table = uniform(100_000).read_all()
    assert table.schema == SCHEMA
    score = table.column("score").to_numpy()
    assert abs(score.mean() - 0.5) < 0.01
    assert 0 <= score.min() <= score.max() < 1
    assert (table.column("time").to_numpy() == np.arange(100_000)).all()
    assert (table.column("id").to_numpy() == np.arange(100_000)).all()
