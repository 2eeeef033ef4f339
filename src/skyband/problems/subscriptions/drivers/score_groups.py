"""Score groups: queries that score every row alike, because they have the same parameters of the score.

A condition may select the rows that a query sees by values that both must have (`symbol = q.symbol`). If the score
reads nothing else of the query, a row belongs to at most one score group, which is looked up: in a list if the values
are whole numbers close together, like the codes of strings, or else in a hash table in one flat array, at most half
full.
"""

from __future__ import annotations

import numpy as np

from skyband.core.operator import Floats, Ints
from skyband.expressions.subscriptions import QueryScore
from skyband.kernels.codes import SHORT, SPREAD
from skyband.problems.subscriptions.drivers.kernels.score_groups import (
    NONE,
    find_near,
    find_score_groups,
    put_score_groups,
)


class ScoreGroups:
    """The score groups of queries, numbered from 0."""

    def __init__(self, score: QueryScore) -> None:
        self.looked_up = bool(score.seen_by)
        self._columns, self._parameters = np.array(score.seen_by, np.int64).reshape(-1, 2).T.copy()
        # By parameter, then by score group. A score without parameters has one group, which exists without queries.
        self.values = np.empty((len(score.parameters), 0 if score.parameters else 1))
        self._index()

    def __len__(self) -> int:
        return self.values.shape[1]

    def of_queries(self, parameters: Floats) -> Ints:
        """The score groups of queries. New score groups get the next numbers."""
        # A comparison finds 0 and -0 equal, so both become 0.
        parameters = np.ascontiguousarray((parameters + 0.0 if self.looked_up else parameters).T)
        known = {values.tobytes(): number for number, values in enumerate(np.ascontiguousarray(self.values.T))}
        numbers = [known.setdefault(values.tobytes(), len(known)) for values in parameters]
        _, first = np.unique(numbers, return_index=True)
        new = [int(at) for at in first if numbers[at] >= len(self)]
        self.values = np.ascontiguousarray(np.concatenate([self.values, parameters[new].T], axis=1))
        self._index()
        return np.array(numbers, np.int64)

    def compact(self, kept: Ints) -> None:
        """Score group kept[i] becomes score group i; all others are forgotten."""
        self.values = np.ascontiguousarray(self.values[:, kept])
        self._index()

    def restore(self, values: Floats) -> None:
        self.values = values.copy()
        self._index()

    def _index(self) -> None:
        self._keys = np.ascontiguousarray(self.values[self._parameters])  # by compared column, then by score group
        self._near = np.empty(0, np.int64)
        self._slots = np.full(4 << len(self).bit_length(), NONE)
        if len(self._keys) == 1 and is_near(self._keys[0]):
            self._near = np.full(int(self._keys.max(initial=-1)) + 1, NONE)
            self._near[self._keys[0].astype(np.int64)] = np.arange(len(self))
        elif self.looked_up:
            put_score_groups(self._keys, self._keys.view(np.int64), self._slots)

    def of_rows(self, columns: Floats, first: int, end: int) -> Ints:
        """The score group of each of the rows [first, end), or NONE."""
        score_group = np.empty(end - first, np.int64)
        if len(self._near):
            find_near(columns[self._columns[0], first:end], self._near, score_group)
        else:
            find_score_groups(
                columns, columns.view(np.int64), self._columns, first, end, self._keys, self._slots, score_group
            )
        return score_group


def is_near(keys: Floats) -> bool:
    """Are the keys whole numbers from 0 on and close together, like codes?"""
    return bool(((keys >= 0) & (keys < SHORT + SPREAD * len(keys)) & (keys == np.floor(keys))).all())
