"""Examples of queries that came late or were refused, each of which some version got wrong."""

from __future__ import annotations

import numpy as np
import pytest
from conformance.subscriptions.driver import Driver
from oracle import Question
from subscriptions_oracle import Asked, Point

from skyband.core.operator import Ints
from skyband.core.registry import find
from skyband.errors import InvalidQuery
from skyband.problems.subscriptions.drivers.thresholds import Thresholds


def test_a_late_row_is_shown_to_a_query_that_came_after_a_better_one() -> None:
    question = Question(k=1, size=10, every=10, lateness=20, by_count=False, emit="windows")
    driver = Driver(question, "shared", find("shared", "subscriptions").open)
    for row in (Point((9.0, 0.0), 8), Point((5.0, 0.0), 3)):
        driver.add([Asked(1, 10, (0.0, 0.0))])
        driver.feed([row])
    driver.finish()
    assert [len(lines) for lines in driver.told().values()] == [1, 1]
    assert driver.told() == driver.expected(question, "shared", finished=True)


def test_a_query_is_refused_that_would_see_rows_from_before_its_score_group() -> None:
    """Found with seed 522: a score group that had come late was taken to have all rows of the window."""
    question = Question(k=1, size=4, every=2, by_count=True, emit="windows")
    driver = Driver(question, "by symbol", find("shared", "subscriptions").open)
    driver.add([Asked(1, 4, (0.0, 5.0))])
    driver.feed([Point((1.0, 7.0)), Point((2.0, 7.0)), Point((0.5, 5.0))])
    driver.add([Asked(1, 4, (0.0, 7.0))])
    with pytest.raises(InvalidQuery):
        driver.add([Asked(2, 4, (0.0, 7.0), backfill=True)])
    driver.forget(1)
    driver.feed([Point((0.2, 7.0)), Point((0.1, 7.0)), Point((0.3, 5.0)), Point((0.1, 9.0))])
    driver.add([Asked(1, 4, (0.0, 7.0), backfill=True)])  # what came before the score group has left
    driver.feed([Point((0.0, 7.0))])
    assert driver.told() == driver.expected(question, "by symbol", finished=False)


def test_rows_are_taken_together_although_windows_are_not_all_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each row was a step of its own, a thousand queries took a hundred times as long."""
    steps: list[int] = []
    take_step = Thresholds._arrive

    def counted(self: Thresholds, which: Ints, u: int, v: int, base: int, now: Ints) -> None:
        steps.append(v - u)
        take_step(self, which, u, v, base, now)

    monkeypatch.setattr(Thresholds, "_arrive", counted)
    question = Question(k=1, size=4000, by_count=True, emit="entries")
    driver = Driver(question, "shared", find("scan", "subscriptions").open)
    driver.add([Asked(1, size, (0.0, 0.0)) for size in (1100, 1500, 2500, 4000)])
    driver.feed([Point((float(i % 977), 0.0)) for i in range(6000)])
    assert sum(steps) >= 6000
    assert np.median(steps) > 200
