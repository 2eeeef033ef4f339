"""The arrays of the relaxed k-skyband, and how its loops read a row."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.clock import EARLIEST
from skyband.kernels.compiling import inlined
from skyband.kernels.ranking import ROW, SMALL
from skyband.kernels.skyband import BAND
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
