"""How MinTopK closes a window: complete panes join the rows of their group, whose best k are shown.

A group has two lists, both best first: one has the rows of older panes, the other young rows, which outlive all of
these. A pane is merged into the young list, which is short. The young list is merged into the older one when keeping
both would cost more. So a slide takes O(k + sqrt(n s)) steps for n rows of a pane and s rows of the list, however many
panes a window has.
"""

from __future__ import annotations

import numpy as np

from skyband.core.emit import ENTER, LEAVE, is_whole, takes_back
from skyband.kernels.compiling import inlined, kernel, part
from skyband.kernels.emit import OUT, put
from skyband.kernels.intrinsics import choose, prefetch
from skyband.kernels.panes import last_window
from skyband.kernels.ranking import ZERO, is_best_first, ranks_before, sort_best_first
from skyband.kernels.slabs import NONE, give_slab, size_class, take_slab
from skyband.problems.rows.algorithms.mintopk.kernels.arrays import (
    CLOSED,
    DOMINATOR,
    FREE_CELL,
    NEXT,
    SHOWN,
    STEPS,
    TOTAL,
    has_room,
    tighten,
)
from skyband.windows import NEVER

FEW = 6  # a list up to this many times as long as the pane is merged with it at once, so that no row is held in vain


@kernel
def close_until(window, shape, config, pool, groups, young, cells, clock, out):
    """Close every window up to this one that has something to show. Returns False if room ran short."""
    while clock[NEXT] <= window:
        if not has_room(config, pool, groups, clock, out):
            return False
        close_window(shape, config, pool, groups, young, cells, clock, out)
    return True


@part
def close_window(shape, config, pool, groups, young, cells, clock, out):
    """Close the next window for all groups, and find the one after it."""
    window = clock[NEXT]
    at = (window + 1) * shape.every
    following = NEVER
    for g in range(len(groups)):
        if groups[g].length + young[g].length == 0 and groups[g].cell == NONE:
            continue
        if g + 1 < len(groups):
            fetch_ahead(groups[g + 1], pool, cells)
        close_group(g, window, at, shape, config, pool, groups, young, cells, clock, out)
        if groups[g].length + young[g].length > 0:
            following = window + 1
        cell = groups[g].cell
        while cell != NONE:
            following = min(following, cells[cell].pane >> 1)
            cell = cells[cell].following
    clock[NEXT] = following
    clock[CLOSED] = max(clock[CLOSED], window + 1)


@inlined
def fetch_ahead(group, pool, cells):
    """Prefetch the rows of the next group: with many groups they are not in the cache."""
    for j in range(group.offset, group.offset + group.length, 2):
        prefetch(pool.rows, j)
    if group.cell != NONE:
        cell = cells[group.cell]
        for j in range(cell.offset, cell.offset + cell.length, 2):
            prefetch(pool.rows, j)


@part
def close_group(g, window, at, shape, config, pool, groups, young, cells, clock, out):
    """Take the rows of the window's panes, show the best k, and drop rows that no window will show."""
    group, recent = groups[g], young[g]
    panes, more, late = look_at_due(g, window, shape, config, groups, cells)
    if panes == 1 and recent.length == 0 and (late or group.length <= FEW * more):
        close_at_once(g, window, at, shape, config, pool, groups, cells, clock, out)
        drop_outlived(window, group, recent, config, pool, clock)
        return
    if late and recent.length > 0:
        unite(group, recent, window - 1, more, config, pool, clock, out)
    most, best, passed = ZERO, -np.inf, ZERO  # the most rows of a pane, the best score, and expired rows met
    due = take_due(g, window, groups, cells)
    while due != NONE:
        cell = cells[due]
        last = last_window(shape, cell.pane)
        n = rank_pane(cell, last, group, config, pool, clock)
        if n > 0:
            more -= n
            most, best = max(most, n), max(best, pool.rows[cell.offset].score)
            take_pane(cell, n, last, window, late, more, group, recent, config, pool, clock, out)
        free_cell(due, pool, cells, clock)
        due = take_due(g, window, groups, cells)
    if is_whole(config.emit) or may_differ(group, window, best, config):
        passed = show(g, window, at, group, recent, config, pool, clock, out)
    if not drop_outlived(window, group, recent, config, pool, clock):
        waiting, rows = max(recent.length, passed), most if most > 0 else ZERO + 1
        if waiting > 0 and (group.length <= FEW * rows or waiting * waiting >= rows * group.length):
            unite(group, recent, window, ZERO, config, pool, clock, out)


@part
def close_at_once(g, window, at, shape, config, pool, groups, cells, clock, out):
    """Close a window with one pane, whose group has no young rows: merge, show and drop rows in one pass."""
    group, due = groups[g], take_due(g, window, groups, cells)
    cell = cells[due]
    last = last_window(shape, cell.pane)
    n = rank_pane(cell, last, group, config, pool, clock)
    best = pool.rows[cell.offset].score if n > 0 else -np.inf
    if n > 0 or is_whole(config.emit) or may_differ(group, window, best, config):
        outlive = last > group.until
        tally = start_emitting(group, config, clock)
        tally = merge(
            group, cell.offset, n, last, outlive, window, ZERO, True, g, window, at, tally, config, pool, clock, out
        )
        end_emitting(group, tally, config, clock, out)
        if n > 0:
            group.until = max(group.until, last)
            group.listed = group.until
    free_cell(due, pool, cells, clock)


