"""The state of the probabilistic k-skyband: of each group one ranked list of limited length.

On random order it misses fewer than sigma N / n of N rows, and shows fewer than 1.5 times as many in their place. On
any other order it promises nothing: where scores fall it misses nearly every row.
"""

from __future__ import annotations

from skyband.problems.rows.algorithms.filtered.candidate_bound import candidates
from skyband.problems.rows.drivers.step_driver import StepDriver
from skyband.problems.rows.operator import Spec
from skyband.study.baselines.rows.probabilistic.kernels import FIELDS, Probabilistic

SIGMA = 0.001  # unless it is given
MANY_ROWS = 1_000_000_000  # where a window may hold any number of rows; a few candidates too many do no harm


def candidates_of(spec: Spec, sigma: float) -> int:
    rows = spec.window.known_rows
    return candidates(MANY_ROWS if rows is None else rows, spec.k, sigma)


class ProbabilisticSkyband(StepDriver):
    def __init__(self, spec: Spec, limit: int, additional: int, initial_room: int) -> None:
        super().__init__(spec, Probabilistic(limit, additional), fields=FIELDS, initial_room=initial_room)

    def check(self) -> None:
        super().check()
        most = self.spec.k + self._kind.limit + self._kind.additional
        for g in range(len(self._state.groups)):
            assert len(self._list(0, g)) <= most, "a probabilistic skyband holds a limited number of rows"
