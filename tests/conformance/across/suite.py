"""Conformance of top-k across streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import across_oracle
import oracle
from across_oracle import Shown
from conformance.across.driver import Driver
from conformance.across.strategies import Case, cases
from conformance.suite import AnyAlgorithm, Opener, Suite
from hypothesis import strategies as st


class AcrossSuite(Suite[Case]):
    problem = "across"
    examples: ClassVar[Mapping[str, int]] = {
        "answers": 200,
        "external clock": 60,
        "batch by batch": 60,
        "snapshots": 60,
        "codes": 60,
        "top": 60,
    }
    rows: ClassVar[Mapping[str, int]] = {"few": 40, "usual": 40, "many": 60}

    def cases(
        self, algorithm: AnyAlgorithm, *, rows: str = "usual", external_clock: bool | None = False, coded: bool = False
    ) -> st.SearchStrategy[Case]:
        return cases(algorithm, most=self.rows[rows], external_clock=external_clock)

    def driver(self, case: Case, open_operator: Opener) -> Driver:
        return Driver(case.spec, open_operator)

    def expected(self, case: Case, driver: Driver, *, finished: bool) -> list[Shown]:
        return across_oracle.answers(case.question, case.scoring, case.events, finished=finished)

    def facts(self, case: Case) -> Mapping[str, Any]:
        plain = across_oracle.plain(case.events)
        return {
            "late": len(oracle.late(case.question, plain)),
            "unranked": len(oracle.unranked(case.question, plain)),
        }

    def questions(self, case: Case, driver: Driver) -> st.SearchStrategy[list[tuple[int, int | None]]]:
        return st.lists(st.tuples(st.integers(1, case.spec.k), st.none()), min_size=1, max_size=2)

    def top(self, case: Case, driver: Driver, k: int, size: int | None) -> list[Shown]:
        return across_oracle.top(case.question, case.scoring, case.events[: driver.events_taken], k)

    def asked(self, lines: Sequence[Shown]) -> Any:
        return [line[2:] for line in lines]  # but for the moment


SUITE = AcrossSuite()
