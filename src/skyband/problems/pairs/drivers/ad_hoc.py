"""Ad-hoc queries on the pairs that an operator holds: one of them searches a tree, many share one pass.

Paper:      Shen, Cheema, Lin, Zhang, Wang, TKDE 2014, sections 4.1 (Algorithms 1 and 2) and 6.3 (Algorithm 7).
"""

from __future__ import annotations

import numpy as np

from skyband.core import operator
from skyband.core.ad_hoc import HeldIndex, Spans
from skyband.core.operator import Ints
from skyband.kernels.ranking import ROW
from skyband.problems.pairs.drivers.window_rows import WindowRows
from skyband.problems.pairs.operator import Answer, Pairs, best_first


class AdHocPairs:
    """Pairs as rows that leave the window when their older row does, so that what answers for rows does for pairs."""

    def __init__(self, pairs: Pairs, rows: WindowRows) -> None:
        self.pairs = pairs[best_first(pairs)]
        as_rows = np.zeros(len(pairs), ROW)
        as_rows["score"], as_rows["time"] = self.pairs["score"], rows.times_of(self.pairs["a"])
        as_rows["position"] = np.arange(len(pairs))[::-1]
        self._held = HeldIndex(np.zeros(len(pairs), np.int64), as_rows)

    def top(self, k: int, spans: Spans) -> Answer:
        return self._as_pairs(self._held.best(k, spans))

    def top_many(self, k: Ints, spans: Spans) -> tuple[Answer, Ints]:
        found, ends = self._held.best_of_many(k, spans)
        return self._as_pairs(found), ends

    def _as_pairs(self, found: operator.Answer) -> Answer:
        chosen = self.pairs[len(self.pairs) - 1 - found.position]
        return Answer(found.at, found.rank, found.score, chosen["a_position"], chosen["b_position"], found.change)
