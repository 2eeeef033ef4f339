"""Conformance of top-k rows."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import oracle
from conformance.rows.driver import Driver, refuses
from conformance.rows.random_streams import random_case
from conformance.rows.strategies import Case, cases, kinds
from conformance.suite import AnyAlgorithm, Opener, Suite
from hypothesis import strategies as st
from oracle import Row, Shown, by_group


class RowSuite(Suite[Case]):
    problem = "rows"
    examples: ClassVar[Mapping[str, int]] = {
        "answers": 200,
        "external clock": 100,
        "batch by batch": 60,
        "splits": 60,
        "order": 60,
        "capacities": 100,
        "snapshots": 50,
        "codes": 50,
        "both": 60,
        "own arrays": 40,
        "top": 30,
        "held": 30,
    }
    random_streams = (5, 60)

    def cases(
        self, algorithm: AnyAlgorithm, *, rows: str = "usual", external_clock: bool | None = False, coded: bool = False
    ) -> st.SearchStrategy[Case]:
        return cases(algorithm, most=self.rows[rows], external_clock=external_clock, grouped=coded or None)

    def takes_codes(self, algorithm: AnyAlgorithm) -> bool:
        return any(kind.grouped for kind in kinds(algorithm))

    def random_case(self, algorithm: AnyAlgorithm, draw: random.Random) -> Case:
        return random_case(kinds(algorithm), draw)

    def driver(self, case: Case, open_operator: Opener) -> Driver:
        return Driver(case.spec, open_operator)

    def expected(self, case: Case, driver: Driver, *, finished: bool) -> Any:
        return by_group(oracle.answers(case.question, case.events, finished=finished))

    def said(self, driver: Driver) -> Any:
        return by_group(driver.lines)

    def facts(self, case: Case) -> Mapping[str, Any]:
        question, events = case.question, case.events
        known = {"late": len(oracle.late(question, events)), "unranked": len(oracle.unranked(question, events))}
        if question.lateness is None:
            known["next_close"] = oracle.next_close(question, events)
        return known

    def moments(self, case: Case, driver: Driver) -> Iterable[Sequence[int]]:
        lines = by_group(driver.lines).values() if case.question.by_count else [driver.lines]
        return [[line.at for line in some] for some in lines]

    def shown(self, driver: Driver) -> Sequence[Sequence[int]]:
        return [(line.position,) for line in driver.lines]

    def questions(self, case: Case, driver: Driver) -> st.SearchStrategy[list[tuple[int, int | None]]]:
        if not any(isinstance(event, Row) for event in case.events[: driver.events_taken]):
            return st.just([])
        k, size = st.integers(1, case.question.k), st.none() | st.sampled_from(sizes_to_ask(case))
        possible = st.lists(st.tuples(k, size), max_size=8)
        return possible.map(lambda questions: [each for each in questions if is_possible(case, driver, *each)])

    def top(self, case: Case, driver: Driver, k: int, size: int | None) -> list[Shown]:
        return oracle.top(case.question, case.events[: driver.events_taken], k, size)

    def asked(self, lines: Sequence[Any]) -> Any:
        return by_group(lines)


def sizes_to_ask(case: Case) -> range:
    """All sizes up to the window's, or some more than the stream is long."""
    return range(1, 45 if case.question.size is None else case.question.size + 1)


def is_possible(case: Case, driver: Driver, k: int, size: int | None) -> bool:
    return size is None or case.spec.ad_hoc or not refuses(driver, k, size)


SUITE = RowSuite()
