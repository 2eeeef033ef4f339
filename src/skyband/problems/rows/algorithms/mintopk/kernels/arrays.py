"""The arrays of MinTopK: groups, open panes, clocks, scratch, and the room that the loops need."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.kernels.compiling import inlined
from skyband.kernels.emit import OUT
from skyband.kernels.panes import FIND
from skyband.kernels.slabs import CLASSES, HEADER, NONE
from skyband.problems.rows.drivers.row_kernels import CLOCKS
from skyband.windows import NEVER

# What the clock array holds, beside what it holds of every algorithm.
CLOSED = CLOCKS  # windows with a smaller index have closed
NEXT = CLOCKS + 1  # the earliest open window that has something to show, or NEVER
TOTAL = CLOCKS + 2  # rows held
FREE_CELL = CLOCKS + 3  # the first free cell, or NONE
WANTED = CLOCKS + 4  # pool entries wanted beyond what is needed in any case, and a free cell for every group
STEPS = CLOCKS + 5  # rows that closing windows has merged or looked at, so far
ALL_CLOCKS = CLOCKS + 6

MANY = 4  # rows of one pane are taken group by group when there are so many times k of each


class Config(NamedTuple):
    k: int
    limit: int  # a cell is cut back to its k best when it holds so many rows
    lateness: int  # NEVER: rows do not move the watermark
    emit: int


# The flag of a listed row says whether it was shown, and how many better rows live as long, or longer.
SHOWN, DOMINATOR = 1, 2

LANES = 16  # scores are counted so many at a time

# By group code: what the loops know of a group, and the list of its rows of older panes, best first.
GROUP = np.dtype(
    [
        ("cell", np.int64),  # its first open pane, or NONE
        ("arrivals", np.int64),  # rows so far, if these are numbered
        ("until", np.int64),  # no row of a closed pane has a later last window
        ("listed", np.int64),  # no row of the list has a later last window than this; every young row has
        ("shown", np.int64),  # rows of the last answer,
        ("stays", np.int64),  # the window until which all of them live
        ("worst", np.float64),  # and the lowest of their scores
        *HEADER,
    ]
)

# By group code: the list of its rows of panes that closed lately, best first.
YOUNG = np.dtype(HEADER)

# An open pane of a group: a list of rows, among them the pane's k best. Up to k = SMALL just these, best first; beyond
# that it is cheaper to let up to `limit` rows gather, unsorted, and to select the best now and then.
CELL = np.dtype(
    [
        ("group", np.int64),  # NONE: a free cell
        ("pane", np.int64),
        ("following", np.int64),  # the next cell of the group, or the next free one; NONE at the end
        ("threshold", np.float64),  # no row below it is among the pane's k best
        *HEADER,
    ]
)


@inlined
def gathers(k):
    """How many rows a group gathers before its bar is raised; at most 2k of them stay then."""
    return 3 * (k + 2)


# What the panes so far let us expect of the next one. It changes the speed, never the answer.
HINT = np.dtype(
    [
        ("bar", np.float64),  # somewhat more than k rows will reach it,
        ("rows", np.int64),  # if there are so many
        ("margin", np.float64),  # how many more are asked for, in square roots of k
    ]
)
MARGIN = 4.0


class Work(NamedTuple):
    """Scratch for kernels. They do not allocate, so numba counts no references, and they run much faster."""

    counts: npt.NDArray[np.int64]  # to sort rows, by bucket
    found: npt.NDArray[np.int64]  # rows of a block that reach a threshold
    # For runs of rows, by group: the score it takes, the rows gathered, and these: `gathers(k)` entries for each group.
    bar: npt.NDArray[np.float64]
    gathered: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]
    rows: npt.NDArray[np.int32]  # of the batch
    some: npt.NDArray[np.float64]  # scores of one group
    which: npt.NDArray[np.int64]  # and which entries they are
    hint: npt.NDArray[np.void]  # one record of type HINT


def new_work(config: Config, groups: int) -> Work:
    """Scratch for runs of rows of so many groups."""
    room = gathers(config.k)
    return Work(
        np.empty(room + 1, np.int64),
        np.empty(FIND, np.int64),
        np.empty(groups),
        np.empty(groups, np.int64),
        np.empty(groups * room),
        np.empty(groups * room, np.int32),
        np.empty(room + LANES),
        np.empty(room, np.int64),
        np.array([(-np.inf, NEVER, MARGIN)], HINT),
    )


@inlined
def room_needed(config, groups, clock):
    """Pool entries that are enough to admit a row and to close one window of all groups.

    A slab has at most twice the entries asked for. In the end each group has its rows in a new slab. Before that, panes
    may move a list between two slabs that have room for all that is due; the next group uses these two again.
    """
    return 6 * clock[TOTAL] + 16 * len(groups) + 8 * config.limit + clock[WANTED]


@inlined
def shown_at_most(config, clock):
    """Output entries that are enough to close one window of all groups: each row may leave, and each may enter."""
    return 2 * clock[TOTAL] + config.limit


@inlined
def has_room(config, pool, groups, clock, out):
    in_pool, in_out = len(pool.rows) - pool.free[CLASSES], len(out) - clock[OUT]
    enough = in_pool >= room_needed(config, groups, clock) and in_out >= shown_at_most(config, clock)
    return enough and clock[FREE_CELL] != NONE
