"""Oracle tests: `top(k, size)` is right for every k and size it accepts; with ad_hoc, it accepts all."""

from __future__ import annotations

import pytest
from conformance.algorithms import EXACT, capacities, every_algorithm, examples, opener
from conformance.driver import Driver, refuses
from conformance.strategies import Case, batch_sizes, cases, kinds, question_of
from hypothesis import assume, given
from hypothesis import strategies as st
from oracle import Advance, Event, Row, by_group, top

from skyband.problems.rows.operator import RowAlgorithm


def behind_the_rows(case: Case) -> Case:
    """The same, but an external clock never runs ahead of the latest time seen, which is what `now` means here."""
    events: list[Event] = []
    for event in case.events:
        if isinstance(event, Advance):
            now = max(row.time for row in events if isinstance(row, Row) and row.time is not None)
            event = Advance(min(event.watermark, now))
        events.append(event)
    return case._replace(events=events)


def sizes_to_ask(case: Case) -> range:
    """All sizes up to the window's, or some more than the stream is long."""
    return range(1, 45 if case.question.size is None else case.question.size + 1)


@every_algorithm
@examples(40)
@given(st.data(), batch_sizes())
def test_the_window_that_closes_next(algorithm: RowAlgorithm, data: st.DataObject, sizes: list[int]) -> None:
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
    case = behind_the_rows(data.draw(cases(algorithm, external_clock=None)))
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
    case = behind_the_rows(data.draw(cases(algorithm, most=25, external_clock=None, ad_hoc=True)))
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
@examples(30)
@given(st.data(), batch_sizes())
def test_many_questions_at_once(algorithm: RowAlgorithm, data: st.DataObject, sizes: list[int]) -> None:
    """As one by one, and right; asked in between, so that what was prepared for questions must not be used again."""
    case = behind_the_rows(data.draw(cases(algorithm, most=25, external_clock=None)))
    driver = Driver(case.spec, algorithm.open)
    k, size = st.integers(1, case.question.k), st.none() | st.sampled_from(sizes_to_ask(case))

    def ask() -> None:
        seen = case.events[: driver.events_taken]
        if not any(isinstance(event, Row) for event in seen):
            return
        questions = [
            (k, size)
            for k, size in data.draw(st.lists(st.tuples(k, size), max_size=8), label="questions")
            if size is None or case.spec.ad_hoc or not refuses(driver, k, size)
        ]
        found = driver.top_many(questions)
        assert found == [driver.top(k, size) for k, size in questions]
        for (k_asked, size_asked), lines in zip(questions, found, strict=True):
            assert by_group(lines) == by_group(top(case.question, seen, k_asked, size_asked))

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
