"""Oracle tests: every algorithm across streams answers every query that it takes as the definitions say."""

from __future__ import annotations

import across_oracle
import oracle
import pytest
from conformance.across.driver import Driver
from conformance.across.strategies import batch_sizes, cases
from conformance.algorithms import examples
from hypothesis import given
from hypothesis import strategies as st

from skyband.core.registry import algorithms_of
from skyband.problems.across.operator import AcrossAlgorithm

# One that can be chosen misses nothing, unless two ids have the same hash.
EXACT = {name: each for name, each in algorithms_of("across").items() if each.exact or not each.for_comparing}
every_algorithm = pytest.mark.parametrize("algorithm", list(EXACT.values()), ids=list(EXACT))


@every_algorithm
@examples(200)
@given(st.data(), batch_sizes(), st.booleans())
def test_agrees_with_the_oracle(
    algorithm: AcrossAlgorithm, data: st.DataObject, sizes: list[int], finished: bool
) -> None:
    case = data.draw(cases(algorithm))
    driver = Driver(case.spec, algorithm.open)
    driver.run(case.events, sizes, after_each=lambda: driver.operator.check())
    if finished:
        driver.finish()
        driver.operator.check()
    assert driver.lines == across_oracle.answers(case.question, case.scoring, case.events, finished=finished)
    plain = across_oracle.plain(case.events)
    assert driver.operator.late == len(oracle.late(case.question, plain))
    assert driver.operator.unranked == len(oracle.unranked(case.question, plain))


@every_algorithm
@examples(60)
@given(st.data(), batch_sizes())
def test_agrees_with_recompute_batch_by_batch(
    algorithm: AcrossAlgorithm, data: st.DataObject, sizes: list[int]
) -> None:
    case = data.draw(cases(algorithm, external_clock=None))
    driver, reference = Driver(case.spec, algorithm.open), Driver(case.spec, algorithms_of("across")["recompute"].open)
    said: dict[Driver, list[int]] = {driver: [], reference: []}
    for each in said:
        each.run(case.events, sizes, after_each=lambda each=each: said[each].append(len(each.lines)))
    assert said[driver] == said[reference], "what is known is said at once, not with a later batch"
    assert driver.lines == reference.lines
    assert driver.operator.next_close() == reference.operator.next_close()


@every_algorithm
@examples(60)
@given(st.data(), batch_sizes(), st.booleans())
def test_external_clock(algorithm: AcrossAlgorithm, data: st.DataObject, sizes: list[int], finished: bool) -> None:
    case = data.draw(cases(algorithm, external_clock=True))
    driver = Driver(case.spec, algorithm.open)
    driver.run(case.events, sizes, after_each=lambda: driver.operator.check())
    if finished:
        driver.finish()
    assert driver.lines == across_oracle.answers(case.question, case.scoring, case.events, finished=finished)


@every_algorithm
@examples(40)
@given(st.data(), batch_sizes())
def test_any_split_into_batches_gives_the_same(
    algorithm: AcrossAlgorithm, data: st.DataObject, sizes: list[int]
) -> None:
    case = data.draw(cases(algorithm, most=60))
    whole, one_by_one, cut = (Driver(case.spec, algorithm.open) for _ in range(3))
    whole.run(case.events)
    one_by_one.run(case.events, [1] * len(case.events))
    cut.run(case.events, sizes)
    assert whole.lines == one_by_one.lines == cut.lines
    assert whole.operator.late == one_by_one.operator.late == cut.operator.late


@every_algorithm
@examples(60)
@given(st.data(), batch_sizes())
def test_going_on_elsewhere_changes_nothing(algorithm: AcrossAlgorithm, data: st.DataObject, sizes: list[int]) -> None:
    """Restart at every step, and forget objects that are gone."""
    case = data.draw(cases(algorithm, external_clock=None))
    driver, reference = Driver(case.spec, algorithm.open), Driver(case.spec, algorithm.open)

    def restart() -> None:
        driver.forget_objects()
        driver.restart()
        driver.operator.check()

    driver.run(case.events, sizes, after_each=restart)
    reference.run(case.events, sizes)
    driver.finish()
    reference.finish()
    assert driver.lines == reference.lines
    assert driver.operator.late == reference.operator.late


@every_algorithm
@examples(60)
@given(st.data(), batch_sizes(), st.integers(1, 12))
def test_asking_now(algorithm: AcrossAlgorithm, data: st.DataObject, sizes: list[int], k: int) -> None:
    case = data.draw(cases(algorithm))
    driver = Driver(case.spec, algorithm.open)
    k = min(k, case.spec.k)

    def ask() -> None:
        events = case.events[: driver.events_taken]
        expected = across_oracle.top(case.question, case.scoring, events, k)
        assert [line[2:] for line in driver.top(k)] == [line[2:] for line in expected]

    driver.run(case.events, sizes, after_each=ask)
    assert driver.lines == across_oracle.answers(case.question, case.scoring, case.events, finished=False)


@every_algorithm
@examples(40)
@given(st.data(), batch_sizes())
def test_holds_no_more_than_the_window(algorithm: AcrossAlgorithm, data: st.DataObject, sizes: list[int]) -> None:
    """By count: the rows of a window, and those of a slide more; from the start on, all of them."""
    case = data.draw(cases(algorithm))
    driver = Driver(case.spec, algorithm.open)
    size, every = case.question.size, case.question.every or 1

    def bounded() -> None:
        rows = driver.events_taken
        most = rows if size is None or not case.question.by_count else min(rows, size + every)
        assert driver.operator.rows_held() <= most

    driver.run(case.events, sizes, after_each=bounded)
