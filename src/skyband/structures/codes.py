"""Dense codes for whole numbers: a hash table in one flat array, open addressing, at most half full."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.structures.compiling import allocating, inlined, kernel
from skyband.structures.prefetching import prefetch

Ints = npt.NDArray[np.int64]

FREE = -1
VALUE, CODE = 0, 1  # what is in a slot
AHEAD = 16  # rows


class IntegerCodes:
    """Numbers whole numbers in order of first appearance."""

    def __init__(self) -> None:
        self.count = 0
        self._table = _new_table(32)

    def next_code(self) -> int:
        """A code that belongs to no number."""
        self.count += 1
        return self.count - 1

    def encode(self, values: Ints) -> npt.NDArray[np.int32]:
        codes, i = np.empty(len(values), np.int32), 0
        while True:
            i, self.count = _encode(values, i, codes, self._table, self.count)
            if i == len(values):
                return codes
            old, self._table = self._table, _new_table(4 * len(self._table))
            _copy(old, self._table)


def _new_table(slots: int) -> Ints:
    """A number and its code in each slot, side by side, so that one look at memory finds both."""
    table = np.empty((slots, 2), np.int64)
    table[:, CODE] = FREE
    return table


@inlined
def _first_slot(value, mask):  # type: ignore[no-untyped-def]
    """Where to look first."""
    mixed = np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)
    return (mixed >> np.uint64(32)) & mask


@inlined
def _slot(value, slot, table):  # type: ignore[no-untyped-def]
    """Where `value` is, or the free slot where it belongs, from `slot` on."""
    while table[slot, CODE] != FREE and table[slot, VALUE] != value:
        slot = (slot + np.uint64(1)) & np.uint64(len(table) - 1)
    return slot


@kernel
def _encode(source, i, target, table, count):  # type: ignore[no-untyped-def]
    """Encode rows from i on; return the first one for which the table was too full, and how many codes there are.

    A large table is not in the cache, so the slots of rows to come are asked for early.
    """
    # Slices, and slots without a sign: numba looks twice at an index that might be negative.
    values, codes, mask = source[i:], target[i:], np.uint64(len(table) - 1)
    for j in range(len(values)):
        if j + AHEAD < len(values):
            prefetch(table, _first_slot(values[j + AHEAD], mask))
        value = values[j]
        slot = _slot(value, _first_slot(value, mask), table)
        code = table[slot, CODE]
        if code == FREE:
            if 2 * count >= len(table):
                return i + j, count
            code = count
            table[slot, VALUE], table[slot, CODE] = value, code
            count += 1
        codes[j] = code
    return len(source), count


@kernel
def _copy(old, table):  # type: ignore[no-untyped-def]
    for i in range(len(old)):
        if old[i, CODE] != FREE:
            slot = _slot(old[i, VALUE], _first_slot(old[i, VALUE], np.uint64(len(table) - 1)), table)
            table[slot, VALUE], table[slot, CODE] = old[i, VALUE], old[i, CODE]


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
