"""How MinTopK closes a window: panes that are complete join the group's list, whose best k are shown.

`close_group` is the heart of it.
"""

from __future__ import annotations

from skyband.operators.objects.mintopk_state import (
    CLOSED,
    FREE_CELL,
    NEVER,
    NEXT,
    TOTAL,
    has_room,
    tighten,
)
from skyband.operators.objects.showing import write
from skyband.operators.protocol import CHANGES, ENTER, LEAVE, WINDOWS
from skyband.structures.compiling import inlined, kernel, part
from skyband.structures.heap import push_heap
from skyband.structures.panes import (
    last_window,
)
from skyband.structures.ranking import SMALL, ranks_before, sort_best_first
from skyband.structures.slabs import NONE, give_slab, reserve


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
def close_group(g, window, at, shape, rule, pool, groups, cells, clock, out, scratch):  # type: ignore[no-untyped-def]
    """Move what was seen of the window's panes into the group's list, show its best k, drop what none will show."""
    merge_cells(g, window, shape, rule, pool, groups, cells, clock)
    start, n = groups[g].offset, groups[g].length
    if rule.emit == CHANGES:
        show_leaving(g, start, n, window, at, rule.k, pool.rows, clock, out)
    show_best(g, start, n, window, at, rule, pool.rows, clock, out)
    kept = prune(start, n, window, shape, rule, pool.rows, scratch)
    clock[TOTAL] -= n - kept
    if kept == 0:
        give_slab(pool, groups[g])
    groups[g].length = kept


@part
def merge_cells(g, window, shape, rule, pool, groups, cells, clock):  # type: ignore[no-untyped-def]
    """Merge the best k of every pane up to the window's end into the group's list, and free the cells."""
    total, cell = groups[g].length, groups[g].cell
    while cell != NONE:
        if cells[cell].pane >> 1 <= window:
            if cells[cell].length > rule.k:
                tighten(cells[cell], rule, pool, clock)
            total += cells[cell].length
        cell = cells[cell].following
    reserve(pool, groups[g], total)

    previous, cell = NONE, groups[g].cell
    while cell != NONE:
        following = cells[cell].following
        if cells[cell].pane >> 1 <= window:
            merge_cell(groups[g], cells[cell], shape, rule, pool)
            if previous == NONE:
                groups[g].cell = following
            else:
                cells[previous].following = following
            cells[cell].group = NONE
            cells[cell].following = clock[FREE_CELL]
            clock[FREE_CELL] = cell
        else:
            previous = cell
        cell = following


@inlined
def merge_cell(group, cell, shape, rule, pool):  # type: ignore[no-untyped-def]
    """Merge the cell's rows into the group's list, by rank, from the worst up: there is room behind the list."""
    rows, start, n = pool.rows, cell.offset, cell.length
    if rule.k > SMALL:
        sort_best_first(rows, start, start + n)
    last = last_window(shape, cell.pane)
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
    give_slab(pool, cell)


@inlined
def show_leaving(g, start, n, window, at, k, rows, clock, out):  # type: ignore[no-untyped-def]
    """Rows that the previous window showed and this one does not. Flagged rows are the last answer, in its order."""
    rank, old_rank = 0, 0
    for j in range(start, start + n):
        live = rows[j].last >= window
        rank += live
        if rows[j].flag:
            old_rank += 1
            if not live or rank > k:
                write(out, clock, at, g, old_rank, rows[j], LEAVE, 0)
                rows[j].flag = 0


@inlined
def show_best(g, start, n, window, at, rule, rows, clock, out):  # type: ignore[no-untyped-def]
    """The first k live rows are the window's answer."""
    rank = 0
    for j in range(start, start + n):
        if rows[j].last < window:
            continue
        rank += 1
        if rank > rule.k:
            break
        if rule.emit == WINDOWS or not rows[j].flag:
            write(out, clock, at, g, rank, rows[j], ENTER, 0)
        rows[j].flag = 1


@inlined
def prune(start, n, window, shape, rule, rows, scratch):  # type: ignore[no-untyped-def]
    """Keep, best first, the rows that a later window may show; return how many.

    A row is outlived when k better rows have its last window or a later one: they are enough for every window it is in.
    Rows shown just now stay, for changes, to be seen leaving.
    """
    kept = 0
    in_heap = 0
    counted = shape.whole <= rule.k
    outlived = window  # rows with this last window or an earlier one are outlived
    longer = 0  # counted: rows kept so far whose last window is later than `outlived`
    if counted:
        scratch[: shape.whole + 1] = 0
    for j in range(start, start + n):
        last = rows[j].last
        if last > outlived:
            if counted:
                # scratch[i]: rows kept so far with last window + i. Few windows: cheaper than a heap.
                scratch[last - window] += 1
                longer += 1
                while longer >= rule.k:
                    outlived += 1
                    longer -= scratch[outlived - window]
            else:
                # A heap of the k latest last windows, the earliest on top.
                in_heap = push_heap(scratch, in_heap, rule.k, last)
                if in_heap == rule.k:
                    outlived = max(outlived, scratch[0])
        elif not (rule.emit == CHANGES and rows[j].flag):
            continue
        if start + kept != j:
            rows[start + kept] = rows[j]
        kept += 1
    return kept
