"""The compiled loop of algorithms that take one row after another.

One loop serves all of them. An algorithm provides up to five functions, `take`, `drop`, `skip`, `ready` and
`show_answer`; numba chooses them by the type of its `kind` when it compiles the loop: see `steps`. The first list of a
group is ranked, and its first k rows are the answer, unless `show_answer` does more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba.extending import overload

from skyband.core.clock import EARLIEST
from skyband.core.emit import takes_back
from skyband.kernels.compiling import allocating, inlined, kernel
from skyband.kernels.emit import OUT, show, show_replaced
from skyband.kernels.ingredients import brought_by
from skyband.kernels.ranking import ZERO
from skyband.kernels.skyband import first_row
from skyband.kernels.slabs import CLASSES
from skyband.problems.rows.drivers.row_kernels import LATE, NEED, START, UNRANKED, first_due, position_at, row_index
from skyband.windows import NEVER


class Config(NamedTuple):
    """The query, as the loop needs it."""

    k: int
    size: int
    moves: bool  # does the window move, and lose rows, with each row? Otherwise when it closes, or never
    numbered: bool  # is the time of a row its number among the arrivals of its group?
    every: int  # show the answer after this many arrivals; 0: the loop does not count arrivals
    each: bool  # show the answer with each arrival
    ahead: bool  # with `every`: drop rows before the start of the window that closes next
    emit: int
    room: int  # the pool entries that a step may take,
    room_per_row: int  # and how many more for each row in the group's lists
    tied: bool  # do equal scores share a rank, so that an answer may have more than k rows?


class State(NamedTuple):
    """The arrays of all groups."""

    groups: npt.NDArray[Any]  # by group code; `StepDriver` defines the fields
    lists: npt.NDArray[Any]  # bands, by list, then by group
    shown: npt.NDArray[Any]  # bands, by group: the last answer, best first
    clock: npt.NDArray[np.int64]
    latest: npt.NDArray[np.int64]  # scratch for k times


# -- an algorithm implements these -----------------------------------------------------------------------------------


def take(kind, g, score, time, position, config, pool, state):
    """Take a row of group g. Returns whether the first k rows of its first list may have changed."""


def drop(kind, g, limit, config, pool, state):
    """Drop the rows of group g with a time before `limit`: they have left the window. Returns whether the first k rows
    may have changed."""


def skip(kind, g, j, end, batch, config, pool, state, out):
    """Take rows of group g from j on, as long as they do not change the answer or it can write the change itself.

    Returns the first row that it did not take. It uses no room of the pool.
    """


def ready(kind, g, at, config, pool, state):
    """Make the first k rows of group g's first list its answer, which is about to be shown."""


def show_answer(kind, g, at, order, config, pool, state, out):
    """Show group g's answer at the moment `at`. `order` is the row of the batch that caused it."""


def steps(
    kind: type, take_one: Any, drop_some: Any, skip_some: Any = None, make_ready: Any = None, show_some: Any = None
) -> None:
    """Register the compiled functions of an algorithm, for loops whose `kind` is of this type."""

    def when(function: Callable[..., Any], implementation: Callable[..., Any]) -> None:
        # numba requires the same parameter names, so each function has its own wrapper.
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
    """Copy the scores, group after group; a late row gets NaN. Counts late rows, and rows without a score."""
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
    """Take the rows of group g from j on, and those of all later groups.

    Returns (number of groups, 0) when all are taken. Otherwise room ran short: then it returns the group and the row at
    which it stopped, before touching it.
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
    """The first time that is still needed when a row with this time, or number, has come."""
    if not config.moves:
        return EARLIEST
    if config.ahead:
        return (now // config.every + 1) * config.every - config.size
    return now + 1 - config.size


@inlined
def next_expiry(group, arrival, batch, config):
    """The first row of the batch before `arrival` whose time makes the group drop a row; otherwise `arrival`."""
    if config.numbered or not config.moves or group.oldest == NEVER:
        return arrival
    return first_due(batch.now, group.oldest + config.size, arrival)


@inlined
def quiet_until(group, oldest, j, end, batch, config):
    """The first row of [j, end) with which the window starts after `oldest`, or the answer is due."""
    if config.numbered:
        if config.every > 0:
            # The last row of a slide shows the answer. No row of a slide moves the window's start beyond the slide's.
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
    """Is there room for one step of group g? If not, clock[NEED] has the pool entries needed; 0: the output is full."""
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
    """Show the answer after one step; `taken` tells whether the step took the row with this score, time and
    position."""
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
        # `show` needs a list without a gap; `show_replaced` may have left one.
        for r in range(shown.offset, shown.offset + shown.length):
            pool.rows[r] = pool.rows[r + shown.gap]
        shown.gap = 0
    show(g, at, order, first_row(answer), n, config.emit, pool, shown, state.clock, out)


@kernel
def end_window(end, first, g, config, kind, pool, state, out):
    """Show the window of times [first, end) for group g and all later groups, after dropping earlier rows.

    Returns the group at which room ran short, or the number of groups.
    """
    while g < len(state.groups):
        if not enough_room(g, config, pool, state, out):
            return g
        if state.groups[g].oldest < first:
            drop(kind, g, first, config, pool, state)
        show_answer(kind, g, end, ZERO, config, pool, state, out)
        g += 1
    return g
