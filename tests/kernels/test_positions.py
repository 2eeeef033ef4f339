"""`locate` finds what bisection finds, and `ascending` what sorting gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skyband.kernels.positions import MANY, ascending, locate


@given(st.sets(st.integers(-(2**40), 2**40), min_size=1, max_size=50), st.data())
@example({0}, None)
@example({0, 2**40}, None)
@example(set(range(100)), None)
def test_finds_each_number_as_bisection_does(numbers: set[int], data: st.DataObject | None) -> None:
    positions = np.array(sorted(numbers))
    choice = positions if data is None else np.array(data.draw(st.lists(st.sampled_from(sorted(numbers)))), np.int64)
    assert locate(positions, 2**62, choice).tolist() == np.searchsorted(positions, choice).tolist()


@pytest.mark.parametrize("step", [0, 1, 3, 2**20])
def test_finds_what_is_listed_and_what_follows(step: int) -> None:
    positions = np.arange(0, 500 * step, step or 1)
    first = 500 * step + 7
    wanted = np.concatenate([positions, first + np.arange(50)])
    assert locate(positions, first, wanted).tolist() == list(range(len(positions) + 50))
    assert locate(positions, first, wanted[-3:]).tolist() == [len(positions) + i for i in (47, 48, 49)]


@pytest.mark.parametrize("step", [1, 3, 200, 2**20])
@pytest.mark.parametrize("count", [0, 1, MANY - 1, 2 * MANY])
def test_puts_positions_in_order(count: int, step: int) -> None:
    random = np.random.default_rng(count + step)
    positions = 2**40 + random.permutation(4 * count)[:count] * step
    assert ascending(positions).tolist() == sorted(positions.tolist())
    repeated = np.concatenate([positions, positions[: count // 3], positions[:1]])
    assert ascending(repeated).tolist() == sorted(positions.tolist()), "one that is there twice comes once"
