"""What the arrays of the published K-skyband hold.

A pair has a slot as long as it is held. All lists have slots in them, so that a pair that moves in one list stays where
it is in the others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Ints
from skyband.kernels.compiling import inlined
from skyband.problems.pairs.drivers.kernels import ranks_before
from skyband.problems.pairs.operator import PAIR

NONE = -1  # as a node: there is none
HEIGHT = 128  # more levels than a tree has whose nodes never have more than three quarters of their pairs on one side

# What a pair is ranked by. No two pairs are equal in it.
KEY = np.dtype([("score", np.float64), ("a", np.int64), ("b", np.int64)])

# In the `numbers` of a skyband: pairs held, free slots, points of the staircase.
HELD, FREE, STEPS = range(3)
# In the `numbers` of a tree: its root, and the first of its free nodes.
ROOT, FREE_NODE = range(2)


class Band(NamedTuple):
    """The K-skyband and its staircase. By slot, unless it says otherwise."""

    pairs: npt.NDArray[Any]  # of PAIR
    fresh: npt.NDArray[np.bool_]  # a pair of the row that is being taken
    kept: npt.NDArray[np.bool_]  # of the pairs that were merged last: it stays
    dominators: Ints  # `basic`: how many pairs of the skyband dominate it
    by_score: Ints  # [0, HELD): slots, best first
    by_age: Ints  # [0, HELD): slots, those whose older row is youngest first
    merged: Ints  # scratch: slots
    new: Ints  # slots of the pairs that the last row brought and that stay, best first
    free: Ints  # [0, FREE): slots without a pair
    stair: npt.NDArray[Any]  # of KEY, [0, STEPS): the points of the staircase, best first
    stair_age: Ints  # [0, STEPS): a pair that ranks behind the point is dominated if its older row is no younger
    heap: Ints  # scratch for k numbers
    numbers: Ints


class Tree(NamedTuple):
    """The priority search tree. By node, unless it says otherwise."""

    slot: Ints  # of its pair: no pair below it has a younger older row
    left: Ints  # the top of the pairs that rank before the split, or are it; of a free node the next free one
    right: Ints  # the top of the pairs that rank behind the split
    split: npt.NDArray[Any]  # of KEY: the median where the node was built
    weight: Ints  # pairs in it and below it
    keys: Ints  # scratch: slots
    stack: Ints  # scratch: nodes, and ranges of `keys`
    numbers: Ints


def new_band(k: int, room: int) -> Band:
    fresh, kept = np.zeros((2, room), np.bool_)
    dominators, by_score, by_age, merged, new, free, stair_age = np.zeros((7, room), np.int64)
    free[:] = np.arange(room)[::-1]
    return Band(
        np.zeros(room, PAIR),
        fresh,
        kept,
        dominators,
        by_score,
        by_age,
        merged,
        new,
        free,
        np.zeros(room, KEY),
        stair_age,
        np.zeros(k, np.int64),
        np.array([0, room, 0]),
    )


def new_tree(room: int) -> Tree:
    slot, left, right, weight, keys = np.zeros((5, room), np.int64)
    left[:-1], left[-1] = np.arange(1, room), NONE
    return Tree(
        slot, left, right, np.zeros(room, KEY), weight, keys, np.zeros(6 * HEIGHT, np.int64), np.array([NONE, 0])
    )


@inlined
def precedes(x, y):
    """Does the pair x rank before the pair y? Either may be a key."""
    return ranks_before(x.score, x.a, x.b, y.score, y.a, y.b)
