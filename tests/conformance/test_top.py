"""Oracle tests: `top(k, size)` is right for every k and size that an operator accepts, at any moment."""

from __future__ import annotations

from typing import Any

from conformance.discovery import every_algorithm
from conformance.suite import AnyAlgorithm, Suite
from hypothesis import given
from hypothesis import strategies as st


@every_algorithm
def test_any_question_at_any_moment(suite: Suite[Any], algorithm: AnyAlgorithm) -> None:
    """One by one and many at once; asked in between, so that what was prepared for questions must not be used again."""

    @suite.explored("top")
    @given(st.data(), suite.batch_sizes())
    def is_right(data: st.DataObject, sizes: list[int]) -> None:
        case = suite.behind_the_rows(data.draw(suite.cases(algorithm, rows="few", external_clock=None)))
        driver = suite.driver(case, data.draw(suite.variants(algorithm, case)))

        def ask() -> None:
            questions = data.draw(suite.questions(case, driver), label="questions")
            found = driver.top_many(questions) if questions else []
            assert found == [driver.top(k, size) for k, size in questions]
            for (k, size), lines in zip(questions, found, strict=True):
                assert suite.asked(lines) == suite.asked(suite.top(case, driver, k, size))

        driver.run(case.events, sizes, after_each=ask)
        assert suite.said(driver) == suite.expected(case, driver, finished=False), "asking changes nothing"

    is_right()
