"""Rows of a window that are put in before others: these move up, and get new numbers."""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import inlined, kernel


@kernel
def open_gaps(columns, colours, limit, time, position, places, tail):
    """Make room for one row before each of these places, ascending: rows behind s of them move up by s."""
    stop = tail
    for s in range(len(places), 0, -1):
        start = places[s - 1]
        for table in (columns, colours):
            for c in range(len(table)):
                for i in range(stop - 1, start - 1, -1):
                    table[c, i + s] = table[c, i]
        for i in range(stop - 1, start - 1, -1):
            limit[i + s] = limit[i]
            time[i + s] = time[i]
            position[i + s] = position[i]
        # No pair has the new row as its older one yet, so what the next row's pairs must reach is right for it too.
        new = start + s - 1
        limit[new] = limit[new + 1] if new + 1 < tail + len(places) else -np.inf
        stop = start


@inlined
def _moved_up(number, numbers):
    low, high = 0, len(numbers)
    while low < high:
        middle = (low + high) >> 1
        if numbers[middle] <= number:
            low = middle + 1
        else:
            high = middle
    return number + low


@kernel
def renumber(pairs, n, numbers):
    """Give pairs the new numbers of their rows, after rows were put in before these numbers, ascending."""
    for r in range(n):
        pair = pairs[r]
        pair.a = _moved_up(pair.a, numbers)
        pair.b = _moved_up(pair.b, numbers)


@inlined
def arrival_at(index, base, position):
    """When the row at this index arrived: see `WindowRows`."""
    return position[index] if len(position) else base + index
