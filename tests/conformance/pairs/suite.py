"""Conformance of top-k pairs."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import oracle
import pair_oracle
from conformance.pairs.driver import Driver, meaning
from conformance.pairs.strategies import Case, cases, random_case
from conformance.suite import AnyAlgorithm, Opener, Suite, batch_sizes
from hypothesis import strategies as st
from pair_oracle import PairRow, ShownPair


class PairSuite(Suite[Case]):
    problem = "pairs"
    examples: ClassVar[Mapping[str, int]] = {
        "answers": 120,
        "external clock": 60,
        "batch by batch": 40,
        "capacities": 60,
        "snapshots": 60,
        "top": 60,
    }
    random_streams = (3, 30)
    rows: ClassVar[Mapping[str, int]] = {"few": 20, "usual": 24, "many": 30}

    def cases(
        self, algorithm: AnyAlgorithm, *, rows: str = "usual", external_clock: bool | None = False, coded: bool = False
    ) -> st.SearchStrategy[Case]:
        return cases(algorithm, most=self.rows[rows], external_clock=external_clock, coloured=coded)

    def batch_sizes(self) -> st.SearchStrategy[list[int]]:
        return batch_sizes(20)

    def random_case(self, algorithm: AnyAlgorithm, draw: random.Random) -> Case:
        return random_case(algorithm, draw)

    def driver(self, case: Case, open_operator: Opener) -> Driver:
        return Driver(case.spec, open_operator, grouped=case.grouped)

    def said(self, driver: Driver) -> list[ShownPair]:
        """Group by group: between groups no order is promised."""
        return sorted(driver.lines, key=lambda line: line.group)

    def asked(self, lines: Sequence[ShownPair]) -> list[ShownPair]:
        return sorted(lines, key=lambda line: line.group)

    def expected(self, case: Case, driver: Driver, *, finished: bool) -> list[ShownPair]:
        lines = pair_oracle.answers(case.question, meaning(case.score), case.events, finished=finished)
        return sorted(lines, key=lambda line: line.group)

    def facts(self, case: Case) -> Mapping[str, Any]:
        known: dict[str, Any] = {"late": len(pair_oracle.late(case.question, case.events))}
        if case.question.lateness is None and case.question.emit != "changes":
            known["next_close"] = oracle.next_close(case.question, pair_oracle.plain(case.events))
        return known

    def shown(self, driver: Driver) -> Sequence[Sequence[int]]:
        return [(line.a, line.b) for line in driver.lines]

    def questions(self, case: Case, driver: Driver) -> st.SearchStrategy[list[tuple[int, int | None]]]:
        if not any(isinstance(event, PairRow) for event in case.events[: driver.events_taken]):
            return st.just([])
        size = st.integers(1, case.question.size or 30)
        return st.lists(st.tuples(st.integers(1, case.question.k), st.none() | size), max_size=5)

    def top(self, case: Case, driver: Driver, k: int, size: int | None) -> list[ShownPair]:
        return pair_oracle.top(case.question, meaning(case.score), case.events[: driver.events_taken], k, size)


SUITE = PairSuite()
