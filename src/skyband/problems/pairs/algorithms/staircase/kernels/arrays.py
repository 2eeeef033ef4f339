"""What the arrays of the K-skyband of pairs hold, and the order of pairs in them."""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import inlined

DROPPED = -1  # as the older row: a pair that was taken in and is dominated after all
FEW = 64  # as k: up to so many it is cheaper to keep the k best in order than in a heap
SHIFT = 20  # keys of candidates: the older row, then where the candidate stands, in so many bits

# What the clock array holds.
OUT = 0  # entries written to the output
TOP = 1  # pairs in the answer and in its reserve: those that follow
SHOWN = 2  # pairs in the answer that was shown last
OLDEST = 3  # the number of the oldest row in the answer, or an older one
COMPLETE = 4  # 1: there are no other pairs than those in the answer and its reserve
WHY = 5  # it stopped: REFILL or FULL
CLOCKS = 6

REFILL = 1  # too few pairs are left in the answer
FULL = 2  # there may be no room for what is to be written

NO_ROW = np.iinfo(np.int64).max


@inlined
def ranks_before(score, a, b, other_score, other_a, other_b):
    """Does the first pair rank before the second?"""
    if score != other_score:
        return score > other_score
    if a != other_a:
        return a > other_a
    return b > other_b
