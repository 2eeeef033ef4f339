"""Where numbers are in a sorted list that is spread about evenly, such as the arrival positions of rows held."""

from __future__ import annotations

import numpy as np

from skyband.structures.compiling import allocating


@allocating
def locate(positions, wanted):  # type: ignore[no-untyped-def]
    """For each number wanted, its index in `positions`, which ascend and have it.

    The range is cut into about as many equal parts as there are positions: one look tells where a part starts, and a
    few steps find the number. Bisection would miss the cache at most of its steps; it is for a few numbers among many.
    """
    n = len(positions)
    if 8 * len(wanted) < n:
        return np.searchsorted(positions, wanted)
    base, shift = positions[0], 0
    while (positions[n - 1] - base) >> shift > n:
        shift += 1
    starts = np.empty(((positions[n - 1] - base) >> shift) + 1, np.int32)
    part = 0
    for i in range(n):
        while part <= (positions[i] - base) >> shift:
            starts[part] = i
            part += 1
    found = np.empty(len(wanted), np.int64)
    for i in range(len(wanted)):
        # Indices without a sign: numba looks twice at one that might be negative.
        number = wanted[i]
        at = np.uint64(starts[np.uint64((number - base) >> shift)])
        while positions[at] < number:
            at += np.uint64(1)
        found[i] = at
    return found
