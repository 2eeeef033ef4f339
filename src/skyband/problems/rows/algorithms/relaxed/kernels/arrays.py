"""The arrays of the relaxed k-skyband, and how its loops read a row."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.kernels.compiling import inlined
from skyband.kernels.ranking import ROW, SMALL
from skyband.kernels.skyband import BAND
from skyband.problems.rows.drivers.row_kernels import EARLIEST, position_at, row_index

FEW = 16  # expiries in a block

# By group code: rows so far, if these are numbered; the earliest time among the first k; the length when last pruned;
# the band.
GROUP = np.dtype([("arrivals", np.int64), ("oldest", np.int64), ("pruned", np.int64), *BAND])

# What a group of `budgeted` has spent of its error: rows of its band that it let go and did not miss yet, rows that it
# missed, and the best score of those it let go.
SPENT = np.dtype([("gone", np.int64), ("missed", np.int64), ("best", np.float64)])


class Config(NamedTuple):
    k: int
    size: int
    expires: bool  # rows leave the window
    numbered: bool  # the time of a row is its number among the arrivals of its group
    every: int  # show every so many of these arrivals; 0: not at all
    each: bool  # show with each arrival
    emit: int
    block: int  # rows taken together
    slack: int  # a group is pruned when it holds twice what it held after the last time, and so many rows more
    error: float = 0.0  # rows may be missed, this share of those that leave the window; 0: none
    candidates: int = 0  # with an error: rows that are never let go, the best of the band
    usual: int = 0  # with an error: none is let go while the band is larger than this


class State(NamedTuple):
    """The arrays of all groups. `recent` rows are in arrival order, `shown` ones are the last answer, best first."""

    groups: npt.NDArray[Any]  # of GROUP
    recent: npt.NDArray[Any]  # of bands without gaps
    shown: npt.NDArray[Any]  # of bands without gaps
    clock: npt.NDArray[np.int64]
    spent: npt.NDArray[Any]  # of SPENT; without an error, none


class Work(NamedTuple):
    """Scratch of one block; the next block uses it again."""

    score: npt.NDArray[np.float64]
    best: npt.NDArray[np.float64]  # the largest scores met so far, looking backwards
    kept: npt.NDArray[np.int64]  # which rows survive
    rows: npt.NDArray[Any]  # of ROW
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
    """Rows with this time or an earlier one have left the window; nothing ever leaves a landmark."""
    return now - config.size if config.expires else EARLIEST


@inlined
def time_of(x, j, carried, batch, config, group, recent, pool):
    """The time of row x of the scratch."""
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
