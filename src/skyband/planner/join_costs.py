"""What the plans of a join cost: Tran and Lee's cost functions, and ours, which count what our kernels do.

Costs are for the rows that arrive in a unit of time; each comes once and goes once, hence the factor of two everywhere.
The paper's letters: rate λ, rows of a window w, groups g, selectivity σ (one over the number of join values), matches
m = σw in a window and n = min(σw, g) in an aggregation set of α = min(w, g/σ) entries. (The appendix prints m = αw.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Final

from skyband.errors import InvalidQuery
from skyband.operators.joins.plans import Plan
from skyband.planner import figures

FILE: Final = "join_costs.json"
MOST_ENUMERATED: Final = 6  # inputs whose plans are all looked at; beyond, inputs are made early one by one
BUCKETS: Final = 1021  # of the paper's hash tables


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is known of an input."""

    rate: float  # rows that arrive in a unit of time; 0: a relation
    rows: float  # live
    cells: float  # that they fall into
    keys: float  # values of the join columns among them

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not (isinstance(value, (int, float)) and value >= 0 and math.isfinite(value)):
                raise InvalidQuery(f"{name} must be a number, at least 0, got {value!r}.")

    @classmethod
    def of(cls, rate: float, rows: float, groups: float, selectivity: float) -> Statistics:
        """In the paper's terms, where columns are independent and uniform."""
        return cls(rate, rows, min(rows, groups / selectivity), min(rows, 1 / selectivity))

    @property
    def alone(self) -> float:
        """The share of rows that come to a cell without others, or nearly: of even cells."""
        return (self.cells / max(self.rows, self.cells, 1.0)) ** 2

    @property
    def matching_rows(self) -> float:
        return self.rows / max(self.keys, 1)

    @property
    def matching_cells(self) -> float:
        return self.cells / max(self.keys, 1)


@dataclass(frozen=True, slots=True)
class Constants:
    """Nanoseconds, measured: only their ratios matter for a choice."""

    late: float  # to enter or remove a row
    early: float  # the same, in the aggregation set of its cell
    match: float  # to add an entry that matches to the output
    gather: float  # to add a row to what waits of its cell
    touch: float  # to add what waits of a cell to it
    slide: float  # to show the groups after a slide, whatever the plan


def enumerate_plans(inputs: int, *, linear: bool) -> list[Plan]:
    """All plans by Rule 1, the late one first, and the one that multiplies where it can."""
    found = [Plan(tuple(bool(bits >> i & 1) for i in range(inputs))) for bits in range(2**inputs)]
    return found + ([Plan((True,) * inputs, multiply=True)] if linear else [])


def cost(plan: Plan, inputs: Sequence[Statistics], constants: Constants, slide: float = 0.0) -> float:
    """Nanoseconds for what arrives in a unit of time; `slide`: units between two answers, 0 for each arrival."""
    found = [
        each.matching_cells if early else each.matching_rows for each, early in zip(inputs, plan.early, strict=True)
    ]
    total = constants.slide / slide if slide else 0.0
    for k, each in enumerate(inputs):
        matches = math.prod(found[:k] + found[k + 1 :])
        if not plan.multiply or slide == 0:
            # A row whose cell has no other makes the cell, or takes it away: as much again as a row by itself.
            update = constants.early + each.alone * constants.late if plan.early[k] else constants.late
            total += 2 * each.rate * (update + matches * constants.match)
            continue
        # Of the cells that a slide's rows fall into, each is joined once.
        moved, cells = 2 * each.rate * slide, max(each.cells, 1.0)
        touched = cells * -math.expm1(-moved / cells) if len(inputs) > 1 else 0.0  # alone, rows go straight to groups
        total += (moved * constants.gather + touched * (constants.touch + matches * constants.match)) / slide
    return total


def best(inputs: Sequence[Statistics], constants: Constants, *, linear: bool, slide: float = 0.0) -> Plan:
    """The cheapest plan; of many inputs, the one that making inputs early one after the other leads to."""

    def estimate(plan: Plan) -> float:
        return cost(plan, inputs, constants, slide)

    if len(inputs) <= MOST_ENUMERATED:
        return min(enumerate_plans(len(inputs), linear=linear), key=estimate)
    chosen = Plan((False,) * len(inputs))
    while True:
        more = [
            Plan((*chosen.early[:i], True, *chosen.early[i + 1 :])) for i, early in enumerate(chosen.early) if not early
        ]
        better = min(more, key=estimate, default=chosen)
        if estimate(better) >= estimate(chosen):
            break
        chosen = better
    multiplied = [Plan((True,) * len(inputs), multiply=True)] if linear else []
    return min([chosen, *multiplied], key=estimate)


def cache_file() -> Path:
    return figures.cache_file(FILE)


def _grid() -> dict[str, list[str]]:
    return {"constants": [field.name for field in fields(Constants)]}


def write(constants: Constants, path: Path) -> None:
    figures.write(path, figures.machine(), _grid(), asdict(constants))


def read(path: Path) -> Constants:
    return Constants(**figures.read(path, _grid(), "skyband calibrate --joins")[1])


@cache
def known_constants() -> Constants:
    return figures.known(FILE, read)


# -- the paper's own ---------------------------------------------------------------------------------------------------


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


def _groups(first: Stream, second: Stream, tuning: Tuning) -> list[float]:
    """What it costs to find and update a group of each stream's set, and of the output's."""
    output = min(first.window, first.groups) * min(second.window, second.groups) / min(first.groups, BUCKETS)
    sets = [s.entries / s.buckets for s in (first, second)]
    return [2 * size * tuning.group for size in (*sets, output)]
