"""Rule: choose the algorithm, or the plan of a join, by its cost and the rows it holds."""

from __future__ import annotations

import math

from skyband.core.draft import Draft, Step
from skyband.core.plan import Choice, Plan
from skyband.core.registry import problem_of


def algorithm(draft: Draft) -> Draft:
    """What will run, what it is expected to hold and to cost, and why the others lost."""
    problem = problem_of(draft.query)
    plan = problem.choose(draft.query, draft)
    parts = [*_expected(draft, plan), Step("considered", "", tuple(_considered(plan)))]
    return draft.with_step(Step(problem.chooses, f"{plan.algorithm}: {plan.why}", tuple(parts)), plan=plan)


def _expected(draft: Draft, plan: Plan) -> list[Step]:
    measured = draft.measured
    holds, costs = problem_of(draft.query).holds(draft.query, plan, draft), _costs(draft, plan)
    if measured is not None and not math.isnan(measured.held_most):
        seen = f"measured {measured.held_mean:,.0f} on average, {measured.held_most:,.0f} at most"
        holds = f"{holds}; {seen}" if holds else seen
    if measured is not None:
        costs = f"{costs}; " if costs else ""
        costs += f"measured {nanoseconds(measured.ns)}{'' if costs else ' a row'}"
    return [*([Step("holds", holds)] if holds else []), *([Step("costs", costs)] if costs else [])]


def _costs(draft: Draft, plan: Plan) -> str:
    if math.isnan(plan.ns):
        return ""
    return f"{nanoseconds(plan.ns)} a row{problem_of(draft.query).costs_if(draft.query)}"


def _considered(plan: Plan) -> list[Step]:
    width = max(len(choice.algorithm) for choice in plan.considered)
    chosen = plan.base
    return [
        Step(f"{'->' if choice.algorithm == chosen else '  '} {choice.algorithm:<{width}}", _verdict(choice, plan))
        for choice in sorted(plan.considered, key=_by_cost)
    ]


def _verdict(choice: Choice, plan: Plan) -> str:
    if choice.refused:
        return f"cannot: {choice.refused}"
    is_chosen = choice.algorithm == plan.base
    rows = "" if math.isnan(choice.rows) else f"holds about {choice.rows:,.0f} rows"
    if choice.for_comparing and not is_chosen:
        return f"for comparing: {rows}" if rows else "for comparing"
    if math.isnan(choice.ns) or math.isnan(plan.ns):
        return rows
    compared = "" if is_chosen else f" ({_ratio(choice.ns, plan.ns)})"
    return f"{nanoseconds(choice.ns)} a row{compared}" + (f", {rows}" if rows else "")


def _by_cost(choice: Choice) -> tuple[bool, float, str]:
    return choice.refused is not None, math.inf if math.isnan(choice.ns) else choice.ns, choice.algorithm


def _ratio(ns: float, least: float) -> str:
    ratio = ns / least
    return f"{ratio:.2g}x" if ratio < 10 else f"{ratio:,.0f}x"


def nanoseconds(ns: float) -> str:
    if ns < 1_000:
        return f"{ns:.2g} ns" if ns < 10 else f"{ns:.0f} ns"
    return f"{ns / 1_000:.2g} µs" if ns < 10_000 else f"{ns / 1_000:.0f} µs"
