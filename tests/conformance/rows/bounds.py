"""How many rows each algorithm may hold, worked out from the stream: what its docstring states, as a number."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence

from conformance.rows.driver import Driver
from oracle import Event, Member, Question, last_window_end, members, watermark_of

from skyband.core.emit import CHANGES
from skyband.problems.rows.algorithms.filtered import NAME
from skyband.problems.rows.algorithms.staircase.state import best_growth
from skyband.problems.rows.operator import Spec
from skyband.study.baselines.rows.compositions import NAMES

Bound = Callable[[Question, Spec, Sequence[Event], Driver], int]


def recompute(question: Question, spec: Spec, events: Sequence[Event], driver: Driver) -> int:
    """Every row of an open window, and of the last `size`; with changes, those shown before."""
    return len(live_members(question, events)) + len(_shown(question, spec, events))


def mintopk(question: Question, spec: Spec, events: Sequence[Event], driver: Driver) -> int:
    """For each group k rows for each slide of the window, and an open pane's rows up to its limit."""
    assert question.every is not None
    limit = driver.operator._config.limit
    slides = 1 if question.size is None else -(-question.size // question.every)
    panes = {(member.group, _pane(question, member.time)) for member in live_members(question, events)}
    groups = len({group for group, _ in panes})
    return question.k * slides * groups + (limit - 1) * len(panes) + len(_shown(question, spec, events))


def relaxed(question: Question, spec: Spec, events: Sequence[Event], driver: Driver) -> int:
    """Twice the largest k-skyband there was, and `slack`; by value with a slide, rows of windows after the next too."""
    slack = driver.operator._config.slack
    return (
        sum(2 * size + slack + 2 * question.k for size in _largest_skybands(question, events).values())
        + _waiting(question, events)
        + len(_shown(question, spec, events))
    )


def filtered(question: Question, spec: Spec, events: Sequence[Event], driver: Driver) -> int:
    """The k-skyband and, relaxed, gamma times as many rows more, or 5k; and the rows of the buffer."""
    gamma = driver.operator._kind.gamma
    skybands = sum(
        max((1 + gamma) * size, 4 * question.k) + 2 * question.k
        for size in _largest_skybands(question, events).values()
    )
    buffered = driver.operator._state.lists["length"][1].sum()
    return int(skybands + buffered) + _waiting(question, events) + len(_shown(question, spec, events))


def strict(question: Question, spec: Spec, events: Sequence[Event], driver: Driver) -> int:
    """The k-skyband; rows that expire are dropped with the next row of their group."""
    skybands = sum(_largest_skybands(question, events).values()) * _times_kept(question)
    return skybands + _waiting(question, events) + len(_shown(question, spec, events))


def tied(question: Question, spec: Spec, events: Sequence[Event], driver: Driver) -> int:
    """Twice the rows that may still be shown, at their most, and `slack`; and what all have."""
    slack = driver.operator._kind.slack
    most = dict.fromkeys({member.group for member in members(question, events)}, 0)
    for i in range(1, len(events) + 1):
        live = live_members(question, events[:i])
        for group in most:
            most[group] = max(most[group], tied_skyband([row for row in live if row.group == group], question))
    shown = sum(most.values()) if spec.emit == CHANGES else 0
    return sum(2 * size + slack for size in most.values()) + _waiting(question, events) + shown


def tied_skyband(rows: Sequence[Member], question: Question) -> int:
    """How many rows have fewer than k others, or others of k scores, that are strictly better and live as long."""
    better = [[one.score for one in rows if one.score > row.score and one.time >= row.time] for row in rows]
    return sum(len(set(scores) if question.ties == "dense" else scores) < question.k for scores in better)


def pretopk(question: Question, spec: Spec, events: Sequence[Event], driver: Driver) -> int:
    """For each group k rows for each open window, and for the one that closed last."""
    lists = 2 if question.size is None else 1 - (-question.size // question.every)
    groups = len({member.group for member in members(question, events)})
    return question.k * lists * groups + _waiting(question, events) + len(_shown(question, spec, events))


def mintopk_published(question: Question, spec: Spec, events: Sequence[Event], driver: Driver) -> int:
    """k rows for each open window."""
    assert question.size is not None
    assert question.every is not None
    windows = -(-question.size // question.every)
    return question.k * windows + _waiting(question, events) + len(_shown(question, spec, events))


def whole_window(question: Question, spec: Spec, events: Sequence[Event], driver: Driver) -> int:
    """The largest window there was; rows that expire are dropped with the next row of their group."""
    return (
        sum(_largest_windows(question, events).values()) * _times_kept(question)
        + _waiting(question, events)
        + len(_shown(question, spec, events))
    )


def partitioned(question: Question, spec: Spec, events: Sequence[Event], driver: Driver) -> int:
    """The rows of the largest window there was, a partition, a quarter more in gaps; from the start k + 2 slack."""
    kind, slack = driver.operator._kind, 2 * driver.operator._kind.slack
    if not kind.stores:
        most = float(sum(question.k + slack for _ in _largest_windows(question, events)))
    else:
        most = sum(
            1.25 * (n + max(kind.partition, 2 * (question.k * n) ** 0.5))
            for n in _largest_windows(question, events).values()
        )
    return int(most) + _waiting(question, events) + len(_shown(question, spec, events))


def _largest_windows(question: Question, events: Sequence[Event]) -> dict[Hashable, int]:
    """By group: the most rows that were live at once."""
    largest: dict[Hashable, int] = {}
    for i in range(1, len(events) + 1):
        for group, n in Counter(member.group for member in live_members(question, events[:i])).items():
            largest[group] = max(largest.get(group, 0), n)
    return largest


def staircase(question: Question, spec: Spec, events: Sequence[Event], driver: Driver) -> int:
    """The largest k-skyband there was, and as many rows more as may wait, which is a multiple of it."""
    growth = best_growth(question.k)
    skybands = sum(size + max(1, math.ceil(growth * size)) for size in _largest_skybands(question, events).values())
    return skybands + _waiting(question, events) + len(_shown(question, spec, events))


def _largest_skybands(question: Question, events: Sequence[Event]) -> dict[Hashable, int]:
    """By group: the size of the largest k-skyband there was."""
    largest: dict[Hashable, int] = {}
    for i in range(1, len(events) + 1):
        by_group: dict[Hashable, list[Member]] = {}
        for member in live_members(question, events[:i]):
            by_group.setdefault(member.group, []).append(member)
        for group, live in by_group.items():
            largest[group] = max(largest.get(group, 0), skyband_size(live, question.k))
    return largest


def _times_kept(question: Question) -> int:
    """By value with a slide, rows that no open window holds stay until a window closes that has something to show."""
    return 1 if question.every is None or question.by_count else 2


def _waiting(question: Question, events: Sequence[Event]) -> int:
    """By value with a slide: rows that wait for a window after the next."""
    if question.every is None or question.by_count:
        return 0
    watermark = watermark_of(question, events)
    slide = watermark if math.isinf(watermark) else watermark // question.every
    return sum(member.time // question.every > slide for member in live_members(question, events))


STATED: dict[str, Bound] = {
    "recompute": recompute,
    "mintopk": mintopk,
    "strict": strict,
    "relaxed": relaxed,
    "partitioned": partitioned,
    "staircase": staircase,
    **dict.fromkeys((NAME, *NAMES), filtered),
    "tied": tied,
    "pretopk": pretopk,
    "mintopk_published": mintopk_published,
    "tma": whole_window,
    "sma": whole_window,
}


def skyband_size(rows: Sequence[Member], k: int) -> int:
    """How many rows have fewer than k others that rank before them and live as long."""
    ranked = sorted(rows, key=lambda row: (row.score, row.time, row.position), reverse=True)
    return sum(sum(better.time >= row.time for better in ranked[:i]) < k for i, row in enumerate(ranked))


def live_members(question: Question, events: Sequence[Event]) -> list[Member]:
    """The ranked rows that an open window or the last `size` holds."""
    ranked = [member for member in members(question, events) if member.ranked]
    if question.size is None:
        return ranked
    if question.by_count:
        counts: dict[Hashable, int] = {}
        for member in members(question, events):
            counts[member.group] = member.time + 1
        return [member for member in ranked if member.time >= counts[member.group] - question.size]
    now = max((member.time for member in members(question, events)), default=0)
    watermark = watermark_of(question, events)
    return [
        member
        for member in ranked
        if member.time > now - question.size
        or (question.every is not None and last_window_end(question, member.time) > watermark)
    ]


def _shown(question: Question, spec: Spec, events: Sequence[Event]) -> list[Hashable]:
    """With changes a row shown stays until it is seen leaving: k for each group."""
    return list({member.group for member in members(question, events)}) * question.k if spec.emit == CHANGES else []


def _pane(question: Question, time: int) -> tuple[int, bool]:
    slide, within = divmod(time, question.every)
    rest = 0 if question.size is None else question.size % question.every
    return slide, rest > 0 and within >= question.every - rest
