"""The compiled steps of tied ranks: one ranked list a group, and answers that show all rows of rank k or better."""

from __future__ import annotations

from typing import NamedTuple

from skyband.core.emit import ENTER, LEAVE, is_once, takes_back
from skyband.kernels.compiling import inlined, part
from skyband.kernels.emit import write
from skyband.kernels.ranking import ZERO, ranks_before
from skyband.kernels.skyband import first_row, insert, rank_of
from skyband.kernels.slabs import reserve
from skyband.problems.rows.algorithms.filtered.kernels import add_latest
from skyband.problems.rows.drivers.step_kernels import steps
from skyband.problems.rows.operator import DENSE
from skyband.windows import NEVER


class TiedKind(NamedTuple):
    """The kind of this algorithm, for `step_kernels.steps`."""

    ties: int  # RANK or DENSE
    slack: int  # a list is pruned when it has twice the rows left last time and this many more


FIELDS: dict[str, int | float] = {"limit": 0}  # the list is pruned when it has this many rows; 0: not known yet


@inlined
def next_rank(ties, rank, rows, start, r):
    """The rank of row r of the ranked list at `start`, given the rank of the row before it."""
    if r > 0 and rows[start + r].score == rows[start + r - 1].score:
        return rank
    return rank + 1 if ties == DENSE else r + 1


@part
def rows_shown(ties, k, pool, band):
    """How many rows of the list have a rank of k or better."""
    rows, start, rank = pool.rows, first_row(band), ZERO
    for r in range(band.length):
        rank = next_rank(ties, rank, rows, start, r)
        if rank > k:
            return r
    return band.length


@part
def prune(band, ties, k, pool, latest):
    """Drop the rows that k strictly better rows outlive; with dense ranks, that rows of k better scores outlive.

    `latest` has the k latest times of better rows; with dense ranks, it counts only the latest time of each score.
    """
    rows, start = pool.rows, first_row(band)
    kept, in_heap, r, end = ZERO, ZERO, start, start + band.length
    while r < end:
        score, newest, first = rows[r].score, rows[r].time, kept  # among equal scores the latest row comes first
        while r < end and rows[r].score == score:
            if in_heap < k or rows[r].time > latest[0]:
                rows[start + kept] = rows[r]
                kept += 1
            r += 1
        if ties == DENSE:
            in_heap = add_latest(latest, in_heap, k, newest)
        else:
            for i in range(first, kept):
                in_heap = add_latest(latest, in_heap, k, rows[start + i].time)
    band.length = kept


@inlined
def take_row(kind, g, score, time, position, config, pool, state):
    group, band = state.groups[g], state.lists[0, g]
    rank = rank_of(pool, band, score, time, position)
    insert(pool, band, rank, config.k, score, time, position)
    group.oldest = min(group.oldest, time)
    is_shown = rank < rows_shown(kind.ties, config.k, pool, band)
    if band.length >= max(group.limit, kind.slack):
        prune(band, kind.ties, config.k, pool, state.latest)
        group.limit = 2 * band.length + kind.slack
    return is_shown


@inlined
def drop_rows(kind, g, limit, config, pool, state):
    group, band = state.groups[g], state.lists[0, g]
    rows, start, kept, oldest = pool.rows, first_row(band), ZERO, NEVER
    for r in range(start, start + band.length):
        if rows[r].time >= limit:
            oldest = min(oldest, rows[r].time)
            if start + kept != r:
                rows[start + kept] = rows[r]
            kept += 1
    changed = kept < band.length
    band.length, group.oldest = kept, oldest
    return changed


@inlined
def show_tied(kind, g, at, order, config, pool, state, out):
    """Write group g's answer, or its difference from the last one."""
    answer, shown, written, rows = state.lists[0, g], state.shown[g], state.clock, pool.rows
    n, start = rows_shown(kind.ties, config.k, pool, answer), first_row(answer)
    if takes_back(config.emit):
        reserve(pool, shown, n)
        m, last = shown.length, shown.offset
        write_missing(g, at, order, kind.ties, rows, last, m, start, n, LEAVE, written, out)
        write_missing(g, at, order, kind.ties, rows, start, n, last, m, ENTER, written, out)
        for r in range(n):
            rows[last + r] = rows[start + r]
        shown.length = n
        return
    rank = ZERO
    for r in range(n):
        rank = next_rank(kind.ties, rank, rows, start, r)
        if not is_once(config.emit) or not rows[start + r].flag & 1:
            write(out, written, at, g, rank, rows[start + r], ENTER, order)
        rows[start + r].flag |= 1


@part
def write_missing(g, at, order, ties, rows, a, n, b, m, change, written, out):
    """Write the rows of the ranked list at a, n rows, that are not in the list at b, m rows, with their ranks."""
    i, rank = 0, ZERO
    for r in range(n):
        rank = next_rank(ties, rank, rows, a, r)
        while i < m and ranks_before(rows[b + i], rows[a + r]):
            i += 1
        if i == m or rows[b + i].position != rows[a + r].position:
            write(out, written, at, g, rank, rows[a + r], change, order)


steps(TiedKind, take_row, drop_rows, show_some=show_tied)
