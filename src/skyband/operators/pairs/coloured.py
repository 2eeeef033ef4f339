"""The staircase of pairs whose rows have the same colour: a new row meets the listed rows of its colour only.

It is what `staircase` runs with `same`: the paper's homochromatic lists (section 6.4). Where most rows have few colours
the sweep of all rows, which is vectorised, is the faster one, and nothing is listed.
"""

from __future__ import annotations

import numpy as np

from skyband.operators.pairs.listing import Listing
from skyband.operators.pairs.protocol import Spec
from skyband.operators.protocol import Ints


class Coloured(Listing):
    """`worth`: a row that is looked up costs as much as so many that are swept."""

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
        super().__init__(spec, batch=batch, room=room, step=step, share=share, least=least)
        self._worth = worth
        self._order = np.empty(0, np.int64)  # numbers of the listed rows, colour after colour
        self._starts = np.zeros(1, np.int64)  # by colour: where its rows start; and where the last ones end

    def _look_up(self, first: int, heads: Ints, boundary: int, n: int) -> int:
        window = self._rows
        return self.spec.scoring.meet(
            *(window.columns, window.colours, window.limit, self._order, self._starts, self._odd, window.base),
            *(first, heads, self._found_row, self._found_other, self._found_score, n),
        )

    def _list(self) -> None:
        if self._end > self._rows.base + self._rows.head or self._pays():
            super()._list()

    def _pays(self) -> bool:
        """Would a new row meet so few of the rows that looking them up pays?"""
        window = self._rows
        if window.count < 2 * self._latest:
            return False
        counts = np.bincount(window.colours[0, window.head : window.tail].astype(np.int64))
        partners = float((counts.astype(np.float64) ** 2).sum()) / window.count
        return self._worth * partners < window.count

    def _list_rows(self, numbers: Ints, start: int) -> Ints:
        window = self._rows
        numbers = np.sort(np.concatenate([self._order[self._order >= start], numbers]))
        colours = window.colours[0, numbers - window.base].astype(np.int64)
        self._order = numbers[np.argsort(colours, kind="stable")]
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(colours))])
        return np.empty(0, np.int64)

    def _renumber_listed(self, number: int) -> None:
        self._order += self._order >= number

    def _forget_listed(self) -> None:
        self._order, self._starts = np.empty(0, np.int64), np.zeros(1, np.int64)

    def check(self) -> None:
        super().check()
        window = self._rows
        start = window.base + window.head
        listed = self._order[self._order >= start]
        known = np.sort(np.concatenate([listed, self._odd[self._odd >= start]]))
        assert np.array_equal(known, np.arange(start, max(self._end, start))), "every row but the latest is listed once"
        for colour in range(len(self._starts) - 1):
            numbers = self._order[self._starts[colour] : self._starts[colour + 1]]
            alive = numbers[numbers >= start]
            assert (window.colours[0, alive - window.base] == colour).all(), "rows are listed by their colour"
