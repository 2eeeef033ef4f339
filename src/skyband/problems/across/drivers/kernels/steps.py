"""The compiled loops of the step clock: they write rows and answers as steps, in order."""

from __future__ import annotations

from skyband.kernels.compiling import kernel

ANSWER_DUE = -1  # in place of a row: an answer is due


@kernel
def slide(first, every, count, clock, row):
    """Write `count` arrivals, and an answer after each `every` of them."""
    n, end = 0, (first // every + 1) * every
    for i in range(count):
        clock[n], row[n] = end, i
        n += 1
        if first + i + 1 == end:
            clock[n], row[n] = end, ANSWER_DUE
            n += 1
            end += every


@kernel
def interleave(begins, last, closed, until, every, longest, shown, lingers, clock, row):
    """Write rows, and the answers of all windows up to `until` that have something to show, in order.

    Returns the number of steps (steps without room are only counted), the last moment of any row, and whether the last
    answer shows something.
    """
    i, n, end = 0, 0, closed + every
    while True:
        if longest < end and not (shown and lingers):
            if i == len(begins):
                break
            end = begins[i]
        if end > until:
            break
        while i < len(begins) and begins[i] <= end:
            if n < len(clock):
                clock[n], row[n] = end, i
            n += 1
            longest = max(longest, last[i])
            i += 1
        if n < len(clock):
            clock[n], row[n] = end, ANSWER_DUE
        n += 1
        shown = longest >= end
        end += every
    return n, longest, shown
