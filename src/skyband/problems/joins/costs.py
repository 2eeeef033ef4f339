"""The costs of a join's plans: Tran and Lee's cost functions, but counting what our kernels do.

Costs are for the rows that arrive in a unit of time. Each comes once and goes once, hence the factor of two everywhere.
The paper's letters: rate λ, rows of a window w, groups g, selectivity σ (one over the number of join values), matches
m = σw in a window and n = min(σw, g) in an aggregation set of α = min(w, g/σ) entries. (The appendix prints m = αw.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from itertools import accumulate
from operator import mul
from typing import Final

from skyband.core import cost_files
from skyband.errors import InvalidQuery
from skyband.problems.joins.operator import Plan, Spec

MOST_ENUMERATED: Final = 6  # up to this many inputs, all plans are considered; for more, inputs become early one by one
NEAR: Final = 2000.0  # this many entries and groups fit in a processor's nearest cache
ASSUMED_RATE: Final = 10_000.0  # rows a slide
ASSUMED_ROWS: Final = 100_000.0  # live rows of each input


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of an input of a join, for `explain`. The session of a running join measures them.

    Parameters
    ----------
    rate
        The number of rows that arrive in a unit of time. 0: the input is a relation.
    rows
        The number of live rows.
    cells
        How many distinct combinations of join and grouping columns they have.
    keys
        How many distinct values of the join columns they have.
    groups
        How many distinct values of the grouping columns they have. 1: there are no such columns, or it is unknown.

    Raises
    ------
    InvalidQuery
        A number is negative or not finite.

    Examples
    --------
    >>> import skyband as sb
    >>> query = sb.JoinAggregate(
    ...     inputs={"a": sb.sliding(60, on="t"), "b": sb.sliding(60, on="t")},
    ...     on="a.id = b.id", aggregates={"n": "COUNT(*)"}, every=10,
    ... )
    >>> known = sb.Statistics(rate=300, rows=18_000, cells=10, keys=10)
    >>> sb.explain(query, statistics={"a": known, "b": known}).plan.algorithm
    'multiply'
    """

    rate: float  # rows that arrive in a unit of time; 0: a relation
    rows: float  # live
    cells: float  # that they fall into
    keys: float  # values of the join columns among them
    groups: float = 1.0  # values of its grouping columns among them; 1: it has none, or nobody knows

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not (isinstance(value, (int, float)) and value >= 0 and math.isfinite(value)):
                raise InvalidQuery(f"{name} must be a number, at least 0, got {value!r}.")

    @classmethod
    def of(cls, rate: float, rows: float, groups: float, selectivity: float) -> Statistics:
        """Make statistics from the paper's parameters, for independent and uniform columns.

        The paper's α is min(w, g/σ), which the number of cells approaches with many rows in each cell, or few.
        """
        return cls(rate, rows, *(_seen(each, rows) for each in (groups / selectivity, 1 / selectivity, groups)))

    @property
    def alone(self) -> float:
        """About the share of rows that come to an empty cell, if cells are equally likely."""
        return (self.cells / max(self.rows, self.cells, 1.0)) ** 2

    @property
    def matching_cells(self) -> float:
        return self.cells / max(self.keys, 1)


def _seen(possible: float, rows: float) -> float:
    """The expected number of different values among `rows` rows, if all possible values are equally likely."""
    return possible * -math.expm1(-rows / possible)


@dataclass(frozen=True, slots=True)
class Constants:
    """Measured nanoseconds. Only their ratios matter for a choice."""

    late: float  # to enter or remove a row
    early: float  # the same, in the aggregation set of its cell
    match: float  # to add a matching entry to the output, if two inputs are joined and all aggregates are sums
    visit: float  # the same in other joins, for each entry that is visited
    gather: float  # to add a row to the pending change of its cell
    touch: float  # to apply the pending change of a cell
    slide: float  # to begin and end a slide, whatever the plan
    show: float  # to show a group after a slide
    far: float  # to find the entry of a row, for each doubling of entries and groups beyond NEAR
    far_match: float  # the same for a match and its group


