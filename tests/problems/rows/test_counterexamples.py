"""Example tests: streams that some version of some algorithm got wrong, each in its smallest form."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from conformance.rows.algorithms import every_algorithm, opener
from conformance.rows.driver import Driver, refuses, spec_of
from oracle import Advance, Event, Question, Row, Shown, answers, by_group, top

import skyband as sb
from skyband.core import snapshots
from skyband.core.registry import every_algorithm_of
from skyband.errors import SnapshotMismatch
from skyband.problems.rows.algorithms.mintopk.state import MinTopK
from skyband.problems.rows.algorithms.relaxed.state import Relaxed
from skyband.problems.rows.operator import Batch, RowAlgorithm

NAN = float("nan")
NO_TIMES, NO_GROUPS = np.empty(0, np.int64), np.empty(0, np.int32)


def run(algorithm: RowAlgorithm, question: Question, events: list[Event]) -> Driver:
    driver = Driver(spec_of(question, grouped=False), algorithm.open)
    driver.run(events, after_each=lambda: driver.operator.check())
    return driver


# -- finishing -------------------------------------------------------------------------------------


@every_algorithm
def test_from_the_start_a_row_behind_the_clock_is_still_shown_at_the_end(algorithm: RowAlgorithm) -> None:
    """The first window of the second row had closed when it came; the next one holds it."""
    question = Question(k=1, every=1, lateness=None)
    driver = run(algorithm, question, [Row(0.0, 0), Advance(1), Row(0.0, 0)])
    driver.finish()
    equal = [Shown(2, 0, "enter", 1, 0.0, 0)] if algorithm.name == "tied" else []  # which shows the first row, too
    assert driver.lines == [Shown(1, 0, "enter", 1, 0.0, 0), Shown(2, 0, "enter", 1, 0.0, 1), *equal]


@every_algorithm
def test_from_the_start_a_row_without_score_moves_the_clock(algorithm: RowAlgorithm) -> None:
    driver = run(algorithm, Question(k=1, every=10), [Row(NAN, 25), Row(5.0, 3)])
    driver.finish()
    assert driver.lines == [Shown(30, 0, "enter", 1, 5.0, 1)]


@pytest.mark.parametrize(
    ("name", "every"),
    [("recompute", 2**62 - 1), ("mintopk", 2**62 - 1), ("relaxed", 2**62 - 1), ("recompute", None), ("relaxed", None)],
)
def test_from_the_start_nothing_is_ever_too_old(name: str, every: int | None) -> None:
    """The two times are as far apart as an engine lets them be: almost twice FOREVER."""
    question = Question(k=1, every=every, emit="entries")
    driver = run(every_algorithm_of("rows")[name], question, [Row(9.0, 1 - 2**62), Row(1.0, 2**62 - 1)])
    driver.finish()
    assert [line.position for line in driver.lines] == [0]
    assert driver.operator.late == 0


# -- windows without rows ---------------------------------------------------------------------------


@every_algorithm
def test_a_window_without_rows_takes_back_what_the_one_before_showed(algorithm: RowAlgorithm) -> None:
    """It closes long after, with the next row; what leaves does so at its end."""
    question = Question(k=2, size=10, every=5, emit="changes")
    if algorithm.refuses(spec_of(question)):
        return
    driver = run(algorithm, question, [Row(1.0, 1), Row(2.0, 3), Row(3.0, 40)])
    assert [(line.at, line.change, line.position) for line in driver.lines] == [
        *((5, "enter", 1), (5, "enter", 0)),
        *((15, "leave", 1), (15, "leave", 0)),
    ]


# -- asking ----------------------------------------------------------------------------------------


@every_algorithm
def test_the_next_window_ends_at_zero(algorithm: RowAlgorithm) -> None:
    assert run(algorithm, Question(k=1, size=10, every=10), [Row(9.0, -5)]).top(1) == [Shown(0, 0, "enter", 1, 9.0, 0)]


@every_algorithm
def test_no_window_is_open(algorithm: RowAlgorithm) -> None:
    """The row without a score closed [10, 20); the one that is open holds nothing that could be shown."""
    assert run(algorithm, Question(k=1, size=10, every=10), [Row(9.0, 19), Row(NAN, 25)]).top(1) == []


@every_algorithm
@pytest.mark.parametrize(
    ("question", "events"),
    [
        (Question(k=1, size=10, every=10), [Row(9.0, 16), Row(1.0, 25)]),
        (Question(k=1, size=15, every=10), [Row(9.0, 12), Row(1.0, 24)]),
        (Question(k=1, size=15, every=10, by_count=True), [Row(9.0 if i == 9 else 1.0) for i in range(24)]),
        (Question(k=1, size=10, every=10, by_count=True), [Row(9.0 if i == 16 else 1.0) for i in range(25)]),
        (Question(k=1, size=1, every=1, by_count=True), [Row(0.0)]),
        (Question(k=1, size=2, every=2, by_count=True), [Row(9.0), Row(8.0), Row(NAN)]),
    ],
)
def test_the_last_rows_are_in_windows_that_have_closed(
    algorithm: RowAlgorithm, question: Question, events: list[Event]
) -> None:
    """The best of the last `size` is in a closed window: it is shown, or the question is refused."""
    driver = run(algorithm, question, events)
    assert question.size is not None
    if not refuses(driver, 1, question.size):
        assert driver.top(1, question.size) == top(question, events, 1, question.size)


@every_algorithm
def test_rows_of_two_panes_are_in_the_same_last_window(algorithm: RowAlgorithm) -> None:
    """[1, 2) and [2, 3) are two panes, but [1, 6) is the last window of both: the better row alone may be held."""
    question, events = Question(k=1, size=5, every=2), [Row(3.0, 1), Row(2.0, 2), Row(1.0, 4)]
    driver = run(algorithm, question, events)
    if not refuses(driver, 1, 3):
        assert driver.top(1, 3) == top(question, events, 1, 3)


# -- room ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [52, 53, 129, 300])
@pytest.mark.parametrize("initial_room", [1, 1024])
def test_mintopk_closes_a_window_with_many_late_panes(size: int, initial_room: int) -> None:
    """A row in each of many panes, all late but one: closing the next window merges them into one growing list."""
    question = Question(k=1, size=size, every=1)
    late = [Row(float(time), time) for time in range(size + 1, 2 * size)]
    events = [Row(1.0, 2 * size), *late, Row(0.0, 2 * size + 1)]
    driver = Driver(
        spec_of(question, grouped=False), opener(every_algorithm_of("rows")["mintopk"], initial_room=initial_room)
    )
    driver.run(events, after_each=lambda: driver.operator.check())
    assert by_group(driver.lines) == by_group(answers(question, events, finished=False))


def test_mintopk_refuses_a_snapshot_from_before_there_were_young_rows() -> None:
    query, schema = (
        sb.TopK(k=1, by="x", window=sb.sliding(3, every=1), algorithm="mintopk"),
        pa.schema({"x": pa.int64()}),
    )
    saved = snapshots.read(query.open(schema).snapshot())
    del saved.parts["operator"].arrays["young"], saved.parts["operator"].arrays["young_rows"]
    with pytest.raises(SnapshotMismatch, match="was taken by 'mintopk' of another version of Skyband"):
        query.open(schema, snapshots.write(saved))


@pytest.mark.parametrize(
    "question", [Question(k=1, size=2_000, by_count=True, emit="changes"), Question(k=1, size=2_000, emit="changes")]
)
@pytest.mark.parametrize("batch", [7, 100])
def test_relaxed_keeps_many_recent_rows(question: Question, batch: int) -> None:
    """Falling scores: nothing is dominated, the band is the window, and half as many rows wait beside it."""
    operator = Relaxed(spec_of(question, grouped=False), block=16)
    for first in range(0, 3_000, batch):
        i = np.arange(first, first + batch)
        answer = operator.push(Batch(-i.astype(float), NO_TIMES if question.by_count else i, NO_GROUPS, first))
        if first > 2_000 + batch:
            # With each arrival the oldest row, the best, leaves, and the next one takes its place.
            assert (
                answer.position.tolist()
                == np.repeat(np.arange(first - 2_000, first - 2_000 + batch + 1), 2)[1:-1].tolist()
            )
    operator.check()


@pytest.mark.parametrize("by_count", [True, False])
def test_relaxed_forgets_rows_that_newer_ones_dominate_at_once(by_count: bool) -> None:
    """Rising scores: every row dominates all before it, so the band is one row."""
    operator = Relaxed(spec_of(Question(k=1, size=10, by_count=by_count, emit="changes"), grouped=False))
    for first in range(0, 3_000, 10):
        i = np.arange(first, first + 10)
        operator.push(Batch(i.astype(float), NO_TIMES if by_count else i, NO_GROUPS, first))
        assert operator.rows_held() < 200


@pytest.mark.parametrize("open_operator", [MinTopK, Relaxed, every_algorithm_of("rows")["recompute"].open])
@pytest.mark.parametrize("by_count", [True, False])
def test_no_group_at_all(open_operator: Callable, by_count: bool) -> None:  # type: ignore[type-arg]
    driver = Driver(spec_of(Question(k=1, size=3, every=2, by_count=by_count)), open_operator)
    driver.compact()
    driver.operator.check()
    driver.restart()
    driver.operator.check()
    driver.run([Row(1.0, 1, "a"), Row(2.0, 2, "a"), Row(3.0, 4, "a")])
    assert [line.score for line in driver.lines] == ([2.0] if by_count else [1.0, 2.0])
