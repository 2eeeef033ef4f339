"""Finds where the pages of a snapshot end, from the snapshot's own bytes."""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import allocating

REMEMBERED = 64  # the hash depends on this many last bytes: older ones have been shifted out at its top
_TESTED = 40  # the lowest bit of the hash that is tested: lower bits depend on fewer bytes


@allocating
def page_ends(data, gears, least, most, mask):
    """Cut data into pages of `least` to `most` bytes, where the last may be shorter; return where they end.

    One in mask + 1 positions can end a page. `gears` has a random number for each value of a byte.
    """
    ends = np.empty(len(data) // least + 2, np.int64)
    count, start = 0, 0
    tested = np.uint64(mask) << np.uint64(_TESTED)
    while start < len(data):
        at, stop = min(start + least, len(data)), min(start + most, len(data))
        hashed = np.uint64(0)
        for i in range(max(start, at - REMEMBERED), at):
            hashed = (hashed << np.uint64(1)) + gears[data[i]]
        # Invariant: no page that is long enough ends between start and at.
        while at < stop:
            hashed = (hashed << np.uint64(1)) + gears[data[at]]
            at += 1
            if hashed & tested == np.uint64(0):
                break
        ends[count] = at
        count += 1
        start = at
    return ends[:count]
