"""A staircase that lists older rows in some order, so that a new row need not meet them all.

A new row sweeps the latest rows, as `staircase` does: most pairs pass there, and rows come and go. When enough rows
have grown older, they are listed. A row that cannot be listed, or that came late, is `odd` until the next listing:
every new row meets it.

Looking rows up one by one pays only if they are few. How many they are depends on the values and on `same`, `different`
and `where`, so the operator measures it while rows come. Where sweeping all rows is cheaper, it sweeps, and tries to
look rows up again later, after twice as many batches each time that it did not pay.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

import numpy as np

from skyband.core.operator import Arrays, Ints
from skyband.problems.pairs.algorithms.staircase.state import Staircase
from skyband.problems.pairs.drivers.window_rows import Rows, WindowRows
from skyband.problems.pairs.operator import Spec

NO_ROOM: Final = -1  # as a number of candidates: there are more
TOO_MANY: Final = -2  # sweeping all rows is cheaper than looking up so many
LONGEST: Final = 64  # batches until looking up is tried again, at most

_NONE = np.empty(0, np.int64)


class ColourList:
    """The listed rows, colour after colour."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.order = np.empty(0, np.int64)  # numbers of the listed rows, colour after colour
        self.starts = np.zeros(1, np.int64)  # by colour: where its rows start; and where the last ones end
        self.partners = 0.0  # how many of them a new row meets, if it is like these

    def add(self, window: WindowRows, numbers: Ints, start: int) -> None:
        """List these rows too, and drop those numbered before `start`."""
        numbers = np.sort(np.concatenate([self.order[self.order >= start], numbers]))
        colours = window.colours[0, numbers - window.base].astype(np.int64)
        counts = np.bincount(colours)
        self.order = numbers[np.argsort(colours, kind="stable")]
        self.starts = np.concatenate([[0], np.cumsum(counts)])
        self.partners = float((counts.astype(np.float64) ** 2).sum()) / max(len(numbers), 1)

    def move(self, shift: Ints, base: int) -> None:
        """Renumber the row base + i to base + i + shift[i]. Rows that have left keep their numbers."""
        alive = self.order >= base
        self.order[alive] += shift[self.order[alive] - base]

    def check(self, window: WindowRows) -> None:
        start = window.base + window.head
        for colour in range(len(self.starts) - 1):
            numbers = self.order[self.starts[colour] : self.starts[colour + 1]]
            alive = numbers[numbers >= start]
            assert (window.colours[0, alive - window.base] == colour).all(), "rows are listed by their colour"


