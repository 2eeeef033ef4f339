"""How MinTopK closes a window: panes that are complete join the group's list, whose best k are shown.

`close_group` is the heart of it.
"""

from __future__ import annotations

import numpy as np

from skyband.operators.objects.mintopk_state import (
    CLOSED,
    DOMINATOR,
    FREE_CELL,
    NEVER,
    NEXT,
    SHOWN,
    TOTAL,
    has_room,
    tighten,
)
from skyband.operators.objects.showing import OUT, put
from skyband.operators.protocol import CHANGES, ENTER, LEAVE, WINDOWS
from skyband.structures.choosing import choose
from skyband.structures.compiling import inlined, kernel, part
from skyband.structures.panes import (
    last_window,
)
from skyband.structures.prefetching import prefetch
from skyband.structures.ranking import ZERO, is_best_first, ranks_before, sort_best_first
from skyband.structures.slabs import NONE, give_slab, size_class, take_slab


@kernel
def close_until(window, shape, rule, pool, groups, cells, clock, out):  # type: ignore[no-untyped-def]
    """Close every window up to this one that has something to show. False: stopped for lack of room."""
    while clock[NEXT] <= window:
        if not has_room(rule, pool, groups, clock, out):
            return False
        close_window(shape, rule, pool, groups, cells, clock, out)
    return True


@part
def close_window(shape, rule, pool, groups, cells, clock, out):  # type: ignore[no-untyped-def]
    """Close the next window for all groups, and find out which one is next after it."""
    window = clock[NEXT]
    at = (window + 1) * shape.every
    following = NEVER
    for g in range(len(groups)):
        if groups[g].length == 0 and groups[g].cell == NONE:
            continue
        if g + 1 < len(groups):
            fetch_ahead(groups[g + 1], pool, cells)
        close_group(g, window, at, shape, rule, pool, groups, cells, clock, out)
        if groups[g].length > 0:
            following = window + 1
        cell = groups[g].cell
        while cell != NONE:
            following = min(following, cells[cell].pane >> 1)
            cell = cells[cell].following
    clock[NEXT] = following
    clock[CLOSED] = max(clock[CLOSED], window + 1)


@inlined
def fetch_ahead(group, pool, cells):  # type: ignore[no-untyped-def]
    """The group's rows will be needed next: with many groups they are not in the cache."""
    for j in range(group.offset, group.offset + group.length, 2):
        prefetch(pool.rows, j)
    if group.cell != NONE:
        cell = cells[group.cell]
        for j in range(cell.offset, cell.offset + cell.length, 2):
            prefetch(pool.rows, j)


@part
def close_group(g, window, at, shape, rule, pool, groups, cells, clock, out):  # type: ignore[no-untyped-def]
    """Move what was seen of the window's panes into the group's list, show its best k, drop what none will show."""
    due = take_due(g, window, groups, cells)
    while due != NONE:
        cell = cells[due]
        if cell.length > rule.k:
            tighten(cell, rule, pool, clock)
        start, n = cell.offset, cell.length
        if not is_best_first(pool.rows, start, start + n):
            sort_best_first(pool.rows, start, start + n)
        following = take_due(g, window, groups, cells)
        last = last_window(shape, cell.pane)
        merge(g, groups[g], start, n, last, window, at, following == NONE, shape, rule, pool, clock, out)
        free_cell(due, pool, cells, clock)
        if following == NONE:
            return
        due = following
    merge(g, groups[g], ZERO, ZERO, ZERO, window, at, True, shape, rule, pool, clock, out)


@inlined
def take_due(g, window, groups, cells):  # type: ignore[no-untyped-def]
    """A cell of the group whose pane is in the window, no longer among its cells; NONE: there is none."""
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
def free_cell(cell, pool, cells, clock):  # type: ignore[no-untyped-def]
    give_slab(pool, cells[cell])
    cells[cell].group = NONE
    cells[cell].following = clock[FREE_CELL]
    clock[FREE_CELL] = cell


@part
def merge(g, group, start, n, last, window, at, shows, shape, rule, pool, clock, out):  # type: ignore[no-untyped-def]
    """Merge the group's list and n rows of a pane, both best first, into a new list of what a later window may show.

    `last` is the pane's last window. If it `shows`, there is no other pane, and the best k live rows are shown on the
    way. A row is outlived when k better rows have its last window or a later one: they are enough for every window it
    is in. Rows shown just now stay, for changes, to be seen leaving.
    """
    k, rows, changes = rule.k, pool.rows, rule.emit == CHANGES
    c = size_class(group.length + n + 1)  # one more, where a row is written that does not stay
    new, before = take_slab(pool, c), group.length + n
    # Indices without a sign, as in mintopk_gathering.py.
    a, b, to, one = np.uint64(group.offset), np.uint64(start), np.uint64(new), np.uint64(1)
    end_a, end_b = a + np.uint64(group.length), b + np.uint64(n)
    gone = window if shows else window - 1  # rows with this last window or an earlier one are needed no more
    rank, shown_rank = ZERO, ZERO
    better, longer = ZERO, ZERO  # so far: rows of the pane, and rows of the list that live as long as those
    # Leaving comes before entering, and both are met by rank: of those that enter a copy waits behind k that may leave.
    leave, enter = np.uint64(clock[OUT]), np.uint64(clock[OUT] + (k if changes else 0))
    first = enter
    for i in range(b, end_b):
        rows[i].last = last
    # Behind k rows of the latest pane all others are outlived.
    outlives_all = n >= k and last == window + shape.whole - (shape.rest == 0) and not changes
    while b < end_b or (a < end_a and not outlives_all):
        # Which list is next, and whether the row stays, nobody can guess: where it matters, there is no branch.
        from_list = (b == end_b) | ((a < end_a) & ranks_before(rows[a], rows[b]))
        row = rows[choose(from_list, a, b)]
        lives_until, mark = row.last, row.flag
        mark += DOMINATOR * (choose(lives_until <= last, better, ZERO) + choose(from_list, ZERO, longer))
        a, b = a + np.uint64(from_list), b + np.uint64(not from_list)
        longer += from_list & (lives_until >= last)
        better += not from_list
        if shows:
            rank += lives_until >= window
            shown_rank += mark & SHOWN
            if lives_until >= window and rank <= k:
                if rule.emit == WINDOWS or not mark & SHOWN:
                    put(out[enter], at, g, rank, row, ENTER, ZERO)
                    enter += one
                mark |= SHOWN
            elif changes and mark & SHOWN:
                put(out[leave], at, g, shown_rank, row, LEAVE, ZERO)
                leave += one
                mark ^= SHOWN
        target = rows[to]
        target.score, target.time, target.position = row.score, row.time, row.position
        target.last, target.flag = lives_until, mark
        stays = (lives_until > gone) & (mark < DOMINATOR * k)
        to += np.uint64(stays | (changes & (mark & SHOWN > 0)))
    if changes:
        for i in range(enter - first):
            out[leave + i] = out[first + i]
        enter = leave + enter - first
    clock[OUT] = enter
    give_slab(pool, group)
    group.offset, group.length, group.capacity = new, np.int64(to) - new, 1 << c
    clock[TOTAL] -= before - group.length
    if group.length == 0:
        give_slab(pool, group)
