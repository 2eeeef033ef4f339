"""How MinTopK closes a window: panes that are complete join the group's list, whose best k are shown.

`close_group` is the heart of it.
"""

from __future__ import annotations

import numpy as np

from skyband.operators.objects.mintopk_state import (
    CLOSED,
    FREE_CELL,
    NEVER,
    NEXT,
    TOTAL,
    has_room,
    tighten,
)
from skyband.operators.objects.showing import OUT, put
from skyband.operators.protocol import CHANGES, ENTER, LEAVE, WINDOWS
from skyband.structures.compiling import inlined, kernel, part
from skyband.structures.heap import push_heap
from skyband.structures.panes import (
    last_window,
)
from skyband.structures.prefetching import prefetch
from skyband.structures.ranking import ZERO, is_best_first, ranks_before, sort_best_first
from skyband.structures.slabs import NONE, give_slab, reserve, size_class, take_slab


@kernel
def close_until(window, shape, rule, pool, groups, cells, clock, out, work):  # type: ignore[no-untyped-def]
    """Close every window up to this one that has something to show. False: stopped for lack of room."""
    while clock[NEXT] <= window:
        if not has_room(rule, pool, groups, clock, out):
            return False
        close_window(shape, rule, pool, groups, cells, clock, out, work)
    return True


@part
def close_window(shape, rule, pool, groups, cells, clock, out, work):  # type: ignore[no-untyped-def]
    """Close the next window for all groups, and find out which one is next after it."""
    window = clock[NEXT]
    at = (window + 1) * shape.every
    following = NEVER
    for g in range(len(groups)):
        if groups[g].length == 0 and groups[g].cell == NONE:
            continue
        if g + 1 < len(groups):
            fetch_ahead(groups[g + 1], pool, cells)
        close_group(g, window, at, shape, rule, pool, groups, cells, clock, out, work.counts)
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
def close_group(g, window, at, shape, rule, pool, groups, cells, clock, out, scratch):  # type: ignore[no-untyped-def]
    """Move what was seen of the window's panes into the group's list, show its best k, drop what none will show."""
    pane = NONE
    due = take_due(g, window, groups, cells)
    while due != NONE:
        if cells[due].length > rule.k:
            tighten(cells[due], rule, pool, clock)
        if not is_best_first(pool.rows, cells[due].offset, cells[due].offset + cells[due].length):
            sort_best_first(pool.rows, cells[due].offset, cells[due].offset + cells[due].length)
        if pane != NONE:
            merge_cell(groups[g], cells[pane], shape, pool)
            free_cell(pane, pool, cells, clock)
        pane = due
        due = take_due(g, window, groups, cells)
    start, n, last = 0, 0, 0
    if pane != NONE:
        start, n, last = cells[pane].offset, cells[pane].length, last_window(shape, cells[pane].pane)
    before = groups[g].length + n
    merge_and_show(g, groups[g], start, n, last, window, at, shape, rule, pool, clock, out, scratch)
    clock[TOTAL] -= before - groups[g].length
    if pane != NONE:
        free_cell(pane, pool, cells, clock)


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
def merge_cell(group, cell, shape, pool):  # type: ignore[no-untyped-def]
    """Merge the cell's rows into the group's list, by rank, from the worst up: there is room behind the list.

    For a second pane that closes with the same window.
    """
    n = cell.length
    reserve(pool, group, group.length + n)
    rows, start, last = pool.rows, cell.offset, last_window(shape, cell.pane)
    old, i, j = group.offset, group.length - 1, n - 1
    while j >= 0:
        # Rows after old + i + j + 1 are in place.
        if i >= 0 and ranks_before(rows[start + j], rows[old + i]):
            rows[old + i + j + 1] = rows[old + i]
            i -= 1
        else:
            target = rows[old + i + j + 1]
            rows[old + i + j + 1] = rows[start + j]
            target.last = last
            target.flag = 0
            j -= 1
    group.length += n


@part
def merge_and_show(g, group, start, n, last, window, at, shape, rule, pool, clock, out, scratch):  # type: ignore[no-untyped-def]
    """Merge the group's list and n rows of a pane, both best first, into a new list of what a later window may show.

    On the way the best k live rows are shown. `last` is the pane's last window.
    A row is outlived when k better rows have its last window or a later one: they are enough for every window it is in.
    Rows shown just now stay, for changes, to be seen leaving.
    """
    k, rows, changes = rule.k, pool.rows, rule.emit == CHANGES
    c = size_class(group.length + n + 1)  # one more, where a row is written that does not stay
    new = take_slab(pool, c)
    # Indices without a sign, as in mintopk_gathering.py.
    a, b, to, one = np.uint64(group.offset), np.uint64(start), np.uint64(new), np.uint64(1)
    end_a, end_b = a + np.uint64(group.length), b + np.uint64(n)
    rank, shown_rank, in_heap = ZERO, ZERO, 0
    # Leaving comes before entering, and both are met by rank: of those that enter a copy waits behind k that may leave.
    leave, enter = np.uint64(clock[OUT]), np.uint64(clock[OUT] + (k if changes else 0))
    first = enter
    counted = shape.whole <= k
    outlived = window  # rows with this last window or an earlier one are outlived
    longer = 0  # counted: rows kept so far whose last window is later than `outlived`
    if counted:
        scratch[: shape.whole + 1] = 0
    while a < end_a or b < end_b:
        # Which list is next, and whether the row stays, nobody can guess: where it matters, there is no branch.
        from_list = a < end_a if b == end_b else a < end_a and ranks_before(rows[a], rows[b])
        row = rows[a if from_list else b]
        lives_until, flag = row.last if from_list else last, row.flag if from_list else ZERO
        a, b = a + np.uint64(from_list), b + np.uint64(not from_list)
        rank += lives_until >= window
        shown_rank += flag
        if lives_until >= window and rank <= k:
            if rule.emit == WINDOWS or not flag:
                put(out[enter], at, g, rank, row, ENTER, ZERO)
                enter += one
            flag = 1
        elif changes and flag:
            put(out[leave], at, g, shown_rank, row, LEAVE, ZERO)
            leave += one
            flag = 0
        stays = lives_until > outlived
        if counted:
            # scratch[i]: rows kept so far with last window + i. Few windows: cheaper than a heap.
            scratch[np.uint64(max(lives_until - window, 0))] += stays
            longer += stays
            while longer >= k:
                outlived += 1
                longer -= scratch[outlived - window]
        elif stays:
            # A heap of the k latest last windows, the earliest on top.
            in_heap = push_heap(scratch, in_heap, k, lives_until)
            if in_heap == k:
                outlived = max(outlived, scratch[0])
        target = rows[to]
        target.score, target.time, target.position = row.score, row.time, row.position
        target.last, target.flag = lives_until, flag
        to += np.uint64(stays or (changes and flag))
    if changes:
        for i in range(enter - first):
            out[leave + i] = out[first + i]
        enter = leave + enter - first
    clock[OUT] = enter
    give_slab(pool, group)
    group.offset, group.length, group.capacity = new, np.int64(to) - new, 1 << c
    if group.length == 0:
        give_slab(pool, group)
