"""Rows that wait for their first window, and live rows in the order in which they leave.

Rows of one cell that come and leave together, with the same values missing, can be merged into one row with a weight
and their sums or extremes. Then state and work are one row for each cell and pane, however many rows came.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.core.clock import earliest_times, first_ends, last_ends
from skyband.core.operator import Ints
from skyband.problems.joins.drivers.kernels import NONE, coalesce
from skyband.problems.joins.operator import ADDED, Rows

_MOST = 2.0**62  # no sum of values may reach this


class Coming(NamedTuple):
    """Rows of one input that wait or come now."""

    start: Ints  # the first moment at which they are live
    last: Ints  # the last one
    cell: Ints
    arguments: Ints
    valid: Ints
    weight: Ints  # how many rows it stands for

    def take(self, rows: Ints | slice) -> Coming:
        return Coming(*(column[rows] for column in self))


def nothing(arguments: int) -> Coming:
    zero = np.zeros(0, np.int64)
    return Coming(zero, zero, zero, np.zeros((0, arguments), np.int64), zero, zero)


def in_order(waiting: Coming, more: Coming) -> Coming:
    """Merge rows in order of `start`, then of arrival."""
    start = more.start
    ordered = not len(start) or bool(np.all(start[1:] >= start[:-1]))
    more = more if ordered else more.take(np.argsort(start, kind="stable"))
    if not len(waiting.start):
        return more
    if not len(more.start):
        return waiting
    # Most rows belong behind the waiting rows, so only the others are sorted.
    kept = int(np.searchsorted(waiting.start, more.start[0], side="right"))
    both = Coming(*(np.concatenate(columns) for columns in zip(waiting, more, strict=True)))
    if kept == len(waiting.start):
        return both
    order = np.argsort(both.start[kept:], kind="stable") + kept
    return both.take(np.concatenate([np.arange(kept), order]))


def coalesced(rows: Coming, ways: tuple[int, ...]) -> Coming:
    """Merge the rows of a cell that come and leave together with the same values missing. `ways` tells how to merge
    each argument.

    Returns the same rows if few would be saved, or if a sum might overflow.
    """
    n, added = len(rows.start), [a for a, way in enumerate(ways) if way == ADDED]
    largest = np.abs(rows.arguments[:, added].astype(np.float64)).max(initial=0.0)
    if n < 2 or largest * n >= _MOST:
        return rows
    found = int(coalesce(*rows, np.array(ways, np.int64), np.full(1 << (2 * n - 1).bit_length(), NONE, np.int64)))
    return rows if found == n else rows.take(slice(0, found))


def windows_of(time: Ints, size: int, every: int) -> tuple[Ints, Ints]:
    """The ends of the first and of the last window that hold rows of these times."""
    return first_ends(time, every), last_ends(time, size, every)


def one_for_each_pane(rows: Rows, ways: tuple[int, ...], size: int, every: int) -> Rows:
    """Merge rows before it is known which windows have closed: rows of the same windows come and leave together."""
    weight = np.ones(len(rows.time), np.int64) if rows.weight is None else rows.weight
    windows = windows_of(rows.time, size, every)
    some = coalesced(Coming(*windows, rows.cell.astype(np.int64), rows.arguments, rows.valid, weight), ways)
    return Rows(
        earliest_times(some.start, some.last, size, every),
        some.cell.astype(np.int32),
        some.arguments,
        some.valid,
        some.weight,
    )


class ExpiryQueue:
    """The slots of live rows of one input, in the order in which the rows leave."""

    def __init__(self) -> None:
        self._last = np.zeros(64, np.int64)
        self._slot = np.zeros(64, np.int64)
        self._begin = self._end = 0

    def __len__(self) -> int:
        return self._end - self._begin

    @property
    def last(self) -> Ints:
        return self._last[self._begin : self._end]

    @property
    def slot(self) -> Ints:
        return self._slot[self._begin : self._end]

    def add(self, last: Ints, slot: Ints) -> None:
        n = len(last)
        if not n:
            return
        if not np.all(last[1:] >= last[:-1]):
            order = np.argsort(last, kind="stable")
            last, slot = last[order], slot[order]
        self._make_room(n)
        at = self._begin + int(np.searchsorted(self.last, last[0], side="right"))
        tail = slice(at, self._end + n)
        self._last[self._end : self._end + n] = last
        self._slot[self._end : self._end + n] = slot
        if at < self._end:
            order = np.argsort(self._last[tail], kind="stable")
            self._last[tail] = self._last[tail][order]
            self._slot[tail] = self._slot[tail][order]
        self._end += n

    def pop(self, before: int) -> tuple[Ints, Ints]:
        """Remove the rows that leave before this moment. Returns their last moments and their slots."""
        gone = int(np.searchsorted(self.last, before))
        taken = slice(self._begin, self._begin + gone)
        self._begin += gone
        return self._last[taken].copy(), self._slot[taken].copy()

    def _make_room(self, n: int) -> None:
        if self._end + n <= len(self._last):
            return
        size = max(64, 2 * (len(self) + n))
        for name in ("_last", "_slot"):
            old = getattr(self, name)
            new = np.zeros(size, np.int64)
            new[: len(self)] = old[self._begin : self._end]
            setattr(self, name, new)
        self._begin, self._end = 0, len(self)


class NumberPool:
    """Hands out small whole numbers, and takes them back."""

    def __init__(self) -> None:
        self._free = np.zeros(0, np.int64)
        self.limit = 0  # all numbers taken so far are below it

    def take(self, n: int) -> Ints:
        again = min(n, len(self._free))
        taken = np.concatenate([self._free[len(self._free) - again :], np.arange(self.limit, self.limit + n - again)])
        self._free = self._free[: len(self._free) - again]
        self.limit += n - again
        return taken

    def fresh(self, n: int) -> Ints:
        """Numbers that were never given before: none of them has been taken back just now."""
        self.limit += n
        return np.arange(self.limit - n, self.limit)

    def give(self, numbers: Ints) -> None:
        if len(numbers):
            self._free = np.concatenate([self._free, numbers])


def runs(start: Ints, last: Ints, every: int) -> tuple[Ints, Ints]:
    """The runs of windows, `every` apart, that hold a row: the ends of the first and last window of each run."""
    if not len(start):
        return start, last
    reach = np.maximum.accumulate(last)
    breaks = np.flatnonzero(start[1:] - every > reach[:-1])  # reach + every could overflow
    return start[np.concatenate([[0], breaks + 1])], reach[np.concatenate([breaks, [len(start) - 1]])]


def in_both(a: tuple[Ints, Ints], b: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
    """The intersection of two lists of runs."""
    found = []
    for first, last in zip(a[0].tolist(), a[1].tolist(), strict=True):
        begin = int(np.searchsorted(b[1], first))
        end = int(np.searchsorted(b[0], last, side="right"))
        found += [
            (max(first, c), min(last, d))
            for c, d in zip(b[0][begin:end].tolist(), b[1][begin:end].tolist(), strict=True)
        ]
    some = [(first, last) for first, last in found if first <= last]
    return np.array([first for first, _ in some], np.int64), np.array([last for _, last in some], np.int64)
