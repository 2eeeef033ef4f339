"""The staircase of pairs whose rows have the same colour: a new row meets the listed rows of its colour only.

`staircase` runs it for queries with `same`: these are the paper's homochromatic lists (section 6.4). Where most rows
have few colours the vectorised sweep of all rows is faster, and nothing is listed.
"""

from __future__ import annotations

import numpy as np

from skyband.core.operator import Ints
from skyband.problems.pairs.algorithms.staircase.listing import TOO_MANY, Listing
from skyband.problems.pairs.drivers.window_rows import WindowRows
from skyband.problems.pairs.operator import Spec


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


class Coloured(Listing):
    def __init__(
        self,
        spec: Spec,
        *,
        batch: int = 128,
        room: int = 8192,
        step: int = 8,
        share: int = 8,
        least: int = 256,
        worth: int = 16,
    ) -> None:
        super().__init__(spec, batch=batch, room=room, step=step, share=share, least=least, worth=worth)
        self._colours = ColourList()

    def _look_up(self, at: Ints, heads: Ints, boundary: int, n: int, most: int) -> int:
        window, listed = self._rows, self._colours
        if len(at) * (listed.partners + len(self._odd)) > most:
            return TOO_MANY
        return self.spec.scoring.meet(
            *(window.columns, window.colours, window.limit, listed.order, listed.starts, self._odd, window.base),
            *(at, heads, self._found_row, self._found_other, self._found_by, self._found_score, n),
        )

    def _list_rows(self, numbers: Ints, start: int) -> Ints:
        self._colours.add(self._rows, numbers, start)
        return np.empty(0, np.int64)

    def _move_listed(self, shift: Ints) -> None:
        self._colours.move(shift, self._rows.base)

    def _forget_listed(self) -> None:
        self._colours.forget()

    def check(self) -> None:
        super().check()
        window = self._rows
        start = window.base + window.head
        listed = self._colours.order[self._colours.order >= start]
        known = np.sort(np.concatenate([listed, self._odd[self._odd >= start]]))
        assert np.array_equal(known, np.arange(start, max(self._end, start))), "every row but the latest is listed once"
        self._colours.check(window)
