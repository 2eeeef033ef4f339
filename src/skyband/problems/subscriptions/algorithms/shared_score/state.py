"""The score of each row of a block, and the score group that sees the row."""

from __future__ import annotations

import numpy as np

from skyband.core.operator import Floats, Ints
from skyband.problems.subscriptions.algorithms.shared_score.kernels import sweep_shared
from skyband.problems.subscriptions.drivers.lists import Hits
from skyband.problems.subscriptions.drivers.score_groups import ScoreGroups
from skyband.problems.subscriptions.drivers.scoring import Scoring


class SharedScore:
    """The index of `shared_score`."""

    def __init__(self, scoring: Scoring) -> None:
        self._scoring = scoring
        self._parameters = np.empty((0, 0))  # by parameter, then by query: the ones behind the score groups
        self._score_groups = ScoreGroups(scoring.score)
        self._score_group_of: Ints = np.empty(0, np.int64)  # by query: its score group
        self._scores: Floats = np.empty(0)  # by row: its score
        self._seen_by: Ints = np.empty(0, np.int64)  # by row: its score group, or NONE; empty: there is one group

    def arrange(self, parameters: Floats, which: Ints) -> Ints:
        """Sort the queries by score group."""
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
        found: tuple[int, int] = sweep_shared(
            *(self._scores, self._seen_by, len(self._score_groups), self._score_group_of, threshold, which, begin),
            *(hits.row, hits.score, hits.ends),
        )
        return found
