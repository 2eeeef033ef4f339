"""Oracle tests: every algorithm of every problem answers every query that it takes as the definitions say, however the
stream is cut."""

from __future__ import annotations

from typing import Any

import pytest
from conformance.discovery import every_algorithm, every_random_stream
from conformance.suite import AnyAlgorithm, Suite
from hypothesis import assume, given
from hypothesis import strategies as st


def assert_right(suite: Suite[Any], case: Any, driver: Any, *, finished: bool) -> None:
    """The oracle's lines and counts; the input ends here if it is `finished`."""
    for name, value in suite.facts(case).items():
        found = getattr(driver.operator, name)
        assert (found() if callable(found) else found) == value, name
    if finished:
        driver.finish()
        driver.operator.check()
    assert suite.said(driver) == suite.expected(case, driver, finished=finished)


@every_algorithm
def test_agrees_with_the_oracle(suite: Suite[Any], algorithm: AnyAlgorithm) -> None:
    @suite.explored("answers")
    @given(st.data(), suite.batch_sizes(), st.booleans())
    def agrees(data: st.DataObject, sizes: list[int], finished: bool) -> None:
        case = data.draw(suite.cases(algorithm))
        driver = suite.driver(case, data.draw(suite.variants(algorithm, case)))
        driver.run(case.events, sizes, after_each=lambda: driver.operator.check())
        assert_right(suite, case, driver, finished=finished)

    agrees()


@every_algorithm
def test_external_clock(suite: Suite[Any], algorithm: AnyAlgorithm) -> None:
    if not suite.takes_external_clock(algorithm):
        pytest.skip("it takes windows that do not wait for a clock")

    @suite.explored("external clock")
    @given(st.data(), suite.batch_sizes(), st.booleans())
    def agrees(data: st.DataObject, sizes: list[int], finished: bool) -> None:
        case = data.draw(suite.cases(algorithm, external_clock=True))
        driver = suite.driver(case, data.draw(suite.variants(algorithm, case)))
        driver.run(case.events, sizes, after_each=lambda: driver.operator.check())
        assert_right(suite, case, driver, finished=finished)

    agrees()


@every_algorithm
def test_agrees_with_recompute_batch_by_batch(suite: Suite[Any], algorithm: AnyAlgorithm) -> None:
    recompute = suite.algorithms()["recompute"]

    @suite.explored("batch by batch")
    @given(st.data(), suite.batch_sizes())
    def agrees(data: st.DataObject, sizes: list[int]) -> None:
        case = data.draw(suite.cases(algorithm, external_clock=None))
        assume(suite.has_reference(case))
        driver = suite.driver(case, data.draw(suite.variants(algorithm, case)))
        reference = suite.driver(case, recompute.open)
        said: dict[Any, list[Any]] = {driver: [], reference: []}
        for each in said:
            # What is known is said at once, not with a later batch.
            each.run(case.events, sizes, after_each=lambda each=each: said[each].append(len(suite.shown(each))))
        assert said[driver] == said[reference]
        assert suite.said(driver) == suite.said(reference)
        assert driver.operator.late == reference.operator.late
        close, due = driver.operator.next_close(), reference.operator.next_close()
        assert close == due or suite.may_look_sooner(case, close, due)

    agrees()


@every_algorithm
def test_any_split_into_batches_gives_the_same(suite: Suite[Any], algorithm: AnyAlgorithm) -> None:
    @suite.explored("splits")
    @given(st.data(), suite.batch_sizes())
    def agrees(data: st.DataObject, sizes: list[int]) -> None:
        case = data.draw(suite.cases(algorithm, rows="many"))
        opener = data.draw(suite.variants(algorithm, case))
        whole, one_by_one, cut = (suite.driver(case, opener) for _ in range(3))
        whole.run(case.events)
        one_by_one.run(case.events, [1] * len(case.events))
        cut.run(case.events, sizes)
        for each in (whole, one_by_one, cut):
            each.finish()
        assert suite.said(whole) == suite.said(one_by_one) == suite.said(cut)
        assert whole.operator.late == one_by_one.operator.late == cut.operator.late

    agrees()


@every_algorithm
def test_windows_close_in_order(suite: Suite[Any], algorithm: AnyAlgorithm) -> None:
    @suite.explored("order")
    @given(st.data(), suite.batch_sizes())
    def comes_in_order(data: st.DataObject, sizes: list[int]) -> None:
        case = data.draw(suite.cases(algorithm, external_clock=None))
        driver = suite.driver(case, data.draw(suite.variants(algorithm, case)))
        driver.run(case.events, sizes)
        driver.finish()
        for moments in suite.moments(case, driver):
            assert list(moments) == sorted(moments)

    comes_in_order()


@every_algorithm
def test_smallest_capacities(suite: Suite[Any], algorithm: AnyAlgorithm) -> None:
    @suite.explored("capacities")
    @given(st.data(), suite.batch_sizes())
    def agrees(data: st.DataObject, sizes: list[int]) -> None:
        case = data.draw(suite.cases(algorithm, rows="many", external_clock=None))
        driver = suite.driver(case, data.draw(suite.smallest(algorithm, case)))
        driver.run(case.events, sizes, after_each=lambda: driver.operator.check())
        assert_right(suite, case, driver, finished=False)

    agrees()


@every_random_stream
def test_agrees_with_the_oracle_on_random_streams(suite: Suite[Any], algorithm: AnyAlgorithm, seed: int) -> None:
    """Everything at once: any cut into batches, any capacities, stopping and going on, forgetting codes."""
    draw = suite.random(algorithm, seed)
    for _ in range(suite.random_streams[1]):
        case = suite.random_case(algorithm, draw)
        driver = suite.driver(case, suite.random_opener(algorithm, draw))
        restarts, forgets = draw.random() < 0.3, draw.random() < 0.3

        def after_each(driver: Any = driver, restarts: bool = restarts, forgets: bool = forgets) -> None:
            if restarts and draw.random() < 0.5:
                driver.restart()
            if forgets and draw.random() < 0.5:
                driver.compact()
            driver.operator.check()

        driver.run(case.events, [draw.choice([0, 1, 2, 3, 7, 20, 100]) for _ in range(100)], after_each)
        assert_right(suite, case, driver, finished=draw.random() < 0.5)
