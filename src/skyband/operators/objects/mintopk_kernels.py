"""The compiled loops of MinTopK.

Two loops over rows, by value (one clock for all groups) and by count (a clock for each group); both put rows that may
be among the best k of their pane into the pane's cell, and close windows when they are due.
A loop stops early, at a row it has not touched, when the pool, the cells or the output might run out.
"""

from __future__ import annotations

import numpy as np

from skyband.operators.objects.mintopk_closing import (
    close_group,
    close_window,
)
from skyband.operators.objects.mintopk_state import (
    CLOSED,
    FREE_CELL,
    LATE,
    MANY,
    NEVER,
    NEXT,
    NOW,
    TOTAL,
    UNRANKED,
    WANTED,
    has_room,
    room_needed,
    tighten,
)
from skyband.structures.codes import sort_by_code
from skyband.structures.compiling import inlined, kernel, part
from skyband.structures.panes import (
    WIDE,
    find_scores,
    guess_threshold,
    largest,
    last_window,
    pane_end,
    pane_of,
    pane_start,
    skip_rows,
)
from skyband.structures.ranking import SMALL, settle
from skyband.structures.slabs import CLASSES, NONE, reserve
from skyband.windows import FOREVER


@inlined
def find_cell(g, pane, groups, cells):  # type: ignore[no-untyped-def]
    cell = groups[g].cell
    while cell != NONE and cells[cell].pane != pane:
        cell = cells[cell].following
    return cell


@part
def new_cell(g, pane, groups, cells, clock):  # type: ignore[no-untyped-def]
    """An empty cell, the group's first: rows mostly come in order, so the newest pane is looked for most."""
    cell = clock[FREE_CELL]
    clock[FREE_CELL] = cells[cell].following
    cells[cell].group = g
    cells[cell].pane = pane
    cells[cell].threshold = -np.inf
    cells[cell].following = groups[g].cell
    groups[g].cell = cell
    return cell


@inlined
def admit(cell, score, time, position, rule, pool, clock):  # type: ignore[no-untyped-def]
    """Put a row that reaches the cell's threshold into it."""
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
    if rule.k <= SMALL:
        settle(pool.rows, cell.offset, cell.offset + n)
        if n + 1 >= rule.k:
            clock[TOTAL] -= n + 1 - rule.k
            cell.length = rule.k
            cell.threshold = pool.rows[cell.offset + rule.k - 1].score
    elif n + 1 == rule.k or n + 1 == rule.limit:
        tighten(cell, rule, pool, clock)


@kernel
def push_by_value(score, time, group, first, i, shape, rule, pool, groups, cells, clock, out, work):  # type: ignore[no-untyped-def]
    """Take rows from i on; return the first one not taken."""
    grouped = len(group) > 0
    low, high, pane = 0, 0, 0  # the pane of the last row: [low, high) is empty until there is one
    g, cell = 0, NONE
    one_by_one = 0  # rows before this one are too few of their pane to be taken together
    while i < len(score):
        if not grouped and cell != NONE:
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
                close_window(shape, rule, pool, groups, cells, clock, out, work)
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
        if grouped:
            if i >= one_by_one:
                end = end_of_run(time, i, low, min(high, due_time(shape, rule, clock)))
                if end - i >= MANY * rule.k * len(groups):
                    if not has_room_for_run(rule, pool, groups, cells, clock):
                        break
                    for t in time[i:end]:
                        clock[NOW] = max(clock[NOW], t)
                    take_run(score, time, group, first, i, end, pane, rule, pool, groups, cells, clock, work)
                    i = end
                    continue
                one_by_one = end
            g = group[i]
        if grouped or cell == NONE:
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


@inlined
def has_room_for_run(rule, pool, groups, cells, clock):  # type: ignore[no-untyped-def]
    """Is there room for k rows more and a cell more of every group? If not, ask for it."""
    free, cell = 0, clock[FREE_CELL]
    while cell != NONE and free < len(groups):
        free += 1
        cell = cells[cell].following
    clock[WANTED] = 2 * len(groups) * (rule.limit + 8)
    if free < len(groups) or len(pool.rows) - pool.free[CLASSES] < room_needed(rule, groups, clock):
        return False
    clock[WANTED] = 0
    return True


@part
def end_of_run(time, i, low, high):  # type: ignore[no-untyped-def]
    """The first row from i on whose time is outside [low, high)."""
    while i + WIDE <= len(time):
        times, outside = time[i : i + WIDE], 0
        for j in range(WIDE):
            outside += (times[j] < low) | (times[j] >= high)
        if outside:
            break
        i += WIDE
    while i < len(time) and low <= time[i] < high:
        i += 1
    return i


