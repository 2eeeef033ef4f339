"""Kernels that write answers: a whole ranked list, or its difference from the previous one.

A difference has the rows that leave, then the rows that enter, both by rank. `out` has room for all of them, and
`written[OUT]` counts the entries written.
"""

from __future__ import annotations

from skyband.core.emit import ENTER, LEAVE, is_once, takes_back
from skyband.kernels.compiling import inlined
from skyband.kernels.ranking import exceeds, ranks_before
from skyband.kernels.skyband import first_row, insert, rank_of, remove
from skyband.kernels.slabs import reserve

OUT = 0  # the index, in every array of a kernel's counts, of the entries written to the output

# A bit of a row's flag: `budgeted` has dropped the row's columns, so no answer can show it.
GONE = 1 << 40
HOLE = 3  # the change of an entry about such a row is multiplied by this, so that readers can leave it out


@inlined
def put(entry, at, g, rank, row, change, order):
    """Fill one entry of the answer. `order` is the batch's row that caused it, if entries are not written in order."""
    entry.at = at
    entry.group = g
    entry.rank = rank
    entry.score = row.score
    entry.position = row.position
    entry.change = change
    entry.order = order


@inlined
def write(out, written, at, g, rank, row, change, order):
    """Write the next entry of the answer."""
    put(out[written[OUT]], at, g, rank, row, change if row.flag < GONE else HOLE * change, order)
    written[OUT] += 1


@inlined
def show(g, at, order, start, n, emit, pool, shown, written, out):
    """Write the answer of group g, the n rows from `start` on; or its difference from `shown`, the last answer.

    For entries, a bit of a row's flag tells whether it was ever shown.
    """
    rows = pool.rows
    if takes_back(emit):
        reserve(pool, shown, n)
        m, last = shown.length, shown.offset
        same, end = write_differences(g, at, order, rows, last, m, rows, start, n, written, out)
        for r in range(same, end):
            rows[last + r] = rows[start + r]
        if n != m:
            shown.length = n
        return
    for r in range(n):
        row = rows[start + r]
        if not is_once(emit) or not row.flag & 1:
            write(out, written, at, g, r + 1, row, ENTER, order)
        row.flag |= 1


@inlined
def write_differences(g, at, order, old, a, m, new, b, n, written, out):
    """Write the rows that left and entered a ranked list: before, m rows of `old` at a; now, n rows of `new` at b.

    Returns the range of ranks in which the two lists may differ.
    """
    same = 0
    while same < min(n, m) and old[a + same].position == new[b + same].position:
        same += 1
    if n == m:
        while n > same and old[a + n - 1].position == new[b + n - 1].position:
            n -= 1
        m = n
    write_missing(g, at, order, old, a, m, new, b, n, same, LEAVE, written, out)
    write_missing(g, at, order, new, b, n, old, a, m, same, ENTER, written, out)
    return same, n


@inlined
def write_missing(g, at, order, rows, a, n, others, b, m, first, change, written, out):
    """Write rows [first, n) of the ranked list at a that are not among rows [first, m) of the other list, at b."""
    i = first
    for r in range(first, n):
        while i < m and ranks_before(others[b + i], rows[a + r]):
            i += 1
        if i == m or others[b + i].position != rows[a + r].position:
            write(out, written, at, g, r + 1, rows[a + r], change, order)


@inlined
def show_replaced(g, at, order, row, answer, k, pool, shown, written, out):
    """Write how the answer, the first k rows of a list, differs from `shown`, the band with the previous answer.

    It handles only the case in which one row replaced another, and finds it without comparing all k rows; otherwise it
    writes nothing and returns False. `row` has whether this step took a row, and its score, time and position. Any
    other row that was not shown ranks after all rows that were.
    """
    taken, score, time, position = row
    if shown.length < k or answer.length < k:
        return False
    rows, new, old = pool.rows, first_row(answer), first_row(shown)
    entered = k - 1
    last_new, last_old = rows[new + k - 1], rows[old + k - 1]
    if taken and not exceeds(last_new, score, time, position):
        entered = min(rank_of(pool, answer, score, time, position), k - 1)
    elif not ranks_before(last_old, last_new):
        return True  # no row entered, so none left
    # If the last of the other rows was shown, then all of them were, so exactly one row that was shown is missing.
    if k > 1 and ranks_before(last_old, rows[new + k - 1 - (entered == k - 1)]):
        return False
    left, high = 0, k - 1
    while left < high:
        middle = (left + high) >> 1
        if rows[old + middle].position == rows[new + middle + (middle >= entered)].position:
            left = middle + 1
        else:
            high = middle
    write(out, written, at, g, left + 1, rows[old + left], LEAVE, order)
    one = rows[new + entered]
    write(out, written, at, g, entered + 1, one, ENTER, order)
    remove(pool, shown, left)
    insert(pool, shown, entered, k, one.score, one.time, one.position)
    return True
