"""The k largest of a run of numbers, in a flat array."""

from __future__ import annotations

from skyband.kernels.compiling import inlined


@inlined
def push_heap(heap, size, k, value):  # type: ignore[no-untyped-def]
    """Add to a heap of the k largest values, smallest on top; a full one loses its smallest. Return its size."""
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
