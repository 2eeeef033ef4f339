"""Chooses the plan of a join, by the paper's cost functions with measured constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from skyband.core.chooser import Chooser, WindowRows
from skyband.core.emit import code_of
from skyband.core.plan import Plan as ChosenPlan
from skyband.errors import InvalidQuery
from skyband.problems.joins.algorithms.plans import MULTIPLY
from skyband.problems.joins.candidates import candidates, find, find_for, with_statistics
from skyband.problems.joins.columns import BoundJoin
from skyband.problems.joins.costs import Statistics, assumed
from skyband.problems.joins.operator import FUNCTIONS, Aggregate, Input, JoinOperator, Spec
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
            tuple(argument.is_float for argument in each.arguments),
            each.is_relation,
            each.scales,
            len(each.distinct),
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

    None: its rows are not merged. A plan that the query names runs as published, so it gets every row.
    """
    spec = specify(query, bound)
    named = query.plan not in (None, MULTIPLY)
    return tuple(None if named else spec.as_one(i) for i in range(len(spec.inputs)))


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


def open_plan(name: str, query: JoinAggregate, spec: Spec, **options: int) -> JoinOperator:
    """Open the operator of the plan with this name. `options` are those of the algorithm."""
    return find_for(name, query.names, spec).open(spec, **options)
