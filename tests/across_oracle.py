"""The oracle of top-k across streams: every answer worked out offline from the whole input, from the definitions.

When a row counts is said by the oracle of top-k rows; here is what counting rows make: an object's values, its score,
its rank. It shares no code with the package.

value       of an object in a stream: of its rows that count, the latest one's (by time, then arrival), or the largest,
            or the sum. A row without a value (None or NaN) says nothing, and is as if it were not there.
score       the values combined; one that is missing counts as the stream's lower bound.
ranking     higher score, then the object whose latest row is later: by time, then by arrival.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

import oracle
from oracle import Advance, Member, Question


class Row(NamedTuple):
    stream: int
    object: Hashable
    value: float | None
    time: int | None = None


class Scoring(NamedTuple):
    combine: Callable[[list[float]], float]
    low: tuple[float, ...]
    repeat: str | None = None


class Shown(NamedTuple):
    """A line of the output."""

    at: int
    change: str  # enter or leave
    rank: int
    score: float
    object: Hashable
    time: int  # of its most recent row
    values: tuple[float | None, ...]


class Ranked(NamedTuple):
    object: Hashable
    score: float
    time: int
    values: tuple[float | None, ...]


Event = Row | Advance


def plain(events: Iterable[Event]) -> list[oracle.Event]:
    """The same rows for the oracle of rows: one group, so that arrivals are counted over all streams."""
    return [oracle.Row(event.value, event.time) if isinstance(event, Row) else event for event in events]


def answers(question: Question, scoring: Scoring, events: Sequence[Event], *, finished: bool = True) -> list[Shown]:
    """All the output of `question` over the rows and clock ticks in `events`; `finished`: and no more will come."""
    rows = [event for event in events if isinstance(event, Row)]
    shown = [(at, ranking(scoring, rows, live)) for at, live in _live(question, plain(events), finished)]
    lines, before = [], []
    for at, ranked in shown:
        after = ranked[: question.k]
        if question.emit == "windows":
            lines += [_line(at, "enter", rank, each) for rank, each in enumerate(after, 1)]
            continue
        were, are = {each.object for each in before}, {each.object for each in after}
        lines += [_line(at, "leave", rank, each) for rank, each in enumerate(before, 1) if each.object not in are]
        lines += [_line(at, "enter", rank, each) for rank, each in enumerate(after, 1) if each.object not in were]
        before = after
    return lines


def top(question: Question, scoring: Scoring, events: Sequence[Event], k: int) -> list[Shown]:
    """The k best objects right now; with a slide, of the window that closes next."""
    rows = [event for event in events if isinstance(event, Row)]
    if not rows:
        return []
    known, dropped = plain(events), set(oracle.late(question, plain(events)))
    mine = [member for member in oracle.members(question, known) if member.position not in dropped]
    live, at = oracle._asked(question, known, mine, None)
    return [_line(at, "enter", rank, each) for rank, each in enumerate(ranking(scoring, rows, live)[:k], 1)]


def ranking(scoring: Scoring, rows: Sequence[Row], live: Iterable[Member]) -> list[Ranked]:
    """All objects of these rows, best first."""
    objects: dict[Hashable, list[Member]] = {}
    for member in live:
        if member.ranked:
            objects.setdefault(rows[member.position].object, []).append(member)
    found = []
    for name, members in objects.items():
        values = tuple(
            _value(scoring, [member for member in members if rows[member.position].stream == stream])
            for stream in range(len(scoring.low))
        )
        score = scoring.combine([low if v is None else v for v, low in zip(values, scoring.low, strict=True)])
        latest = max((member.time, member.position) for member in members)
        found.append(((score, latest), Ranked(name, score, latest[0], values)))
    return [ranked for _, ranked in sorted(found, key=lambda pair: pair[0], reverse=True)]


def _value(scoring: Scoring, members: list[Member]) -> float | None:
    if not members:
        return None
    if scoring.repeat == "max":
        return max(member.score for member in members)
    if scoring.repeat == "sum":
        return math.fsum(member.score for member in members)
    return max(members, key=lambda member: (member.time, member.position)).score


def _live(question: Question, events: list[oracle.Event], finished: bool) -> Iterable[tuple[int, list[Member]]]:
    """Each moment at which an answer is due, with the rows that count."""
    if question.by_count:
        arrived = list(oracle.members(question, events))
        for count in range(1, len(arrived) + 1):
            if question.every is None or count % question.every == 0:
                yield count, arrived[0 if question.size is None else max(0, count - question.size) : count]
    elif question.every is None:
        arrived, dropped = [], set(oracle.late(question, events))
        for member in oracle.members(question, events):
            if member.position not in dropped:
                arrived.append(member)
                now = max(old.time for old in arrived)
                yield now, [old for old in arrived if question.size is None or old.time > now - question.size]
    else:
        arrived = list(oracle.members(question, events))
        ranked = [member for member in arrived if member.ranked]
        until = oracle.watermark_of(question, events)
        if finished:
            until = max([until, *(oracle._finishing_end(question, member) for member in arrived)])
        for end in oracle._interesting_ends(question, ranked, until):
            if end <= until:
                yield end, [member for member in ranked if oracle._counts_in(question, member, end)]


def _line(at: int, change: str, rank: int, each: Ranked) -> Shown:
    return Shown(at, change, rank, each.score, each.object, each.time, each.values)
