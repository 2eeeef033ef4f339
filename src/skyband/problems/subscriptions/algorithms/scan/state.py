"""The rows of a block in order of arrival. The loop over them is `sweep` of `drivers/kernels/scoring.py`."""

from __future__ import annotations

import numpy as np

from skyband.core.operator import Floats, Ints
from skyband.problems.subscriptions.drivers.lists import Hits
from skyband.problems.subscriptions.drivers.scoring import BLOCK, Scoring


class Scan:
    """The index of `scan`, which looks at every row."""

    def __init__(self, scoring: Scoring) -> None:
        self._scoring = scoring
        self._scores = np.empty(BLOCK)

    def arrange(self, parameters: Floats, which: Ints) -> Ints:
        return which

    def lay(self, columns: Floats, first: int, end: int) -> None:
        self._columns, self._first, self._end = columns, first, end

    def sweep(self, parameters: Floats, threshold: Floats, which: Ints, begin: int, hits: Hits) -> tuple[int, int]:
        found: tuple[int, int] = self._scoring.sweep(
            *(self._columns, self._first, self._end, parameters, threshold, which, begin),
            *(hits.row, hits.score, hits.ends, self._scores),
        )
        return found
