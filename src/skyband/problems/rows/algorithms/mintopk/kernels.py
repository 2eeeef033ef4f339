"""The compiled loops of MinTopK.

Two loops over rows, by value (one clock for all groups) and by count (a clock for each group); both put rows that may
be among the best k of their pane into the pane's cell, and close windows when they are due.
A loop stops early, at a row it has not touched, when the pool, the cells or the output might run out.
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
from skyband.problems.rows.algorithms.mintopk.closing_kernels import close_group, close_window
from skyband.problems.rows.algorithms.mintopk.gathering_kernels import (
    deliver,
    expect,
    gather_pane,
    has_room_for_run,
    select_gathered,
    sort_gathered,
    take_run,
)
from skyband.problems.rows.algorithms.mintopk.state import (
    CLOSED,
    LATE,
    MANY,
    NEVER,
    NEXT,
    NOW,
    UNRANKED,
    admit,
    find_cell,
    has_room,
    new_cell,
)
from skyband.windows import FOREVER


@kernel
def push_by_value(score, time, group, first, i, shape, rule, pool, groups, young, cells, clock, out, work):  # type: ignore[no-untyped-def]
    """Take rows from i on; return the first one not taken.

    `group` is None where there are no groups: numba leaves out what is asked of it then.
    """
    low, high, pane = 0, 0, 0  # the pane of the last row: [low, high) is empty until there is one
    g, cell = 0, NONE
    one_by_one = 0  # rows before this one are too few of their pane to be taken together
    while i < len(score):
        if group is None and cell != NONE:
            # Nothing happens at a row of this pane below its threshold, as long as no window comes due.
            due = due_time(shape, rule, clock)
            i, clock[NOW], unranked = skip_rows(
                score, time, i, len(score), cells[cell].threshold, low, min(high, due), clock[NOW]
            )
            clock[UNRANKED] += unranked
            if i == len(score):
                break
        t = time[i]
        if t > clock[NOW]:
            if t >= due_time(shape, rule, clock):
                if not has_room(rule, pool, groups, clock, out):
                    break
                close_window(shape, rule, pool, groups, young, cells, clock, out)
                cell = NONE
                continue  # another window may be due at this row
            clock[NOW] = t
        if t < low or t >= high:
            pane = pane_of(shape, t)
            low, high = pane_start(shape, pane), pane_end(shape, pane)
            cell = NONE
            if rule.lateness != FOREVER:
                clock[CLOSED] = max(clock[CLOSED], (clock[NOW] - rule.lateness) // shape.every)
            if last_window(shape, pane) < clock[CLOSED]:
                clock[LATE] += 1
                low = high = 0  # look again at the next row
                i += 1
                continue
        if group is not None:
            if i >= one_by_one:
                end, latest = end_of_run(time, i, low, min(high, due_time(shape, rule, clock)), clock[NOW])
                if end - i >= MANY * rule.k * len(groups):
                    if not has_room_for_run(rule, pool, groups, cells, clock):
                        break
                    clock[NOW] = latest
                    take_run(score, time, group, first, i, end, pane, rule, pool, groups, cells, clock, work)
                    i = end
                    continue
                one_by_one = end
            g = group[i]
        if group is not None or cell == NONE:
            cell = find_cell(g, pane, groups, cells)
        if score[i] >= (cells[cell].threshold if cell != NONE else -np.inf):
            if not has_room(rule, pool, groups, clock, out):
                break
            if cell == NONE:
                cell = new_cell(g, pane, groups, cells, clock)
                clock[NEXT] = min(clock[NEXT], max(pane >> 1, clock[CLOSED]))
            admit(cells[cell], score[i], t, first + i, rule, pool, clock)
        clock[UNRANKED] += score[i] != score[i]
        i += 1
    return i


@part
def end_of_run(time, i, low, high, now):  # type: ignore[no-untyped-def]
    """The first row from i on whose time is outside [low, high), and the latest time before it."""
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
def due_time(shape, rule, clock):  # type: ignore[no-untyped-def]
    """The time of a row that would close the next window."""
    if rule.lateness == FOREVER or clock[NEXT] == NEVER:
        return 2 * NEVER - 1
    return (clock[NEXT] + 1) * shape.every + rule.lateness


@kernel
def push_by_count(score, group, first, i, shape, rule, pool, groups, young, cells, clock, out, work, sample):  # type: ignore[no-untyped-def]
    """Take rows from i on; return the first one not taken. Each group has its own count, and so its own windows.

    `group` is None where there are no groups, `sample` where k is too small for it to be of use.
    """
    while i < len(score) and has_room(rule, pool, groups, clock, out):
        g = 0 if group is None else group[i]
        arrived = groups[g].arrivals
        pane = pane_of(shape, arrived)
        end = min(len(score), i + pane_end(shape, pane) - arrived) if group is None else i + 1
        fill_cell(score, first, i, end, g, pane, rule, pool, groups, cells, clock, work, sample)
        arrived += end - i
        groups[g].arrivals = arrived
        i = end
        if arrived % shape.every == 0:
            close_group(g, arrived // shape.every - 1, arrived, shape, rule, pool, groups, young, cells, clock, out)
    return i


@part
def fill_cell(score, first, start, end, g, pane, rule, pool, groups, cells, clock, work, sample):  # type: ignore[no-untyped-def]
    """Admit what belongs of rows [start, end), all arrivals of group g in one pane."""
    before, found = groups[g].arrivals - start, work.found  # of row j, before + j rows came earlier
    index = find_cell(g, pane, groups, cells)
    if index == NONE:
        index = new_cell(g, pane, groups, cells, clock)
        if sample is not None:
            fill_at_once(score, before, first, start, end, cells[index], rule, pool, clock, work, sample)
            return
    cell = cells[index]
    i, unranked = start, 0
    while i < end:
        i, n, missing = find_scores(score, i, end, cell.threshold, found)
        unranked += missing
        for j in found[:n]:
            if score[j] >= cell.threshold:
                admit(cell, score[j], before + j, first + j, rule, pool, clock)
    clock[UNRANKED] += unranked


@part
def fill_at_once(score, before, first, start, end, cell, rule, pool, clock, work, sample):  # type: ignore[no-untyped-def]
    """Fill an empty cell with the k best of rows [start, end), ranked once, from those that reach a guessed score.

    The guess is what the pane before suggests, or a sample. If fewer than k rows reach it, there is another guess.
    """
    rows, none, hint = end - start, work.which[:0], work.hint[0]
    bar = hint.bar if rows >= hint.rows else guess_threshold(score, start, end, rule.k, sample)
    n, unranked = gather_pane(score, start, end, bar, rule, work)
    missed = n < rule.k
    while n < rule.k and bar > -np.inf:
        guess = guess_threshold(score, start, end, rule.k, sample)
        bar = guess if guess < bar else -np.inf
        n, unranked = gather_pane(score, start, end, bar, rule, work)
    clock[UNRANKED] += unranked
    hint.rows = FOREVER
    if not sort_gathered(ZERO, n, none, work):
        n = select_gathered(ZERO, rule.k, none, work)
    elif n >= rule.k:
        expect(n, rule.k, rows, missed, hint, work)
    deliver(min(n, rule.k), cell, none, before, first, rule, pool, clock, work)
