"""What the arrays of the K-skyband of pairs hold."""

from __future__ import annotations

import numpy as np

DROPPED = -1  # as the older row: a pair that was taken in and is dominated after all
FEW = 64  # as k: up to so many it is cheaper to keep the k best in order than in a heap
SHIFT = 20  # keys of candidates: the older row, then where the candidate stands, in so many bits

# Numbers that change.
TOP = 0  # pairs in the answer and in its reserve: those that follow
OLDEST = 1  # the number of the oldest row in the answer, or an older one
COMPLETE = 2  # 1: there are no other pairs than those in the answer and its reserve
WHY = 3  # it stopped: REFILL or FULL
NUMBERS = 4

REFILL = 1  # too few pairs are left in the answer
FULL = 2  # there may be no room for what is to be written

NO_ROW = np.iinfo(np.int64).max
