"""The compiled loop of `threshold` that keeps a list of rows ordered by value."""

from __future__ import annotations

from skyband.kernels.compiling import kernel


@kernel
def merge_lists(order, value, count, start, more, more_value, out, out_value):
    """Merge rows into a list ordered by value, without those numbered before `start`; returns how many there are."""
    i, n = 0, 0
    for j in range(len(more) + 1):
        while i < count and (j == len(more) or value[i] <= more_value[j]):
            if order[i] >= start:
                out[n], out_value[n] = order[i], value[i]
                n += 1
            i += 1
        if j < len(more):
            out[n], out_value[n] = more[j], more_value[j]
            n += 1
    return n
