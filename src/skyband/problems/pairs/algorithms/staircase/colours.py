"""The staircase of pairs whose rows have the same colour: a new row meets the listed rows of its colour only.

`staircase` runs it for queries with `same`: these are the paper's homochromatic lists (section 6.4). Where most rows
have few colours the vectorised sweep of all rows is faster, and nothing is listed.
"""

from __future__ import annotations

import numpy as np

from skyband.core.operator import Ints
from skyband.problems.pairs.algorithms.staircase.listing import TOO_MANY, ColourList, Listing
from skyband.problems.pairs.operator import Spec


class Coloured(Listing):
    def __init__(self, spec: Spec, **options: int) -> None:
        super().__init__(spec, **options)
        self._colours = ColourList()

    def _look_up(self, at: Ints, heads: Ints, boundary: int, n: int, most: int) -> int:
        if self._partners(self._colours, len(at)) > most:
            return TOO_MANY
        return self._meet(self._colours, at, heads, n)

    def _list_rows(self, numbers: Ints, start: int) -> Ints:
        self._colours.add(self._rows, numbers, start)
        return np.empty(0, np.int64)

    def _move_listed(self, shift: Ints) -> None:
        self._colours.move(shift, self._rows.base)

    def _forget_listed(self) -> None:
        self._colours.forget()

    def check(self) -> None:
        super().check()
        self._check_listed(self._colours.order)
        self._colours.check(self._rows)
