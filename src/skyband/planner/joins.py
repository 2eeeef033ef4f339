"""Which plan runs a join followed by grouping: the paper's cost functions, with what entries cost on some machine."""

from __future__ import annotations

from dataclasses import replace

from skyband.errors import InvalidQuery
from skyband.operators.joins import plans, recompute
from skyband.operators.joins.plans import Plan
from skyband.operators.joins.protocol import FUNCTIONS, Aggregate, Input, JoinOperator, Spec
from skyband.queries.join_columns import BoundJoin
from skyband.queries.joins import JoinAggregate
from skyband.windows import FOREVER

LATE, EARLY, MULTIPLY = "late", "early", "multiply"


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
    """The plan that runs when none is asked for."""
    if query.plan is not None:
        plan_named(query.plan, query, spec)
        return query.plan
    everything = Plan(tuple(True for _ in query.names))
    if spec.linear and spec.every > 0:
        return MULTIPLY
    return name_of(everything, query.names)


def open_plan(name: str, query: JoinAggregate, spec: Spec) -> JoinOperator:
    plan = plan_named(name, query, spec)
    return recompute.open(spec) if plan is None else plans.open(spec, plan)
