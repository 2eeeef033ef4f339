"""Chooses the plan of a join, by the paper's cost functions with measured constants.

A plan has a name: "late", "early:a,b", "multiply" or that of any other algorithm of the problem. `find` reads what a
user writes as `plan=`; `candidates` lists what the chooser chooses from. Both give algorithms of the registry, with the
inputs that are early bound to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from skyband.core import registry
from skyband.core.chooser import Chooser, WindowRows
from skyband.core.emit import code_of
from skyband.core.plan import Plan as ChosenPlan
from skyband.errors import InvalidQuery
from skyband.problems.joins.algorithms.plans import EARLY, LATE, MULTIPLY
from skyband.problems.joins.columns import BoundJoin
from skyband.problems.joins.costs import Statistics, assumed, expected_ns, worth_considering
from skyband.problems.joins.operator import FUNCTIONS, HOWS, Aggregate, Input, JoinAlgorithm, JoinOperator, Plan, Spec
from skyband.problems.joins.query import JoinAggregate, Relation
from skyband.windows import FOREVER

WORTH: Final = 1.5  # a running join switches to a plan that is this many times cheaper


def specify(query: JoinAggregate, bound: BoundJoin, *, external_clock: bool = False) -> Spec:
    """Convert a query over these columns to numbers."""
    inputs = tuple(
        Input(
            each.size,
            each.variables,
            bool(each.grouped),
            (*(argument.is_float for argument in each.arguments), *(False for _ in each.labelled)),
            each.is_relation,
            each.scales,
            len(each.distinct),
            len(each.labelled),
            HOWS[each.how],
            *each.absent,
        )
        for each in bound.inputs
    )
    aggregates = tuple(Aggregate(FUNCTIONS[each.function], each.input, each.argument) for each in bound.aggregates)
    spec = Spec(
        inputs,
        aggregates,
        bound.every,
        code_of(query.emit),
        FOREVER if external_clock else bound.slide.lateness,
        bound.slide.by_count,
    )
    ranked_by = ranked(query)
    if ranked_by is None:
        return spec
    by, ascending = ranked_by
    return replace(spec, top=query.k or 0, top_by=[name for name, _ in query.aggregates].index(by), ascending=ascending)


def ranked(query: JoinAggregate) -> tuple[str, bool] | None:
    """The aggregate that ranks the best k groups, and whether the smallest is best; None if the ranking is not that
    simple."""
    if query.k is None or query.having is not None or len(query.order_by) != 1:
        return None
    text, ascending = direction(query.order_by[0])
    return (text, ascending) if text in dict(query.aggregates) else None


def direction(text: str) -> tuple[str, bool]:
    """Split "x ASC" or "x DESC" into the expression and whether the smallest comes first. "x" alone means DESC."""
    words = text.split()
    if len(words) > 1 and words[-1].upper() in ("ASC", "DESC"):
        return " ".join(words[:-1]), words[-1].upper() == "ASC"
    return text, False


def coalesces(query: JoinAggregate, bound: BoundJoin) -> tuple[tuple[int, ...] | None, ...]:
    """For each input: how the arguments of rows are combined when rows are merged before a plan sees them.

    None: its rows are not merged. A plan that the query names runs as published, so it gets every row. Labels are left
    out: rows get them in their session.
    """
    spec = specify(query, bound)
    named = query.plan not in (None, MULTIPLY)
    found = (None if named else spec.as_one(i) for i in range(len(spec.inputs)))
    return tuple(
        None if ways is None else ways[: len(source.arguments)]
        for ways, source in zip(found, bound.inputs, strict=True)
    )


def better(name: str, query: JoinAggregate, spec: Spec, known: Mapping[str, Statistics]) -> ChosenPlan | None:
    """A plan that is so much cheaper, with these statistics, that a switch pays; None if there is none."""
    running = with_statistics(find(name, query.names), query.names, list(known.values()))
    found = plan(query, known, spec)
    is_worth = running.expected_ns is not None and running.expected_ns(spec, found.window_rows) > WORTH * found.ns
    return found if is_worth else None


def plan(
    query: JoinAggregate, statistics: Mapping[str, Statistics] | None = None, spec: Spec | None = None
) -> ChosenPlan:
    """Choose the plan of `query` by the expected cost of a row.

    `statistics` are those of the inputs, by name; rates are in rows a slide. `spec` is the query in numbers, if its
    columns are known.
    """
    spec, inputs = spec or _shape(query), inputs_of(query, statistics)
    chooser = Chooser(
        spec=spec,
        window=WindowRows(sum(each.rows for each in inputs), assumed=statistics is None),
        candidates=candidates(spec, query.names, inputs),
        reason=lambda chosen, able: "lowest cost per row",
        shows_rows=False,  # every plan holds all live rows
    )
    if query.plan is None:
        return chooser.cheapest()
    return chooser.named(with_statistics(find_for(query.plan, query.names, spec), query.names, inputs))


def inputs_of(query: JoinAggregate, statistics: Mapping[str, Statistics] | None) -> list[Statistics]:
    """The given statistics of each input; if none are given, the assumed ones."""
    if statistics is None:
        return assumed(_shape(query))
    if set(statistics) != set(query.names):
        raise InvalidQuery(f"Give statistics of each input: {', '.join(query.names)}; got {', '.join(statistics)}.")
    return [statistics[name] for name in query.names]


def _shape(query: JoinAggregate) -> Spec:
    """The query in numbers, as far as it is known without columns."""
    inputs = tuple(Input(1, relation=isinstance(given, Relation)) for _, given in query.inputs)
    aggregates = tuple(Aggregate(FUNCTIONS[each.function]) for _, each in query.parsed_aggregates())
    return Spec(inputs, aggregates, int(query.every is not None))


# -- plans by name -----------------------------------------------------------------------------------------------------


def find(text: str, names: Sequence[str]) -> JoinAlgorithm:
    """Find the algorithm that a user names, for a join whose inputs have these names."""
    kind, colon, of = text.partition(":")
    chosen = [word.strip() for word in of.split(",") if word.strip()]
    for each in chosen:
        if each not in names:
            raise InvalidQuery(f"plan={text!r} names no input: {each!r}. Inputs: {', '.join(names)}.")
    if kind.strip() == EARLY:
        return _algorithm_of(Plan(tuple(not chosen or name in chosen for name in names)), names)
    asked = kind.partition("(")[0].strip()
    known = asked in registry.algorithms_of("joins") or asked in registry.baselines_of("joins")
    if colon or not known:
        possible = [f"{each}:{','.join(names)}" if each == EARLY else each for each in registry.algorithms_of("joins")]
        raise InvalidQuery(f"No plan {text!r}. There are: {', '.join(possible)}.")
    return registry.find(text, "joins")


def find_for(text: str, names: Sequence[str], spec: Spec) -> JoinAlgorithm:
    """Find the algorithm that a user names; raises if it cannot answer the query."""
    algorithm = find(text, names)
    if refused := algorithm.refuses(spec):
        able = [name for name, each in registry.algorithms_of("joins").items() if each.refuses(spec) is None]
        possible = ", ".join(f"{name}:…" if name == EARLY else name for name in able)
        raise InvalidQuery(f"plan={text!r} cannot answer this: {refused}. Possible here: {possible}.")
    return algorithm


def candidates(spec: Spec, names: Sequence[str], inputs: Sequence[Statistics]) -> list[JoinAlgorithm]:
    """All plans that are worth considering for inputs with these statistics. Some may refuse the query."""

    def estimate(plan: Plan) -> float:
        return expected_ns(plan, spec, inputs)

    return [
        with_statistics(_algorithm_of(plan, names), names, inputs) for plan in worth_considering(len(inputs), estimate)
    ]


def with_statistics(algorithm: JoinAlgorithm, names: Sequence[str], inputs: Sequence[Statistics]) -> JoinAlgorithm:
    """Give an algorithm the rows and costs to expect with these statistics."""
    rows = sum(each.rows for each in inputs)
    found = replace(algorithm, expected_rows=lambda spec, _: rows)
    known = _plan_named(algorithm.name, names)
    if known is None:
        return found
    return replace(found, expected_ns=lambda spec, _: expected_ns(known, spec, inputs))


def name_of(plan: Plan, names: Sequence[str]) -> str:
    """The name by which users know a plan, for inputs with these names."""
    if plan.multiply:
        return MULTIPLY
    early = [name for name, is_early in zip(names, plan.early, strict=True) if is_early]
    return f"{EARLY}:{','.join(early)}" if early else LATE


def _plan_named(name: str, names: Sequence[str]) -> Plan | None:
    """The inverse of `name_of`; None if the name is none of the paper's plans."""
    kind, _, of = name.partition(":")
    if kind == EARLY:
        return Plan(tuple(each in of.split(",") for each in names))
    if kind in (LATE, MULTIPLY):
        return Plan(tuple(kind == MULTIPLY for _ in names), multiply=kind == MULTIPLY)
    return None


def _algorithm_of(plan: Plan, names: Sequence[str]) -> JoinAlgorithm:
    name, among = name_of(plan, names), registry.algorithms_of("joins")
    if name in among:
        return among[name]
    early = among[EARLY]
    which = sum(1 << i for i, is_early in enumerate(plan.early) if is_early)
    return replace(early, name=name, open=partial(early.open, inputs=which))


def open_plan(name: str, query: JoinAggregate, spec: Spec, **options: int) -> JoinOperator:
    """Open the operator of the plan with this name. `options` are those of the algorithm."""
    return find_for(name, query.names, spec).open(spec, **options)
