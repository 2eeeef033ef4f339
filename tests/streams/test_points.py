"""Examples: points whose dimensions agree, disagree, or gather, the same for everyone and in any cut."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from skyband.errors import InvalidInput
from skyband.streams.points import anticorrelated, clustered, correlated, point_schema, uniform_points

Stream = Callable[..., pa.RecordBatchReader]

each_kind = pytest.mark.parametrize("kind", [uniform_points, clustered, correlated, anticorrelated])
in_the_cube = pytest.mark.parametrize("kind", [uniform_points, correlated, anticorrelated])


def points(reader: pa.RecordBatchReader) -> np.ndarray:
    """One row for each point."""
    table = reader.read_all()
    return np.column_stack([table.column(name).to_numpy() for name in table.column_names if name.startswith("x")])


def correlations(reader: pa.RecordBatchReader) -> np.ndarray:
    """Of each pair of dimensions."""
    matrix = np.corrcoef(points(reader), rowvar=False)
    return matrix[np.triu_indices_from(matrix, 1)]


@each_kind
@pytest.mark.parametrize("batch_rows", [999, 65_536, 100_000])
def test_batches_of_any_length_hold_the_same_rows(kind: Stream, batch_rows: int) -> None:
    batches = list(kind(150_000, batch_rows=batch_rows))
    assert pa.Table.from_batches(batches).equals(kind(150_000, batch_rows=150_000).read_all())
    assert {batch.num_rows for batch in batches[:-1]} == {batch_rows}


@each_kind
def test_a_shorter_stream_is_the_beginning_of_a_longer_one(kind: Stream) -> None:
    assert kind(70_000, ids=9).read_all().equals(kind(140_000, ids=9).read_all().slice(0, 70_000))


@each_kind
def test_a_seed_gives_the_same_rows_and_another_gives_others(kind: Stream) -> None:
    assert kind(100, seed=5).read_all().equals(kind(100, seed=5).read_all())
    assert not kind(100, seed=5).read_all().equals(kind(100, seed=6).read_all())


@each_kind
@pytest.mark.parametrize("rows", [0, 1, 70_000])
def test_a_stream_has_the_length_and_the_columns_asked_for(kind: Stream, rows: int) -> None:
    table = kind(rows, dimensions=3).read_all()
    assert table.schema == point_schema(3)
    assert table.column_names == ["x0", "x1", "x2", "id", "time"]
    assert table.num_rows == rows
    assert (table.column("time").to_numpy() == np.arange(rows)).all()
    assert table.column("id").equals(table.column("time"))


@each_kind
def test_no_more_is_made_than_is_read(kind: Stream) -> None:
    assert kind(10**12, batch_rows=10).read_next_batch().equals(kind(10).read_next_batch())


@in_the_cube
@pytest.mark.parametrize("dimensions", [2, 5])
def test_points_lie_in_the_unit_cube(kind: Stream, dimensions: int) -> None:
    where = points(kind(50_000, dimensions=dimensions))
    assert 0 <= where.min() <= where.max() <= 1


@pytest.mark.parametrize("dimensions", [2, 5])
def test_dimensions_agree_disagree_or_neither(dimensions: int) -> None:
    assert np.abs(correlations(uniform_points(50_000, dimensions=dimensions))).max() < 0.02
    assert correlations(correlated(50_000, dimensions=dimensions)).min() > 0.9
    expected = -1 / (dimensions - 1)
    assert np.abs(correlations(anticorrelated(50_000, dimensions=dimensions)) - expected).max() < 0.05


def test_anticorrelated_sums_are_nearly_constant() -> None:
    where = points(anticorrelated(50_000, dimensions=4, spread=0.02))
    assert abs(where.mean(axis=1).mean() - 0.5) < 0.001
    assert abs(where.mean(axis=1).std() - 0.02) < 0.001
    assert where.std(axis=0).min() > 0.1


def test_the_spread_of_correlated_points_is_how_far_from_the_diagonal() -> None:
    assert np.ptp(points(correlated(1_000, dimensions=4, spread=0)), axis=1).max() == 0
    assert np.ptp(points(correlated(1_000, dimensions=4, spread=0.1)), axis=1).max() <= 0.1
    assert abs(correlations(correlated(50_000, spread=1))[0]) < 0.02


def test_clusters_are_as_many_and_as_wide_as_asked_for() -> None:
    where = points(clustered(50_000, clusters=4, spread=0.001))
    centres = np.unique(points(clustered(50_000, clusters=4, spread=0)), axis=0)
    assert len(centres) == 4
    assert 0 <= centres.min() <= centres.max() < 1
    distance = where[:, None] - centres
    nearest = np.abs(distance).sum(axis=2).argmin(axis=1)
    assert np.bincount(nearest).min() > 11_000
    assert np.allclose(distance[np.arange(len(where)), nearest].std(axis=0), 0.001, rtol=0.02)


def test_another_seed_places_clusters_elsewhere() -> None:
    here, there = (points(clustered(1_000, clusters=1, spread=0, seed=seed))[0] for seed in (1, 2))
    assert not np.isclose(here, there).any()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: uniform_points(-1), "rows must be a whole number of at least 0, got -1"),
        (lambda: uniform_points(1, dimensions=0), "dimensions must be a whole number of at least 1, got 0"),
        (lambda: anticorrelated(1, dimensions=1), "dimensions must be a whole number of at least 2, got 1"),
        (lambda: anticorrelated(1, spread=-1), "spread must be a number of at least 0, got -1"),
        (lambda: correlated(1, spread=1.5), "spread must be a number from 0 to 1, got 1.5"),
        (lambda: clustered(1, clusters=0), "clusters must be a whole number of at least 1, got 0"),
        (lambda: clustered(1, spread=-0.5), "spread must be a number of at least 0, got -0.5"),
        (lambda: clustered(1, seed=-1), "seed must be a whole number of at least 0, got -1"),
    ],
)
def test_what_cannot_be_made_is_refused_at_once(make: Stream, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()
