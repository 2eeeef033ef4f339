"""Examples: the benchmark's stream."""

import numpy as np
import pyarrow as pa
import pytest

from skyband.streams.uniform import SCHEMA, uniform


@pytest.mark.parametrize("batch_rows", [1_000, 65_536, 100_000])
def test_batches_of_any_length_hold_the_same_rows(batch_rows: int) -> None:
    batches = list(uniform(150_000, batch_rows=batch_rows))
    assert pa.Table.from_batches(batches).equals(uniform(150_000, batch_rows=150_000).read_all().combine_chunks())


def test_scores_are_uniform_and_times_count_up() -> None:
    table = uniform(100_000).read_all()
    assert table.schema == SCHEMA
    score = table.column("score").to_numpy()
    assert abs(score.mean() - 0.5) < 0.01
    assert 0 <= score.min() <= score.max() < 1
    assert (table.column("time").to_numpy() == np.arange(100_000)).all()
    assert (table.column("id").to_numpy() == np.arange(100_000)).all()


def test_ids_are_as_many_as_asked_for() -> None:
    assert set(uniform(10_000, ids=7).read_all().column("id").to_pylist()) == set(range(7))