@inlined
def drop_outlived(window, group, recent, config, pool, clock):
    """Drop all rows if none is in a later window; with changes, only after the answers have shown that they left."""
    if group.until > window or (takes_back(config.emit) and group.shown > 0):
        return False
    clock[TOTAL] -= group.length + recent.length
    give_slab(pool, group)
    give_slab(pool, recent)
    return True


@inlined
def take_due(g, window, groups, cells):
    """Remove a cell whose pane is in the window from the group's cells, and return it; NONE if there is none."""
    previous, cell = NONE, groups[g].cell
    while cell != NONE and cells[cell].pane >> 1 > window:
        previous, cell = cell, cells[cell].following
    if cell != NONE:
        if previous == NONE:
            groups[g].cell = cells[cell].following
        else:
            cells[previous].following = cells[cell].following
    return cell


@inlined
def look_at_due(g, window, shape, config, groups, cells):
    """The number of the group's panes that are in the window, their rows, and whether the list outlives one of them."""
    panes, n, late, cell = ZERO, ZERO, False, groups[g].cell
    while cell != NONE:
        if cells[cell].pane >> 1 <= window:
            panes += 1
            n += min(cells[cell].length, config.k)
            late |= last_window(shape, cells[cell].pane) <= groups[g].listed
        cell = cells[cell].following
    return panes, n, late


@inlined
def free_cell(cell, pool, cells, clock):
    give_slab(pool, cells[cell])
    cells[cell].group = NONE
    cells[cell].following = clock[FREE_CELL]
    clock[FREE_CELL] = cell


@part
def rank_pane(cell, last, group, config, pool, clock):
    """Rank a cell's rows, and set the last window of each and its count of better rows that live as long. Returns the
    number of rows."""
    if cell.length > config.k:
        tighten(cell, config, pool, clock)
    start, n, rows = cell.offset, cell.length, pool.rows
    if not is_best_first(rows, start, start + n):
        sort_best_first(rows, start, start + n)
    if last == NEVER and group.length >= config.k:
        # No row leaves the list, so a row that ranks after k of its rows is never shown.
        while n > 0 and ranks_before(rows[group.offset + config.k - 1], rows[start + n - 1]):
            n -= 1
        clock[TOTAL] -= cell.length - n
    for i in range(n):
        rows[start + i].last, rows[start + i].flag = last, DOMINATOR * i
    return n


@part
def take_pane(cell, n, last, window, late, more, group, recent, config, pool, clock, out):
    """Take a cell's n ranked rows, whose last window is `last`. `more` rows of the group follow.

    If one of the panes is `late`, all of them go to the older list, and no row is young.
    """
    outlive = last > group.until
    group.until = max(group.until, last)
    if late:
        merge_silently(group, cell.offset, n, last, outlive, window - 1, more, config, pool, clock, out)
        group.listed = group.until
    elif recent.length > 0:
        merge_silently(recent, cell.offset, n, last, outlive, window - 1, more, config, pool, clock, out)
    else:
        recent.offset, recent.length, recent.capacity = cell.offset, n, cell.capacity
        cell.length = cell.capacity = 0


@part
def unite(group, recent, gone, more, config, pool, clock, out):
    """Merge the group's two lists. Keep the rows that windows after `gone` may show, and room for `more` rows."""
    if group.length == 0:
        give_slab(pool, group)
        group.offset, group.length, group.capacity = recent.offset, recent.length, recent.capacity
        recent.length = recent.capacity = 0
    else:
        n, last = recent.length, group.listed + 1
        merge_silently(group, recent.offset, n, last, n > 0, gone, more, config, pool, clock, out)
        give_slab(pool, recent)
    group.listed = group.until


@part
def merge_silently(older, start, n, last, outlive, gone, more, config, pool, clock, out):
    tally = emit_nothing()
    merge(older, start, n, last, outlive, gone, more, False, ZERO, ZERO, ZERO, tally, config, pool, clock, out)


