"""EXPLAIN: shows the steps of the planner."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from skyband.core import notebook
from skyband.core.plan import Draft, Measured, Plan, Query, Step
from skyband.core.registry import is_query, problem_of
from skyband.core.rules import planned
from skyband.errors import InvalidQuery


@dataclass(frozen=True, slots=True)
class Explanation:
    """A query's plan and the reasons for it; print it to read it."""

    query: Query
    plan: Plan
    steps: tuple[Step, ...]
    measured: Measured | None = None  # from EXPLAIN ANALYZE

    def __str__(self) -> str:
        return "\n".join(
            [
                readable(problem_of(self.query).title(self.query)),
                *(line for step in self.steps for line in step.lines()),
            ]
        )

    def _repr_html_(self) -> str:
        return notebook.plan_html(readable(problem_of(self.query).title(self.query)), self.plan, self.steps)


def explain(
    query: Any, *, window_rows: float | None = None, statistics: Mapping[str, Any] | None = None
) -> Explanation:
    """Show which algorithm the planner chooses for `query`, why, and how many rows and how much time it expects.

    Parameters
    ----------
    query
        A query, such as `TopK(…)`.
    window_rows
        How many rows a window by value contains. For a window of arrivals the planner knows this.
    statistics
        For a join: a mapping from the inputs' names to `sb.Statistics`, such as `session.statistics()` returns.

    Returns
    -------
    The plan. It prints itself; `plan.algorithm` and `plan.considered` are its parts.

    Raises
    ------
    InvalidQuery
        No algorithm can answer the query, or the figures given do not belong to it.

    Examples
    --------
    >>> import skyband as sb
    >>> plan = sb.explain(sb.TopK(k=10, by="price", window=sb.sliding(1_000_000, every=100_000)))
    >>> print(str(plan).splitlines()[0])
    top 10 by price
    >>> plan.plan.algorithm
    'mintopk'
    """
    if not is_query(query):
        raise InvalidQuery(f"explain takes a query such as sb.TopK(…), got {type(query).__name__}.")
    has_one_window = problem_of(query).has_one_window
    if statistics is not None and has_one_window:
        raise InvalidQuery("statistics= is for the inputs of a join; for this query, pass window_rows=.")
    if window_rows is not None and not has_one_window:
        raise InvalidQuery("window_rows= is for queries over one window; for a join, pass statistics= for each input.")
    return explained(Draft(query, window_rows=window_rows, statistics=statistics))


def explained(draft: Draft) -> Explanation:
    """Explain a draft, which may know the inputs' schemas and the measurements of a run."""
    done = planned(draft)
    assert done.plan is not None
    steps = (*done.steps, *(Step("then", f"{asked}, over the answer of each window") for asked in done.then))
    if done.measured is not None:
        steps = (*steps, _ran(done.measured))
    return Explanation(done.query, done.plan, steps, done.measured)


def analyzed(draft: Draft, measured: Measured) -> Explanation:
    """Explain a draft with measurements beside the estimates."""
    return explained(replace(draft, measured=measured))


def _ran(measured: Measured) -> Step:
    late = f", {measured.rows_late:,} of them late" if measured.rows_late else ""
    missed = f" and {measured.rows_missed:,} missed" if measured.rows_missed else ""
    said = f"{measured.rows_in:,} rows in{late}, {measured.rows_out:,} out{missed}, in {measured.seconds:.3g} s"
    return Step("ran", said)


def readable(text: str) -> str:
    """An expression without what statements are given on their way: quotes around plain names, brackets around single
    columns, and conditions that a key is not null.

    >>> readable("(price) * (volume) + abs(t.`x`)")
    'price * volume + abs(t.x)'
    >>> readable("same city; where (a.price > 1) AND (a.`id` IS NOT NULL) AND (b.`id` IS NOT NULL)")
    'same city; where (a.price > 1)'
    """
    text = re.sub(r"( AND )?\((?:\w+\.)?`\w+` IS NOT NULL\)", "", text)
    text = re.sub(r"where AND ", "where ", re.sub(r"; where$", "", text))
    return re.sub(r"(?<![\w)])\(([\w.]+)\)", r"\1", re.sub(r"`(\w+)`", r"\1", text))
