"""Thresholds where a row is worth the same to all queries that see it: it is scored once, and compared once.

Paper:      after Shen, Cheema, Lin, Zhang, Wang, TKDE 2014, section 6.3: many k and n, one scoring function.
Invariant:  as `thresholds`.
Cost:       a row is scored once, and looked up if a condition says who sees it; of a block of rows those that reach the
            lowest threshold of a score group are compared with the thresholds of its queries.
Choose it:  the score reads nothing of the query but what a row must have for it to be seen, and windows slide with each
            arrival, or never end. Where they slide by more and end, `shared` needs no lists.
"""

from __future__ import annotations

import numpy as np

from skyband.core.operator import Floats, Ints
from skyband.core.options import Count, Deviations
from skyband.core.registry import Algorithm
from skyband.kernels.compiling import allocating, part
from skyband.kernels.panes import reaching
from skyband.problems.subscriptions.drivers.kernels.lists import SLACK
from skyband.problems.subscriptions.drivers.lists import Hits
from skyband.problems.subscriptions.drivers.score_groups import NONE, ScoreGroups
from skyband.problems.subscriptions.drivers.scoring import BLOCK, Scoring
from skyband.problems.subscriptions.drivers.thresholds import FEW, HITS, PARTS, Thresholds
from skyband.problems.subscriptions.operator import Spec

NAME = "once"


def refuses(spec: Spec) -> str | None:
    return None if spec.scoring.score.is_common else "queries have scores of their own"


def expected_rows(spec: Spec, window_rows: float) -> float:
    """The rows of the window, once for all queries."""
    return window_rows


def open(
    spec: Spec, *, slack: Deviations = SLACK, hits: Count = HITS, parts: Count = PARTS, few: Count = FEW
) -> Thresholds:
    return Thresholds(spec, Once(spec.scoring), slack=slack, hits=hits, parts=parts, few=few)


class Once:
    def __init__(self, scoring: Scoring) -> None:
        self._scoring = scoring
        self._parameters = np.empty((0, 0))  # of the queries that are known
        self._score_groups = ScoreGroups(scoring.score)
        self._score_group_of: Ints = np.empty(0, np.int64)  # by query
        self._scores: Floats = np.empty(0)
        self._seen_by: Ints = np.empty(0, np.int64)  # by row, its score group; empty: there is one

    def arrange(self, parameters: Floats, which: Ints) -> Ints:
        """By score group."""
        if parameters is not self._parameters:
            self._parameters, self._score_groups = parameters, ScoreGroups(self._scoring.score)
            self._score_group_of = self._score_groups.of_queries(parameters)
        return which[np.argsort(self._score_group_of[which], kind="stable")]

    def lay(self, columns: Floats, first: int, end: int) -> None:
        self._scores = np.empty(end - first)
        self._scoring.common(columns, first, end, self._scores)
        if self._score_groups.looked_up:
            self._seen_by = self._score_groups.of_rows(columns, first, end)

    def sweep(self, parameters: Floats, threshold: Floats, which: Ints, begin: int, hits: Hits) -> tuple[int, int]:
        found: tuple[int, int] = sweep_once(
            *(self._scores, self._seen_by, len(self._score_groups), self._score_group_of, threshold, which, begin),
            *(hits.row, hits.score, hits.ends),
        )
        return found


@allocating
def sweep_once(scores, seen_by, score_groups, score_group_of, threshold, which, begin, hit, score, ends):
    """Find the rows that reach the thresholds of the queries which[begin:], in order of arrival. Returns as `sweep`."""
    least, starts = np.full(score_groups, np.inf), np.zeros(score_groups + 1, np.int64)
    for j in range(begin, len(which)):
        least[score_group_of[which[j]]] = min(least[score_group_of[which[j]]], threshold[which[j]])
    near = np.empty(len(scores), np.int64)
    m = near_of_score_groups(scores, seen_by, least, near) if len(seen_by) else near_of_one(scores, least[0], near)
    for x in range(m):
        starts[(seen_by[near[x]] if len(seen_by) else 0) + 1] += 1
    for t in range(score_groups):
        starts[t + 1] += starts[t]
    following, found, worth = starts.copy(), np.empty(m, np.int64), np.empty(m)
    for x in range(m):
        t = seen_by[near[x]] if len(seen_by) else 0
        found[following[t]], worth[following[t]] = near[x], scores[near[x]]
        following[t] += 1
    n = 0
    for j in range(begin, len(which)):
        q = which[j]
        t, limit = score_group_of[q], threshold[q]
        if n + starts[t + 1] - starts[t] > len(hit):
            return n, j
        for x in range(starts[t], starts[t + 1]):
            hit[n], score[n] = found[x], worth[x]
            n += worth[x] >= limit
        ends[j] = n
    return n, len(which)


@part
def near_of_one(scores, least, near):
    """Which rows reach the lowest threshold; returns how many."""
    m = 0
    for begin in range(0, len(scores), BLOCK):
        block = scores[begin : min(len(scores), begin + BLOCK)]
        if reaching(block, least):
            for x in range(len(block)):
                near[m] = begin + x
                m += block[x] >= least
    return m


@part
def near_of_score_groups(scores, seen_by, least, near):
    """The same, each of its score group."""
    m = 0
    for i in range(len(scores)):
        near[m] = i
        m += (seen_by[i] != NONE) & (scores[i] >= least[max(seen_by[i], 0)])
    return m


ALGORITHMS = (Algorithm(NAME, open, refuses, expected_rows),)
