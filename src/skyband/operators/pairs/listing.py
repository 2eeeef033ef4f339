"""A staircase that lists older rows in some order, so that a new row need not meet them all.

The latest rows are swept as by `staircase`: there most pairs pass, and rows come and go. When enough of them have grown
older, they are listed. Rows that cannot be, and late ones until the next listing, are `odd`: every new row meets them.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from skyband.operators.pairs.protocol import Spec
from skyband.operators.pairs.rows import Rows
from skyband.operators.pairs.staircase import Staircase
from skyband.operators.protocol import Arrays, Ints

_NONE = np.empty(0, np.int64)


class Listing(Staircase):
    """`share`, `least`: the latest n / share rows, but at least so many, are not listed."""

    def __init__(self, spec: Spec, *, batch: int, room: int, step: int, share: int, least: int) -> None:
        super().__init__(spec, batch=batch, room=room, step=step)
        self._share, self._latest = share, least
        self._odd = _NONE  # numbers of rows that are in no list
        self._end = 0  # rows with a smaller number are listed, or odd

    # -- below: what an algorithm says ----------------------------------------------------------------------------

    @abstractmethod
    def _look_up(self, first: int, heads: Ints, boundary: int, n: int) -> int:
        """Candidates among listed and odd rows, all before `boundary`, behind the first n; -1 if there is no room."""

    @abstractmethod
    def _list_rows(self, numbers: Ints, start: int) -> Ints:
        """List these rows too, and drop those numbered before `start`; returns which cannot be listed."""

    @abstractmethod
    def _renumber_listed(self, number: int) -> None:
        """A row was put in before this number: it and all later rows have the next one."""

    @abstractmethod
    def _forget_listed(self) -> None:
        """Nothing is listed."""

    # -- what Staircase asks for ----------------------------------------------------------------------------------

    def _sweep(self, first: int, heads: Ints, start: int) -> tuple[int, int]:
        window = self._rows
        boundary = max(self._end - window.base, window.head)
        # A late row may be older than listed ones. And where too many pairs pass, all are looked at, in order.
        if boundary == window.head or first < boundary or start > heads[0]:
            return super()._sweep(first, heads, start)
        n, reached = super()._sweep(first, np.maximum(heads, boundary), max(start, boundary))
        if reached == first:
            n = self._look_up(first, heads, boundary, n)
            if n >= 0:
                return n, first
        if len(heads) == 1:
            return super()._sweep(first, heads, start)
        return 0, start if start < first else first - 1

    def _insert(self, row: Rows) -> None:
        window = self._rows
        number = window.base + window.place_of(int(row.time[0]), int(row.position[0]))
        if number < self._end:
            self._renumber_listed(number)
            self._odd = np.append(self._odd + (self._odd >= number), number)
            self._end += 1
        super()._insert(row)

    def _expire(self, head: int) -> None:
        super()._expire(head)
        self._list()

    def _restored(self, state: Arrays) -> None:
        super()._restored(state)
        self._list_anew()

    def recolour(self, which: int, kept: Ints) -> None:
        super().recolour(which, kept)
        self._list_anew()

    # -- inside ---------------------------------------------------------------------------------------------------

    def _list_anew(self) -> None:
        self._forget_listed()
        self._odd = _NONE
        self._end = self._rows.base + self._rows.head
        self._list()

    def _list(self) -> None:
        """List rows that are no longer among the latest, when enough of them have come."""
        window = self._rows
        latest = max(self._latest, window.count // self._share)
        start, end = window.base + window.head, window.base + window.tail
        self._end = max(self._end, start)
        if end - self._end >= 2 * latest:
            numbers = np.concatenate([self._odd[self._odd >= start], np.arange(self._end, end - latest)])
            self._odd, self._end = self._list_rows(numbers, start), end - latest
