"""Dense codes for whole numbers: a hash table in two flat arrays, open addressing, at most half full."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.structures.compiling import allocating, inlined, kernel

Ints = npt.NDArray[np.int64]

FREE = -1


class IntegerCodes:
    """Numbers whole numbers in order of first appearance."""

    def __init__(self) -> None:
        self.count = 0
        self._values = np.empty(32, np.int64)  # by slot
        self._codes = np.full(32, FREE, np.int32)  # by slot

    def next_code(self) -> int:
        """A code that belongs to no number."""
        self.count += 1
        return self.count - 1

    def encode(self, values: Ints) -> npt.NDArray[np.int32]:
        codes = np.empty(len(values), np.int32)
        i = 0
        while True:
            i, self.count = _encode(values, i, codes, self._values, self._codes, self.count)
            if i == len(values):
                return codes
            old_values, old_codes = self._values, self._codes
            self._values = np.empty(4 * len(old_values), np.int64)
            self._codes = np.full(4 * len(old_values), FREE, np.int32)
            _copy(old_values, old_codes, self._values, self._codes)


@inlined
def _slot(value, values, codes):  # type: ignore[no-untyped-def]
    """Where `value` is, or the free slot where it belongs."""
    mask = len(values) - 1
    mixed = np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)
    slot = np.int64(mixed >> np.uint64(32)) & mask
    while codes[slot] != FREE and values[slot] != value:
        slot = (slot + 1) & mask
    return slot


@kernel
def _encode(source, i, target, values, codes, count):  # type: ignore[no-untyped-def]
    """Encode rows from i on; return the first one for which the table was too full, and how many codes there are."""
    while i < len(source):
        slot = _slot(source[i], values, codes)
        if codes[slot] == FREE:
            if 2 * count >= len(values):
                break
            values[slot] = source[i]
            codes[slot] = count
            count += 1
        target[i] = codes[slot]
        i += 1
    return i, count


@kernel
def _copy(old_values, old_codes, values, codes):  # type: ignore[no-untyped-def]
    for i in range(len(old_values)):
        if old_codes[i] != FREE:
            slot = _slot(old_values[i], values, codes)
            values[slot], codes[slot] = old_values[i], old_codes[i]


@allocating
def first_rows(codes, known, count):  # type: ignore[no-untyped-def]
    """The first row of each of the codes known, known + 1, …, count - 1."""
    rows = np.full(count - known, -1, np.int64)
    found = 0
    for i in range(len(codes)):
        if found == len(rows):
            break
        new = codes[i] - known
        if new >= 0 and rows[new] < 0:
            rows[new] = i
            found += 1
    return rows


def order_by_code(codes: npt.NDArray[Any], count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The rows sorted by code, in their order within each code, and where each code starts among them."""
    order, start, following = (
        np.empty(len(codes), np.int64),
        np.empty(count + 1, np.int64),
        np.empty(count + 1, np.int64),
    )
    sort_by_code(codes, 0, len(codes), order, start, following)
    return order, start


@kernel
def sort_by_code(codes, begin, end, order, start, following):  # type: ignore[no-untyped-def]
    """Write rows [begin, end), sorted by code, to `order`, and to `start` where each code starts among them.

    `following` is scratch of the same length as `start`: one more than there are codes.
    """
    start[:] = 0
    for i in range(begin, end):
        start[codes[i] + 1] += 1
    for code in range(len(start) - 1):
        start[code + 1] += start[code]
        following[code] = start[code]
    for i in range(begin, end):
        code = codes[i]
        order[following[code]] = i
        following[code] += 1
