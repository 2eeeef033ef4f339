"""Which plan runs a join followed by grouping: the paper's cost functions, with what entries cost on some machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from skyband.errors import InvalidQuery
from skyband.operators.joins import plans, recompute
from skyband.operators.joins.plans import Plan
from skyband.operators.joins.protocol import FUNCTIONS, Aggregate, Input, JoinOperator, Spec
from skyband.planner.join_costs import Statistics, best, cost, enumerate_plans, known_constants
from skyband.queries.join_columns import BoundJoin
from skyband.queries.joins import JoinAggregate, Relation, StreamInput
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
    return name_of(best(assumed(spec), known_constants(), linear=spec.linear, slide=_slide(spec)), query.names)


def better(name: str, query: JoinAggregate, spec: Spec, inputs: Sequence[Statistics]) -> str | None:
    """A plan that is worth the switch, now that the inputs are known; None: stay."""
    running = plan_named(name, query, spec)
    if running is None:
        return None
    constants, slide = known_constants(), _slide(spec)
    found = best(inputs, constants, linear=spec.linear, slide=slide)
    if cost(running, inputs, constants, slide) <= WORTH * cost(found, inputs, constants, slide):
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


@dataclass(frozen=True, slots=True)
class JoinChoice:
    """One plan, considered."""

    plan: str
    ns: float  # a row, estimated
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class JoinExplanation:
    """What will run and why; `str` of it is for reading."""

    query: JoinAggregate
    plan: str
    considered: tuple[JoinChoice, ...]  # the cheapest first
    inputs: tuple[Statistics, ...]
    assumed: bool  # nobody said what the inputs are like

    def __str__(self) -> str:
        query = self.query
        groups = f" for each {', '.join(query.group_by)}" if query.group_by else ""
        what = ", ".join(f"{text} AS {name}" for name, text in query.aggregates)
        lines = [f"{what}{groups}"]
        for (name, given), known in zip(query.inputs, self.inputs, strict=True):
            window = "a relation"
            if isinstance(given, StreamInput):
                window = f"a stream, {replace(given.window, every=query.every)}"
            said = f"{known.rows:,.0f} rows in {known.cells:,.0f} cells of {known.keys:,.0f} keys"
            lines.append(f"  {name:<10} {window}: {said}{' (assumed)' if self.assumed else ''}")
        lines += [f"  join       {' AND '.join(query.on)}"] if query.on else []
        why = "asked for by name" if query.plan else "a row costs least"
        lines += [f"  gives      {query.emit}", f"  plan       {self.plan}: {why}", "  considered"]
        width = max(len(choice.plan) for choice in self.considered)
        for choice in self.considered:
            mark = "->" if choice.plan == self.plan else "  "
            cost_of = f"cannot: {choice.refused}" if choice.refused else f"{choice.ns:,.0f} ns a row"
            lines.append(f"    {mark} {choice.plan:<{width}} {cost_of}")
        return "\n".join(lines)


def explain_join(query: JoinAggregate, statistics: Mapping[str, Statistics] | None = None) -> JoinExplanation:
    """Which plan runs `query`, and what all of them are estimated to cost, per row that arrives.

    `statistics` says what each input is like, by its name; rates are in rows a slide.
    """
    spec = _shape(query)
    if statistics is not None and set(statistics) != set(query.names):
        raise InvalidQuery(f"Give statistics of each input: {', '.join(query.names)}; got {', '.join(statistics)}.")
    inputs = tuple(assumed(spec) if statistics is None else (statistics[name] for name in query.names))
    rate = max(sum(each.rate for each in inputs), 1.0)
    constants, slide = known_constants(), _slide(spec)
    choices = [
        JoinChoice(name_of(plan, query.names), cost(plan, inputs, constants, slide) / rate, plans.refuses(spec, plan))
        for plan in enumerate_plans(len(inputs), linear=True)
    ]
    choices.sort(key=lambda choice: (choice.refused is not None, choice.ns))
    if query.plan is None:
        chosen = name_of(best(inputs, constants, linear=spec.linear, slide=slide), query.names)
    else:
        asked = plan_named(query.plan, query, spec)
        chosen = query.plan if asked is None else name_of(asked, query.names)
    return JoinExplanation(query, chosen, tuple(choices), inputs, statistics is None)


def _shape(query: JoinAggregate) -> Spec:
    """As much of the query in numbers as can be known without columns."""
    inputs = tuple(Input(1, relation=isinstance(given, Relation)) for _, given in query.inputs)
    aggregates = tuple(Aggregate(FUNCTIONS[each.function]) for _, each in query.parsed_aggregates())
    return Spec(inputs, aggregates, int(query.every is not None))


def open_plan(name: str, query: JoinAggregate, spec: Spec) -> JoinOperator:
    plan = plan_named(name, query, spec)
    return recompute.open(spec) if plan is None else plans.open(spec, plan)
