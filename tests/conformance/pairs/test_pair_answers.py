"""Oracle tests: every algorithm for pairs shows exactly what recomputing from scratch shows, however it is cut up."""

from __future__ import annotations

import random
from functools import partial

import pytest
from conformance.algorithms import examples
from conformance.pairs.driver import Driver, meaning
from conformance.pairs.strategies import Case, batch_sizes, capacities, cases, every_algorithm, random_case
from hypothesis import given
from hypothesis import strategies as st
from oracle import Row, next_close
from pair_oracle import Event, PairRow, answers, late

from skyband.core.registry import algorithms_of
from skyband.problems.pairs.operator import PairAlgorithm


def expected(case: Case, *, finished: bool) -> list[object]:
    return list(answers(case.question, meaning(case.score), case.events, finished=finished))


@every_algorithm
@examples(120)
@given(st.data(), batch_sizes(), st.booleans())
def test_agrees_with_the_oracle(
    algorithm: PairAlgorithm, data: st.DataObject, sizes: list[int], finished: bool
) -> None:
    case = data.draw(cases(algorithm))
    driver = Driver(case.spec, algorithm.open)
    driver.run(case.events, sizes, after_each=lambda: driver.operator.check())
    if finished:
        driver.finish()
        driver.operator.check()
    assert driver.lines == expected(case, finished=finished)
    assert driver.operator.late == len(late(case.question, case.events))


@every_algorithm
@examples(60)
@given(st.data(), batch_sizes(), st.booleans())
def test_external_clock(algorithm: PairAlgorithm, data: st.DataObject, sizes: list[int], finished: bool) -> None:
    case = data.draw(cases(algorithm, external_clock=True))
    driver = Driver(case.spec, algorithm.open)
    driver.run(case.events, sizes, after_each=lambda: driver.operator.check())
    if case.question.emit != "changes":
        assert driver.operator.next_close() == next_close(case.question, _rows(case.events))
    if finished:
        driver.finish()
    assert driver.lines == expected(case, finished=finished)
    assert driver.operator.late == len(late(case.question, case.events))


def _rows(events: list[Event]) -> list[object]:
    return [Row(0.0, event.time) if isinstance(event, PairRow) else event for event in events]


@every_algorithm
@examples(40)
@given(st.data(), batch_sizes())
def test_agrees_with_recompute_batch_by_batch(algorithm: PairAlgorithm, data: st.DataObject, sizes: list[int]) -> None:
    case = data.draw(cases(algorithm, external_clock=None))
    driver, reference = Driver(case.spec, algorithm.open), Driver(case.spec, algorithms_of("pairs")["recompute"].open)
    said: dict[Driver, list[int]] = {driver: [], reference: []}
    for each in said:
        each.run(case.events, sizes, after_each=lambda each=each: said[each].append(len(each.lines)))
    assert said[driver] == said[reference], "what is known is said at once, not with a later batch"
    assert driver.lines == reference.lines
    assert driver.operator.next_close() == reference.operator.next_close()


@every_algorithm
@examples(60)
@given(st.data(), batch_sizes())
def test_smallest_capacities(algorithm: PairAlgorithm, data: st.DataObject, sizes: list[int]) -> None:
    case = data.draw(cases(algorithm, most=30, external_clock=None))
    smallest = {name: data.draw(st.integers(1, 3), label=name) for name in capacities(algorithm)}
    driver = Driver(case.spec, partial(algorithm.open, **smallest))
    driver.run(case.events, sizes, after_each=lambda: driver.operator.check())
    assert driver.lines == expected(case, finished=False)


@every_algorithm
@examples(60)
@given(st.data(), batch_sizes())
def test_snapshot_and_restore_at_every_step(algorithm: PairAlgorithm, data: st.DataObject, sizes: list[int]) -> None:
    case = data.draw(cases(algorithm, external_clock=None))
    driver = Driver(case.spec, algorithm.open)

    def stop_and_go_on() -> None:
        before = driver.operator
        driver.restart()
        driver.operator.check()
        assert driver.operator.held().tolist() == before.held().tolist()
        assert driver.operator.next_close() == before.next_close()
        assert driver.operator.late == before.late
        assert driver.operator.rows_held() >= len(driver.operator.held())

    driver.run(case.events, sizes, stop_and_go_on)
    driver.finish()
    assert driver.lines == expected(case, finished=True)


@every_algorithm
@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_the_oracle_on_random_streams(algorithm: PairAlgorithm, seed: int) -> None:
    """Everything at once: any cut into batches, any capacities, stopping and going on."""
    draw = random.Random(seed)
    for _ in range(30):
        case = random_case(algorithm, draw)
        capacity = {name: draw.choice([1, 2, 3, 8, 64]) for name in capacities(algorithm)}
        driver = Driver(case.spec, draw.choice([algorithm.open, partial(algorithm.open, **capacity)]))
        restarts = draw.random() < 0.3

        def after_each(driver: Driver = driver, restarts: bool = restarts) -> None:
            if restarts and draw.random() < 0.5:
                driver.restart()
            driver.operator.check()

        driver.run(case.events, [draw.choice([0, 1, 2, 3, 7, 20, 100]) for _ in range(100)], after_each)
        finished = draw.random() < 0.5
        if finished:
            driver.finish()
        assert driver.lines == expected(case, finished=finished), case
        assert driver.operator.late == len(late(case.question, case.events))
