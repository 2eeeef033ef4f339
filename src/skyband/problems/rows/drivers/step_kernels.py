"""The compiled loop of algorithms that take one row after another, as published.

What an algorithm does with a row is said by five functions, `take`, `drop`, `skip`, `ready` and `show_answer`, chosen
by the type of its `kind` when the loop is compiled, so that one loop serves all: see `steps`. Of the lists that a group
has, the first is ranked, and its first k rows are the answer whenever one is shown, unless `show_answer` does more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba.extending import overload

from skyband.core.emit import takes_back
from skyband.kernels.compiling import allocating, inlined, kernel
from skyband.kernels.emit import OUT, show, show_replaced
from skyband.kernels.ingredients import brought_by
from skyband.kernels.ranking import ZERO
from skyband.kernels.skyband import first_row
from skyband.kernels.slabs import CLASSES
from skyband.problems.rows.drivers.row_kernels import (
    EARLIEST,
    LATE,
    NEED,
    START,
    UNRANKED,
    first_due,
    position_at,
    row_index,
)
from skyband.windows import NEVER


class Config(NamedTuple):
    k: int
    size: int
    moves: bool  # the window moves with each row, and rows leave it; else when a window closes, or never
    numbered: bool  # the time of a row is its number among the arrivals of its group
    every: int  # show every so many of these arrivals; 0: not at all
    each: bool  # show with each arrival
    ahead: bool  # every so many arrivals: rows before the start of the window that closes next are of no use
    emit: int
    room: int  # pool entries that a step may take: so many,
    room_per_row: int  # and so many for each row that the group's lists hold
    tied: bool  # equal scores share a rank, so that an answer may have more than k rows


class State(NamedTuple):
    groups: npt.NDArray[Any]  # by group code; which fields they have says `StepDriver`
    lists: npt.NDArray[Any]  # of bands; by list, then by group
    shown: npt.NDArray[Any]  # of bands; by group: the last answer, best first
    clock: npt.NDArray[np.int64]
    latest: npt.NDArray[np.int64]  # scratch for k times


# -- what an algorithm says ------------------------------------------------------------------------------------------


def take(kind, g, score, time, position, config, pool, state):
    """Take a row of group g in. True: the first k rows of its first list may have changed."""


def drop(kind, g, limit, config, pool, state):
    """Rows of group g with a time before `limit` have left the window. True: the first k may have changed."""


def skip(kind, g, j, end, batch, config, pool, state, out):
    """Take in those of rows [j, end) of group g that change nothing, or write what they change; return the first other.

    It takes no room from the pool.
    """


def ready(kind, g, at, config, pool, state):
    """Group g's answer is about to be shown, called `at`: make the first k rows of its first list that answer."""


def show_answer(kind, g, at, order, config, pool, state, out):
    """Show group g's answer, called `at`. `order`: the batch's row that made it known."""


def steps(
    kind: type, take_one: Any, drop_some: Any, skip_some: Any = None, make_ready: Any = None, show_some: Any = None
) -> None:
    """Say what these functions do when `kind` is of this type: compiled functions."""

    def when(function: Callable[..., Any], implementation: Callable[..., Any]) -> None:
        # The parameters must have the same names, so each function has its own.
        overload(function, jit_options={"forceinline": True})(implementation)
        brought_by(kind, implementation)

    def of_this(given: Any) -> bool:
        return getattr(given, "instance_class", None) is kind

    def choose_take(kind, g, score, time, position, config, pool, state):
        if of_this(kind):
            return lambda kind, g, score, time, position, config, pool, state: take_one(
                kind, g, score, time, position, config, pool, state
            )
        return None

    def choose_drop(kind, g, limit, config, pool, state):
        if of_this(kind):
            return lambda kind, g, limit, config, pool, state: drop_some(kind, g, limit, config, pool, state)
        return None

    def choose_skip(kind, g, j, end, batch, config, pool, state, out):
        if of_this(kind) and skip_some is None:
            return lambda kind, g, j, end, batch, config, pool, state, out: j
        if of_this(kind):
            return lambda kind, g, j, end, batch, config, pool, state, out: skip_some(
                kind, g, j, end, batch, config, pool, state, out
            )
        return None

    def choose_ready(kind, g, at, config, pool, state):
        if of_this(kind) and make_ready is None:
            return lambda kind, g, at, config, pool, state: None
        if of_this(kind):
            return lambda kind, g, at, config, pool, state: make_ready(kind, g, at, config, pool, state)
        return None

    def choose_show(kind, g, at, order, config, pool, state, out):
        if of_this(kind) and show_some is None:
            return lambda kind, g, at, order, config, pool, state, out: show_first(
                kind, g, at, order, config, pool, state, out
            )
        if of_this(kind):
            return lambda kind, g, at, order, config, pool, state, out: show_some(
                kind, g, at, order, config, pool, state, out
            )
        return None

    when(take, choose_take)
    when(drop, choose_drop)
    when(skip, choose_skip)
    when(ready, choose_ready)
    when(show_answer, choose_show)


# -- the loop --------------------------------------------------------------------------------------------------------


@allocating
def prepare(batch, config, clock):
    """The scores group after group; NaN for rows that are late, which are counted, as are those without a score."""
    score, order, may_be_late = batch.score, batch.order, config.moves and not config.numbered
    prepared, late, unranked = np.empty(len(score)), 0, 0
    if not may_be_late and len(order) == 0:
        for j in range(len(score)):  # without branches, so that it is vectorised
            prepared[j] = score[j]
            unranked += score[j] != score[j]
    else:
        for j in range(len(score)):
            i = order[j] if len(order) else j
            s = score[i]
            if may_be_late and batch.time[i] <= batch.now[i] - config.size:
                late += 1
                s = np.nan
            elif s != s:
                unranked += 1
            prepared[j] = s
    clock[LATE] += late
    clock[UNRANKED] += unranked
    return prepared


