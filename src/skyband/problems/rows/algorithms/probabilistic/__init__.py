"""Probabilistic k-skyband: top-k at every arrival, now and then wrong, from a fixed number of rows.

Paper:      Pripužić, Podnar Žarko, Aberer, TODS 2015, section 4.1 (PA).
Invariant:  of the rows seen, the k + limit best are held, more or less: a row is turned away when its rank is so poor
            that with all such rows together less than sigma of them are ever shown.
Cost:       push one comparison for a row that is turned away; state k + limit rows, however large the window.
Choose it:  to compare others with, and where you know that scores come in random order. The planner does not: `error`
            is promised on any stream, which `budgeted` keeps.

On random order fewer than sigma N / n of N rows are missed, and fewer than 1.5 times as many shown in their place. On
any other order nothing is promised: where scores fall it misses nearly every row.
"""

from __future__ import annotations

from skyband.core.operator import Spec
from skyband.core.options import Chance, Count, CountOrNone
from skyband.core.registry import Algorithm
from skyband.problems.rows.algorithms.probabilistic.candidate_bound import candidates
from skyband.problems.rows.algorithms.probabilistic.kernels import FIELDS, Probabilistic
from skyband.problems.rows.drivers import growing
from skyband.problems.rows.drivers.step_driver import Stepwise
from skyband.windows import FOREVER

NAME = "probabilistic"

SIGMA = 0.001  # unless it is given
MANY_ROWS = 1_000_000_000  # by value nobody knows how many rows a window has; a few candidates too many do no harm


def refuses(spec: Spec) -> str | None:
    if spec.ad_hoc:
        return "ad-hoc questions for a part of the window need rows that are not among the best of all of it"
    return None


def expected_rows(spec: Spec, window_rows: float) -> float:
    """The first k and the candidates."""
    return min(window_rows, spec.k + candidates_of(spec, SIGMA))


def candidates_of(spec: Spec, sigma: float) -> int:
    known = spec.window.by_count and spec.window.size != FOREVER
    return candidates(spec.window.size if known else MANY_ROWS, spec.k, sigma)


def open(
    spec: Spec,
    *,
    sigma: Chance | None = None,
    limit: Count | None = None,
    additional: CountOrNone = 0,
    initial_room: Count = 1024,
) -> ProbabilisticSkyband:
    """`limit` candidates instead of those that sigma asks for."""
    limit = candidates_of(spec, sigma or SIGMA) if limit is None else limit
    return ProbabilisticSkyband(spec, limit, additional, initial_room)


class ProbabilisticSkyband(Stepwise):
    def __init__(self, spec: Spec, limit: int, additional: int, initial_room: int) -> None:
        super().__init__(spec, Probabilistic(limit, additional), fields=FIELDS, initial_room=initial_room)

    def check(self) -> None:
        super().check()
        most = self.spec.k + self._kind.limit + self._kind.additional
        for g in range(len(self._state.groups)):
            assert len(self._list(0, g)) <= most, "a probabilistic skyband holds a limited number of rows"


ALGORITHMS = (Algorithm(NAME, growing.opener(open), refuses, expected_rows, exact=False, for_comparing=True),)
