"""The plan in words: the steps that the planner took, as a tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

from skyband.core.chooser import Plan
from skyband.errors import InvalidQuery
from skyband.problems.across.query import TopKAcross
from skyband.problems.joins.costs import Statistics
from skyband.problems.joins.query import JoinAggregate
from skyband.problems.pairs.query import TopKPairs
from skyband.problems.rows.query import TopK
from skyband.problems.rules import Draft, Measured, Query, Step, planned
from skyband.problems.subscriptions.query import TopKForEach


@dataclass(frozen=True, slots=True)
class Explanation:
    """What will run and why; `str` of it is for reading."""

    query: Query
    plan: Plan
    steps: tuple[Step, ...]
    measured: Measured | None = None  # of EXPLAIN ANALYZE: what it did

    def __str__(self) -> str:
        return "\n".join([_title(self.query), *(line for step in self.steps for line in step.lines())])


def explain(
    query: Any, *, window_rows: float | None = None, statistics: Mapping[str, Statistics] | None = None
) -> Explanation:
    """Which algorithm the planner chooses for `query`, why, and what it expects it to hold and to cost.

    `window_rows` says how many rows a window by value holds; a window of arrivals knows. For a join, `statistics` says
    what each input is like, by its name, as `statistics()` of a running session does.
    """
    if not isinstance(query, Query):
        raise InvalidQuery(f"explain takes a query such as sb.TopK(…), got {type(query).__name__}.")
    is_join = isinstance(query, JoinAggregate)
    if statistics is not None and not is_join:
        raise InvalidQuery("statistics= says what the inputs of a join are like; of this query, give window_rows=.")
    if window_rows is not None and is_join:
        raise InvalidQuery("window_rows= is for queries over one window; of a join, give statistics= of each input.")
    return explained(Draft(query, window_rows=window_rows, statistics=statistics))


def explained(draft: Draft) -> Explanation:
    """The same, with all that is known of the inputs, and of how the query ran."""
    done = planned(draft)
    assert done.plan is not None
    steps = done.steps
    if done.measured is not None:
        steps = (*steps, _ran(done.measured))
    return Explanation(done.query, done.plan, steps, done.measured)


def analyzed(draft: Draft, measured: Measured) -> Explanation:
    """The same, with what was measured beside what was estimated."""
    return explained(replace(draft, measured=measured))


def _ran(measured: Measured) -> Step:
    late = f", {measured.rows_late:,} of them late" if measured.rows_late else ""
    missed = f" and {measured.rows_missed:,} missed" if measured.rows_missed else ""
    said = f"{measured.rows_in:,} rows in{late}, {measured.rows_out:,} out{missed}, in {measured.seconds:.3g} s"
    return Step("ran", said)


@singledispatch
def _title(query: Query) -> str:
    raise AssertionError(f"a query of no known kind: {query}")


@_title.register
def _(query: TopK) -> str:
    by = query.by if isinstance(query.by, str) else getattr(query.by, "__name__", "a function")
    groups = f" for each {', '.join(query.per)}" if query.per else ""
    return f"top {query.k} by {by}{' (smallest first)' if query.ascending else ''}{groups}"


@_title.register
def _(query: TopKForEach) -> str:
    of = f"{query.for_each}, told apart by {', '.join(query.key)}"
    return f"top {query.k} by {query.by}{' (smallest first)' if query.ascending else ''} {of}"


@_title.register
def _(query: TopKPairs) -> str:
    by = query.by if isinstance(query.by, str) else getattr(query.by, "__name__", "a function")
    conditions = [
        *([f"same {', '.join(query.same)}"] if query.same else []),
        *([f"different {', '.join(query.different)}"] if query.different else []),
        *([f"where {query.where}"] if query.where else []),
    ]
    of = f"; {'; '.join(conditions)}" if conditions else ""
    return f"top {query.k} pairs by {by}{' (smallest first)' if query.ascending else ''}{of}"


@_title.register
def _(query: TopKAcross) -> str:
    combine = dict(query.combine) if isinstance(query.combine, tuple) else query.combine
    repeat = f", {query.repeat} of several" if query.repeat else ""
    return f"top {query.k} {query.id} across {', '.join(query.streams)} by {combine} of {query.value}{repeat}"


@_title.register
def _(query: JoinAggregate) -> str:
    groups = f" for each {', '.join(query.group_by)}" if query.group_by else ""
    return ", ".join(f"{text} AS {name}" for name, text in query.aggregates) + groups
