"""Lets rows go for `budgeted`: it keeps their scores and drops their columns, within the query's error."""

from __future__ import annotations

import numpy as np

from skyband.core.emit import is_once
from skyband.kernels.compiling import inlined, part
from skyband.kernels.emit import GONE
from skyband.kernels.skyband import first_row

MISSED = 2 * GONE  # a bit of the flag of a row that was let go: it has belonged in an answer since


@part
def let_go(g, config, pool, state):
    """Mark the worst rows of a band that was just pruned as gone, as many as the budget allows.

    An answer may yet show any row of the band, so each that is gone uses up the budget until k better rows outlive it.
    If scores fall, most rows of the band are shown, so it lets no more go.
    """
    group, spent, rows = state.groups[g], state.spent[g], pool.rows
    allowed = np.int64(config.error * group.arrivals / config.size) - spent.missed
    allowed = allowed if group.length <= config.usual else 0
    if allowed <= 0 and spent.gone == 0:
        return
    start, gone, best = first_row(group), 0, -np.inf
    for r in range(start, start + group.length):
        if rows[r].flag >= GONE and rows[r].flag < MISSED:
            best = rows[r].score if gone == 0 else best
            gone += 1
    r = start + group.length - 1
    while r >= start + config.candidates and gone < allowed:
        if rows[r].flag < GONE:
            rows[r].flag += GONE
            best = max(best, rows[r].score)
            gone += 1
        r -= 1
    spent.gone, spent.best = gone, best


@inlined
def count_missed(g, n, config, pool, state):
    """Count the gone rows among the first n, which are about to be shown: each of them is missed now."""
    group, spent, rows = state.groups[g], state.spent[g], pool.rows
    start = first_row(group)
    if spent.gone == 0 or (n == config.k and rows[start + n - 1].score > spent.best):
        return
    for r in range(start, start + n):
        flag = rows[r].flag
        if flag >= GONE and flag < MISSED and not (is_once(config.emit) and flag & 1):
            rows[r].flag += MISSED
            spent.gone -= 1
            spent.missed += 1
