"""Every algorithm, by name. Adding one is one file and one line here; the conformance suite finds it by itself."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Generic, TypeVar

from skyband.errors import InvalidQuery
from skyband.operators.across import early_aggregation, estimated, learned, sorted_lists, totals
from skyband.operators.across import recompute as recompute_across
from skyband.operators.across import staircase as staircase_across
from skyband.operators.across.protocol import AcrossOperator, AcrossSpec
from skyband.operators.many import boxes as many_boxes
from skyband.operators.many import cells as many_cells
from skyband.operators.many import each as many_each
from skyband.operators.many import grids as many_grids
from skyband.operators.many import once as many_once
from skyband.operators.many import protocol as many
from skyband.operators.many import scan as many_scan
from skyband.operators.many import shared as many_shared
from skyband.operators.objects import (
    budgeted,
    filtered,
    growing,
    hybrid,
    mintopk,
    partitioned,
    pretopk,
    probabilistic,
    recompute,
    relaxed,
    sma,
    staircase,
    strict,
    tma,
)
from skyband.operators.options import declared
from skyband.operators.pairs import naive as pair_naive
from skyband.operators.pairs import protocol as pairs
from skyband.operators.pairs import recompute as pair_recompute
from skyband.operators.pairs import staircase as pair_staircase
from skyband.operators.pairs import threshold as pair_threshold
from skyband.operators.protocol import ObjectOperator, Spec

S = TypeVar("S")  # what the problem calls a query in numbers
Op = TypeVar("Op")  # what the problem calls an operator


@dataclass(frozen=True)
class Algorithm(Generic[S, Op]):
    """What the planner and the engines know of an algorithm."""

    name: str
    open: Callable[..., Op]  # of an S, and of the algorithm's options, by keyword
    refuses: Callable[[S], str | None]  # why it cannot answer this, or None
    expected_rows: Callable[[S, float], float]  # rows held per group, for so many rows per window, in random order
    exact: bool = True  # False: it may miss rows, and unless it is for comparing no more than the query allows
    for_comparing: bool = False  # an oracle, a baseline, or what a successor does better: never chosen

    @property
    def options(self) -> tuple[str, ...]:
        parameters = inspect.signature(self.open).parameters.values()
        return tuple(parameter.name for parameter in parameters if parameter.kind is inspect.Parameter.KEYWORD_ONLY)


ObjectAlgorithm = Algorithm[Spec, ObjectOperator]

OBJECTS: dict[str, ObjectAlgorithm] = {
    **{
        module.NAME: ObjectAlgorithm(module.NAME, growing.opener(module.open), module.refuses, module.expected_rows)
        for module in (mintopk, relaxed, partitioned, staircase)
    },
    **{
        module.NAME: ObjectAlgorithm(
            module.NAME, growing.opener(module.open), module.refuses, module.expected_rows, for_comparing=True
        )
        for module in (recompute, pretopk, strict, tma, sma)
    },
    **{
        name: ObjectAlgorithm(
            name,
            growing.opener(filtered.opener(name)),
            filtered.refuses,
            filtered.expected_rows,
            for_comparing=name != "relaxed+probabilistic",
        )
        for name in filtered.NAMES
    },
    budgeted.NAME: ObjectAlgorithm(
        budgeted.NAME, growing.opener(budgeted.open), budgeted.refuses, budgeted.expected_rows, exact=False
    ),
    **{
        module.NAME: ObjectAlgorithm(
            module.NAME,
            growing.opener(module.open),
            module.refuses,
            module.expected_rows,
            exact=False,
            for_comparing=True,
        )
        for module in (probabilistic, hybrid)
    },
}

PairAlgorithm = Algorithm[pairs.Spec, pairs.PairOperator]

PAIRS: dict[str, PairAlgorithm] = {
    **{
        module.NAME: PairAlgorithm(module.NAME, module.open, module.refuses, module.expected_rows)
        for module in (pair_staircase, pair_threshold)
    },
    **{
        module.NAME: PairAlgorithm(module.NAME, module.open, module.refuses, module.expected_rows, for_comparing=True)
        for module in (pair_recompute, pair_naive)
    },
}

AcrossAlgorithm = Algorithm[AcrossSpec, AcrossOperator]

ACROSS: dict[str, AcrossAlgorithm] = {
    **{
        module.NAME: AcrossAlgorithm(module.NAME, module.open, module.refuses, module.expected_rows)
        for module in (staircase_across, totals)
    },
    **{
        module.NAME: AcrossAlgorithm(module.NAME, module.open, module.refuses, module.expected_rows, for_comparing=True)
        for module in (recompute_across, early_aggregation, sorted_lists)
    },
    **{
        module.NAME: AcrossAlgorithm(
            module.NAME, module.open, module.refuses, module.expected_rows, exact=False, for_comparing=True
        )
        for module in (estimated,)
    },
    learned.NAME: AcrossAlgorithm(learned.NAME, learned.open, learned.refuses, learned.expected_rows, exact=False),
}

ManyAlgorithm = Algorithm[many.Spec, many.ManyOperator]


def _for_each(name: str, algorithm: ObjectAlgorithm) -> ManyAlgorithm:
    """An algorithm for rows, once for each query."""

    @wraps(algorithm.open)  # whose options it has
    def open_each(spec: many.Spec, **options: int | float) -> many.ManyOperator:
        return many_each.Each(spec, partial(algorithm.open, **options))

    def refuses(spec: many.Spec) -> str | None:
        if refused := many_each.refuses(spec):
            return refused
        return algorithm.refuses(many_each.row_spec(spec)) or algorithm.refuses(many_each.row_spec(spec, counted=False))

    def expected_rows(spec: many.Spec, window_rows: float) -> float:
        return algorithm.expected_rows(many_each.row_spec(spec), window_rows)

    return ManyAlgorithm(name, open_each, refuses, expected_rows, algorithm.exact, for_comparing=True)


MANY: dict[str, ManyAlgorithm] = {
    **{
        module.NAME: ManyAlgorithm(module.NAME, module.open, module.refuses, module.expected_rows)
        for module in (many_scan, many_boxes, many_cells, many_shared, many_once)
    },
    **{
        name: ManyAlgorithm(
            name, many_grids.opener(name), many_grids.refuses, many_grids.expected_rows, for_comparing=True
        )
        for name in many_grids.NAMES
    },
    # Not `budgeted`: what it may miss is a share of the arrivals, of which a query with a condition has fewer.
    **{name: _for_each(name, each) for name, each in OBJECTS.items() if name != budgeted.NAME},
}


def find(text: str, among: Mapping[str, Algorithm[S, Op]]) -> Algorithm[S, Op]:
    """The algorithm of that name, opened with the options behind it, if any: "relaxed" or "relaxed(gamma=0.5)"."""
    name, options = _read(text)
    if name not in among:
        raise InvalidQuery(f"No algorithm {name!r}. There are: {', '.join(among)}.")
    algorithm = among[name]
    known = declared(algorithm.open) if options else {}
    if unknown := [option for option in options if option not in known]:
        raise InvalidQuery(f"{name!r} has no option {unknown[0]!r}. It has: {', '.join(known) or 'none'}.")
    numbers = {option: known[option].read(number, name) for option, number in options.items()}
    return replace(algorithm, name=text, open=partial(algorithm.open, **numbers))


_CALL = re.compile(r"\s*([\w+]+)\s*(?:\(([^()]*)\))?\s*")
_OPTION = re.compile(r"\s*(\w+)\s*=\s*([^\s=]+)\s*")


def _read(text: str) -> tuple[str, dict[str, str]]:
    """The name and the options of "name(option=1, other=0.5)"."""
    call = _CALL.fullmatch(text) if isinstance(text, str) else None
    parts = [_OPTION.fullmatch(part) for part in (call[2] or "").split(",") if part.strip()] if call else []
    if call is None or None in parts:
        raise InvalidQuery(
            f"Cannot read {text!r} as an algorithm. Write a name, or a name with options: 'relaxed(gamma=0.5)'."
        )
    found = [(part[1], part[2]) for part in parts if part]
    if twice := [option for option, count in Counter(option for option, _ in found).items() if count > 1]:
        raise InvalidQuery(f"{text!r} says {twice[0]!r} twice.")
    return call[1], dict(found)