def enumerate_plans(inputs: int) -> list[Plan]:
    """All plans by Rule 1, the late one first, and then the one that multiplies."""
    by_rule = [Plan(tuple(bool(bits >> i & 1) for i in range(inputs))) for bits in range(2**inputs)]
    return [*by_rule, Plan((True,) * inputs, multiply=True)]


def cost(
    plan: Plan, inputs: Sequence[Statistics], constants: Constants, slide: float = 0.0, *, linear: bool = True
) -> float:
    """Nanoseconds for the rows of a unit of time. `slide` is the time between two answers; 0: one with each arrival."""
    entries = [each.cells if early else each.rows for each, early in zip(inputs, plan.early, strict=True)]
    found = [held / max(each.keys, 1) for each, held in zip(inputs, entries, strict=True)]
    groups = groups_of(inputs)
    doubled = math.log2(1 + (sum(entries) + groups) / NEAR)
    match = constants.match if len(inputs) == 2 and linear else constants.visit
    total = (constants.slide + groups * constants.show) / slide if slide else 0.0
    for k, each in enumerate(inputs):
        others = found[:k] + found[k + 1 :]
        joining = (match + doubled * constants.far_match) * (sum(accumulate(others, mul)) if others else 1.0)
        find = doubled * constants.far
        # A row that creates its cell, or removes it, costs as much as a row by itself.
        making = each.alone * constants.late
        if plan.multiply and (slide or not others):
            # Each cell that gets rows in a slide is joined once. Without a join, rows go straight to groups.
            moved = 2 * each.rate * (slide or 1.0)
            touched = _seen(max(each.cells, 1.0), moved) if others else 0.0
            gathering = moved * (constants.gather + find + (making if others else 0.0))
            total += (gathering + touched * (constants.touch + joining)) / (slide or 1.0)
            continue
        update = constants.early + making if plan.early[k] else constants.late
        total += 2 * each.rate * (update + find + joining)
    return total


def groups_of(inputs: Sequence[Statistics]) -> float:
    """About how many groups the join has: the number of different groups among its combinations of cells."""
    keys = max(min(each.keys for each in inputs), 1.0)
    return _seen(
        math.prod(max(each.groups, 1.0) for each in inputs), keys * math.prod(e.matching_cells for e in inputs)
    )


def expected_ns(
    plan: Plan, spec: Spec, inputs: Sequence[Statistics] | None = None, window_rows: float | None = None
) -> float:
    """Nanoseconds a row, for inputs with these statistics; without any, for windows with this many rows in all."""
    if inputs is None:
        rows = ASSUMED_ROWS if window_rows is None or math.isnan(window_rows) else window_rows / len(spec.inputs)
        inputs = assumed(spec, rows)
    # Rates are in rows a slide. With an answer for each arrival, no rows are gathered.
    slide = 1.0 if spec.every else 0.0
    rate = max(sum(each.rate for each in inputs), 1.0)
    return cost(plan, inputs, known_constants(), slide, linear=spec.linear) / rate


def assumed(spec: Spec, rows: float = ASSUMED_ROWS) -> list[Statistics]:
    """The statistics that the planner assumes for unknown inputs: many rows for each key, and some groups."""
    return [Statistics(0.0 if each.relation else ASSUMED_RATE, rows, rows / 10, rows / 20) for each in spec.inputs]


def worth_considering(
    inputs: int, estimate: Callable[[Plan], float], *, most_enumerated: int = MOST_ENUMERATED
) -> list[Plan]:
    """All plans. For many inputs, only those that result from making one input after another early, the best first."""
    if inputs <= most_enumerated:
        return enumerate_plans(inputs)
    found = [Plan((False,) * inputs)]
    while not all(found[-1].early):
        early = found[-1].early
        more = [Plan((*early[:i], True, *early[i + 1 :])) for i in range(inputs) if not early[i]]
        found.append(min(more, key=estimate))
    return [*found, Plan((True,) * inputs, multiply=True)]


_file = cost_files.File(
    "joins",
    {"constants": [field.name for field in fields(Constants)]},
    "skyband calibrate --joins",
    lambda machine, ns: Constants(**ns),
    lambda constants: (cost_files.machine(), asdict(constants)),
)
cache_file, write, read, known_constants = _file.cache_file, _file.write, _file.read, cache(_file.known)
