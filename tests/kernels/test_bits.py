"""Oracle: sets of bits agree with Python's sets."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from skyband.kernels.bits import NONE, count_below, delete, fill, insert, last_until, next_from
from skyband.kernels.compiling import kernel


@kernel
def _asked(bits, count, gone, back, found):  # type: ignore[no-untyped-def]
    """All numbers below `count` but some; what is asked of each place goes into the rows of `found`."""
    fill(bits, count)
    for x in gone:
        delete(bits, x)
    for x in back:
        insert(bits, x)
    for x in range(count):
        found[0, x] = count_below(bits, x)
        found[1, x] = next_from(bits, x, count)
        found[2, x] = last_until(bits, x)


def _expected(numbers: set[int], count: int) -> list[list[Any]]:
    return [
        [sum(y < x for y in numbers) for x in range(count)],
        [min((y for y in numbers if y >= x), default=NONE) for x in range(count)],
        [max((y for y in numbers if y <= x), default=NONE) for x in range(count)],
    ]


@pytest.mark.parametrize("count", [1, 63, 64, 65, 127, 128, 200])
def test_what_is_next_and_how_many_are_before(count: int) -> None:
    draw = random.Random(count)
    for share in (0.1, 0.5, 0.95, 1.0):
        gone = [x for x in range(count) if draw.random() < share]
        back = [x for x in gone if draw.random() < 0.1]
        found = np.empty((3, count), np.int64)
        _asked(np.full(4, 7), count, np.array(gone, np.int64), np.array(back, np.int64), found)
        assert found.tolist() == _expected(set(range(count)) - set(gone) | set(back), count)
