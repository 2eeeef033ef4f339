"""Oracle tests: `top(k, size)` of rows is right for every size; with ad_hoc, none is refused."""

from __future__ import annotations

import pytest
from conformance.rows.algorithms import EXACT, every_algorithm, opener
from conformance.rows.driver import Driver, refuses
from conformance.rows.strategies import cases, kinds, question_of
from conformance.rows.suite import SUITE, sizes_to_ask
from conformance.suite import batch_sizes, capacities, examples
from hypothesis import assume, given
from hypothesis import strategies as st
from oracle import Row, by_group, top

from skyband.core.registry import algorithms_of
from skyband.problems.rows.operator import RowAlgorithm


@every_algorithm
@examples(40)
@given(st.data())
def test_the_window_that_closes_next(algorithm: RowAlgorithm, data: st.DataObject) -> None:
    """After each row, with a clock that may run ahead of them."""
    case = data.draw(cases(algorithm, external_clock=None))
    k = data.draw(st.integers(1, case.question.k))
    driver = Driver(case.spec, algorithm.open)
    for i, event in enumerate(case.events, 1):
        driver.run([event])
        if any(isinstance(event, Row) for event in case.events[:i]):
            assert by_group(driver.top(k)) == by_group(top(case.question, case.events[:i], k))


@every_algorithm
@examples(40)
@given(st.data(), batch_sizes())
def test_the_last_so_many(algorithm: RowAlgorithm, data: st.DataObject, sizes: list[int]) -> None:
    """Every size at the end of the stream: right, or (without ad_hoc) refused."""
    case = SUITE.behind_the_rows(data.draw(cases(algorithm, external_clock=None)))
    k = data.draw(st.integers(1, case.question.k))
    assume(any(isinstance(event, Row) for event in case.events))
    driver = Driver(case.spec, algorithm.open)
    driver.run(case.events, sizes)
    for size in sizes_to_ask(case):
        if not case.spec.ad_hoc and refuses(driver, k, size):
            continue
        assert by_group(driver.top(k, size)) == by_group(top(case.question, case.events, k, size))


AD_HOC = [algorithm for algorithm in EXACT.values() if any(kind.ad_hoc for kind in kinds(algorithm))]


@pytest.mark.parametrize("algorithm", AD_HOC, ids=[algorithm.name for algorithm in AD_HOC])
@examples(30)
@given(st.data(), batch_sizes())
def test_any_k_and_size_with_ad_hoc(algorithm: RowAlgorithm, data: st.DataObject, sizes: list[int]) -> None:
    case = SUITE.behind_the_rows(data.draw(cases(algorithm, most=25, external_clock=None, ad_hoc=True)))
    capacity = {name: data.draw(st.integers(1, 8), label=name) for name in capacities(algorithm)}
    driver = Driver(case.spec, opener(algorithm, **capacity))

    def ask() -> None:
        seen = case.events[: driver.events_taken]
        if any(isinstance(event, Row) for event in seen):
            size = data.draw(st.sampled_from(sizes_to_ask(case)), label="size")
            for k in range(1, case.question.k + 1):
                assert by_group(driver.top(k, size)) == by_group(top(case.question, seen, k, size))

    driver.run(case.events, sizes, after_each=ask)


@every_algorithm
def test_asking_before_the_first_row_gives_nothing(algorithm: RowAlgorithm) -> None:
    for kind in kinds(algorithm):
        driver = Driver(kind.spec(question_of(kind, k=2, size=6, every=4, lateness=0)), algorithm.open)
        assert driver.top(1) == []
        assert driver.top(2, 3) == []
        assert driver.top_many([(1, None), (2, 3)]) == [[], []]
        assert driver.top_many([]) == []
        assert driver.operator.next_close() is None
        driver.finish()
        assert driver.lines == []


def test_some_algorithm_answers_any_size() -> None:
    assert {algorithm.name for algorithm in AD_HOC} > {"recompute"}


@every_algorithm
def test_says_why_it_refuses(algorithm: RowAlgorithm) -> None:
    assert kinds(algorithm), "it takes some queries"
    for kind in kinds(algorithms_of("rows")["recompute"]):
        if kind not in kinds(algorithm):
            why = str(algorithm.refuses(kind.spec(question_of(kind, k=2, size=6, every=4, lateness=0))))
            assert "with each arrival" in why or "ad-hoc" in why or "share" in why