@part
def merge(older, start, n, last, outlive, gone, more, shows, g, window, at, tally, config, pool, clock, out):
    """Merge the n rows from `start` on into a list, both best first, and drop rows that no window after `gone` will
    show.

    Either `last` is the last window of all n rows, or the rows of the list have earlier last windows; if the n rows
    `outlive` the list, both hold. A row is outlived if k better rows have its last window or a later one: these k rows
    suffice for every window that it is in. Each row has already counted such rows of its own list. With changes, a row
    that the last answer showed stays until an answer has shown that it left. The list's slab gets room for `more` rows.
    With `shows`, the loop also emits the best k live rows.
    """
    k, rows, changes = config.k, pool.rows, takes_back(config.emit)
    before = older.length + n
    c = size_class(before + more + 1)  # one more, because a row that does not stay is written, too
    new = take_slab(pool, c)
    # Unsigned indices, as in gathering.py.
    a, b, to = np.uint64(older.offset), np.uint64(start), np.uint64(new)
    end_a, end_b = a + np.uint64(older.length), b + np.uint64(n)
    better, longer = ZERO, ZERO  # so far: rows of the n, and rows of the list that live as long as those
    # Once k rows that outlive the list are merged, all following rows of the list are outlived.
    outlives_all = outlive and n >= k and not changes
    while b < end_b or (a < end_a and not outlives_all):
        # The processor can predict neither which list is next nor whether the row stays, so neither is a branch.
        from_list = (b == end_b) | ((a < end_a) & ranks_before(rows[a], rows[b]))
        row = rows[choose(from_list, a, b)]
        lives_until, mark = row.last, row.flag
        mark += DOMINATOR * choose(from_list, choose(lives_until <= last, better, ZERO), longer)
        a, b = a + np.uint64(from_list), b + np.uint64(not from_list)
        longer += from_list & (lives_until >= last)
        better += not from_list
        if shows:
            mark, tally = emit_row(row, mark, g, window, at, tally, config, out)
        target = rows[to]
        target.score, target.time, target.position = row.score, row.time, row.position
        target.last, target.flag = lives_until, mark
        stays = (lives_until > gone) & (mark < DOMINATOR * k)
        to += np.uint64(stays | (changes & (mark & SHOWN > 0)))
    give_slab(pool, older)
    older.offset, older.length, older.capacity = new, np.int64(to) - new, 1 << c
    clock[TOTAL] -= before - older.length
    clock[STEPS] += before
    if older.length == 0:
        give_slab(pool, older)
    return tally


@part
def show(g, window, at, group, recent, config, pool, clock, out):
    """Emit the k best live rows of both lists. Returns how many expired rows it met."""
    k, rows, changes, one = config.k, pool.rows, takes_back(config.emit), np.uint64(1)
    a, b = np.uint64(group.offset), np.uint64(recent.offset)
    end_a, end_b = a + np.uint64(group.length), b + np.uint64(recent.length)
    tally = start_emitting(group, config, clock)
    while (tally[0] < k or (changes and tally[1] < group.shown)) and (a < end_a or b < end_b):
        # Most rows shown come from the older list, so the processor predicts this branch well and reads ahead.
        row = rows[a]
        if b < end_b and (a == end_a or not ranks_before(row, rows[b])):
            row = rows[b]
            b += one
        else:
            a += one
        mark, tally = emit_row(row, row.flag, g, window, at, tally, config, out)
        if not is_whole(config.emit):
            row.flag = mark
    clock[STEPS] += np.int64(a - np.uint64(group.offset)) + np.int64(b - np.uint64(recent.offset))
    return end_emitting(group, tally, config, clock, out)


# -- emitting the whole answer, what is new in it, or its difference from the last one. A tally has, so far: the number
# of live rows; of rows met that were in the last answer; where the next leaving row and the next entering row are
# written; the last window in which all shown rows live; the score of the last of them; and the number of expired rows.


@inlined
def may_differ(group, window, best, config):
    """May the answer differ from the last one? Not if that had k rows, all of them live, and no new row is better."""
    return group.shown < config.k or group.stays < window or not best < group.worst


@inlined
def emit_nothing():
    return ZERO, ZERO, np.uint64(0), np.uint64(0), ZERO + NEVER, -np.inf, ZERO


@inlined
def start_emitting(group, config, clock):
    """Start a tally. Leaving rows come first in the output, so entering rows are written behind the most that may
    leave."""
    leave = np.uint64(clock[OUT])
    enter = leave + np.uint64(group.shown if takes_back(config.emit) else 0)
    return ZERO, ZERO, leave, enter, ZERO + NEVER, -np.inf, ZERO


@inlined
def emit_row(row, mark, g, window, at, tally, config, out):
    """Emit the next row by rank, if the answer changes with it. Returns its new flag, and the tally."""
    rank, shown_rank, leave, enter, stays, worst, left = tally
    was_shown = mark & SHOWN
    shown_rank += was_shown
    if row.last >= window and rank < config.k:
        rank += 1
        stays, worst = min(stays, row.last), row.score
        if is_whole(config.emit) or not was_shown:
            put(out[enter], at, g, rank, row, ENTER, ZERO)
            enter += np.uint64(1)
        if not is_whole(config.emit):
            mark |= SHOWN
    else:
        left += row.last < window
        if takes_back(config.emit) and was_shown:
            put(out[leave], at, g, shown_rank, row, LEAVE, ZERO)
            leave += np.uint64(1)
            mark ^= SHOWN
    return mark, (rank, shown_rank, leave, enter, stays, worst, left)


@inlined
def end_emitting(group, tally, config, clock, out):
    """Close the gap between leaving and entering rows in the output. Returns how many expired rows were met."""
    rank, _, leave, enter, stays, worst, left = tally
    if takes_back(config.emit):
        first = np.uint64(clock[OUT] + group.shown)
        if leave != first:
            for i in range(enter - first):
                out[leave + i] = out[first + i]
        enter = leave + enter - first
    clock[OUT] = enter
    group.shown, group.stays, group.worst = rank, stays, worst
    return left
