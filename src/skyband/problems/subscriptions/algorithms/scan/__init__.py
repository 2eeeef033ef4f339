"""Thresholds with no index: each row is scored for each query, in blocks.

Paper:      none; what a vectorised loop does is the measure for every index.
Invariant:  as `thresholds`.
Cost:       a row is scored once for each query, a fraction of a nanosecond where the score is arithmetic.
Choose it:  there are few queries, a score has many columns, or nothing is known about what it can be.
"""

from __future__ import annotations

import numpy as np

from skyband.core.operator import Floats, Ints
from skyband.core.options import Count, Deviations
from skyband.core.registry import Algorithm
from skyband.problems.subscriptions.drivers.kernels.lists import SLACK
from skyband.problems.subscriptions.drivers.lists import Hits
from skyband.problems.subscriptions.drivers.scoring import BLOCK, Scoring
from skyband.problems.subscriptions.drivers.thresholds import FEW, HITS, PARTS, Thresholds
from skyband.problems.subscriptions.operator import Spec

NAME = "scan"


def refuses(spec: Spec) -> str | None:
    return None


def expected_rows(spec: Spec, window_rows: float) -> float:
    """The rows of the window, once for all queries."""
    return window_rows


def open(
    spec: Spec, *, slack: Deviations = SLACK, hits: Count = HITS, parts: Count = PARTS, few: Count = FEW
) -> Thresholds:
    return Thresholds(spec, Scan(spec.scoring), slack=slack, hits=hits, parts=parts, few=few)


class Scan:
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


ALGORITHMS = (Algorithm(NAME, open, refuses, expected_rows),)
