"""How MinTopK takes rows.

One loop takes rows by value, with one clock for all groups; the other takes rows by count, with a clock for each group.
Both put a row that may be among the best k of its pane into the pane's cell, and close windows when they are due.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import inlined, kernel, part
from skyband.kernels.panes import (
    WIDE,
    find_scores,
    guess_threshold,
    last_window,
    pane_end,
    pane_of,
    pane_start,
    skip_rows,
)
from skyband.kernels.ranking import ZERO
from skyband.kernels.slabs import NONE
from skyband.problems.rows.algorithms.mintopk.kernels.arrays import (
    CLOSED,
    MANY,
    NEXT,
    admit,
    find_cell,
    has_room,
    new_cell,
)
from skyband.problems.rows.algorithms.mintopk.kernels.closing import close_group, close_window
from skyband.problems.rows.algorithms.mintopk.kernels.gathering import (
    deliver,
    expect,
    gather_pane,
    has_room_for_run,
    select_gathered,
    sort_gathered,
    take_run,
)
from skyband.problems.rows.drivers.row_kernels import LATE, NOW, UNRANKED
from skyband.windows import NEVER


@kernel
def push_by_value(score, time, group, first, i, shape, config, pool, groups, young, cells, clock, out, work):
    """Take rows from i on. Returns the first row not taken.

    Without groups `group` is None, and numba compiles the loop without the code for groups.
    """
    low, high, pane = 0, 0, 0  # the pane of the last row: [low, high) is empty until there is one
    g, cell = 0, NONE
    one_by_one = 0  # rows before this one are too few to be taken together
    while i < len(score):
        if group is None and cell != NONE:
            # A row of this pane below its threshold changes nothing, unless a window becomes due.
            due = due_time(shape, config, clock)
            i, clock[NOW], unranked = skip_rows(
                score, time, i, len(score), cells[cell].threshold, low, min(high, due), clock[NOW]
            )
            clock[UNRANKED] += unranked
            if i == len(score):
                break
        t = time[i]
        if t > clock[NOW]:
            if t >= due_time(shape, config, clock):
                if not has_room(config, pool, groups, clock, out):
                    break
                close_window(shape, config, pool, groups, young, cells, clock, out)
                cell = NONE
                continue  # another window may be due at this row
            clock[NOW] = t
        if t < low or t >= high:
            pane = pane_of(shape, t)
            low, high = pane_start(shape, pane), pane_end(shape, pane)
            cell = NONE
            if config.lateness != NEVER:
                clock[CLOSED] = max(clock[CLOSED], (clock[NOW] - config.lateness) // shape.every)
            if last_window(shape, pane) < clock[CLOSED]:
                clock[LATE] += 1
                low = high = 0  # look again at the next row
                i += 1
                continue
        if group is not None:
            if i >= one_by_one:
                end, latest = end_of_run(time, i, low, min(high, due_time(shape, config, clock)), clock[NOW])
                if end - i >= MANY * config.k * len(groups):
                    if not has_room_for_run(config, pool, groups, cells, clock):
                        break
                    clock[NOW] = latest
                    take_run(score, time, group, first, i, end, pane, config, pool, groups, cells, clock, work)
                    i = end
                    continue
                one_by_one = end
            g = group[i]
        if group is not None or cell == NONE:
            cell = find_cell(g, pane, groups, cells)
        if score[i] >= (cells[cell].threshold if cell != NONE else -np.inf):
            if not has_room(config, pool, groups, clock, out):
                break
            if cell == NONE:
                cell = new_cell(g, pane, groups, cells, clock)
                clock[NEXT] = min(clock[NEXT], max(pane >> 1, clock[CLOSED]))
            admit(cells[cell], score[i], t, first + i, config, pool, clock)
        clock[UNRANKED] += score[i] != score[i]
        i += 1
    return i


@part
def end_of_run(time, i, low, high, now):
    """The first row from i on with a time outside [low, high), and the latest time before it."""
    while i + WIDE <= len(time):
        times, outside, latest = time[i : i + WIDE], 0, now
        for j in range(WIDE):
            outside += (times[j] < low) | (times[j] >= high)
            latest = max(latest, times[j])
        if outside:
            break
        i, now = i + WIDE, latest
    while i < len(time) and low <= time[i] < high:
        now = max(now, time[i])
        i += 1
    return i, now


@inlined
def due_time(shape, config, clock):
    """The time at which a row closes the next window."""
    if config.lateness == NEVER or clock[NEXT] == NEVER:
        return 2 * NEVER - 1
    return (clock[NEXT] + 1) * shape.every + config.lateness


@kernel
def push_by_count(score, group, first, i, shape, config, pool, groups, young, cells, clock, out, work, sample):
    """Take rows from i on. Returns the first row not taken. Each group counts its own rows, and so has its own windows.

    `group` is None without groups, and `sample` is None if k is so small that sampling does not pay.
    """
    while i < len(score) and has_room(config, pool, groups, clock, out):
        g = 0 if group is None else group[i]
        arrived = groups[g].arrivals
        pane = pane_of(shape, arrived)
        end = min(len(score), i + pane_end(shape, pane) - arrived) if group is None else i + 1
        fill_cell(score, first, i, end, g, pane, config, pool, groups, cells, clock, work, sample)
        arrived += end - i
        groups[g].arrivals = arrived
        i = end
        if arrived % shape.every == 0:
            close_group(g, arrived // shape.every - 1, arrived, shape, config, pool, groups, young, cells, clock, out)
    return i


@part
def fill_cell(score, first, start, end, g, pane, config, pool, groups, cells, clock, work, sample):
    """Take rows [start, end), all of group g and in one pane: admit those that reach the cell's threshold."""
    before, found = groups[g].arrivals - start, work.found  # before + j rows of the group came before row j
    index = find_cell(g, pane, groups, cells)
    if index == NONE:
        index = new_cell(g, pane, groups, cells, clock)
        if sample is not None:
            fill_at_once(score, before, first, start, end, cells[index], config, pool, clock, work, sample)
            return
    cell = cells[index]
    i, unranked = start, 0
    while i < end:
        i, n, missing = find_scores(score, i, end, cell.threshold, found)
        unranked += missing
        for j in found[:n]:
            if score[j] >= cell.threshold:
                admit(cell, score[j], before + j, first + j, config, pool, clock)
    clock[UNRANKED] += unranked


@part
def fill_at_once(score, before, first, start, end, cell, config, pool, clock, work, sample):
    """Fill an empty cell with the k best of rows [start, end): guess a score that they reach, and rank those that do.

    It guesses from the pane before, or from a sample. If fewer than k rows reach the guess, it guesses again.
    """
    rows, none, hint = end - start, work.which[:0], work.hint[0]
    bar = hint.bar if rows >= hint.rows else guess_threshold(score, start, end, config.k, sample)
    n, unranked = gather_pane(score, start, end, bar, config, work)
    missed = n < config.k
    while n < config.k and bar > -np.inf:
        guess = guess_threshold(score, start, end, config.k, sample)
        bar = guess if guess < bar else -np.inf
        n, unranked = gather_pane(score, start, end, bar, config, work)
    clock[UNRANKED] += unranked
    hint.rows = NEVER
    if not sort_gathered(ZERO, n, none, work):
        n = select_gathered(ZERO, config.k, none, work)
    elif n >= config.k:
        expect(n, config.k, rows, missed, hint, work)
    deliver(min(n, config.k), cell, none, before, first, config, pool, clock, work)
