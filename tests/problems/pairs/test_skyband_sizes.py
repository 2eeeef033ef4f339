"""Golden test: sizes of the K-skyband of pairs, as printed in tables 2 and 3 of Shen et al., TKDE 2014."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from skyband.core.emit import CHANGES
from skyband.core.registry import algorithms_of
from skyband.expressions.pairs import bind
from skyband.problems.pairs.algorithms.staircase import expected_pairs
from skyband.problems.pairs.drivers.scoring import scoring_of
from skyband.problems.pairs.operator import Batch, Spec
from skyband.windows import Ticks

BY_K = {1: 17.4, 5: 82.3, 10: 159.9, 20: 308.5, 50: 730.6, 100: 1398.0}  # windows of 10,000 rows
BY_ROWS = {1_000: 216.5, 5_000: 280.8, 10_000: 308.5}  # K = 20; larger windows are left to `skyband bench papers`
DIMENSIONS = 3


def mean_size(k: int, rows: int) -> float:
    """The pairs held, on average over windows of `rows` uniform rows: each sample after as many as a batch has."""
    by = " + ".join(f"abs(a.x{i} - b.x{i})" for i in range(DIMENSIONS))
    schema = pa.schema([(f"x{i}", pa.float64()) for i in range(DIMENSIONS)])
    scoring = scoring_of(bind(by, None, True, schema))
    operator = algorithms_of("pairs")["staircase"].open(Spec(k, Ticks(rows, 0, 0, True), scoring, CHANGES))
    random, first, sizes = np.random.default_rng(7), 0, []
    more = max(2 * rows, 20_000)
    while first < rows + more:
        values = random.random((DIMENSIONS, 96))
        operator.push(Batch(values, np.empty((0, 96)), np.empty(0, np.int64), first))
        first += 96
        if first > rows:
            sizes.append(len(operator._candidates()))  # type: ignore[attr-defined]
    return float(np.mean(sizes))


@pytest.mark.parametrize("k", BY_K)
def test_by_k(k: int) -> None:
    assert mean_size(k, 10_000) == pytest.approx(BY_K[k], rel=0.03)


@pytest.mark.parametrize("rows", BY_ROWS)
def test_by_rows(rows: int) -> None:
    assert mean_size(20, rows) == pytest.approx(BY_ROWS[rows], rel=0.03)


@pytest.mark.parametrize(
    ("k", "rows", "printed"), [(1, 10_000, 18.42), (100, 10_000, 1381.55), (20, 1_000_000, 492.71)]
)
def test_the_formula(k: int, rows: int, printed: float) -> None:
    assert expected_pairs(k, rows) == pytest.approx(printed, abs=0.01)
