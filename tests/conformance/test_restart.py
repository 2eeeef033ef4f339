"""Restart tests: stopping and going on, anywhere, changes nothing; nor does forgetting the codes of what is gone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conformance.discovery import every_algorithm
from conformance.suite import AnyAlgorithm, Suite
from hypothesis import given
from hypothesis import strategies as st


def finished_right(suite: Suite[Any], case: Any, driver: Any) -> None:
    driver.finish()
    assert suite.said(driver) == suite.expected(case, driver, finished=True)


@every_algorithm
def test_snapshot_and_restore_at_every_step(suite: Suite[Any], algorithm: AnyAlgorithm) -> None:
    @suite.explored("snapshots")
    @given(st.data(), suite.batch_sizes())
    def changes_nothing(data: st.DataObject, sizes: list[int]) -> None:
        case = data.draw(suite.cases(algorithm, external_clock=None))
        driver = suite.driver(case, data.draw(suite.variants(algorithm, case)))

        def stop_and_go_on() -> None:
            before = driver.operator
            before.check()  # what a restart leaves behind may only matter when more has happened
            driver.restart()
            driver.operator.check()
            assert driver.operator.held().tolist() == before.held().tolist()
            assert driver.operator.rows_held() >= len(driver.operator.held())
            assert driver.operator.next_close() == before.next_close()
            assert (driver.operator.late, driver.operator.unranked) == (before.late, before.unranked)

        driver.run(case.events, sizes, stop_and_go_on)
        finished_right(suite, case, driver)

    changes_nothing()


@every_algorithm
def test_forgetting_dead_codes_at_every_step(suite: Suite[Any], algorithm: AnyAlgorithm) -> None:
    if not suite.takes_codes(algorithm):
        pytest.skip("it takes queries without groups")

    @suite.explored("codes")
    @given(st.data(), suite.batch_sizes())
    def changes_nothing(data: st.DataObject, sizes: list[int]) -> None:
        case = data.draw(suite.cases(algorithm, external_clock=None, coded=True))
        driver = suite.driver(case, data.draw(suite.variants(algorithm, case)))

        def forget() -> None:
            held = driver.operator.held().tolist()
            driver.compact()
            driver.operator.check()
            assert driver.operator.held().tolist() == held

        driver.run(case.events, sizes, forget)
        finished_right(suite, case, driver)

    changes_nothing()


@every_algorithm
def test_both_at_random_steps_with_small_capacities(suite: Suite[Any], algorithm: AnyAlgorithm) -> None:
    coded = suite.takes_codes(algorithm)

    @suite.explored("both")
    @given(st.data(), suite.batch_sizes())
    def changes_nothing(data: st.DataObject, sizes: list[int]) -> None:
        case = data.draw(suite.cases(algorithm, rows="many", external_clock=None, coded=coded))
        driver = suite.driver(case, data.draw(suite.smallest(algorithm, case, most=8)))
        choices = iter(data.draw(st.lists(st.sampled_from("scx"), max_size=40)))

        def do_something() -> None:
            match next(choices, None):
                case "s":
                    driver.restart()
                case "c":
                    driver.compact()
            driver.operator.check()

        driver.run(case.events, sizes, do_something)
        finished_right(suite, case, driver)

    changes_nothing()


@every_algorithm
def test_state_is_flat_arrays_of_its_own(suite: Suite[Any], algorithm: AnyAlgorithm) -> None:
    """A snapshot is a copy: what happens later to the operator, or to one restored from it, does not change it."""

    @suite.explored("own arrays")
    @given(st.data(), suite.batch_sizes())
    def is_a_copy(data: st.DataObject, sizes: list[int]) -> None:
        case = data.draw(suite.cases(algorithm, external_clock=None))
        cut = data.draw(st.integers(0, len(case.events)))
        driver = suite.driver(case, data.draw(suite.variants(algorithm, case)))
        driver.run(case.events[:cut], sizes)
        state = driver.operator.state()
        assert not any(array.dtype.hasobject for array in state.values())
        saved = {name: array.tobytes() for name, array in state.items()}
        if not suite.restores_in_place or data.draw(st.booleans(), label="elsewhere"):
            driver.operator = driver.fresh()
        driver.operator.restore(state)
        driver.run(case.events[cut:])
        driver.finish()
        assert {name: array.tobytes() for name, array in state.items()} == saved
        for array in state.values():
            array.view(np.uint8).fill(255)
        assert suite.said(driver) == suite.expected(case, driver, finished=True)

    is_a_copy()
