"""What the compiled loops of MinTopK keep: groups, open panes, clocks, and the room they need."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.operators.objects.showing import OUT
from skyband.structures.compiling import inlined, part
from skyband.structures.panes import (
    FIND,
    SAMPLE,
)
from skyband.structures.ranking import SMALL, select_best
from skyband.structures.slabs import CLASSES, HEADER, NONE

NEVER = 2**62

# What the clock array holds, beside OUT.
NOW = 1  # the largest time seen
CLOSED = 2  # windows with a smaller index have closed
NEXT = 3  # the earliest open window that has something to show, or NEVER
LATE = 4  # rows dropped because all their windows had closed
TOTAL = 5  # rows held
FREE_CELL = 6  # the first free cell, or NONE
UNRANKED = 7  # rows without a score
WANTED = 8  # pool entries wanted beyond what is needed in any case, and a free cell for every group
CLOCKS = 9

MANY = 4  # rows of one pane are taken group by group when there are so many times k of each


class Rule(NamedTuple):
    k: int
    limit: int  # a cell is cut back to its k best when it holds so many rows
    lateness: int  # FOREVER: rows do not move the watermark
    emit: int


# By group code: its first open pane, or NONE; by count, rows so far; the list of rows of closed panes, best first.
GROUP = np.dtype([("cell", np.int64), ("arrivals", np.int64), *HEADER])

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


class Work(NamedTuple):
    """Scratch for kernels, which do not allocate: they need no references counted, and run much faster so."""

    counts: npt.NDArray[np.int64]  # of k + 1, to prune a list
    found: npt.NDArray[np.int64]  # rows of a block that reach a threshold
    sample: npt.NDArray[np.float64]
    best: npt.NDArray[np.float64]  # of a group's rows, when they are taken together: the k best
    which: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]  # all of them
    order: npt.NDArray[np.int64]  # the rows of a run, group after group
    start: npt.NDArray[np.int64]  # where each group starts among them
    following: npt.NDArray[np.int64]


def new_work(k: int, rows: int, groups: int) -> Work:
    """For runs of so many rows of so many groups."""
    return Work(
        np.empty(k + 1, np.int64),
        np.empty(FIND, np.int64),
        np.empty(SAMPLE),
        np.empty(k),
        np.empty(k, np.int64),
        np.empty(rows if k > SMALL else 0),
        np.empty(rows, np.int64),
        np.empty(groups + 1, np.int64),
        np.empty(groups + 1, np.int64),
    )


@inlined
def room_needed(rule, groups, clock):  # type: ignore[no-untyped-def]
    """Pool and output entries that are enough to admit a row and to close one window of all groups."""
    return 2 * clock[TOTAL] + 8 * len(groups) + 8 * rule.limit + clock[WANTED]


@inlined
def has_room(rule, pool, groups, clock, out):  # type: ignore[no-untyped-def]
    need = room_needed(rule, groups, clock)
    return len(pool.rows) - pool.free[CLASSES] >= need and len(out) - clock[OUT] >= need and clock[FREE_CELL] != NONE


@part
def tighten(cell, rule, pool, clock):  # type: ignore[no-untyped-def]
    """Cut the cell back to its k best rows; the worst of them is what a row has to reach from now on."""
    clock[TOTAL] -= cell.length - rule.k
    select_best(pool.rows, cell.offset, cell.offset + cell.length, rule.k)
    cell.length = rule.k
    cell.threshold = pool.rows[cell.offset + rule.k - 1].score
