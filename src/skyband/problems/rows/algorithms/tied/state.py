"""The state of tied ranks: each group has one ranked list of the rows that an answer may still show."""

from __future__ import annotations

import numpy as np

from skyband.core.ad_hoc import NEXT_WINDOW, one_by_one
from skyband.core.operator import Answer, Ints
from skyband.problems.rows.algorithms.tied.kernels import FIELDS, TiedKind
from skyband.problems.rows.drivers.step_driver import StepDriver
from skyband.problems.rows.operator import DENSE, Spec


class Tied(StepDriver):
    """The operator. Its answers have all rows of rank k or better, which may be more than k."""

    def __init__(self, spec: Spec, *, slack: int, initial_room: int) -> None:
        super().__init__(spec, TiedKind(spec.ties, slack), fields=FIELDS, initial_room=initial_room)

    def top(self, k: int, size: int | None) -> Answer:
        held = self._ask()
        size_asked = np.array([NEXT_WINDOW if size is None else size])
        every = held.best(max(1, len(held.time)), self._spans(held.codes, size_asked))
        rank = tied_ranks(every, self.spec.ties)
        return every._replace(rank=rank).take(rank <= k)

    def top_many(self, k: Ints, size: Ints) -> tuple[Answer, Ints]:
        return one_by_one(self, k, size)

    def check(self) -> None:
        super().check()
        for g in range(len(self._state.groups)):
            rows, group = self._list(0, g), self._state.groups[g]
            assert (rows["time"] >= group["oldest"]).all(), "no row is older than the oldest"
            assert len(rows) < max(group["limit"], self._kind.slack, 2), "what cannot be shown is dropped in time"


def tied_ranks(answer: Answer, ties: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """The ranks of rows that come group after group, each group's best first."""
    if not len(answer.score):
        return answer.rank
    first = np.append(True, np.diff(answer.group) != 0)
    differs = first | np.append(True, answer.score[1:] != answer.score[:-1])
    counted = np.cumsum(differs) if ties == DENSE else np.arange(len(differs))
    begin = np.maximum.accumulate(np.where(first, np.arange(len(differs)), 0))
    ranks = counted - counted[begin] + 1
    leader = np.maximum.accumulate(np.where(differs, np.arange(len(differs)), 0))
    return ranks[leader].astype(np.int32)
