"""The planner: a list of rules. Each rule decides one thing and adds a line to EXPLAIN."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from skyband.core.plan import Choice, Draft, Plan, Read, Step
from skyband.core.registry import problem_of


def planned(draft: Draft) -> Draft:
    """Apply every rule to a draft."""
    for rule in RULES:
        draft = rule(draft)
    return draft


def problem(draft: Draft) -> Draft:
    """Name the problem."""
    return draft.with_step(Step("problem", problem_of(draft.query).summary(draft.query)))


def names(draft: Draft) -> Draft:
    """List the columns that the query reads from each input, with their types."""
    if not draft.reads:
        return draft
    if len(draft.reads) == 1:
        return draft.with_step(Step("names", _typed(draft.reads[0])))
    return draft.with_step(Step("names", "", tuple(Step(read.name, _typed(read)) for read in draft.reads)))


def _typed(read: Read) -> str:
    return ", ".join(f"{name} {read.schema.field(name).type}" for name in read.columns)


def source(draft: Draft) -> Draft:
    """Say how much of each input is read. On Spark the JVM leaves out the rest, so Python never sees it."""
    if not draft.reads:
        return draft
    where = " in the JVM" if draft.on_spark else ""
    if len(draft.reads) == 1:
        return draft.with_step(Step("source", f"{draft.reads[0].name}: {_asked(draft.reads[0], where)}"))
    parts = tuple(Step(read.name, _asked(read, where)) for read in draft.reads)
    return draft.with_step(Step("source", "", parts))


def _asked(read: Read, where: str) -> str:
    count, all_of = len(read.columns), len(read.schema)
    columns = f"all {all_of} columns" if count == all_of else f"{count} of {all_of} columns"
    return columns if read.where is None else f"{columns}, rows with {read.where}{where}"


def panes(draft: Draft) -> Draft:
    """Describe the query's windows, and what it emits."""
    for step in problem_of(draft.query).windows(draft.query):
        draft = draft.with_step(step)
    return draft.with_step(Step("emits", str(draft.query.emit)))


def algorithm(draft: Draft) -> Draft:
    """Choose the algorithm. Say why, what it will hold and cost, and how it compares with the other candidates."""
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
        for choice in plan.considered
    ]


def _verdict(choice: Choice, plan: Plan) -> str:
    if choice.refused:
        return f"cannot: {choice.refused}"
    is_chosen = choice.algorithm == plan.base
    rows = "" if math.isnan(choice.rows) else f"holds about {choice.rows:,.0f} rows"
    if math.isnan(choice.ns) or math.isnan(plan.ns):
        return rows
    compared = "" if is_chosen else f" ({_ratio(choice.ns, plan.ns)})"
    return f"{nanoseconds(choice.ns)} a row{compared}" + (f", {rows}" if rows else "")


def _ratio(ns: float, least: float) -> str:
    ratio = ns / least
    return f"{ratio:.2g}x" if ratio < 10 else f"{ratio:,.0f}x"


def nanoseconds(ns: float) -> str:
    if ns < 1_000:
        return f"{ns:.2g} ns" if ns < 10 else f"{ns:.0f} ns"
    return f"{ns / 1_000:.2g} µs" if ns < 10_000 else f"{ns / 1_000:.0f} µs"


def distribution(draft: Draft) -> Draft:
    """Say where the query runs: in this process or on Spark. If that is open, say how Spark would run it."""
    if draft.on_spark is False:
        return draft.with_step(Step("runs", "in this process"))
    problem = problem_of(draft.query)
    if draft.on_spark is None and (refused := problem.refuses_spark(draft.query)):
        return draft.with_step(Step("on Spark", f"cannot: {refused}"))
    why = problem.distribution(draft.query, draft.schemas).why
    parts = () if draft.sieve is None else (Step("sieve", draft.sieve),)
    return draft.with_step(Step("runs", f"on Spark, {why}", parts) if draft.on_spark else Step("on Spark", why))


RULES: Final[tuple[Callable[[Draft], Draft], ...]] = (problem, names, source, panes, algorithm, distribution)
