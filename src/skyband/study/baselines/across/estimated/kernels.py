"""The compiled half of the sketches: an object that comes sets one bit of one bitmap, and the bit's clock."""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import kernel

MAPS = 1024  # bitmaps a stream: an estimate is off by some 3 %
BITS = 40


@kernel
def add(clocks, stream, key, clock):
    for i in range(len(key)):
        mixed = np.uint64(key[i]) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(32)
        place, rest, bit = np.int64(mixed & np.uint64(MAPS - 1)), mixed >> np.uint64(10), 0
        while bit < BITS - 1 and rest & np.uint64(1) == np.uint64(0):
            rest >>= np.uint64(1)
            bit += 1
        if clock[i] > clocks[stream[i], place, bit]:
            clocks[stream[i], place, bit] = clock[i]
