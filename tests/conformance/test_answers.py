"""Oracle tests: every algorithm answers every query that it takes as the definitions say, however the stream is cut."""

from __future__ import annotations

import random

import pytest
from conformance.algorithms import capacities, every_algorithm, examples, opener
from conformance.driver import Driver
from conformance.random_streams import random_case
from conformance.strategies import batch_sizes, cases, kinds, question_of
from hypothesis import given
from hypothesis import strategies as st
from oracle import answers, by_group, late, next_close, unranked

from skyband.core.registry import algorithms_of
from skyband.problems.rows.operator import RowAlgorithm


@every_algorithm
@examples(200)
@given(st.data(), batch_sizes(), st.booleans())
def test_agrees_with_the_oracle(algorithm: RowAlgorithm, data: st.DataObject, sizes: list[int], finished: bool) -> None:
    case = data.draw(cases(algorithm))
    driver = Driver(case.spec, algorithm.open)
    driver.run(case.events, sizes, after_each=lambda: driver.operator.check())
    if finished:
        driver.finish()
        driver.operator.check()
    assert by_group(driver.lines) == by_group(answers(case.question, case.events, finished=finished))
    assert driver.operator.late == len(late(case.question, case.events))
    assert driver.operator.unranked == len(unranked(case.question, case.events))


@every_algorithm
@examples(60)
@given(st.data(), batch_sizes())
def test_agrees_with_recompute_batch_by_batch(algorithm: RowAlgorithm, data: st.DataObject, sizes: list[int]) -> None:
    case = data.draw(cases(algorithm, external_clock=None))
    driver, reference = Driver(case.spec, algorithm.open), Driver(case.spec, algorithms_of("rows")["recompute"].open)
    said: dict[Driver, list[int]] = {driver: [], reference: []}
    for each in said:
        each.run(case.events, sizes, after_each=lambda each=each: said[each].append(len(each.lines)))
    assert said[driver] == said[reference], "what is known is said at once, not with a later batch"
    assert by_group(driver.lines) == by_group(reference.lines)
    assert driver.operator.next_close() == reference.operator.next_close()


@every_algorithm
@examples(100)
@given(st.data(), batch_sizes(), st.booleans())
def test_external_clock(algorithm: RowAlgorithm, data: st.DataObject, sizes: list[int], finished: bool) -> None:
    case = data.draw(cases(algorithm, external_clock=True))
    driver = Driver(case.spec, algorithm.open)
    driver.run(case.events, sizes, after_each=lambda: driver.operator.check())
    assert driver.operator.next_close() == next_close(case.question, case.events)
    if finished:
        driver.finish()
    assert by_group(driver.lines) == by_group(answers(case.question, case.events, finished=finished))
    assert driver.operator.late == len(late(case.question, case.events))
    assert driver.operator.unranked == len(unranked(case.question, case.events))


@every_algorithm
@examples(60)
@given(st.data(), batch_sizes())
def test_any_split_into_batches_gives_the_same(algorithm: RowAlgorithm, data: st.DataObject, sizes: list[int]) -> None:
    case = data.draw(cases(algorithm, most=60))
    whole, one_by_one, cut = (Driver(case.spec, algorithm.open) for _ in range(3))
    whole.run(case.events)
    one_by_one.run(case.events, [1] * len(case.events))
    cut.run(case.events, sizes)
    assert by_group(whole.lines) == by_group(one_by_one.lines) == by_group(cut.lines)
    assert whole.operator.late == one_by_one.operator.late == cut.operator.late


@every_algorithm
@examples(60)
@given(st.data(), batch_sizes())
def test_windows_close_in_order(algorithm: RowAlgorithm, data: st.DataObject, sizes: list[int]) -> None:
    case = data.draw(cases(algorithm, external_clock=None))
    driver = Driver(case.spec, algorithm.open)
    driver.run(case.events, sizes)
    driver.finish()
    lines = by_group(driver.lines).values() if case.question.by_count else [driver.lines]
    for ats in ([line.at for line in some] for some in lines):
        assert ats == sorted(ats)


@every_algorithm
@examples(100)
@given(st.data(), batch_sizes())
def test_smallest_capacities(algorithm: RowAlgorithm, data: st.DataObject, sizes: list[int]) -> None:
    case = data.draw(cases(algorithm, most=80, external_clock=None))
    smallest = {name: data.draw(st.integers(1, 3), label=name) for name in capacities(algorithm)}
    driver = Driver(case.spec, opener(algorithm, **smallest))
    driver.run(case.events, sizes, after_each=lambda: driver.operator.check())
    assert by_group(driver.lines) == by_group(answers(case.question, case.events, finished=False))


@every_algorithm
def test_says_why_it_refuses(algorithm: RowAlgorithm) -> None:
    assert kinds(algorithm), "it takes some queries"
    for kind in kinds(algorithms_of("rows")["recompute"]):
        if kind not in kinds(algorithm):
            why = str(algorithm.refuses(kind.spec(question_of(kind, k=2, size=6, every=4, lateness=0))))
            assert "with each arrival" in why or "ad-hoc" in why


@every_algorithm
@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_the_oracle_on_random_streams(algorithm: RowAlgorithm, seed: int) -> None:
    """Everything at once: any cut into batches, any capacities, stopping and going on, forgetting groups."""
    draw = random.Random(seed)
    for _ in range(60):
        case = random_case(kinds(algorithm), draw)
        capacity = {name: draw.choice([1, 2, 3, 8, 64]) for name in capacities(algorithm)}
        driver = Driver(case.spec, draw.choice([algorithm.open, opener(algorithm, **capacity)]))
        restarts, forgets = draw.random() < 0.3, case.spec.grouped and draw.random() < 0.3

        def after_each(driver: Driver = driver, restarts: bool = restarts, forgets: bool = forgets) -> None:
            if restarts and draw.random() < 0.5:
                driver.restart()
            if forgets and draw.random() < 0.5:
                driver.forget_groups()
            driver.operator.check()

        driver.run(case.events, [draw.choice([0, 1, 2, 3, 7, 20, 100]) for _ in range(100)], after_each)
        finished = draw.random() < 0.5
        if finished:
            driver.finish()
        assert by_group(driver.lines) == by_group(answers(case.question, case.events, finished=finished)), case
        assert driver.operator.late == len(late(case.question, case.events))
        assert driver.operator.unranked == len(unranked(case.question, case.events))
