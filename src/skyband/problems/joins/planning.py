"""Which plan runs a join followed by grouping: the paper's cost functions, with what entries cost on some machine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from skyband.core.chooser import BY_NAME, cheapest
from skyband.core.plan import Choice
from skyband.core.plan import Plan as ChosenPlan
from skyband.errors import InvalidQuery
from skyband.problems.joins.algorithms import plans, recompute
from skyband.problems.joins.algorithms.plans import Plan
from skyband.problems.joins.columns import BoundJoin
from skyband.problems.joins.costs import MOST_ENUMERATED, Statistics, best, cost, enumerate_plans, known_constants
from skyband.problems.joins.operator import FUNCTIONS, Aggregate, Input, JoinOperator, Spec
from skyband.problems.joins.query import JoinAggregate, Relation
from skyband.windows import FOREVER

LATE, EARLY, MULTIPLY = "late", "early", "multiply"

ASSUMED_RATE: Final = 10_000.0  # rows a slide
ASSUMED_ROWS: Final = 100_000.0
WORTH: Final = 1.5  # a plan has to be so many times cheaper for a switch


def specify(query: JoinAggregate, bound: BoundJoin, *, external_clock: bool = False) -> Spec:
    """The query in numbers."""
    inputs = tuple(
        Input(
            each.size,
            each.variables,
            bool(each.grouped),
            tuple(argument.is_float for argument in each.arguments),
            each.is_relation,
        )
        for each in bound.inputs
    )
    aggregates = tuple(Aggregate(FUNCTIONS[each.function], each.input, each.argument) for each in bound.aggregates)
    spec = Spec(
        inputs,
        aggregates,
        bound.every,
        query.emit == "changes",
        FOREVER if external_clock else bound.lateness,
        bound.by_count,
    )
    ranked_by = ranked(query)
    if ranked_by is None:
        return spec
    by, ascending = ranked_by
    return replace(spec, top=query.k or 0, top_by=[name for name, _ in query.aggregates].index(by), ascending=ascending)


def ranked(query: JoinAggregate) -> tuple[str, bool] | None:
    """The one aggregate that the best k groups are best by, and whether the smallest is; None: it is not as simple."""
    if query.k is None or query.having is not None or len(query.order_by) != 1:
        return None
    text, ascending = direction(query.order_by[0])
    return (text, ascending) if text in dict(query.aggregates) else None


def direction(text: str) -> tuple[str, bool]:
    """What to order by, and whether the smallest comes first: "x ASC" or "x DESC"; "x" alone: the largest."""
    words = text.split()
    if len(words) > 1 and words[-1].upper() in ("ASC", "DESC"):
        return " ".join(words[:-1]), words[-1].upper() == "ASC"
    return text, False


def coalesces(query: JoinAggregate, bound: BoundJoin) -> tuple[tuple[int, ...] | None, ...]:
    """By input: what becomes of the arguments of rows that are made one before a plan sees them; None: they stay apart,
    as all do where a plan is named, to run as published."""
    spec = specify(query, bound)
    named = query.plan not in (None, MULTIPLY)
    return tuple(None if named else spec.as_one(i) for i in range(len(spec.inputs)))


def plan_named(name: str, query: JoinAggregate, spec: Spec) -> Plan | None:
    """The plan of that name, if it can answer the query; None: recompute."""
    kind, _, of = name.partition(":")
    chosen = [word.strip() for word in of.split(",") if word.strip()]
    for each in chosen:
        if each not in query.names:
            raise InvalidQuery(f"plan={name!r} names no input: {each!r}. Inputs: {', '.join(query.names)}.")
    if kind == recompute.NAME and not of:
        return None
    if kind == LATE and not of:
        return Plan(tuple(False for _ in query.names))
    if kind == EARLY:
        early = tuple(not chosen or each in chosen for each in query.names)
        return Plan(early)
    if kind == MULTIPLY and not of:
        plan = Plan(tuple(True for _ in query.names), multiply=True)
        if refused := plans.refuses(spec, plan):
            raise InvalidQuery(f"plan={name!r} cannot answer this: {refused}. Possible here: late, early:….")
        return plan
    raise InvalidQuery(f"No plan {name!r}. There are: late, early:{','.join(query.names)}, multiply, recompute.")


def name_of(plan: Plan, names: tuple[str, ...]) -> str:
    if plan.multiply:
        return MULTIPLY
    early = [name for name, is_early in zip(names, plan.early, strict=True) if is_early]
    return f"{EARLY}:{','.join(early)}" if early else LATE


def choose(query: JoinAggregate, spec: Spec) -> str:
    """The plan to begin with: the one asked for, or one that suits what is assumed of the inputs."""
    if query.plan is not None:
        plan_named(query.plan, query, spec)
        return query.plan
    return plan(query, spec=spec).algorithm


def better(name: str, query: JoinAggregate, spec: Spec, inputs: Sequence[Statistics]) -> str | None:
    """A plan that is worth the switch, now that the inputs are known; None: stay."""
    running = plan_named(name, query, spec)
    if running is None:
        return None
    constants, slide = known_constants(), _slide(spec)
    found = best(inputs, constants, linear=spec.linear, slide=slide)
    costs = [cost(plan, inputs, constants, slide, linear=spec.linear) for plan in (running, found)]
    if costs[0] <= WORTH * costs[1]:
        return None
    return name_of(found, query.names)


def assumed(spec: Spec) -> list[Statistics]:
    """What is taken for granted of inputs that nobody has seen: many rows of each key, in some groups."""
    return [
        Statistics(0.0 if each.relation else ASSUMED_RATE, ASSUMED_ROWS, ASSUMED_ROWS / 10, ASSUMED_ROWS / 20)
        for each in spec.inputs
    ]


def _slide(spec: Spec) -> float:
    """Rates are in rows a slide; with each arrival, nothing is gathered."""
    return 1.0 if spec.every else 0.0


def plan(
    query: JoinAggregate, statistics: Mapping[str, Statistics] | None = None, spec: Spec | None = None
) -> ChosenPlan:
    """Which plan runs `query`, and what all of them are estimated to cost, per row that arrives.

    `statistics` says what each input is like, by its name; rates are in rows a slide. `spec` is the query in numbers,
    once its columns are known.
    """
    spec, inputs = spec or _shape(query), inputs_of(query, statistics)
    rate = max(sum(each.rate for each in inputs), 1.0)
    constants, slide = known_constants(), _slide(spec)

    def considered(plan: Plan) -> Choice:
        ns = cost(plan, inputs, constants, slide, linear=spec.linear) / rate
        return Choice(name_of(plan, query.names), plans.refuses(spec, plan), ns=ns)

    choices = sorted(
        map(considered, _candidates(spec, inputs)), key=lambda choice: (choice.refused is not None, choice.ns)
    )
    if query.plan is None:
        chosen, why = cheapest(choice for choice in choices if not choice.refused).algorithm, "a row costs least"
    else:
        asked = plan_named(query.plan, query, spec)
        chosen, why = query.plan if asked is None else name_of(asked, query.names), BY_NAME
    ns = next((choice.ns for choice in choices if choice.algorithm == chosen), math.nan)
    rows = sum(each.rows for each in inputs)
    return ChosenPlan(chosen, why, rows, ns, rows, statistics is None, tuple(choices))


def _candidates(spec: Spec, inputs: Sequence[Statistics]) -> list[Plan]:
    """All plans; of many inputs, the extremes and the one that making inputs early one after the other leads to."""
    count = len(inputs)
    if count <= MOST_ENUMERATED:
        return enumerate_plans(count, linear=True)
    extremes = Plan((False,) * count), Plan((True,) * count), Plan((True,) * count, multiply=True)
    found = best(inputs, known_constants(), linear=spec.linear, slide=_slide(spec))
    return list(dict.fromkeys((*extremes, found)))


def inputs_of(query: JoinAggregate, statistics: Mapping[str, Statistics] | None) -> list[Statistics]:
    """What each input is like, as told or as assumed."""
    if statistics is None:
        return assumed(_shape(query))
    if set(statistics) != set(query.names):
        raise InvalidQuery(f"Give statistics of each input: {', '.join(query.names)}; got {', '.join(statistics)}.")
    return [statistics[name] for name in query.names]


def _shape(query: JoinAggregate) -> Spec:
    """As much of the query in numbers as can be known without columns."""
    inputs = tuple(Input(1, relation=isinstance(given, Relation)) for _, given in query.inputs)
    aggregates = tuple(Aggregate(FUNCTIONS[each.function]) for _, each in query.parsed_aggregates())
    return Spec(inputs, aggregates, int(query.every is not None))


def open_plan(name: str, query: JoinAggregate, spec: Spec) -> JoinOperator:
    plan = plan_named(name, query, spec)
    return recompute.open(spec) if plan is None else plans.open(spec, plan)
