"""The oracle: every answer to a top-k query, worked out offline from the whole input, straight from the definitions.

It sees all rows at once, never forgets one, looks at each window by itself and is slow. It shares no code with the
package, not even with `recompute`, which is tested against it. What is not said here is not promised to users either:

window by value     [end - size, end), with end on the multiples of `every`. It closes when the watermark, the largest
                    time seen minus `lateness`, reaches its end. A row counts in those of its windows that are open
                    when it arrives, its own time being seen already; if there are none, it is late.
window by count     the last `size` arrivals (of the group), after every `every`-th of them.
each arrival        without `every`: by value the rows later than now - size, where now is the largest time seen.
ranking             higher score, then later time, then later arrival. A row without a score (None or NaN) has a
                    place in the window, and no rank.
ties                with "rank" a row's rank is one more than there are rows with a higher score, with "dense" than
                    there are higher scores; all rows of rank k or better are shown.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from decimal import Decimal
from typing import NamedTuple

# Compared as what they are: Python rounds neither whole numbers nor decimals.
Score = float | int | Decimal

INFINITY = float("inf")


class Question(NamedTuple):
    """A query in numbers; `size` None is a landmark, `every` None each arrival, `lateness` None an external clock."""

    k: int
    size: int | None = None
    every: int | None = None
    by_count: bool = False
    emit: str = "windows"
    lateness: int | None = 0
    ties: str | None = None  # equal scores share a rank: "rank" or "dense"


class Row(NamedTuple):
    score: Score | None
    time: int | None = None
    group: Hashable = 0


class Advance(NamedTuple):
    """From outside: no row before `watermark` is waited for any more."""

    watermark: int


class Shown(NamedTuple):
    """A line of the output. Lines of one group come in the order in which they became known."""

    at: int
    group: Hashable
    change: str  # enter or leave
    rank: int
    score: Score
    position: int  # which row of the input it is


class Member(NamedTuple):
    """A row that took its place in the stream."""

    score: Score | None
    time: int  # by count: how many rows of its group came before
    group: Hashable
    position: int
    watermark: float = -INFINITY  # when it had arrived

    @property
    def ranked(self) -> bool:
        return self.score is not None and self.score == self.score


Answers = list[tuple[int, Hashable, list[Member]]]  # at, group, its rows best first
Event = Row | Advance


def answers(question: Question, events: Iterable[Event], *, finished: bool = True) -> list[Shown]:
    """All the output of `question` over the rows and clock ticks in `events`; `finished`: and no more will come."""
    if question.by_count:
        return _differences(question, _after_each_count(question, events))
    if question.every is None:
        return _differences(question, _after_each_time(question, events))
    return _differences(question, _closed_windows(question, events, finished))


def late(question: Question, events: Iterable[Event]) -> list[int]:
    """Which rows were dropped because every window that would hold them had closed."""
    if question.by_count:
        return []
    dropped, now = [], -INFINITY
    for member in members(question, events):
        now = max(now, member.time)
        if question.every is None:
            gone = question.size is not None and member.time <= now - question.size
        else:
            gone = question.size is not None and last_window_end(question, member.time) <= member.watermark
        dropped += [member.position] if gone else []
    return dropped


def unranked(question: Question, events: Sequence[Event]) -> list[int]:
    """Which rows took their place in a window without a score."""
    dropped = set(late(question, events))
    return [m.position for m in members(question, events) if not m.ranked and m.position not in dropped]


def next_close(question: Question, events: Sequence[Event]) -> int | None:
    """By value, with a slide: the end of the earliest open window that has something to show, if only rows leaving."""
    assert question.every is not None
    assert not question.by_count
    ranked = [member for member in members(question, events) if member.ranked]
    watermark = watermark_of(question, events)
    for end in _interesting_ends(question, ranked, watermark):
        if end > watermark:
            before = [member for member in ranked if _counts_in(question, member, end - question.every)]
            leaving = question.emit == "changes" and before and end - question.every <= watermark
            if leaving or any(_counts_in(question, member, end) for member in ranked):
                return end
    return None


def top(question: Question, events: Sequence[Event], k: int, size: int | None = None) -> list[Shown]:
    """The k best rows of the last `size` right now; None: of the window that closes next."""
    arrived = list(members(question, events))
    dropped = set(late(question, events))
    shown = []
    for group in _distinct(member.group for member in arrived):
        mine = [member for member in arrived if member.group == group and member.position not in dropped]
        live, at = _asked(question, events, mine, size)
        shown += _enter_all(question, at, group, _best(live, question._replace(k=k)))
    return shown


def _asked(
    question: Question, events: Sequence[Event], mine: list[Member], size: int | None
) -> tuple[list[Member], int]:
    if question.by_count:
        at = len(mine)
        if size is None and question.every is not None:
            at = (at // question.every + 1) * question.every
        size = question.size if size is None else size
        return [member for member in mine if size is None or member.time >= at - size], at
    now = max(event.time for event in events if isinstance(event, Row) and event.time is not None)
    if size is None and question.every is not None:
        end = next_close(question._replace(emit="windows"), events)  # rows that leave are no window to ask about
        return ([], now) if end is None else ([member for member in mine if _counts_in(question, member, end)], end)
    size = question.size if size is None else size
    return [member for member in mine if size is None or member.time > now - size], now


# -- rows and time ------------------------------------------------------------------------------------------------


def members(question: Question, events: Iterable[Event]) -> Iterable[Member]:
    position, watermark, counts = -1, -INFINITY, {}
    for event in events:
        if isinstance(event, Advance):
            watermark = max(watermark, event.watermark)
            continue
        position += 1
        if question.by_count:
            index = counts.get(event.group, 0)
            counts[event.group] = index + 1
            yield Member(event.score, index, event.group, position)
        elif event.time is not None:
            if question.lateness is not None:
                watermark = max(watermark, event.time - question.lateness)
            yield Member(event.score, event.time, event.group, position, watermark)


def watermark_of(question: Question, events: Iterable[Event]) -> float:
    """Where the watermark stands in the end."""
    watermark = -INFINITY
    for event in events:
        if isinstance(event, Advance):
            watermark = max(watermark, event.watermark)
        elif event.time is not None and question.lateness is not None:
            watermark = max(watermark, event.time - question.lateness)
    return watermark


# -- what each window shows -------------------------------------------------------------------------------------------


def _after_each_count(question: Question, events: Iterable[Event]) -> Answers:
    shown: Answers = []
    arrived: dict[Hashable, list[Member]] = {}
    for member in members(question, events):
        mine = arrived.setdefault(member.group, [])
        mine.append(member)
        if question.every is None or len(mine) % question.every == 0:
            live = mine if question.size is None else mine[-question.size :]
            shown.append((len(mine), member.group, _best(live, question)))
    return shown


def _after_each_time(question: Question, events: Sequence[Event]) -> Answers:
    shown: Answers = []
    arrived: list[Member] = []
    dropped = set(late(question, events))
    for member in members(question, events):
        if member.position in dropped:
            continue
        arrived.append(member)
        now = max(old.time for old in arrived)
        live = [old for old in arrived if question.size is None or old.time > now - question.size]
        for group in _distinct(old.group for old in arrived):
            shown.append((now, group, _best([old for old in live if old.group == group], question)))
    return shown


def _closed_windows(question: Question, events: Sequence[Event], finished: bool) -> Answers:
    arrived = list(members(question, events))
    ranked = [member for member in arrived if member.ranked]
    until = watermark_of(question, events)
    if finished:
        until = max([until, *(_finishing_end(question, member) for member in arrived)])
    shown: Answers = []
    for end in _interesting_ends(question, ranked, until):
        if end <= until:
            inside = [member for member in ranked if _counts_in(question, member, end)]
            for group in _distinct(member.group for member in ranked):
                shown.append((end, group, _best([member for member in inside if member.group == group], question)))
    return shown


def _counts_in(question: Question, member: Member, end: int) -> bool:
    inside = member.time < end and (question.size is None or end - question.size <= member.time)
    return inside and end > member.watermark


def _first_end(question: Question, time: int) -> int:
    return (time // question.every + 1) * question.every


def last_window_end(question: Question, time: int) -> int:
    return (time + question.size) // question.every * question.every


def _finishing_end(question: Question, member: Member) -> float:
    """The input is over: up to where windows close so that this row was in all its windows (from the start: in one).

    A row without a score is in windows like any other.
    """
    if question.size is not None:
        return last_window_end(question, member.time)
    if member.watermark == -INFINITY or not member.ranked:
        return _first_end(question, member.time)
    return max(_first_end(question, member.time), _first_end(question, int(member.watermark)))


def _interesting_ends(question: Question, ranked: list[Member], until: float) -> list[int]:
    """Ends of all windows that hold a row, up to the first after `until`, and of the one that follows a run of them."""
    ends = set()
    for member in ranked:
        end = _first_end(question, member.time)
        last = max(until, end) + question.every if question.size is None else last_window_end(question, member.time)
        while end <= last:
            if _counts_in(question, member, end):
                ends |= {end, end + question.every}
            end += question.every
    return sorted(ends)


# -- from answers to output ----------------------------------------------------------------------------------------


def _best(live: Iterable[Member], question: Question) -> list[Member]:
    ranked = [member for member in live if member.ranked]
    ranked.sort(key=lambda member: (member.score, member.time, member.position), reverse=True)
    return [member for member, rank in zip(ranked, _ranks(ranked, question.ties), strict=True) if rank <= question.k]


def _ranks(best: list[Member], ties: str | None) -> list[int]:
    """The ranks of rows that come best first."""
    if ties is None:
        return list(range(1, len(best) + 1))
    better = ([other.score for other in best if other.score > member.score] for member in best)
    return [1 + len(set(scores) if ties == "dense" else scores) for scores in better]


def _differences(question: Question, shown: Answers) -> list[Shown]:
    lines: list[Shown] = []
    before: dict[Hashable, list[Member]] = {}
    entered: set[int] = set()
    for at, group, after in shown:
        everyone = _enter_all(question, at, group, after)
        if question.emit == "windows":
            lines += everyone
        elif question.emit == "entries":
            lines += [line for line in everyone if line.position not in entered]
            entered |= {member.position for member in after}
        else:
            old = before.get(group, [])
            leaving = [line for line in _enter_all(question, at, group, old) if not _has(after, line)]
            lines += [line._replace(change="leave") for line in leaving]
            lines += [line for line in everyone if not _has(old, line)]
            before[group] = after
    return lines


def _enter_all(question: Question, at: int, group: Hashable, best: list[Member]) -> list[Shown]:
    ranked = zip(_ranks(best, question.ties), best, strict=True)
    return [Shown(at, group, "enter", rank, member.score, member.position) for rank, member in ranked]


def _has(rows: list[Member], line: Shown) -> bool:
    return any(member.position == line.position for member in rows)


def _distinct(values: Iterable[Hashable]) -> list[Hashable]:
    return list(dict.fromkeys(values))


def by_group(lines: Iterable[Shown]) -> dict[Hashable, list[Shown]]:
    """The output group by group: within a group its order is promised, between groups it is not."""
    groups: dict[Hashable, list[Shown]] = {}
    for line in lines:
        groups.setdefault(line.group, []).append(line)
    return groups
