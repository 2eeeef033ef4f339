"""The oracle for pairs: every answer, worked out offline from the whole input, straight from the definitions.

Which rows a window holds, and when it closes, is as for single rows (oracle.py); here is what is particular to pairs:

pair        two rows of a window. a is the earlier one: by value in time, and of equal times in arrival.
ranking     higher score, then the later a, then the later b (by time, then arrival). A pair without a score (NaN), or
            whose colours do not fit, has no rank. Scores and values are Python's: whole numbers, strings, exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import oracle
from oracle import Advance, Question

EVERY_ROW = 10**9  # as k: all rows of a window are shown

Values = tuple[Any, ...]
Score = Callable[["PairRow", "PairRow"], float]  # or a whole number


class PairRow(NamedTuple):
    values: Values
    time: int | None = None
    colour: int = 0
    group: int = 0


class ShownPair(NamedTuple):
    at: int
    change: str
    rank: int
    score: float
    a: int  # which row of the input it is
    b: int
    group: int = 0


Event = PairRow | Advance


def answers(question: Question, score: Score, events: Sequence[Event], *, finished: bool = True) -> list[ShownPair]:
    """All the output of `question` over these rows and clock ticks."""
    whole = question._replace(k=EVERY_ROW)
    alike = plain(events)
    if question.by_count:
        windows = oracle._after_each_count(whole, alike)
    elif question.every is None:
        windows = oracle._after_each_time(whole, alike)
    else:
        windows = oracle._closed_windows(whole, alike, finished)
    shown: dict[int, list[tuple[int, list[Pair]]]] = {}
    for at, group, live in windows:
        best = ranked(score, events, [m.position for m in live])[: question.k]
        shown.setdefault(int(str(group)), []).append((at, best))
    return [
        line._replace(group=group) for group, answers in shown.items() for line in _differences(question.emit, answers)
    ]


def top(question: Question, score: Score, events: Sequence[Event], k: int, size: int | None = None) -> list[ShownPair]:
    """The k best pairs of the last `size` right now, group by group; None: of the window that closes next."""
    lines: list[ShownPair] = []
    everyone = oracle.top(question, plain(events), EVERY_ROW, size)
    for group in dict.fromkeys(line.group for line in everyone):
        live = [line for line in everyone if line.group == group]
        best = ranked(score, events, [line.position for line in live])[:k]
        lines += [line._replace(group=int(str(group))) for line in _enter_all(live[0].at, best)]
    return lines


def late(question: Question, events: Sequence[Event]) -> list[int]:
    return oracle.late(question, plain(events))


class Pair(NamedTuple):
    score: float
    a: int
    b: int


def ranked(score: Score, events: Sequence[Event], positions: Iterable[int]) -> list[Pair]:
    """All pairs of these rows that have a score, best first."""
    rows = [event for event in events if isinstance(event, PairRow)]

    def when(position: int) -> tuple[int, int]:
        return (rows[position].time or 0, position)

    pairs = [Pair(score(rows[a], rows[b]), a, b) for a, b in combinations(sorted(positions, key=when), 2)]
    with_score = [pair for pair in pairs if pair.score == pair.score]
    return sorted(with_score, key=lambda pair: (pair.score, when(pair.a), when(pair.b)), reverse=True)


def plain(events: Sequence[Event]) -> list[oracle.Event]:
    """The rows as the other oracle sees them: any score will do, since all are shown."""
    return [event if isinstance(event, Advance) else oracle.Row(0.0, event.time, event.group) for event in events]


def _differences(emit: str, shown: list[tuple[int, list[Pair]]]) -> list[ShownPair]:
    lines: list[ShownPair] = []
    before: list[Pair] = []
    entered: set[tuple[int, int]] = set()
    for at, after in shown:
        everyone = _enter_all(at, after)
        if emit == "windows":
            lines += everyone
        elif emit == "entries":
            lines += [line for line in everyone if (line.a, line.b) not in entered]
            entered |= {(pair.a, pair.b) for pair in after}
        else:
            now, then = ({(pair.a, pair.b) for pair in pairs} for pairs in (after, before))
            lines += [line._replace(change="leave") for line in _enter_all(at, before) if (line.a, line.b) not in now]
            lines += [line for line in everyone if (line.a, line.b) not in then]
            before = after
    return lines


def _enter_all(at: int, best: list[Pair]) -> list[ShownPair]:
    return [ShownPair(at, "enter", rank, pair.score, pair.a, pair.b) for rank, pair in enumerate(best, 1)]
