"""The cost functions of Tran and Lee, JCSE 2009, as the paper states them. The planner has its own, of our kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

BUCKETS: Final = 1021  # of the paper's hash tables


@dataclass(frozen=True, slots=True)
class Tuning:
    """The paper's parameters: to probe a tuple, to update a window, and to find and update a group."""

    probe: float
    window: float
    group: float


@dataclass(frozen=True, slots=True)
class Stream:
    """An input in the paper's letters."""

    rate: float
    window: float
    groups: float
    selectivity: float

    @property
    def matches(self) -> float:  # m
        return self.selectivity * self.window

    @property
    def matches_early(self) -> float:  # n
        return min(self.window * self.selectivity, self.groups)

    @property
    def entries(self) -> float:  # α of this stream
        return min(self.window, self.groups / self.selectivity)

    @property
    def buckets(self) -> float:
        return min(1 / self.selectivity, BUCKETS)


def generic(
    first: Stream,
    second: Stream,
    early: tuple[bool, bool],
    update: float,
    find: Sequence[float],
    group: Sequence[float],
) -> float:
    """Equations 15 to 18: `find` and `group` are the costs in the window or set, and of the set, of each stream; the
    last of `group` is the output's."""
    streams, total = (first, second), 0.0
    for k, stream in enumerate(streams):
        other = streams[1 - k]
        found = other.matches_early if early[1 - k] else other.matches
        total += stream.rate * (update + find[1 - k] + found * group[2] + early[k] * group[k])
    return total


def nested_loop(first: Stream, second: Stream, early: tuple[bool, bool], tuning: Tuning) -> float:
    """Equations 19 to 22. (Two of the printed subscripts of B, in equation 20, are taken as in the others.)"""
    finds = [
        2 * (s.entries if is_early else s.window) * tuning.probe
        for s, is_early in zip((first, second), early, strict=True)
    ]
    return generic(first, second, early, 2 * tuning.window, finds, _groups(first, second, tuning))


def hashed(first: Stream, second: Stream, early: tuple[bool, bool], tuning: Tuning) -> float:
    """Equations 23 to 26."""
    finds = [
        2 * (s.entries if is_early else s.window) / s.buckets * tuning.probe
        for s, is_early in zip((first, second), early, strict=True)
    ]
    return generic(first, second, early, 2 * tuning.window, finds, _groups(first, second, tuning))


def space(streams: Sequence[Stream], early: Sequence[bool]) -> float:
    """Rows and entries that a plan holds: every window, and the aggregation sets before the join.

    The paper leaves this to future work; its letters suffice. Rows stay, since a set has to let go of them one day.
    """
    return sum(s.window + is_early * s.entries for s, is_early in zip(streams, early, strict=True))


CostFunction = Callable[[Stream, Stream, tuple[bool, bool], Tuning], float]


def tuned(
    function: CostFunction, points: Sequence[tuple[Stream, Stream, tuple[bool, bool]]], measured: Sequence[float]
) -> Tuning:
    """The parameters with which the estimates are nearest to what was measured, as a share of it; none is negative.

    The paper tunes them for each set of experiments. Costs are sums of a part for each of the three.
    """
    units = [Tuning(*(float(i == each) for i in range(3))) for each in range(3)]
    parts = np.array([[function(*point, unit) for unit in units] for point in points]) / np.array(measured)[:, None]
    best, found = np.inf, np.zeros(3)
    for used in (list(some) for n in (1, 2, 3) for some in combinations(range(3), n)):
        weights = np.zeros(3)
        weights[used] = np.linalg.lstsq(parts[:, used], np.ones(len(parts)), rcond=None)[0]
        off = float(np.sum((parts @ weights - 1) ** 2))
        if weights.min() >= 0 and off < best:
            best, found = off, weights
    return Tuning(*found.tolist())


def _groups(first: Stream, second: Stream, tuning: Tuning) -> list[float]:
    """What it costs to find and update a group of each stream's set, and of the output's."""
    output = min(first.window, first.groups) * min(second.window, second.groups) / min(first.groups, BUCKETS)
    sets = [s.entries / s.buckets for s in (first, second)]
    return [2 * size * tuning.group for size in (*sets, output)]
