"""What plans are tested on: join graphs, windows and aggregates of every kind, and streams with all that goes wrong."""

from __future__ import annotations

import math
import struct
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from conformance.far_times import EDGES, moved
from hypothesis import strategies as st
from oracle import Advance

from skyband.core.emit import CHANGES, WINDOWS
from skyband.problems.joins.operator import (
    ALL,
    ANTI,
    COUNT,
    DISTINCT,
    INNER,
    LEFT,
    MAX,
    MIN,
    NO_VALUE,
    SEMI,
    SUM,
    UNMATCHED,
    Aggregate,
    Cells,
    Input,
    Plan,
    Spec,
)
from skyband.windows import FOREVER


class Row(NamedTuple):
    """One arrival."""

    input: int
    time: int
    cell: int
    arguments: tuple[int | float | None, ...]


class Case(NamedTuple):
    spec: Spec
    cells: tuple[Cells, ...]  # by input, all of them
    events: list[Row | Advance]


WHOLE = st.one_of(st.integers(-3, 3), st.sampled_from([2**40, -(2**40), 2**53 + 1, 7]), st.integers(-(2**50), 2**50))
# Numbers of one magnitude, of any, and of a few powers of two up and down: a sum becomes wider in small steps, too.
SIMILAR = st.builds(math.ldexp, st.integers(-(2**53), 2**53), st.integers(-80, -20))
SPECIAL = st.sampled_from([0.1, 1e16, -1e16, 1e300, 1.7e308, -1.7e308, 5e-324, -2.5e-310, math.inf, -math.inf, -0.0])
FRACTIONS = st.sampled_from([
    st.integers(-6, 6).map(lambda n: n / 4),
    SIMILAR,
    SIMILAR,
    st.floats(allow_nan=False),
    st.one_of(st.integers(-6, 6).map(lambda n: n / 4), SIMILAR, SPECIAL),
])  # fmt: skip


@st.composite
def graphs(draw: st.DrawFn) -> tuple[tuple[int, ...], ...]:
    """The variables of each input: one alone, a pair, on one column or two, chains, stars, triangles and mixtures."""
    inputs, variables = draw(st.sampled_from([1, 2, 2, 3, 3, 4])), 2
    if inputs == 1:
        return ((),)
    found = [{0, 1}]
    for _ in range(1, inputs):
        # It shares something with those before it, so that all are connected, and may have something new for others.
        shared = draw(st.sets(st.sampled_from(sorted(set().union(*found))), min_size=1, max_size=2))
        is_more = draw(st.booleans())
        found.append(shared | ({variables} if is_more else set()))
        variables += is_more
    joined = [v for v in range(variables) if sum(v in each for each in found) > 1]
    return tuple(tuple(joined.index(v) for v in sorted(each) if v in joined) for each in found)


@st.composite
def specs(draw: st.DrawFn, *, linear: bool = False, external_clock: bool = False) -> Spec:
    graph = draw(graphs())
    every = draw(st.sampled_from([1, 3, 5] if external_clock else [0, 0, 1, 3, 5]))
    by_count = not external_clock and draw(st.booleans())
    relation = draw(st.integers(0, 3)) if len(graph) > 1 else 9  # often none
    inputs = []
    for i, variables in enumerate(graph):
        floats = tuple(draw(st.lists(st.booleans(), max_size=2)))
        size = draw(st.one_of(st.integers(max(1, every), 12), st.sampled_from([50, FOREVER])))  # 50: many slides
        is_relation = i == relation
        scales = tuple(0 if f else draw(st.sampled_from([0, 2, 9, 18])) for f in floats) if draw(st.booleans()) else ()
        size = FOREVER if is_relation else size
        distincts = draw(st.sampled_from([0, 0, 1, 2]))
        inputs.append(Input(size, variables, draw(st.booleans()), floats, is_relation, scales, distincts))
    if draw(st.booleans()):
        inputs = draw(with_partners(inputs))
    linear = linear or any(source.is_partner for source in inputs)
    functions = [COUNT, SUM, SUM, 2, *(() if linear else (MIN, MAX))]
    possible = [(i, a) for i, source in enumerate(inputs) for a in range(len(source.floats))]
    aggregates = [Aggregate(COUNT, ALL, ALL)]
    if possible:
        aggregates += draw(
            st.lists(
                st.tuples(st.sampled_from(functions), st.sampled_from(possible)).map(lambda p: Aggregate(p[0], *p[1])),
                max_size=4,
            )
        )
    spec = Spec(tuple(inputs), (), every)
    aggregates += [Aggregate(DISTINCT, *which) for which in spec.distincts]
    emit = CHANGES if every == 0 or draw(st.booleans()) else WINDOWS
    lateness = draw(st.sampled_from([0, 0, 2, 10])) if every and not by_count else 0
    lateness = FOREVER if external_clock else lateness
    return Spec(tuple(inputs), tuple(aggregates), every, emit, lateness, by_count)


