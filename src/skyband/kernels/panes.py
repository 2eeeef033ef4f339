"""Pane arithmetic: where rows fall between the starts and ends of windows.

Window i ends at (i + 1) * every and starts `size` before that. The starts and ends of all windows cut time into panes,
and all rows of a pane are in the same windows. A slide has one pane if `size` is a multiple of `every`; otherwise two,
of lengths every - rest and rest. Pane 2j is the first of slide j, pane 2j + 1 the second.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.compiling import allocating, inlined, kernel, part
from skyband.windows import NEVER

# How many rows a loop tests together: enough to vectorise, and few enough to test again one by one.
BLOCK = 64  # in general
NARROW = 32  # if every second block may have a row that matters
FIND = 256  # if all rows that matter are wanted at once
WIDE = 512  # if few rows are expected to matter
SAMPLE = 2048  # how many scores a threshold is guessed from
WORTH_GUESSING = 32  # the smallest k for which guessing a threshold pays


class Shape(NamedTuple):
    """A window in the numbers that kernels need."""

    every: int
    whole: int  # slides in a window, rounded down; NEVER for a landmark
    rest: int  # size - whole * every


def shape_of(size: int, every: int) -> Shape:
    return Shape(every, NEVER, 0) if size == NEVER else Shape(every, size // every, size % every)


@allocating
def pane_of(shape, time):
    slide = time // shape.every
    second = shape.rest > 0 and time - slide * shape.every >= shape.every - shape.rest
    return 2 * slide + second


@allocating
def pane_start(shape, pane):
    start = (pane >> 1) * shape.every
    return start + shape.every - shape.rest if pane & 1 else start


@allocating
def pane_end(shape, pane):
    end = ((pane >> 1) + 1) * shape.every
    return end if pane & 1 or shape.rest == 0 else end - shape.rest


@kernel
def last_window(shape, pane):
    """The last window that holds the rows of a pane. The first one is pane >> 1."""
    if shape.whole == NEVER:
        return NEVER
    return (pane >> 1) + shape.whole - 1 + (pane & 1)


@inlined
def reaching(part, threshold):
    """How many of these scores reach the threshold. Callers pass a slice, so that the compiler knows that no index is
    negative and can vectorise the loop."""
    n = 0
    for j in range(len(part)):
        n += part[j] >= threshold
    return n


@inlined
def exceeding(part, threshold):
    """How many of these scores exceed the threshold."""
    n = 0
    for j in range(len(part)):
        n += part[j] > threshold
    return n


@part
def skip_scores(score, i, end, threshold):
    """Pass over blocks of [i, end) in which no score reaches the threshold, wide blocks first, then narrow ones."""
    while i + WIDE <= end and reaching(score[i : i + WIDE], threshold) == 0:
        i += WIDE
    while i + BLOCK <= end and reaching(score[i : i + BLOCK], threshold) == 0:
        i += BLOCK
    return i


@part
def find_scores(score, i, end, threshold, found):
    """Search [i, end) for scores that reach the threshold, up to the first block that has some.

    Writes their indices to `found`, which has room for a block. Returns where to continue, the number of scores found,
    and how many of the rows passed have no score.
    """
    missing = 0
    while i + FIND <= end:
        part, reached, nan = score[i : i + FIND], 0, 0
        for j in range(FIND):
            reached += part[j] >= threshold
            nan += part[j] != part[j]
        if reached:
            break
        missing += nan
        i += FIND
    stop = min(i + FIND, end)
    n = np.uint64(0)
    for low in range(i, stop, NARROW):
        part, reached = score[low : min(low + NARROW, stop)], 0
        for j in range(len(part)):
            reached += part[j] >= threshold
            missing += part[j] != part[j]
        if reached:
            for j in range(len(part)):
                found[n] = low + j  # without a branch: the next index overwrites this one unless it counts
                n += np.uint64(part[j] >= threshold)
    return stop, np.int64(n), missing


@part
def guess_threshold(score, i, end, k, sample):
    """Guess from a sample a score that somewhat more than k rows of [i, end) reach; -inf if guessing does not pay."""
    if end - i < 16 * k or end - i < 4 * SAMPLE:
        return -np.inf
    stride = (end - i) // SAMPLE
    for j in range(SAMPLE):
        value = score[i + j * stride]
        sample[j] = value if value == value else -np.inf
    expected = k * SAMPLE / (end - i)
    # Three standard deviations to the safe side: with too few rows, all work would have to be repeated.
    return largest(sample, int(expected + 3 * np.sqrt(expected) + 4))


@part
def largest(values, rank):
    """The value of this rank (0 is the largest). It reorders the values."""
    low, high = 0, len(values) - 1
    while low < high:
        pivot = values[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if rank <= j:
            high = j
        elif rank >= i:
            low = i
        else:
            break
    return values[rank]


@part
def skip_rows(score, time, i, end, threshold, low, high, now):
    """Find the first row of [i, end) that reaches the threshold or has a time outside [low, high).

    Returns it, the latest time before it, and how many of the rows before it have no score.
    """
    missing = 0
    while i + BLOCK <= end:
        scores, times = score[i : i + BLOCK], time[i : i + BLOCK]
        stop, latest, nan = 0, now, 0
        for j in range(BLOCK):
            stop += (scores[j] >= threshold) | (times[j] < low) | (times[j] >= high)
            nan += scores[j] != scores[j]
            latest = max(latest, times[j])
        if stop:
            break
        now = latest
        missing += nan
        i += BLOCK
    while i < end and not (score[i] >= threshold or time[i] < low or time[i] >= high):
        now = max(now, time[i])
        missing += score[i] != score[i]
        i += 1
    return i, now, missing
