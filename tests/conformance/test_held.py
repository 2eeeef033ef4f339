"""Oracle tests: whatever an operator may still show it holds."""

from __future__ import annotations

from itertools import chain
from typing import Any

from conformance.discovery import every_algorithm
from conformance.suite import AnyAlgorithm, Suite
from hypothesis import given
from hypothesis import strategies as st


@every_algorithm
def test_rows_to_be_shown_are_held(suite: Suite[Any], algorithm: AnyAlgorithm) -> None:
    """The engine drops the columns of rows that are not held, so a row not held now must never be shown later."""

    @suite.explored("held")
    @given(st.data(), suite.batch_sizes())
    def is_held(data: st.DataObject, sizes: list[int]) -> None:
        case = data.draw(suite.cases(algorithm, external_clock=None))
        cut = data.draw(st.integers(0, len(case.events)))
        driver = suite.driver(case, data.draw(suite.variants(algorithm, case)))
        driver.run(case.events[:cut], sizes)
        held, said, arrived = set(driver.operator.held().tolist()), len(suite.shown(driver)), driver.position
        assert len(held) <= driver.operator.rows_held(), "the quick count is never too low"
        driver.run(case.events[cut:])
        driver.finish()
        later = {position for position in chain(*suite.shown(driver)[said:]) if position < arrived}
        assert later <= held
        assert suite.said(driver) == suite.expected(case, driver, finished=True)

    is_held()
