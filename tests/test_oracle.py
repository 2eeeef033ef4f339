"""Example tests of the oracle itself: cases worked out by hand, so that it is not only the code that agrees with it."""

from __future__ import annotations

import pytest
from oracle import Advance, Event, Question, Row, answers, late, next_close, top

NAN = float("nan")

CASES: dict[str, tuple[Question, list[Event], list[str]]] = {
    "tumbling, by value": (
        Question(k=1, size=10, every=10),
        [Row(1.0, 3), Row(2.0, 9), Row(3.0, 10), Row(4.0, 25)],
        ["10 enter 1: #1", "20 enter 1: #2", "30 enter 1: #3"],
    ),
    "a late row counts in what is open": (
        Question(k=1, size=20, every=10),
        [Row(1.0, 5), Row(2.0, 12), Row(9.0, 8), Row(0.0, 30)],
        ["10 enter 1: #0", "20 enter 1: #2", "30 enter 1: #1", "40 enter 1: #3", "50 enter 1: #3"],
    ),
    "lateness keeps a window open": (
        Question(k=1, size=10, every=10, lateness=3),
        [Row(1.0, 5), Row(2.0, 12), Row(9.0, 8)],
        ["10 enter 1: #2", "20 enter 1: #1"],
    ),
    "negative times": (
        Question(k=1, size=10, every=10),
        [Row(1.0, -11), Row(2.0, -10), Row(3.0, -1), Row(4.0, 0)],
        ["-10 enter 1: #0", "0 enter 1: #2", "10 enter 1: #3"],
    ),
    "from the start, with changes": (
        Question(k=2, every=10, emit="changes"),
        [Row(5.0, 1), Row(7.0, 15), Row(6.0, 16)],
        ["10 enter 1: #0", "20 leave 1: #0", "20 enter 1: #1", "20 enter 2: #2"],
    ),
    "changes see an empty window": (
        Question(k=1, size=10, every=10, emit="changes"),
        [Row(5.0, 1), Row(6.0, 35)],
        ["10 enter 1: #0", "20 leave 1: #0", "40 enter 1: #1"],
    ),
    "entries, each once": (
        Question(k=1, size=20, every=10, emit="entries"),
        [Row(5.0, 1), Row(6.0, 15), Row(1.0, 29)],
        ["10 enter 1: #0", "20 enter 1: #1", "40 enter 1: #2"],
    ),
    "by count, with a place for NaN": (
        Question(k=2, size=2, every=1, by_count=True),
        [Row(3.0), Row(NAN), Row(1.0)],
        ["1 enter 1: #0", "2 enter 1: #0", "3 enter 1: #2"],
    ),
    "by count, each group its own": (
        Question(k=1, size=2, every=2, by_count=True),
        [Row(1.0, None, "a"), Row(2.0, None, "b"), Row(3.0, None, "a"), Row(0.0, None, "a")],
        ["2 enter 1: #2"],
    ),
    "each arrival, by value": (
        Question(k=1, size=5, emit="changes"),
        [Row(5.0, 3), Row(3.0, 6), Row(9.0, 2), Row(1.0, 12), Row(8.0, 4)],
        ["3 enter 1: #0", "6 leave 1: #0", "6 enter 1: #2", "12 leave 1: #2", "12 enter 1: #3"],
    ),
    "each arrival, another group's row moves the clock": (
        Question(k=1, size=5, emit="changes"),
        [Row(5.0, 3, "a"), Row(1.0, 8, "b")],
        ["3 enter 1: #0", "8 leave 1: #0", "8 enter 1: #1"],
    ),
    "ties: later time, then later arrival": (
        Question(k=4, size=10, every=10),
        [Row(5.0, 2), Row(5.0, 1), Row(5.0, 2), Row(4.0, 3)],
        ["10 enter 1: #2", "10 enter 2: #0", "10 enter 3: #1", "10 enter 4: #3"],
    ),
    "external clock": (
        Question(k=1, size=10, every=10, lateness=None),
        [Row(1.0, 50), Row(2.0, 5), Advance(10), Row(4.0, 55), Row(3.0, 6)],
        ["10 enter 1: #1", "60 enter 1: #2"],
    ),
    "no time, no place": (Question(k=1, size=10, every=10), [Row(9.0, None), Row(1.0, 5)], ["10 enter 1: #1"]),
}


@pytest.mark.parametrize("name", CASES)
def test_answers(name: str) -> None:
    question, events, expected = CASES[name]
    assert [f"{line.at} {line.change} {line.rank}: #{line.position}" for line in answers(question, events)] == expected


def test_late_rows_are_those_whose_windows_have_all_closed() -> None:
    events = [Row(1.0, 30), Row(1.0, 10), Row(1.0, 9), Row(1.0, 11)]
    assert late(Question(k=1, size=20, every=10), events) == [1, 2, 3]
    assert late(Question(k=1, size=20), events) == [1, 2]
    assert late(Question(k=1, size=20, every=10, lateness=1), events) == [2]
    assert late(Question(k=1, size=20, every=10, lateness=11), events) == []
    assert late(Question(k=1, every=10), events) == []


def test_asking() -> None:
    events = [Row(3.0, 1), Row(2.0, 5), Row(1.0, 12)]
    question = Question(k=3, size=10, every=5)
    assert next_close(question, events) == 15
    assert [line.position for line in top(question, events, 3)] == [1, 2]
    assert [line.position for line in top(question, events, 3, 8)] == [1, 2]
    assert [line.position for line in top(question, events, 3, 7)] == [2]
