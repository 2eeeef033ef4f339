"""Restart tests: stopping and going on, anywhere, changes nothing; nor does forgetting dead groups."""

from __future__ import annotations

import numpy as np
from conformance.algorithms import capacities, every_algorithm, examples, opener
from conformance.driver import Driver
from conformance.strategies import Case, batch_sizes, cases
from hypothesis import given
from hypothesis import strategies as st
from oracle import answers, by_group

from skyband.problems.rows.operator import RowAlgorithm


def run(case: Case, driver: Driver, sizes: list[int], after_each) -> Driver:  # type: ignore[no-untyped-def]
    driver.run(case.events, sizes, after_each)
    driver.finish()
    return driver


@every_algorithm
@examples(50)
@given(st.data(), batch_sizes())
def test_snapshot_and_restore_at_every_step(algorithm: RowAlgorithm, data: st.DataObject, sizes: list[int]) -> None:
    case = data.draw(cases(algorithm, external_clock=None))
    driver = Driver(case.spec, algorithm.open)

    def stop_and_go_on() -> None:
        before = driver.operator
        driver.restart()
        driver.operator.check()
        assert driver.operator.held().tolist() == before.held().tolist()
        assert driver.operator.next_close() == before.next_close()
        assert (driver.operator.late, driver.operator.unranked) == (before.late, before.unranked)

    run(case, driver, sizes, stop_and_go_on)
    assert by_group(driver.lines) == by_group(answers(case.question, case.events))


@every_algorithm
@examples(50)
@given(st.data(), batch_sizes())
def test_forgetting_dead_groups_at_every_step(algorithm: RowAlgorithm, data: st.DataObject, sizes: list[int]) -> None:
    case = data.draw(cases(algorithm, external_clock=None, grouped=True))
    driver = Driver(case.spec, algorithm.open)

    def forget() -> None:
        held = driver.operator.held().tolist()
        driver.forget_groups()
        driver.operator.check()
        assert driver.operator.held().tolist() == held
        assert driver.operator.live_codes().all() or not held

    run(case, driver, sizes, forget)
    assert by_group(driver.lines) == by_group(answers(case.question, case.events))


@every_algorithm
@examples(60)
@given(st.data(), batch_sizes())
def test_both_at_random_steps_with_small_capacities(
    algorithm: RowAlgorithm, data: st.DataObject, sizes: list[int]
) -> None:
    case = data.draw(cases(algorithm, most=80, external_clock=None, grouped=True))
    capacity = {name: data.draw(st.integers(1, 8), label=name) for name in capacities(algorithm)}
    driver = Driver(case.spec, opener(algorithm, **capacity))
    choices = iter(data.draw(st.lists(st.sampled_from("srx"), max_size=40)))

    def do_something() -> None:
        match next(choices, None):
            case "s":
                driver.restart()
            case "r":
                driver.forget_groups()
        driver.operator.check()

    run(case, driver, sizes, do_something)
    assert by_group(driver.lines) == by_group(answers(case.question, case.events))


@every_algorithm
@examples(40)
@given(st.data(), batch_sizes())
def test_state_is_flat_arrays_of_its_own(algorithm: RowAlgorithm, data: st.DataObject, sizes: list[int]) -> None:
    """A snapshot is a copy: what happens later to the operator, or to one restored from it, does not change it."""
    case = data.draw(cases(algorithm, external_clock=None))
    cut = data.draw(st.integers(0, len(case.events)))
    driver = Driver(case.spec, algorithm.open)
    driver.run(case.events[:cut], sizes)
    state = driver.operator.state()
    assert not any(array.dtype.hasobject for array in state.values())
    saved = {name: array.tobytes() for name, array in state.items()}
    driver.operator.restore(state)
    driver.run(case.events[cut:])
    driver.finish()
    assert {name: array.tobytes() for name, array in state.items()} == saved
    for array in state.values():
        array.view(np.uint8).fill(255)
    assert by_group(driver.lines) == by_group(answers(case.question, case.events))
