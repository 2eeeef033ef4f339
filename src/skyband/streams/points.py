"""Points in several dimensions, for scores of several columns: the classic data of skyline benchmarks.

Data:       Börzsönyi, Kossmann, Stocker, ICDE 2001, section 4 (independent, correlated, anti-correlated).
Columns:    x0, x1, …; an id (the row's number or, with `ids`, one of so many, at random); a time: 0, 1, 2, ….
"""

from __future__ import annotations

from typing import Final, Unpack

import numpy as np
import pyarrow as pa

from skyband.streams.batches import Floats, Ints, Options, check_count, check_number, generated

_CENTRES: Final = (1,)  # the purpose of the random numbers that place the clusters


def point_schema(dimensions: int) -> pa.Schema:
    """The columns of a stream of points."""
    check_count("dimensions", dimensions, at_least=1)
    axes = [(f"x{axis}", pa.float64()) for axis in range(dimensions)]
    return pa.schema([*axes, ("id", pa.int64()), ("time", pa.int64())])


def uniform_points(rows: int, *, dimensions: int = 2, **options: Unpack[Options]) -> pa.RecordBatchReader:
    """Points anywhere in the unit cube, each coordinate from [0, 1) and independent of the others."""

    def values(random: np.random.Generator, time: Ints) -> Floats:
        return random.random((dimensions, len(time)))

    return generated(point_schema(dimensions), values, rows, **options)


def clustered(
    rows: int, *, dimensions: int = 2, clusters: int = 10, spread: float = 0.02, **options: Unpack[Options]
) -> pa.RecordBatchReader:
    """Points around `clusters` centres: normal in each coordinate, of standard deviation `spread`.

    The centres lie anywhere in the unit cube, so points at its border may lie outside. Clusters are equally likely.
    """
    schema = point_schema(dimensions)
    check_count("clusters", clusters, at_least=1)
    check_number("spread", spread, at_least=0)
    seed = options.get("seed", 1)
    check_count("seed", seed, at_least=0)
    placing = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=_CENTRES))
    centres = placing.random((dimensions, clusters))

    def values(random: np.random.Generator, time: Ints) -> Floats:
        cluster = random.integers(clusters, size=len(time))
        return centres[:, cluster] + random.normal(0, spread, (dimensions, len(time)))

    return generated(schema, values, rows, **options)


def correlated(
    rows: int, *, dimensions: int = 2, spread: float = 0.1, **options: Unpack[Options]
) -> pa.RecordBatchReader:
    """Points in the unit cube, near its diagonal: good in one dimension, good in all.

    With `spread` 0 they lie on the diagonal, with 1 anywhere in the cube.
    """
    schema = point_schema(dimensions)
    check_number("spread", spread, at_least=0, at_most=1)

    def values(random: np.random.Generator, time: Ints) -> Floats:
        along = random.random(len(time))
        return (1 - spread) * along + spread * random.random((dimensions, len(time)))

    return generated(schema, values, rows, **options)


def anticorrelated(
    rows: int, *, dimensions: int = 2, spread: float = 0.02, **options: Unpack[Options]
) -> pa.RecordBatchReader:
    """Points in the unit cube whose coordinates have nearly the same sum: good in one dimension, bad in others.

    The mean of a point's coordinates is normal around 1/2, of standard deviation `spread`. Each pair of dimensions is
    anticorrelated alike, by about -1 / (dimensions - 1).
    """
    check_count("dimensions", dimensions, at_least=2)
    check_number("spread", spread, at_least=0)

    def values(random: np.random.Generator, time: Ints) -> Floats:
        mean = np.clip(random.normal(0.5, spread, len(time)), 0, 1)
        room = np.minimum(mean, 1 - mean)  # to the cube's nearest border
        offset = random.random((dimensions, len(time)))
        offset -= offset.mean(axis=0)  # the sum stays; at most 1 - 1 / dimensions is left of any offset
        return mean + room * offset / (1 - 1 / dimensions)

    return generated(point_schema(dimensions), values, rows, **options)
