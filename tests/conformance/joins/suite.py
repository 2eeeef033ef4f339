"""Conformance of aggregates over joins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import ClassVar

from conformance.joins.driver import Driver, Line
from conformance.joins.strategies import Case, cases
from conformance.suite import AnyAlgorithm, Opener, Suite
from hypothesis import strategies as st

from skyband.core.emit import takes_back
from skyband.problems.joins.algorithms import recompute
from skyband.problems.joins.operator import MIN, Aggregate, Input, Spec

WITH_A_MINIMUM = Spec((Input(10, floats=(False,)),), (Aggregate(MIN, 0, 0),), every=1)


class JoinSuite(Suite[Case]):
    problem = "joins"
    restores_in_place = False
    examples: ClassVar[Mapping[str, int]] = {"answers": 150, "batch by batch": 60, "splits": 60, "snapshots": 80}
    rows: ClassVar[Mapping[str, int]] = {"few": 24, "usual": 32, "many": 48}

    def cases(
        self, algorithm: AnyAlgorithm, *, rows: str = "usual", external_clock: bool | None = False, coded: bool = False
    ) -> st.SearchStrategy[Case]:
        linear = algorithm.refuses(WITH_A_MINIMUM) is not None
        drawn = cases(linear=linear, most=self.rows[rows], external_clock=external_clock)
        return drawn.filter(lambda case: algorithm.refuses(case.spec) is None)

    def variants(self, algorithm: AnyAlgorithm, case: Case) -> st.SearchStrategy[Opener]:
        """All plans; with room for one of everything, so that everything has to grow, or with what users have."""
        options: dict[str, st.SearchStrategy[int]] = {}
        if "initial_room" in algorithm.options:
            options |= {"initial_room": st.sampled_from([1, 1, 2, 64]), "forget_at": st.sampled_from([1, 1, 2, 4096])}
        if "inputs" in algorithm.options:
            options["inputs"] = st.integers(0, 2 ** len(case.spec.inputs) - 1)
        return st.fixed_dictionaries(options).map(lambda chosen: partial(algorithm.open, **chosen))

    def smallest(self, algorithm: AnyAlgorithm, case: Case, most: int = 3) -> st.SearchStrategy[Opener]:
        return self.variants(algorithm, case)

    def batch_sizes(self) -> st.SearchStrategy[list[int]]:
        return st.lists(st.sampled_from([0, 1, 1, 2, 5, 11]), max_size=12)

    def driver(self, case: Case, open_operator: Opener) -> Driver:
        return Driver(case, open_operator)

    def expected(self, case: Case, driver: Driver, *, finished: bool) -> list[Line]:
        """What joining and grouping all live rows gives, after every row."""
        reference = Driver(case, recompute.open)
        reference.run(case.events)
        if finished:
            reference.finish()
        assert driver.operator.late == reference.operator.late
        return reference.lines

    def may_look_sooner(self, case: Case, close: int | None, due: int | None) -> bool:
        """Nothing is due before the next close; where changes are told, a window may close that tells nothing."""
        if not case.spec.every or takes_back(case.spec.emit) or due is None:
            return True
        return close is not None and close <= due

    def moments(self, case: Case, driver: Driver) -> Iterable[Sequence[int]]:
        return [[line[0] for line in driver.lines]]


SUITE = JoinSuite()
