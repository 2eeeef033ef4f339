"""The oracle for many queries: each is asked alone, by `oracle`, which has never heard of the others.

A query sees the rows from the one on that came first after it; those before are there without a score. One that is
removed says nothing from then on. The input ends for all queries at once: when every row has been in all its windows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from oracle import INFINITY, Advance, Question, Row, Shown, answers, last_window_end, members

Values = tuple[float, ...]
Score = Callable[[Values, Values], float]


class Point(NamedTuple):
    """A row of the stream."""

    values: Values
    time: int | None = None


class Asked(NamedTuple):
    """A query: what it asks, and from which event up to which."""

    k: int
    size: int | None
    values: Values
    added: int = 0
    removed: int | None = None
    backfill: bool = False
    every: int | None = None  # None: the window's


Event = Point | Advance


def end_of(question: Question, events: Sequence[Event]) -> float:
    """Up to where windows close when the input is over."""
    if question.by_count or question.every is None:
        return -INFINITY
    rows = [event if isinstance(event, Advance) else Row(0.0, event.time) for event in events]
    ends = [-INFINITY]
    for member in members(question, rows):
        first = (member.time // question.every + 1) * question.every
        if question.size is not None:
            ends.append(last_window_end(question, member.time))
        elif member.watermark == -INFINITY:
            ends.append(first)
        else:
            ends.append(max(first, (int(member.watermark) // question.every + 1) * question.every))
    return max(ends)


def answers_of(question: Question, asked: Asked, events: Sequence[Event], score: Score, finished: bool) -> list[Shown]:
    """All that one query says; `question` has the size of the window that bounds all."""
    until = len(events) if asked.removed is None else asked.removed
    seen = [
        event
        if isinstance(event, Advance)
        else Row(score(event.values, asked.values) if i >= asked.added or asked.backfill else None, event.time)
        for i, event in enumerate(events[:until])
    ]
    if finished and asked.removed is None and (end := end_of(question, events)) > -INFINITY:
        seen.append(Advance(int(end)))
    alone = question._replace(k=asked.k, size=asked.size, every=asked.every or question.every)
    return answers(alone, seen, finished=False)
