"""Keeps the k largest of a sequence of numbers in a flat array."""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import inlined
from skyband.kernels.panes import largest
from skyband.kernels.ranking import SMALL


@inlined
def push_heap(heap, size, k, value):
    """Add a value to a heap of the k largest, the smallest on top; a full heap drops its smallest. Return its size."""
    if size < k:
        child = size
        while child > 0 and heap[(child - 1) >> 1] > value:
            heap[child] = heap[(child - 1) >> 1]
            child = (child - 1) >> 1
        heap[child] = value
        return size + 1
    parent, child = 0, 1
    while child < k:
        if child + 1 < k and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[parent] = heap[child]
        parent, child = child, 2 * child + 1
    heap[parent] = value
    return k


@inlined
def note_score(best, count, k, s, threshold):
    """Add a score to the k best so far. Return how many are kept, and the score that the next one must exceed.

    A small k keeps them sorted, best first. With a large k, up to 2k gather before the k best are selected.
    """
    if k <= SMALL:
        i = min(count, k - 1) if count < k else k - 1
        while i > 0 and best[i - 1] < s:
            best[i] = best[i - 1]
            i -= 1
        best[i] = s
        count = min(count + 1, k)
        return count, best[k - 1] if count == k else -np.inf
    best[count] = s
    count += 1
    if count == k or count == 2 * k:
        return k, largest(best[:count], k - 1)
    return count, threshold