class Listing(Staircase):
    """`share`, `least`: the latest n / share rows, but at least so many, are not listed.

    `lookup_cost`: a row that is looked up costs as much as so many that are swept.
    """

    def __init__(self, spec: Spec, *, share: int = 8, least: int = 256, lookup_cost: int = 16, **swept: int) -> None:
        """`swept`: the options of `Staircase`."""
        super().__init__(spec, **swept)
        self._share, self._latest, self._lookup_cost = share, least, lookup_cost
        self._odd = _NONE  # numbers of rows that are in no list
        self._end = 0  # rows with a smaller number are listed, or odd
        self._pause = 0  # batches until looking up is tried again
        self._last_pause = 0

    # -- below: what an algorithm says ----------------------------------------------------------------------------

    @abstractmethod
    def _look_up(self, at: Ints, heads: Ints, boundary: int, n: int, most: int) -> int:
        """Write, behind the first n, the candidates of these rows among listed and odd rows, all before `boundary`.

        NO_ROOM: there is none. TOO_MANY: more than `most` rows would have to be looked at.
        """

    @abstractmethod
    def _list_rows(self, numbers: Ints, start: int) -> Ints:
        """List these rows too, and drop those numbered before `start`; returns which cannot be listed."""

    @abstractmethod
    def _move_listed(self, shift: Ints) -> None:
        """Renumber the listed row base + i to base + i + shift[i]."""

    @abstractmethod
    def _forget_listed(self) -> None:
        """Empty the lists."""

    # -- what Staircase asks for ----------------------------------------------------------------------------------

    def _sweep(self, first: int, heads: Ints, start: int) -> tuple[int, int]:
        window = self._rows
        boundary = max(self._end - window.base, window.head)
        # Where too many pairs pass, all rows are looked at, in order.
        if boundary == window.head or first < boundary or start > heads[0] or not self._pays():
            return super()._sweep(first, heads, start)
        n, reached = super()._sweep(first, np.maximum(heads, boundary), max(start, boundary))
        if reached == first:
            at = np.arange(first, first + len(heads))
            n = self._look_up(at, heads, boundary, n, self._most(len(heads), boundary))
            if n >= 0:
                self._last_pause = 0
                return n, first
            if n == TOO_MANY:
                self._look_later()
                return super()._sweep(first, heads, start)
        if len(heads) == 1:
            return super()._sweep(first, heads, start)
        return 0, start if start < first else first - 1

    def _sweep_late(self, at: Ints, heads: Ints, start: int, last: int) -> tuple[int, int]:
        window = self._rows
        boundary = max(self._end - window.base, window.head)
        # New rows from `last` on are found by others, so none of them may be listed.
        if boundary == window.head or boundary > last or not self._pays():
            return super()._sweep_late(at, heads, start, last)
        n, reached = super()._sweep_late(at, heads, boundary, last)
        if reached == window.tail:
            n = self._look_up(at, heads, boundary, n, self._most(len(at), boundary))
            if n >= 0:
                self._last_pause = 0
                return n, window.tail
            self._look_later()
        return super()._sweep_late(at, heads, start, last)

    def _place(self, rows: Rows) -> Ints:
        window = self._rows
        at = super()._place(rows)
        # The i-th of the new rows, in order, stands before what was at its place less i.
        in_order = np.sort(at)
        places = in_order - np.arange(len(at))
        inside = places < self._end - window.base
        if inside.any():
            listed = in_order[inside]
            shift = np.cumsum(np.bincount(places[inside], minlength=window.tail - len(at)))
            self._move_listed(shift)
            odd = self._live_odd()
            self._odd = np.concatenate([odd + shift[odd - window.base], window.base + listed])
            self._end += len(listed)
            self._list()
        return at

    def _expire(self, head: int) -> None:
        super()._expire(head)
        self._list()

    def _restored(self, state: Arrays) -> None:
        super()._restored(state)
        self._pause = self._last_pause = 0
        self._list_anew()

    def compact(self, kept: Ints, which: int = 0) -> None:
        super().compact(kept, which)
        self._list_anew()

    # -- inside ---------------------------------------------------------------------------------------------------

    def _pays(self) -> bool:
        """Is looking up worth a try?"""
        self._pause -= self._pause > 0
        return self._pause == 0

    def _look_later(self) -> None:
        self._last_pause = self._pause = min(max(2 * self._last_pause, 1), LONGEST)

    def _most(self, rows: int, boundary: int) -> int:
        """How many listed rows so many new ones may look at before sweeping all rows would be cheaper."""
        return rows * max(boundary - self._rows.head, 1) // self._lookup_cost

    def _partners(self, listed: ColourList, rows: int) -> int:
        """How many rows of their colour so many new ones meet, about."""
        return int(rows * (listed.partners + len(self._odd)))

    def _meet(self, listed: ColourList, at: Ints, heads: Ints, n: int) -> int:
        """As `_look_up`, among the rows of the same colour."""
        window = self._rows
        return self.spec.scoring.meet(
            *(window.columns, window.colours, window.limit, listed.order, listed.starts, self._odd, window.base),
            *(at, heads, self._found_row, self._found_other, self._found_by, self._found_score, n),
        )

    def _list_anew(self) -> None:
        self._forget_listed()
        self._odd = _NONE
        self._end = self._rows.base + self._rows.head
        self._list()

    def _list(self) -> None:
        """List rows that are no longer among the latest, when enough of them have come, or enough are odd."""
        window = self._rows
        latest = max(self._latest, window.count // self._share)
        start, end = window.base + window.head, window.base + window.tail
        self._end = max(self._end, start)
        if end - self._end >= 2 * latest:
            self._odd = self._list_rows(np.concatenate([self._live_odd(), np.arange(self._end, end - latest)]), start)
            self._end = end - latest
        elif len(self._odd) >= self._latest and len(odd := self._live_odd()) >= self._latest:
            self._odd = self._list_rows(odd, start)

    def _check_listed(self, listed: Ints) -> None:
        start = self._rows.base + self._rows.head
        known = np.sort(np.concatenate([listed[listed >= start], self._live_odd()]))
        expected = np.arange(start, max(self._end, start))
        assert np.array_equal(known, expected), "every row but the latest is listed once, or odd"

    def _live_odd(self) -> Ints:
        return self._odd[self._odd >= self._rows.base + self._rows.head]