@part
def take_run(score, time, group, first, i, end, pane, rule, pool, groups, cells, clock, work):  # type: ignore[no-untyped-def]
    """Take rows [i, end), all of one pane, group by group.

    There are many of each, so the k-th best score is worth finding first: few rows but the best k are admitted then.
    """
    order, start, scores, unranked = work.order, work.start, work.scores, 0
    sort_by_code(group, i, end, order, start, work.following)
    best, which = work.best, work.which
    for g in range(len(groups)):
        rows = order[start[g] : start[g + 1]]
        if len(rows) == 0:
            continue
        index = find_cell(g, pane, groups, cells)
        if index == NONE:
            index = new_cell(g, pane, groups, cells, clock)
            clock[NEXT] = min(clock[NEXT], max(pane >> 1, clock[CLOSED]))
        cell = cells[index]
        if rule.k <= SMALL:
            n, missing = best_rows(score, time, rows, cell.threshold, best, which)
            unranked += missing
            if cell.length == 0:
                fill_with(cell, best, which, n, time, first, rule, pool, clock)
            else:
                for r in which[:n]:
                    if score[r] >= cell.threshold:
                        admit(cell, score[r], time[r], first + r, rule, pool, clock)
            continue
        for j in range(len(rows)):
            s = score[rows[j]]
            unranked += s != s
            scores[j] = s if s == s else -np.inf
        bar = largest(scores[: len(rows)], rule.k - 1) if len(rows) > rule.k else -np.inf
        for r in rows:
            if score[r] >= bar and score[r] >= cell.threshold:
                admit(cell, score[r], time[r], first + r, rule, pool, clock)
    clock[UNRANKED] += unranked


@inlined
def best_rows(score, time, rows, threshold, best, which):  # type: ignore[no-untyped-def]
    """The best of these rows that reach the threshold, as many as `best` takes: their scores, and which they are.

    Both best first. Also returns how many there are, and how many rows have no score. `rows` ascends.
    """
    n, missing, k = 0, 0, len(best)
    for r in rows:
        s = score[r]
        missing += s != s
        if not s >= threshold:
            continue
        if n == k and s == threshold and time[r] < time[which[k - 1]]:
            continue
        j = min(n, k - 1)
        # Of equal scores the later time ranks first; of equal times the later arrival, which is this one.
        while j > 0 and (best[j - 1] < s or (best[j - 1] == s and time[which[j - 1]] <= time[r])):
            best[j], which[j] = best[j - 1], which[j - 1]
            j -= 1
        best[j], which[j] = s, r
        n = min(n + 1, k)
        if n == k:
            threshold = best[k - 1]
    return n, missing


@inlined
def fill_with(cell, best, which, n, time, first, rule, pool, clock):  # type: ignore[no-untyped-def]
    """Put the n best rows of its pane into an empty cell."""
    reserve(pool, cell, n)
    for j in range(n):
        row = pool.rows[cell.offset + j]
        row.score, row.time, row.position = best[j], time[which[j]], first + which[j]
        row.last = row.flag = 0
    cell.length = n
    clock[TOTAL] += n
    if n == rule.k:
        cell.threshold = best[n - 1]


@inlined
def due_time(shape, rule, clock):  # type: ignore[no-untyped-def]
    """The time of a row that would close the next window."""
    if rule.lateness == FOREVER or clock[NEXT] == NEVER:
        return 2 * NEVER - 1
    return (clock[NEXT] + 1) * shape.every + rule.lateness


@kernel
def push_by_count(score, group, first, i, shape, rule, pool, groups, cells, clock, out, work):  # type: ignore[no-untyped-def]
    """Take rows from i on; return the first one not taken. Each group has its own count, and so its own windows."""
    grouped = len(group) > 0
    while i < len(score) and has_room(rule, pool, groups, clock, out):
        g = group[i] if grouped else 0
        arrived = groups[g].arrivals
        pane = pane_of(shape, arrived)
        end = i + 1 if grouped else min(len(score), i + pane_end(shape, pane) - arrived)
        fill_cell(score, first, i, end, g, pane, rule, pool, groups, cells, clock, work)
        arrived += end - i
        groups[g].arrivals = arrived
        i = end
        if arrived % shape.every == 0:
            close_group(
                g, arrived // shape.every - 1, arrived, shape, rule, pool, groups, cells, clock, out, work.counts
            )
    return i


@part
def fill_cell(score, first, start, end, g, pane, rule, pool, groups, cells, clock, work):  # type: ignore[no-untyped-def]
    """Admit what belongs of rows [start, end), all arrivals of group g in one pane."""
    before, found = groups[g].arrivals - start, work.found  # of row j, before + j rows came earlier
    index = find_cell(g, pane, groups, cells)
    if index == NONE:
        index = new_cell(g, pane, groups, cells, clock)
        cells[index].threshold = guess_threshold(score, start, end, rule.k, work.sample)
    cell = cells[index]
    guessed = cell.length == 0 and cell.threshold > -np.inf
    i, unranked = start, 0
    while i < end:
        i, n, missing = find_scores(score, i, end, cell.threshold, found)
        unranked += missing
        for j in found[:n]:
            if score[j] >= cell.threshold:
                admit(cell, score[j], before + j, first + j, rule, pool, clock)
        if i == end and guessed and cell.length < rule.k:
            # The guess was too high: of the k best some are below it.
            clock[TOTAL] -= cell.length
            cell.length = 0
            cell.threshold = -np.inf
            guessed = False
            i, unranked = start, 0
    clock[UNRANKED] += unranked
