"""The arrays of MinTopK: groups, open panes, clocks, scratch, and the room that the loops need."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.kernels.compiling import inlined, part
from skyband.kernels.emit import OUT
from skyband.kernels.panes import FIND
from skyband.kernels.ranking import SMALL, select_best, settle
from skyband.kernels.slabs import CLASSES, HEADER, NONE, reserve
from skyband.problems.rows.drivers.row_kernels import CLOCKS
from skyband.windows import NEVER

# The entries of the clock array that only MinTopK has.
CLOSED = CLOCKS  # windows with a smaller index have closed
NEXT = CLOCKS + 1  # the earliest open window that has something to show, or NEVER
TOTAL = CLOCKS + 2  # the number of rows held
FREE_CELL = CLOCKS + 3  # the first free cell, or NONE
WANTED = CLOCKS + 4  # pool entries wanted beyond `room_needed`; if not 0, also a free cell for every group
STEPS = CLOCKS + 5  # how many rows closing windows has merged or visited so far
ALL_CLOCKS = CLOCKS + 6

MANY = 4  # rows of one pane are taken together when each group has this many times k of them


class Config(NamedTuple):
    """The query, as the loops need it."""

    k: int
    limit: int  # with this many rows, a cell is cut to its k best
    lateness: int  # NEVER: rows do not move the watermark
    emit: int


# The flag of a listed row: whether it was shown, and DOMINATOR times the number of better rows that live as long.
SHOWN, DOMINATOR = 1, 2

LANES = 16  # how many scores are compared at a time

# By group code: the fields of a group, and the list of its rows of older panes, best first.
GROUP = np.dtype(
    [
        ("cell", np.int64),  # its first open pane, or NONE
        ("arrivals", np.int64),  # rows so far, if these are numbered
        ("until", np.int64),  # the latest last window of all rows of closed panes
        ("listed", np.int64),  # no row of the list has a later last window; every young row has
        ("shown", np.int64),  # the number of rows of the last answer,
        ("stays", np.int64),  # the last window in which all of them live,
        ("worst", np.float64),  # and the lowest of their scores
        *HEADER,
    ]
)

# By group code: the list of its young rows, which are those of the panes that closed last, best first.
YOUNG = np.dtype(HEADER)

# An open pane of a group: a list of rows that has the pane's k best. Up to k = SMALL it has only these, best first; for
# larger k it is cheaper to let up to `limit` rows gather unsorted, and to select the best of them now and then.
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
    """How many rows a group gathers before its bar is raised. Then at most 2k of them stay."""
    return 3 * (k + 2)


# What earlier panes predict about the next one. It affects the speed, never the answer.
HINT = np.dtype(
    [
        ("bar", np.float64),  # a score that somewhat more than k rows will probably reach,
        ("rows", np.int64),  # if the pane has at least this many
        ("margin", np.float64),  # how many more than k should reach it, in square roots of k
    ]
)
MARGIN = 4.0


class Work(NamedTuple):
    """Scratch space for kernels: they do not allocate, so numba counts no references, and they run much faster."""

    counts: npt.NDArray[np.int64]  # rows in each bucket, for sorting
    found: npt.NDArray[np.int64]  # the rows of a block that reach a threshold
    # For runs of rows, by group: the score that a row must reach, the number of rows gathered, and these rows, with
    # `gathers(k)` entries for each group.
    bar: npt.NDArray[np.float64]
    gathered: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]
    rows: npt.NDArray[np.int32]  # their numbers in the batch
    some: npt.NDArray[np.float64]  # the scores of one group,
    which: npt.NDArray[np.int64]  # and their entries
    hint: npt.NDArray[np.void]  # one record of type HINT


def new_work(config: Config, groups: int) -> Work:
    """Scratch space for runs of rows of this many groups."""
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
    """How many pool entries suffice to admit a row and to close one window of all groups.

    A slab has at most twice the entries requested. In the end each group has its rows in a new slab. Before that, panes
    may move a list between two slabs that have room for all due rows; the next group uses these two again.
    """
    return 6 * clock[TOTAL] + 16 * len(groups) + 8 * config.limit + clock[WANTED]


@inlined
def shown_at_most(config, clock):
    """How many output entries suffice to close one window of all groups: each row may leave, and each may enter."""
    return 2 * clock[TOTAL] + config.limit


@inlined
def has_room(config, pool, groups, clock, out):
    in_pool, in_out = len(pool.rows) - pool.free[CLASSES], len(out) - clock[OUT]
    enough = in_pool >= room_needed(config, groups, clock) and in_out >= shown_at_most(config, clock)
    return enough and clock[FREE_CELL] != NONE


@part
def tighten(cell, config, pool, clock):
    """Cut the cell to its k best rows. From now on a row must reach the worst of them."""
    clock[TOTAL] -= cell.length - config.k
    select_best(pool.rows, cell.offset, cell.offset + cell.length, config.k)
    cell.length = config.k
    cell.threshold = pool.rows[cell.offset + config.k - 1].score


@inlined
def find_cell(g, pane, groups, cells):
    cell = groups[g].cell
    while cell != NONE and cells[cell].pane != pane:
        cell = cells[cell].following
    return cell


@part
def new_cell(g, pane, groups, cells, clock):
    """Make an empty cell, the first of its group: rows mostly come in order, so most need the newest pane."""
    cell = clock[FREE_CELL]
    clock[FREE_CELL] = cells[cell].following
    cells[cell].group = g
    cells[cell].pane = pane
    cells[cell].threshold = -np.inf
    cells[cell].following = groups[g].cell
    groups[g].cell = cell
    return cell


@inlined
def admit(cell, score, time, position, config, pool, clock):
    """Add a row that reaches the cell's threshold."""
    n = cell.length
    if n == cell.capacity:
        reserve(pool, cell, n + 1)
    row = pool.rows[cell.offset + n]
    row.score = score
    row.time = time
    row.position = position
    row.last = row.flag = 0  # known when the cell is merged
    cell.length = n + 1
    clock[TOTAL] += 1
    if config.k <= SMALL:
        settle(pool.rows, cell.offset, cell.offset + n)
        if n + 1 >= config.k:
            clock[TOTAL] -= n + 1 - config.k
            cell.length = config.k
            cell.threshold = pool.rows[cell.offset + config.k - 1].score
    elif n + 1 == config.k or n + 1 == config.limit:
        tighten(cell, config, pool, clock)
