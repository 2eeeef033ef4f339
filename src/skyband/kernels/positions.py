"""Finds rows by their arrival positions: their places among the rows held, and the values of their columns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from skyband.kernels.bits import ones
from skyband.kernels.compiling import allocating, inlined, kernel

Ints = npt.NDArray[np.int64]

WORD = 64  # positions in a word of bits
SPARSE = 4  # with more words than this for each position listed or wanted, bisection is cheaper
MANY = 1024  # with this many positions, bits are cheaper than sorting


@allocating
def locate(positions, first, wanted):
    """The index of each wanted number in a list that has it: `positions`, which ascend, then first, first + 1, ….

    It sets a bit for each listed number, and counts the bits before each word. So it finds a number with two memory
    accesses and no branch; bisection would miss the cache and mispredict at most of its steps.
    """
    n, found = len(positions), np.empty(len(wanted), np.int64)
    if n == 0:
        for i in range(len(wanted)):
            found[i] = wanted[i] - first
        return found
    base, last = positions[0], positions[n - 1]
    words = ((last - base) >> 6) + 1
    if words > SPARSE * (n + len(wanted)) or 8 * len(wanted) < n:
        listed = np.searchsorted(positions, wanted)
        for i in range(len(wanted)):
            found[i] = n + wanted[i] - first if wanted[i] >= first else listed[i]
        return found
    bits, before = np.zeros(words, np.uint64), np.empty(words, np.int64)
    for i in range(n):
        word, bit = place(positions[i] - base)
        bits[word] |= bit
    count = 0
    for word in range(words):
        before[word] = count
        count += ones(bits[word])
    for i in range(len(wanted)):
        word, bit = place(min(wanted[i], last) - base)
        listed = before[word] + ones(bits[word] & (bit - np.uint64(1)))
        found[i] = n + wanted[i] - first if wanted[i] >= first else listed
    return found


def ascending(positions: Ints) -> Ints:
    """Sort positions; one that is there twice comes once. numpy's `unique` hashes them, which takes far longer."""
    base = positions.min(initial=0)
    words = (int(positions.max(initial=0) - base) >> 6) + 1
    if len(positions) < MANY or words > SPARSE * len(positions):
        ordered = np.sort(positions)
        return ordered[np.insert(ordered[1:] != ordered[:-1], 0, True)] if len(ordered) else ordered
    ordered = np.empty(len(positions), np.int64)
    return ordered[: write_ascending(positions, base, np.zeros(words, np.uint64), ordered)]


@kernel
def write_ascending(positions, base, bits, ordered):
    """Write the different positions in order with the help of a bit for each number, and return how many there are.

    Sorting takes five times as long.
    """
    for i in range(len(positions)):
        word, bit = place(positions[i] - base)
        bits[word] |= bit
    n = np.uint64(0)
    for word in range(len(bits)):
        left = bits[word]
        while left:
            lowest = left & (~left + np.uint64(1))
            ordered[n] = base + WORD * word + ones(lowest - np.uint64(1))
            left ^= lowest
            n += np.uint64(1)
    return int(n)


@inlined
def place(offset):
    """The word of a number, and its bit in that word."""
    number = np.uint64(offset)
    return number >> np.uint64(6), np.uint64(1) << (number & np.uint64(WORD - 1))


@kernel
def pick(index, listed, following, picked):
    """Write the values at these indices of a column that consists of two pieces, one behind the other."""
    n = np.uint64(len(listed))
    for i in range(len(index)):
        # Unsigned, because numba adds a check for an index that might be negative.
        at = np.uint64(index[i])
        if at < n:
            picked[i] = listed[at]
        else:
            picked[i] = following[at - n]
