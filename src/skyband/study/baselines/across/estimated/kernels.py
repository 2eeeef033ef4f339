"""The compiled half of the sketches: an object that comes sets a bit of a bitmap, and moves counters by its signs."""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import kernel, part

MAPS = 1024  # bitmaps a stream: an estimate is off by some 3 %
BITS = 40
GROUPS, COPIES = 5, 64  # of counters of a stream: the median of groups, each the mean of its copies
BLOCKS = 9  # a window is eight of them, or a part of one more


@part
def _mixed(key, seed):
    mixed = (np.uint64(key) + np.uint64(seed) * np.uint64(0xD1342543DE82EF95)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return mixed ^ (mixed >> np.uint64(32))


@kernel
def add(clocks, stream, key, clock):
    for i in range(len(key)):
        mixed = _mixed(key[i], 0)
        place, rest, bit = np.int64(mixed & np.uint64(MAPS - 1)), mixed >> np.uint64(10), 0
        while bit < BITS - 1 and rest & np.uint64(1) == np.uint64(0):
            rest >>= np.uint64(1)
            bit += 1
        if clock[i] > clocks[stream[i], place, bit]:
            clocks[stream[i], place, bit] = clock[i]


@kernel
def add_signs(counters, rows, stamps, width, stream, key, clock):
    """Add each object's signs to the counters of its stream, in the block of its clock; old blocks are used again."""
    for i in range(len(key)):
        stamp = clock[i] // width
        block = stamp % BLOCKS
        if stamps[block] > stamp:
            continue  # it is too late to count
        if stamps[block] < stamp:
            stamps[block] = stamp
            counters[:, block] = 0
            rows[:, block] = 0
        rows[stream[i], block] += 1
        for c in range(0, GROUPS * COPIES, 32):
            signs = _mixed(key[i], 1 + c)
            for j in range(32):
                counters[stream[i], block, c + j] += 2 * np.int64((signs >> np.uint64(j)) & np.uint64(1)) - 1
