"""Many lists of rows that grow and shrink, in one flat array: the pool.

A list occupies a slab: 2**c consecutive entries. A list that outgrows its slab moves to a slab of the next size, and
the old one becomes free. Kernels never grow the pool itself: they return to Python when it may run out.

The owner of the lists keeps their headers in its own array, of any record with fields offset, length and capacity.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.kernels.compiling import allocating, inlined, kernel, part
from skyband.kernels.ranking import ROW, Rows

HEADER = [("offset", np.int64), ("length", np.int64), ("capacity", np.int64)]  # capacity 0: no slab
Headers = npt.NDArray[Any]

SMALLEST = 3  # log2 of the smallest slab
CLASSES = 48
NONE = -1


class Pool(NamedTuple):
    """The entries of all lists, and the free slabs."""

    rows: Rows  # or smaller records; in the first row of a free slab, `position` is the next free slab of its size
    free: npt.NDArray[np.int64]  # by size class: the first free slab, or NONE; last: the first row never used

    def room(self) -> int:
        return len(self.rows) - int(self.free[CLASSES])


def new_pool(entries: int, kind: npt.DTypeLike = ROW) -> Pool:
    free = np.full(CLASSES + 1, NONE, np.int64)
    free[CLASSES] = 0
    return Pool(np.empty(entries, kind), free)


def grown_pool(pool: Pool, more: int) -> Pool:
    """Copy a pool into one at least twice as large, with room for at least `more` entries."""
    used = int(pool.free[CLASSES])
    grown = new_pool(max(2 * len(pool.rows), used + more), pool.rows.dtype)
    # As bytes, because numpy copies records field by field, which takes many times as long.
    size = used * pool.rows.itemsize
    grown.rows.view(np.uint8)[:size] = pool.rows.view(np.uint8)[:size]
    grown.free[:] = pool.free
    return grown


def grown(records: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    """Extend records with zeros to `count`."""
    longer = np.zeros(count, records.dtype)
    longer[: len(records)] = records
    return longer


def room_for(lengths: npt.NDArray[np.int64]) -> int:
    """How many pool entries suffice for lists of these lengths, each in its own slab."""
    return int(2 * lengths.sum()) + (1 << SMALLEST) * len(lengths)


@inlined
def size_class(entries):
    """The smallest c with 2**c >= entries."""
    c = SMALLEST
    while (1 << c) < entries:
        c += 1
    return c


@inlined
def take_slab(pool, c):
    """Take a slab of 2**c entries, and return its offset. The caller has made sure that there is room."""
    offset = pool.free[c]
    if offset != NONE:
        pool.free[c] = pool.rows[offset].position
        return offset
    offset = pool.free[CLASSES]
    pool.free[CLASSES] = offset + (1 << c)
    return offset


@inlined
def give_slab(pool, header):
    """Empty a list, and free its slab."""
    if header.capacity > 0:
        c = size_class(header.capacity)
        pool.rows[header.offset].position = pool.free[c]
        pool.free[c] = header.offset
        header.capacity = 0
    header.length = 0


@part
def reserve(pool, header, entries):
    """Give a list a slab of at least `entries`; it keeps its rows."""
    if header.capacity >= entries:
        return
    c = size_class(entries)
    new = take_slab(pool, c)
    n = header.length
    for j in range(n):
        pool.rows[new + j] = pool.rows[header.offset + j]
    give_slab(pool, header)
    header.offset, header.length, header.capacity = new, n, 1 << c


@allocating
def pack(pool, headers):
    """Copy the rows of all lists, list after list, without gaps."""
    total = 0
    for i in range(len(headers)):
        total += headers[i].length
    packed = np.empty(total, pool.rows.dtype)
    at = 0
    for i in range(len(headers)):
        for j in range(headers[i].offset, headers[i].offset + headers[i].length):
            packed[at] = pool.rows[j]
            at += 1
    return packed


@allocating
def positions(pool, headers):
    """The positions of all rows of all lists."""
    total = 0
    for i in range(len(headers)):
        total += headers[i].length
    found = np.empty(total, np.int64)
    at = 0
    for i in range(len(headers)):
        for j in range(headers[i].offset, headers[i].offset + headers[i].length):
            found[at] = pool.rows[j].position
            at += 1
    return found


@kernel
def unpack(pool, headers, packed):
    """Put rows from `pack` into new slabs of a pool that has room for them. Headers have the lengths of the lists."""
    at = 0
    for i in range(len(headers)):
        n = headers[i].length
        headers[i].length = headers[i].capacity = 0
        if n == 0:
            continue
        reserve(pool, headers[i], n)
        headers[i].length = n
        for j in range(headers[i].offset, headers[i].offset + n):
            pool.rows[j] = packed[at]
            at += 1
