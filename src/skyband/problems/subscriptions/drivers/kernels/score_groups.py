"""Looks up the score group of a row, in a hash table in one flat array, or in a list if values are close."""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import inlined, kernel

NONE = -1  # the score group of a row that no query sees


@inlined
def mixed(hashed, bits):
    """Mix one more value into a hash. The sign is left out, so that 0 and -0 are equal."""
    folded = hashed ^ (np.uint64(bits) << np.uint64(1))
    folded ^= folded >> np.uint64(32)  # the floats of whole numbers differ only in the upper bits
    folded *= np.uint64(0x9E3779B97F4A7C15)
    return folded ^ (folded >> np.uint64(32))


@kernel
def put_score_groups(keys, bits, slots):
    mask = np.uint64(len(slots) - 1)
    for t in range(keys.shape[1]):
        hashed = np.uint64(0)
        for c in range(len(keys)):
            hashed = mixed(hashed, bits[c, t])
        slot = hashed & mask
        while slots[slot] != NONE:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = t


@kernel
def find_near(values, near, score_group):
    """Look up the score groups of whole numbers in a list."""
    for i in range(len(values)):
        value = values[i]
        inside = (value >= 0.0) & (value < len(near))
        place = np.uint64(value) if inside else np.uint64(0)
        score_group[i] = near[place] if inside & (np.float64(place) == value) else NONE


@kernel
def find_score_groups(columns, bits, compared, first, end, keys, slots, score_group):
    """Find the score group of each row: its keys equal the row's values in the compared columns. NaN equals nothing."""
    mask = np.uint64(len(slots) - 1)
    for i in range(first, end):
        hashed = np.uint64(0)
        for c in range(len(compared)):
            hashed = mixed(hashed, bits[compared[c], i])
        slot = hashed & mask
        found = slots[slot]
        while found != NONE:
            differ = 0
            for c in range(len(compared)):
                differ += columns[compared[c], i] != keys[c, found]
            if differ == 0:
                break
            slot = (slot + np.uint64(1)) & mask
            found = slots[slot]
        score_group[i - first] = found
