"""Dense codes for whole numbers. While the numbers are close together, as ids often are, a list maps them to codes;
otherwise a hash table in one flat array does, with open addressing, at most half full.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.kernels.compiling import allocating, inlined, kernel
from skyband.kernels.intrinsics import prefetch

Ints = npt.NDArray[np.int64]

FREE = -1
VALUE, CODE = 0, 1  # the entries of a slot
AHEAD = 16  # how many rows ahead slots are prefetched
SHORT, SPREAD = 4096, 16  # the list may have SHORT entries, and SPREAD more for each number; else a table is smaller


class IntegerCodes:
    """Assigns codes to whole numbers in order of first appearance."""

    def __init__(self) -> None:
        self.count = 0
        self._base = 0
        self._near = np.empty(0, np.int32)  # the codes of _base, _base + 1, …
        self._table: Ints | None = None  # used instead of the list while numbers are far apart

    def next_code(self) -> int:
        """Take a code that belongs to no number."""
        self.count += 1
        return self.count - 1

    def encode(self, values: Ints) -> npt.NDArray[np.int32]:
        codes, i = np.empty(len(values), np.int32), 0
        while True:
            if self._table is None:
                i, self.count = _encode_near(values, i, codes, self._near, self._base, self.count)
            else:
                i, self.count = _encode(values, i, codes, self._table, self.count)
            if i == len(values):
                return codes
            if self._table is None:
                self._reach(int(values[i]))
            else:
                self._grow(self._table)

    def _reach(self, number: int) -> None:
        """Make the list long enough for this number, or switch to the hash table."""
        low, high = self._base, self._base + len(self._near)
        low, high = (min(low, number), max(high, number + 1)) if high > low else (number, number + 1)
        if high - low > SHORT + SPREAD * self.count:
            self._table = _new_table(max(32, 4 << self.count.bit_length()))
            _copy_near(self._near, self._base, self._table)
            self._near = self._near[:0]
            return
        # Twice as long as needed, on the side where numbers come, so that it rarely grows.
        near, base = np.full(2 * (high - low), FREE, np.int32), max(2 * low - high, -(2**63)) if number == low else low
        near[self._base - base :][: len(self._near)] = self._near
        self._base, self._near = base, near

    def _grow(self, table: Ints) -> None:
        """Make the hash table larger; or switch back to the list, if only the first numbers were far apart."""
        known = table[table[:, CODE] != FREE]
        low, high = int(known[:, VALUE].min()), int(known[:, VALUE].max()) + 1
        if high - low <= SHORT + SPREAD * self.count:
            self._base, self._near, self._table = low, np.full(high - low, FREE, np.int32), None
            self._near[known[:, VALUE] - low] = known[:, CODE]
            return
        self._table = _new_table(4 * len(table))
        _copy(known, self._table)


def _new_table(slots: int) -> Ints:
    """A table whose slots have a number and its code side by side, so that one memory access finds both."""
    table = np.empty((slots, 2), np.int64)
    table[:, CODE] = FREE
    return table


@kernel
def _encode_near(source, i, target, near, base, count):
    """Encode rows from i on. Returns the first row whose number is outside the list, and the number of codes."""
    values, codes = source[i:], target[i:]
    for j in range(len(values)):
        place = np.uint64(values[j] - base)  # very large for a number below the base
        if place >= len(near):
            return i + j, count
        code = near[place]
        if code == FREE:
            near[place] = code = count
            count += 1
        codes[j] = code
    return len(source), count


@kernel
def _copy_near(near, base, table):
    for place in range(len(near)):
        if near[place] != FREE:
            number = base + place
            slot = _slot(number, _first_slot(number, np.uint64(len(table) - 1)), table)
            table[slot, VALUE], table[slot, CODE] = number, near[place]


@inlined
def _first_slot(value, mask):
    """The slot at which the search for a value begins."""
    mixed = np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)
    return (mixed >> np.uint64(32)) & mask


@inlined
def _slot(value, slot, table):
    """The slot that has `value`, or the free slot where it belongs, searching from `slot` on."""
    while table[slot, CODE] != FREE and table[slot, VALUE] != value:
        slot = (slot + np.uint64(1)) & np.uint64(len(table) - 1)
    return slot


@kernel
def _encode(source, i, target, table, count):
    """Encode rows from i on. Returns the first row for which the table was too full, and the number of codes.

    A large table is not in the cache, so the loop prefetches the slots of later rows.
    """
    # Slices and unsigned slots: numba adds a check for each index that might be negative.
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
def _copy(known, table):
    for i in range(len(known)):
        slot = _slot(known[i, VALUE], _first_slot(known[i, VALUE], np.uint64(len(table) - 1)), table)
        table[slot, VALUE], table[slot, CODE] = known[i, VALUE], known[i, CODE]


@allocating
def first_rows(codes, known, count):
    """The first row that has each of the codes known, known + 1, …, count - 1."""
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
    """Sort rows by code, stably. Returns their order, and where each code begins in it."""
    order, start, following = (
        np.empty(len(codes), np.int64),
        np.empty(count + 1, np.int64),
        np.empty(count + 1, np.int64),
    )
    sort_by_code(codes, 0, len(codes), order, start, following)
    return order, start


@kernel
def sort_by_code(codes, begin, end, order, start, following):
    """Write rows [begin, end), stably sorted by code, to `order`, and where each code begins to `start`.

    `following` is scratch space. Both it and `start` have one entry more than there are codes.
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
