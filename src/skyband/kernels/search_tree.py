"""A priority search tree in two flat arrays: it finds the best k rows within a span of time.

Paper:      McCreight, SIAM Journal on Computing 1985, as used by Shen and others, TKDE 2014, section 4.1.

Rows are numbered by rank. The number of leaves is a power of two; each rank has a leaf. Nodes are numbered as in a
heap: node 1 is the root, and the children of node i are 2i and 2i + 1. A node covers the ranks of the leaves below it.
It has the latest row of these ranks that no node above it has. So no row of a subtree is later than the row at its top,
and all rows of a left subtree rank before all rows of the right one.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import allocating, inlined, part

EMPTY = -1  # the row of a node without a row
LONG_AGO = np.iinfo(np.int64).min  # the time of such a node, before the time of any row
HEIGHT = 64  # no tree is higher


@inlined
def leaves_for(rows):
    """The number of leaves of a tree with this many rows. It has twice as many nodes."""
    leaves = 1
    while leaves < rows:
        leaves *= 2
    return leaves


@allocating
def build(time, first, n, root, node_time, node_row):
    """Build the tree of the n rows from `first` on in O(n). Node i is at root + i."""
    leaves = leaves_for(n)
    for r in range(leaves):
        node_time[root + leaves + r] = time[first + r] if r < n else LONG_AGO
        node_row[root + leaves + r] = r if r < n else EMPTY
    for i in range(leaves - 1, 0, -1):
        # Both subtrees of i are in order. The later of their tops moves up; the hole that it leaves is filled likewise.
        hole = i
        while hole < leaves:
            child = 2 * hole + (node_time[root + 2 * hole + 1] > node_time[root + 2 * hole])
            node_time[root + hole], node_row[root + hole] = node_time[root + child], node_row[root + child]
            hole = child
            if node_row[root + child] == EMPTY:
                break
        node_time[root + hole], node_row[root + hole] = LONG_AGO, EMPTY


@part
def search(n, root, node_time, node_row, start, end, k, found, at, stack):
    """Find the best k of n rows with a time in [start, end). Writes them to `found` from `at` on, best first, and
    returns their number.

    It visits O(log n + k) rows if no row is at `end` or later. `stack` is scratch space of HEIGHT by 3.
    """
    leaves, count = leaves_for(n), 0
    if n == 0 or k == 0 or node_time[root + 1] < start:
        return count
    depth = 1
    stack[0, 0], stack[0, 1], stack[0, 2] = 1, 0, leaves
    while depth > 0:
        # Left before right: all rows found so far rank before those on the stack, except rows of nodes above them.
        depth -= 1
        i, low, width = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        if count == k and found[at + k - 1] < low:
            break
        row = node_row[root + i]
        if node_time[root + i] < end and not (count == k and found[at + k - 1] < row):
            j = at + (count if count < k else k - 1)
            while j > at and found[j - 1] > row:
                found[j] = found[j - 1]
                j -= 1
            found[j] = row
            count += count < k
        if i < leaves:
            half = width >> 1
            for side in range(1, -1, -1):
                child = 2 * i + side
                if node_row[root + child] != EMPTY and node_time[root + child] >= start:
                    stack[depth, 0], stack[depth, 1], stack[depth, 2] = child, low + side * half, half
                    depth += 1
    return count
