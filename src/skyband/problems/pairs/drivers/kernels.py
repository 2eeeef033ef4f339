"""Loops for all pair drivers: rows that are put in before others, which get new numbers, and the entries of answers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.emit import ENTER, LEAVE, is_once, takes_back
from skyband.core.operator import Ints
from skyband.kernels.compiling import inlined, kernel, part


@kernel
def open_gaps(columns, colours, limit, time, position, places, tail):
    """Make room for one row before each of these places, ascending: rows behind s of them move up by s."""
    stop = tail
    for s in range(len(places), 0, -1):
        start = places[s - 1]
        for table in (columns, colours):
            for c in range(len(table)):
                for i in range(stop - 1, start - 1, -1):
                    table[c, i + s] = table[c, i]
        for i in range(stop - 1, start - 1, -1):
            limit[i + s] = limit[i]
            time[i + s] = time[i]
            position[i + s] = position[i]
        # No pair has the new row as its older one yet, so what the next row's pairs must reach is right for it too.
        new = start + s - 1
        limit[new] = limit[new + 1] if new + 1 < tail + len(places) else -np.inf
        stop = start


@inlined
def _moved_up(number, numbers):
    low, high = 0, len(numbers)
    while low < high:
        middle = (low + high) >> 1
        if numbers[middle] <= number:
            low = middle + 1
        else:
            high = middle
    return number + low


@kernel
def renumber(pairs, n, numbers):
    """Give pairs the new numbers of their rows, after rows were put in before these numbers, ascending."""
    for r in range(n):
        pair = pairs[r]
        pair.a = _moved_up(pair.a, numbers)
        pair.b = _moved_up(pair.b, numbers)


@inlined
def arrival_at(index, base, position):
    """When the row at this index arrived: see `WindowRows`."""
    return position[index] if len(position) else base + index


OUT, MARKED, SHOWN, NUMBERS = range(4)


class Shown(NamedTuple):
    """The last answer, and what became known since somebody last asked."""

    pairs: npt.NDArray[Any]  # of dtype PAIR, [0, SHOWN): with changes, the last answer, best first
    out: npt.NDArray[Any]  # of dtype ANSWER, [0, OUT): in the order in which it became known
    numbers: Ints  # OUT, SHOWN; and MARKED: with entries, [0, MARKED) of `out` need not be marked any more


@inlined
def ranks_before(score, a, b, other_score, other_a, other_b):
    """Does the first pair rank before the second?"""
    if score != other_score:
        return score > other_score
    if a != other_a:
        return a > other_a
    return b > other_b


@inlined
def _write(at, r, pair, change, shown):
    entry = shown.out[shown.numbers[OUT]]
    entry.at, entry.rank, entry.score, entry.change = at, r + 1, pair.score, change
    entry.a, entry.b = pair.a_position, pair.b_position
    shown.numbers[OUT] += 1


@part
def _write_missing(at, pairs, n, others, m, change, shown):
    """Write those of `pairs` that are not among `others`: both are best first."""
    i = 0
    for r in range(n):
        pair = pairs[r]
        while i < m and ranks_before(others[i].score, others[i].a, others[i].b, pair.score, pair.a, pair.b):
            i += 1
        if i == m or others[i].a != pair.a or others[i].b != pair.b:
            _write(at, r, pair, change, shown)


@part
def show(emit, at, top, n, shown):
    """The answer is now the first n pairs of the top, best first: write what is to be said of it."""
    if takes_back(emit):
        m = shown.numbers[SHOWN]
        _write_missing(at, shown.pairs, m, top, n, LEAVE, shown)
        _write_missing(at, top, n, shown.pairs, m, ENTER, shown)
        for r in range(n):
            shown.pairs[r] = top[r]
        shown.numbers[SHOWN] = n
    else:
        for r in range(n):
            if not is_once(emit) or top[r].flag == 0:
                _write(at, r, top[r], ENTER, shown)
                top[r].flag = 1


@kernel
def show_answer(emit, at, top, n, shown):
    """As `show`, when a window closes."""
    show(emit, at, top, n, shown)
