"""The compiled steps of `mintopk_published`: the paper's UpdateSuperTopk and PurgeExpiredWindow, in figure 6.

The super-top-k list is a list with links both ways. The index that finds a row's place in it is a skip list over the
same rows: the links of level 0 are those of the list. Node 0 stands before the best row, and behind the worst.

Two things that figure 6 leaves open are settled here. A window with fewer than k rows takes any row, and its pointer
then leads to the worse of this row and the one before. And the windows that a row enters are updated from the oldest to
the newest: in any other order the row in front of a window's worst one may be one that the window does not hold, though
Lemma 4.5 says that it is the window's second worst.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.emit import is_once
from skyband.kernels.compiling import inlined, part
from skyband.kernels.ranking import ranks_before
from skyband.kernels.slabs import reserve
from skyband.problems.rows.drivers.step_kernels import steps

LEVELS = 12  # of the skip list: every fourth row is on the next one, so they do for 4 ** 12 rows
ENDS = 0  # the node before the best row and behind the worst

# In `counts`: how many rows there are, the first of the free nodes, and the window that closes next.
ROWS, FREE, CURRENT = 0, 1, 2
COUNTS = 3

NODE = np.dtype(
    [
        ("score", np.float64),
        ("time", np.int64),
        ("position", np.int64),
        ("start", np.int64),  # the first open window that has it among its k best
        ("end", np.int64),  # the last window of its life
        ("shown", np.int64),
        ("before", np.int64),  # the next better row, or ENDS
        ("levels", np.int64),  # of the skip list that it is on
    ]
)


class SuperList(NamedTuple):
    every: int
    windows: int  # how many may be open at once
    nodes: npt.NDArray[Any]  # of NODE; in no order
    links: npt.NDArray[np.int64]  # by node and level: the next node, or ENDS; of free nodes, on level 0: the next free
    lbp: npt.NDArray[np.int64]  # by window modulo `windows`: the node of its worst row, if it has one
    tkc: npt.NDArray[np.int64]  # by window modulo `windows`: how many rows it has, at most k
    counts: npt.NDArray[np.int64]
    path: npt.NDArray[np.int64]  # scratch: by level, the last node that ranks before a row


@inlined
def find(kind, node):
    """Leave in `path`, on each level, the last node that ranks before this one."""
    nodes, links, at = kind.nodes, kind.links, ENDS
    for level in range(LEVELS - 1, -1, -1):
        following = links[at, level]
        while following != ENDS and ranks_before(nodes[following], nodes[node]):
            at = following
            following = links[at, level]
        kind.path[level] = at


@inlined
def height(position):
    """On how many levels the row with this position is: the same after a restart."""
    mixed = np.uint64(position) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed >>= np.uint64(32)
    levels = 1
    while levels < LEVELS and mixed & np.uint64(3) == np.uint64(0):
        mixed >>= np.uint64(2)
        levels += 1
    return levels


@part
def position_node(kind, node):
    """Put a node into the list. O(log s)."""
    find(kind, node)
    row = kind.nodes[node]
    row.before, row.levels = kind.path[0], height(row.position)
    for level in range(row.levels):
        kind.links[node, level] = kind.links[kind.path[level], level]
        kind.links[kind.path[level], level] = node
    kind.nodes[kind.links[node, 0]].before = node
    kind.counts[ROWS] += 1


@part
def remove_node(kind, node):
    """Take a node out of the list. O(log s)."""
    find(kind, node)
    for level in range(kind.nodes[node].levels):
        kind.links[kind.path[level], level] = kind.links[node, level]
    kind.nodes[kind.links[node, 0]].before = kind.nodes[node].before
    kind.links[node, 0] = kind.counts[FREE]
    kind.counts[FREE] = node
    kind.counts[ROWS] -= 1


@inlined
def serves_one_window_less(kind, node):
    """A row loses the first window that had it, and its place in the list if there is no other."""
    kind.nodes[node].start += 1
    if kind.nodes[node].start > kind.nodes[node].end:
        remove_node(kind, node)


@inlined
def takes(kind, window, node, k):
    """Is this row among the k best so far of the window?"""
    slot = window % kind.windows
    return kind.tkc[slot] < k or ranks_before(kind.nodes[node], kind.nodes[kind.lbp[slot]])


@part
def update_super_top_k(kind, score, time, position, k, size):
    first, last = kind.counts[CURRENT], (time + size) // kind.every - 1
    new = kind.counts[FREE]
    row = kind.nodes[new]
    row.score, row.time, row.position, row.shown = score, time, position, 0
    # The worst row of an older window is no worse, so a row that the last one does not take no window takes.
    if last < first or not takes(kind, last, new, k):
        return
    start = last
    while start > first and takes(kind, start - 1, new, k):
        start -= 1
    kind.counts[FREE] = kind.links[new, 0]
    row.start, row.end = start, last
    position_node(kind, new)
    for window in range(start, last + 1):
        slot = window % kind.windows
        worst = kind.lbp[slot]
        if kind.tkc[slot] < k:
            kind.tkc[slot] += 1
            if kind.tkc[slot] == 1 or ranks_before(kind.nodes[worst], kind.nodes[new]):
                kind.lbp[slot] = new
        else:
            # One step: what stood between the two worst rows of this window was the worst of an older one, and is gone.
            kind.lbp[slot] = kind.nodes[worst].before
            serves_one_window_less(kind, worst)


@part
def purge_expired_window(kind, k):
    """The first k rows of the list are those of the window that closes."""
    node = kind.links[ENDS, 0]
    for _ in range(min(k, kind.counts[ROWS])):
        following = kind.links[node, 0]
        serves_one_window_less(kind, node)
        node = following
    kind.tkc[kind.counts[CURRENT] % kind.windows] = 0  # its place is that of a new future window
    kind.counts[CURRENT] += 1


@inlined
def take_row(kind, g, score, time, position, config, pool, state):
    update_super_top_k(kind, score, time, position, config.k, config.size)
    return False


@inlined
def drop_rows(kind, g, limit, config, pool, state):
    """Nothing expires: a window that closes is purged."""
    return False


@inlined
def output_top_k(kind, g, at, config, pool, state):
    """Copy the first k rows of the list to where they are shown from, and purge the window that ends here."""
    answer, n = state.lists[0, g], min(config.k, kind.counts[ROWS])
    reserve(pool, answer, n)
    answer.length = n
    node = kind.links[ENDS, 0]
    for r in range(answer.offset, answer.offset + n):
        row, listed = pool.rows[r], kind.nodes[node]
        row.score, row.time, row.position, row.last = listed.score, listed.time, listed.position, 0
        row.flag = listed.shown if is_once(config.emit) else 0
        listed.shown = 1
        node = kind.links[node, 0]
    purge_expired_window(kind, config.k)


steps(SuperList, take_row, drop_rows, None, output_top_k)
