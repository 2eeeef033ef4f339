"""`locate` finds what bisection finds."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from skyband.structures.positions import locate


@given(st.sets(st.integers(-(2**40), 2**40), min_size=1, max_size=50), st.data())
@example({0}, None)
@example({0, 2**40}, None)
@example(set(range(100)), None)
def test_finds_each_number_as_bisection_does(numbers: set[int], data: st.DataObject | None) -> None:
    positions = np.array(sorted(numbers))
    choice = positions if data is None else np.array(data.draw(st.lists(st.sampled_from(sorted(numbers)))), np.int64)
    assert locate(positions, choice).tolist() == np.searchsorted(positions, choice).tolist()
