"""Finds where the pages of a snapshot end, from the snapshot's own bytes."""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import allocating

REMEMBERED = 64  # bytes: the hash moves older ones out at its top
_TESTED = 40  # the lowest bit that is looked at: bits below it depend on fewer bytes


@allocating
def page_ends(data, gears, least, most, mask):
    """Ends of pages of `least` to `most` bytes, of which the last may be shorter; one in mask + 1 bytes ends a page.

    `gears` has a number for each value of a byte.
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
