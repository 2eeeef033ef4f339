"""Rule: which algorithm, or which plan of a join, by what it costs and holds."""

from __future__ import annotations

import math
from functools import singledispatch

from skyband.core.chooser import Choice, Plan
from skyband.core.operator import EMIT_CODES
from skyband.core.planned_windows import ticks_of
from skyband.expressions import many as many_expressions
from skyband.expressions import pairs as pair_expressions
from skyband.problems.across import planning as across
from skyband.problems.across.query import TopKAcross
from skyband.problems.joins import planning as joins
from skyband.problems.joins.query import JoinAggregate
from skyband.problems.pairs import planning as pairs
from skyband.problems.pairs.drivers.scoring import scoring_of
from skyband.problems.pairs.operator import Spec as PairSpec
from skyband.problems.pairs.query import TopKPairs
from skyband.problems.rows import planning as objects
from skyband.problems.rows.operator import Spec
from skyband.problems.rows.query import TopK
from skyband.problems.rules.drafting import Draft, Query, Step
from skyband.problems.subscriptions import planning as many
from skyband.problems.subscriptions.drivers.scoring import scoring_of as many_scoring
from skyband.problems.subscriptions.query import TopKForEach


def algorithm(draft: Draft) -> Draft:
    """What will run, what it is expected to hold and to cost, and why the others lost."""
    plan = choose(draft.query, draft)
    parts = [*_expected(draft, plan), Step("considered", "", tuple(_considered(plan)))]
    name = "plan" if isinstance(draft.query, JoinAggregate) else "algorithm"
    return draft.with_step(Step(name, f"{plan.algorithm}: {plan.why}", tuple(parts)), plan=plan)


@singledispatch
def choose(query: Query, draft: Draft) -> Plan:
    """The plan of the query's problem."""
    raise AssertionError(f"a query of no known kind: {query}")


@choose.register
def _(query: TopK, draft: Draft) -> Plan:
    emit = EMIT_CODES[str(query.emit)]
    spec = Spec(query.k, ticks_of(query.window), emit, bool(query.per), query.ad_hoc, query.error or 0.0)
    return objects.plan(spec, query.algorithm, expect=query.expect, window_rows=draft.window_rows)


@choose.register
def _(query: TopKForEach, draft: Draft) -> Plan:
    score = many_expressions.outline(query.score, query.ascending)
    spec = many.in_numbers(query, ticks_of(query.window), many_scoring(score))
    topics = many.topics_of(query.queries, score)
    return many.plan(spec, len(query.queries), query.algorithm, window_rows=draft.window_rows, topics=topics)


@choose.register
def _(query: TopKPairs, draft: Draft) -> Plan:
    # Columns are taken to be numbers: there may be no schema yet to know better.
    score = pair_expressions.outline(query.by, query.where, query.ascending)
    scoring = scoring_of(score, same=bool(query.same), different=bool(query.different))
    spec = PairSpec(query.k, ticks_of(query.window), scoring, EMIT_CODES[str(query.emit)])
    return pairs.plan(spec, query.algorithm, window_rows=draft.window_rows)


@choose.register
def _(query: TopKAcross, draft: Draft) -> Plan:
    spec = across.in_numbers(query, ticks_of(query.window))
    return across.plan(spec, query.algorithm, window_rows=draft.window_rows)


@choose.register
def _(query: JoinAggregate, draft: Draft) -> Plan:
    return joins.explain_join(query, draft.statistics)


# -- in words ---------------------------------------------------------------------------------------------------------


def _expected(draft: Draft, plan: Plan) -> list[Step]:
    measured = draft.measured
    holds, costs = _holds(draft, plan), _costs(draft.query, plan)
    if measured is not None and not math.isnan(measured.held_most):
        seen = f"measured {measured.held_mean:,.0f} on average, {measured.held_most:,.0f} at most"
        holds = f"{holds}; {seen}" if holds else seen
    if measured is not None:
        costs = f"{costs}; " if costs else ""
        costs += f"measured {nanoseconds(measured.ns)}{'' if costs else ' a row'}"
    return [*([Step("holds", holds)] if holds else []), *([Step("costs", costs)] if costs else [])]


def _holds(draft: Draft, plan: Plan) -> str:
    query, assumed = draft.query, " (assumed)" if plan.assumed else ""
    if isinstance(query, JoinAggregate):
        known = joins.inputs_of(query, draft.statistics)
        return "; ".join(
            f"{name} {each.rows:,.0f} rows in {each.cells:,.0f} cells of {each.keys:,.0f} keys{assumed}"
            for name, each in zip(query.names, known, strict=True)
        )
    if isinstance(query, TopKForEach):
        rows = f"{plan.window_rows:,.0f} rows of a window{assumed}"
        if not math.isnan(plan.rows):
            return f"about {plan.rows:,.0f} of the {rows}, if scores come in random order"
        return f"the {rows}, once for all, and a list somewhat longer than k for each query"
    if isinstance(query, TopKPairs):
        rows = f"{plan.window_rows:,.0f} rows of a window{assumed}"
        return f"the {rows} and about {plan.pairs:,.0f} pairs, if scores come in random order"
    of = f"{plan.window_rows:,.0f} in a window{assumed}"
    if isinstance(query, TopKAcross):
        return f"about {plan.rows:,.0f} rows of the {of}, if streams are half in step"
    return f"about {plan.rows:,.0f} rows{' per group' if query.per else ''} of the {of}, if scores come in random order"


def _costs(query: Query, plan: Plan) -> str:
    if math.isnan(plan.ns):
        return ""
    order = f", if scores come in {query.expect or 'random'} order" if isinstance(query, TopK) else ""
    return f"{nanoseconds(plan.ns)} a row{order}"


def _considered(plan: Plan) -> list[Step]:
    width = max(len(choice.algorithm) for choice in plan.considered)
    chosen = plan.algorithm.partition("(")[0]
    return [
        Step(f"{'->' if choice.algorithm == chosen else '  '} {choice.algorithm:<{width}}", _verdict(choice, plan))
        for choice in sorted(plan.considered, key=_by_cost)
    ]


def _verdict(choice: Choice, plan: Plan) -> str:
    if choice.refused:
        return f"cannot: {choice.refused}"
    is_chosen = choice.algorithm == plan.algorithm.partition("(")[0]
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