@kernel
def push(g, j, batch, config, kind, pool, state, out):
    """Take the rows of group g and those after it, from row j of g on; return where it stopped.

    (number of groups, 0) when all are taken; else something ran short, and row j of that group was not touched.
    """
    groups, n = state.groups, len(batch.score)
    while g < len(groups):
        j, end = max(j, batch.start[g]), batch.start[g + 1]
        group = groups[g]
        while True:
            before = j
            j = skip(kind, g, j, end, batch, config, pool, state, out)
            if config.numbered:
                group.arrivals += j - before
            if not enough_room(g, config, pool, state, out):
                return g, j
            arrival = row_index(batch, j) if j < end else n
            i = min(arrival, next_expiry(group, arrival, batch, config))
            if i == n:
                break
            time = group.arrivals if config.numbered else batch.time[i]
            limit = window_start(group.arrivals if config.numbered else batch.now[i], config)
            if config.numbered or config.each:
                state.clock[START] = limit
            changed, taken, s, position = False, False, np.nan, ZERO
            if group.oldest < limit:
                changed = drop(kind, g, limit, config, pool, state)
            if i == arrival:
                s = batch.score[j]
                position = position_at(batch, i)
                taken = s == s
                if taken:
                    changed |= take(kind, g, s, time, position, config, pool, state)
                j += 1
                group.arrivals += config.numbered
            slides = config.every > 0 and group.arrivals % config.every == 0
            if slides or (config.each and changed):
                at = group.arrivals if config.numbered else batch.now[i]
                show_step(kind, g, at, i, taken, s, time, position, config, pool, state, out)
        g, j = g + 1, 0
    return g, 0


@inlined
def window_start(now, config):
    """Where the window starts that holds the row of this time, or with this number; earlier rows are of no use."""
    if not config.moves:
        return EARLIEST
    if config.ahead:
        return (now // config.every + 1) * config.every - config.size
    return now + 1 - config.size


@inlined
def next_expiry(group, arrival, batch, config):
    """The first of the batch's rows before `arrival` whose time makes the group drop something."""
    if config.numbered or not config.moves or group.oldest == NEVER:
        return arrival
    return first_due(batch.now, group.oldest + config.size, arrival)


@inlined
def quiet_until(group, oldest, j, end, batch, config):
    """The first row of [j, end) at which the window starts after `oldest`, or the answer is to be shown."""
    if config.numbered:
        if config.every > 0:
            # The last row of a slide shows the answer; all rows of a slide have the same window start, or an earlier.
            end = min(end, j + config.every - 1 - group.arrivals % config.every)
        if config.moves and oldest != NEVER:
            if config.ahead:
                end = end if window_start(group.arrivals, config) <= oldest else j
            else:
                end = min(end, j + max(0, oldest + config.size - group.arrivals))
        return end
    if not config.moves or oldest == NEVER:
        return end
    low, high = j, end
    while low < high:
        middle = (low + high) >> 1
        if batch.now[row_index(batch, middle)] >= oldest + config.size:
            high = middle
        else:
            low = middle + 1
    return low


@inlined
def enough_room(g, config, pool, state, out):
    """Is there room for one step of group g? If not, clock[NEED] says what is missing; 0: room for the answer."""
    need = config.room
    if config.room_per_row:
        for i in range(len(state.lists)):
            need += config.room_per_row * state.lists[i, g].length
    state.clock[NEED] = need
    if len(pool.rows) - pool.free[CLASSES] < state.clock[NEED]:
        return False
    entries = 2 * config.k
    if config.tied:
        entries = state.lists[0, g].length + 1 + state.shown[g].length
    if len(out) - state.clock[OUT] < entries:
        state.clock[NEED] = 0
        return False
    return True


@inlined
def show_step(kind, g, at, order, taken, score, time, position, config, pool, state, out):
    """Show the answer after one step, in which the row with these three was taken in, or none."""
    if config.each and takes_back(config.emit) and not config.tied:
        ready(kind, g, at, config, pool, state)
        row, answer, shown = (taken, score, time, position), state.lists[0, g], state.shown[g]
        if show_replaced(g, at, order, row, answer, config.k, pool, shown, state.clock, out):
            return
    show_answer(kind, g, at, order, config, pool, state, out)


@inlined
def show_first(kind, g, at, order, config, pool, state, out):
    ready(kind, g, at, config, pool, state)
    answer, shown = state.lists[0, g], state.shown[g]
    n = min(config.k, answer.length)
    if shown.gap > 0:
        # `show` wants a plain list; a band it was where one row replaced another.
        for r in range(shown.offset, shown.offset + shown.length):
            pool.rows[r] = pool.rows[r + shown.gap]
        shown.gap = 0
    show(g, at, order, first_row(answer), n, config.emit, pool, shown, state.clock, out)


@kernel
def end_window(end, first, g, config, kind, pool, state, out):
    """Drop what is before the window of times [first, end) and show it, from group g on.

    Returns the group it stopped at for lack of room.
    """
    while g < len(state.groups):
        if not enough_room(g, config, pool, state, out):
            return g
        if state.groups[g].oldest < first:
            drop(kind, g, first, config, pool, state)
        show_answer(kind, g, end, ZERO, config, pool, state, out)
        g += 1
    return g
