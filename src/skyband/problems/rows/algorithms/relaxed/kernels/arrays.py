"""The arrays of the relaxed k-skyband, how its loops read a row, and which rows `budgeted` lets go."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.clock import EARLIEST
from skyband.core.emit import is_once
from skyband.kernels.compiling import inlined, part
from skyband.kernels.emit import GONE
from skyband.kernels.ranking import ROW, SMALL
from skyband.kernels.skyband import BAND, first_row
from skyband.problems.rows.drivers.row_kernels import position_at, row_index

FEW = 16  # after this many expiries in a block, the loop bounds the scores of the scratch space

# By group code: rows so far, if they are numbered; the earliest time among the first k; the length after the last
# pruning; and the band.
GROUP = np.dtype([("arrivals", np.int64), ("oldest", np.int64), ("pruned", np.int64), *BAND])

# What a group of `budgeted` has spent of its error: the rows of its band that were let go and not missed yet, the rows
# that it missed, and the best score of those let go.
SPENT = np.dtype([("gone", np.int64), ("missed", np.int64), ("best", np.float64)])


class Config(NamedTuple):
    """The query and the settings, as the loops need them."""

    k: int
    size: int
    expires: bool  # do rows leave the window?
    numbered: bool  # is the time of a row its number among the arrivals of its group?
    every: int  # show the answer after this many arrivals; 0: the loop does not count arrivals
    each: bool  # show the answer with each arrival
    emit: int
    block: int  # how many rows are taken together
    slack: int  # a group is pruned when it has twice the rows left last time and this many more
    error: float = 0.0  # the share of rows that answers may miss; 0: none
    candidates: int = 0  # with an error: this many rows, the best of the band, are never let go
    usual: int = 0  # with an error: no row is let go while the band is larger than this


class State(NamedTuple):
    """The arrays of all groups. `recent` rows are in order of arrival; `shown` rows are the last answer, best first."""

    groups: npt.NDArray[Any]  # records of type GROUP
    recent: npt.NDArray[Any]  # bands without gaps
    shown: npt.NDArray[Any]  # bands without gaps
    clock: npt.NDArray[np.int64]
    spent: npt.NDArray[Any]  # records of type SPENT; empty without an error


class Work(NamedTuple):
    """Scratch space of a block; the next block reuses it."""

    score: npt.NDArray[np.float64]
    best: npt.NDArray[np.float64]  # the largest scores so far, going backwards
    kept: npt.NDArray[np.int64]  # the rows that survive
    rows: npt.NDArray[Any]  # records of type ROW
    heap: npt.NDArray[np.int64]


def new_work(config: Config, carried: int) -> Work:
    room = config.block + carried
    return Work(
        np.empty(room, np.float64),
        np.empty(2 * config.k + SMALL, np.float64),
        np.empty(room, np.int64),
        np.empty(room, ROW),
        np.empty(config.k, np.int64),
    )


@inlined
def expired_at(now, config):
    """The latest time of rows that have left the window. No row leaves a landmark."""
    return now - config.size if config.expires else EARLIEST


@inlined
def time_of(x, j, carried, batch, config, group, recent, pool):
    """The time of row x of the scratch space."""
    if x < carried:
        return pool.rows[recent.offset + x].time
    if config.numbered:
        return group.arrivals + x - carried
    return batch.time[row_index(batch, j + x - carried)]


@inlined
def position_of(x, j, carried, batch, recent, pool):
    if x < carried:
        return pool.rows[recent.offset + x].position
    return position_at(batch, row_index(batch, j + x - carried))


@inlined
def flag_of(x, carried, recent, pool):
    return pool.rows[recent.offset + x].flag if x < carried else 0


MISSED = 2 * GONE  # a bit of the flag of a row that was let go: it has belonged in an answer since


@part
def let_go(g, config, pool, state):
    """Mark the worst rows of a band that was just pruned as gone, as many as the budget allows.

    An answer may yet show any row of the band, so each that is gone uses up the budget until k better rows outlive it.
    If scores fall, most rows of the band are shown, so it lets no more go.
    """
    group, spent, rows = state.groups[g], state.spent[g], pool.rows
    allowed = np.int64(config.error * group.arrivals / config.size) - spent.missed
    allowed = allowed if group.length <= config.usual else 0
    if allowed <= 0 and spent.gone == 0:
        return
    start, gone, best = first_row(group), 0, -np.inf
    for r in range(start, start + group.length):
        if rows[r].flag >= GONE and rows[r].flag < MISSED:
            best = rows[r].score if gone == 0 else best
            gone += 1
    r = start + group.length - 1
    while r >= start + config.candidates and gone < allowed:
        if rows[r].flag < GONE:
            rows[r].flag += GONE
            best = max(best, rows[r].score)
            gone += 1
        r -= 1
    spent.gone, spent.best = gone, best


@inlined
def count_missed(g, n, config, pool, state):
    """Count the gone rows among the first n, which are about to be shown: each of them is missed now."""
    group, spent, rows = state.groups[g], state.spent[g], pool.rows
    start = first_row(group)
    if spent.gone == 0 or (n == config.k and rows[start + n - 1].score > spent.best):
        return
    for r in range(start, start + n):
        flag = rows[r].flag
        if flag >= GONE and flag < MISSED and not (is_once(config.emit) and flag & 1):
            rows[r].flag += MISSED
            spent.gone -= 1
            spent.missed += 1