@st.composite
def with_partners(draw: st.DrawFn, inputs: list[Input]) -> list[Input]:
    """The same inputs; those whose join variables are all of one other stream may be joined by LEFT, SEMI and ANTI."""
    found, kept = list(inputs), set[int]()
    for i, source in enumerate(inputs):
        lefts = [
            j
            for j, other in enumerate(found)
            if j != i and not other.is_partner and not other.relation and {*source.variables} <= {*other.variables}
        ]
        if source.relation or i in kept or not lefts or not source.variables:
            continue
        how = draw(st.sampled_from([INNER, LEFT, LEFT, SEMI, ANTI]))
        if how == INNER:
            continue
        kept.add(lefts[0])
        if how == LEFT:
            values = [(draw(st.booleans()), draw(st.sampled_from([0, 1, -7]))) for _ in source.floats]
            bits = tuple(struct.unpack("<q", struct.pack("<d", v + 0.0))[0] if f else v
                         for (_, v), f in zip(values, source.floats, strict=True))  # fmt: skip
            valid = sum(is_there << a for a, (is_there, _) in enumerate(values))
            found[i] = replace(source, how=how, absent=bits, absent_valid=valid)
        else:
            found[i] = replace(source, how=how, grouped=False, floats=(), scales=(), distincts=0)
    return found


def rising(rows: list[Row], sign: int) -> list[Row]:
    """The same with values that rise, or fall: none hides an earlier one, so a minimum has to remember all of them."""
    return [
        row._replace(arguments=tuple(None if value is None else sign * i for value in row.arguments))
        for i, row in enumerate(rows)
    ]


@st.composite
def cases(draw: st.DrawFn, *, linear: bool = False, most: int = 24, external_clock: bool | None = False) -> Case:
    outside = draw(st.booleans()) if external_clock is None else external_clock
    spec = draw(specs(linear=linear, external_clock=outside))
    cells = []
    for source in spec.inputs:
        n = draw(st.integers(1, 4)) + source.is_partner  # whose first cell is that of rows without values
        variables = draw(st.lists(st.lists(st.integers(0, 1), min_size=len(source.variables),
                                           max_size=len(source.variables)), min_size=n, max_size=n))  # fmt: skip
        parts = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)) if source.grouped else [0] * n
        values = draw(st.lists(st.integers(NO_VALUE, 2), min_size=n * source.distincts, max_size=n * source.distincts))
        told = (variables, len(source.variables)), (values, source.distincts)
        if source.is_partner:
            parts[0], values[: source.distincts] = 0, [NO_VALUE] * source.distincts
        by_variable, distinct = (np.array(codes, np.int32).reshape(n, width) for codes, width in told)
        cells.append(Cells(by_variable, np.array(parts, np.int32), distinct))
    rows: list[Row] = []
    step = draw(st.sampled_from([st.integers(0, 2), st.integers(-4, 6), st.sampled_from([0, 1, -9, 12, 40])]))
    time = draw(st.sampled_from([0, -17, 1_000_000_007]))
    fraction = draw(FRACTIONS)
    for _ in range(draw(st.integers(0, most))):
        i = draw(st.integers(0, len(spec.inputs) - 1))
        source = spec.inputs[i]
        time += draw(step)
        cell = draw(st.integers(UNMATCHED, len(cells[i].part) - 1).filter(lambda c, s=source: c or not s.is_partner))
        arguments = tuple(draw(st.one_of(st.none(), fraction if f else WHOLE)) for f in source.floats)
        rows.append(Row(i, time, cell, arguments))
    rows = draw(st.sampled_from([rows, rows, rising(rows, 1), rising(rows, -1)]))
    # A relation is there before the streams.
    rows.sort(key=lambda row: not spec.inputs[row.input].relation)
    if spec.by_count:  # the times of rows are their numbers; of several streams, which count apart, nobody reads them
        relations = sum(spec.inputs[row.input].relation for row in rows)
        rows = [row._replace(time=position - relations) for position, row in enumerate(rows)]
    events: list[Row | Advance] = []
    for row in rows:
        events.append(row)
        if outside and not spec.inputs[row.input].relation and draw(st.integers(0, 3)) == 0:
            events.append(Advance(row.time + draw(st.integers(-15, 15))))
    return Case(spec, tuple(cells), events if spec.by_count else moved(events, draw(st.sampled_from(EDGES))))


def plans_for(spec: Spec) -> list[Plan]:
    """All plans: late, every choice of early ones, and, where it can, the one that multiplies."""
    n = len(spec.inputs)
    found = [Plan(tuple(bool(bits >> i & 1) for i in range(n))) for bits in range(2**n)]
    return found + ([Plan((True,) * n, multiply=True)] if spec.linear else [])
