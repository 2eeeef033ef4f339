"""Describes the query as arrays for kernels: which numbers an entry and a group have, and where."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from skyband.core.emit import takes_back
from skyband.core.operator import Ints
from skyband.errors import AggregateOverflow
from skyband.problems.joins.algorithms.plans import arrays
from skyband.problems.joins.algorithms.plans.graph import Graph
from skyband.problems.joins.algorithms.plans.kernels.sums import (
    BITS,
    MASK,
    NO_HIGH,
    NO_LOW,
    ONE_LIMB,
    extent,
    mean_digits,
)
from skyband.problems.joins.operator import AVG, DISTINCT, MAX, MIN, SUM, Spec, is_float


@dataclass(frozen=True, slots=True)
class Term:
    """An argument of aggregates and, if it is summed, the range of bits of its numbers."""

    input: int
    argument: int
    is_float: bool
    is_summed: bool
    low: int = NO_LOW  # a bit at or below the lowest bit of all numbers so far
    high: int = NO_HIGH  # one more than the highest bit
    limbs: int = 0
    scale: int = 0  # how many digits of a whole number are behind the point

    @property
    def plain(self) -> int:
        return 3 if self.is_float and self.is_summed else 1

    @property
    def width(self) -> int:
        return self.plain + self.limbs

    def fitting(self, values: Ints, valid: Ints, row_bits: int) -> Term:
        """Widen the term for these numbers, and for sums of up to 2**row_bits rows."""
        if not self.is_summed:
            return self
        low, high = extent(values, valid, self.argument, self.is_float)
        down = 0
        if self.low != NO_LOW:
            # Down by whole limbs, so that present sums need only be shifted.
            down = max(0, -(-(self.low - low) // BITS))
            low = self.low - down * BITS
        high = max(high, self.high)
        bits = (high - low if high > low else 0) + row_bits + 2
        needed = 1 if bits <= ONE_LIMB else math.ceil(bits / BITS)
        # A sum that is shifted keeps all its limbs, even those that only an earlier, larger number of rows needed.
        moved = self.limbs if self.limbs <= 1 else self.limbs + down
        return replace(self, low=low, high=high, limbs=max(needed, moved))


def terms_of(spec: Spec) -> tuple[Term, ...]:
    """A term for each argument of each input."""
    summed = {(each.input, each.argument) for each in spec.aggregates if each.function in (SUM, AVG)}
    terms = [
        Term(i, a, is_float, (i, a) in summed, low=NO_LOW if is_float else 0, scale=source.scale(a))
        for i, source in enumerate(spec.inputs)
        for a, is_float in enumerate(source.floats)
    ]
    return tuple(replace(term, limbs=1) if term.is_summed else term for term in terms)


def sums_width(terms: Sequence[Term], source: int | None = None) -> int:
    """The number of columns for the count of rows and the terms of an input, or of all inputs."""
    return 1 + sum(term.width for term in terms if source is None or term.input == source)


class Config(NamedTuple):
    """The query as its kernels read it: see arrays.py."""

    numbers: Ints  # [what]: INPUTS, …, CONFIG: settings, and where sections and columns start
    program: Ints  # [row, column]: the sections, one after the other

    def of(self, what: int) -> int:
        return int(self.numbers[what])


def config_of(spec: Spec, graph: Graph, terms: Sequence[Term], *, coalesce: bool) -> Config:
    inputs = len(spec.inputs)
    stairs = _stairs(spec)
    links = [graph.indexes(i) for i in range(inputs)]
    sections: dict[int, list[tuple[int, ...]]] = {
        arrays.TERM_ROWS: _term_rows(terms),
        arrays.STAIR_ROWS: [(a, spec.inputs[i].floats[a], function == MAX) for i, a, function in stairs],
        arrays.INPUT_ROWS: _input_rows(spec, terms, stairs, links),
        **_step_sections(graph, links),
        arrays.LINK_ROWS: [(domain,) for domains in links for domain in domains],
        arrays.PART_ROWS: [(i,) for i in spec.grouped_inputs],
        arrays.AGGREGATE_ROWS: _aggregate_rows(spec, terms, stairs),
        arrays.DISTINCT_ROWS: list(spec.distincts),
    }
    numbers = np.zeros(arrays.CONFIG, np.int64)
    program = np.zeros((max(1, sum(map(len, sections.values()))), arrays.PROGRAM_WIDTH), np.int64)
    at = 0
    for section, rows in sections.items():
        numbers[section] = at
        for row in rows:
            program[at, : len(row)] = row
            at += 1
    by_input = [sum(stair[0] == i for stair in stairs) for i in range(inputs)]
    for name, value in (
        (arrays.INPUTS, inputs),
        (arrays.AGGREGATES, len(spec.aggregates)),
        (arrays.PARTS, len(spec.grouped_inputs)),
        (arrays.STAIRS, len(stairs)),
        (arrays.STAIRS_WIDE, max(by_input)),
        (arrays.TAKES_BACK, takes_back(spec.emit)),
        (arrays.COALESCE, coalesce),
        (arrays.TOP, spec.top),
        (arrays.TOP_BY, spec.top_by),
        (arrays.ASCENDING, spec.ascending),
        (arrays.DISTINCTS, len(spec.distincts)),
        (arrays.APART, spec.counts_apart),
    ):
        numbers[name] = value
    _place_columns(numbers, spec, graph, terms, max(map(len, links)), coalesce=coalesce)
    return Config(numbers, program)


def _place_columns(
    numbers: Ints, spec: Spec, graph: Graph, terms: Sequence[Term], links: int, *, coalesce: bool
) -> None:
    """Write the places of the columns that depend on the query."""
    inputs, stairs = len(spec.inputs), int(numbers[arrays.STAIRS])
    variables = 1 + max((max(source.variables, default=-1) for source in spec.inputs), default=-1)
    sums = max(sums_width(terms, i) for i in range(inputs))
    distincts = max(source.distincts for source in spec.inputs)
    digits = max((mean_digits(term.limbs, term.scale) for term in terms), default=0)
    parts = len(spec.grouped_inputs) if len(spec.grouped_inputs) > 1 else 0  # one part is the group
    for first, start, widths in (
        (
            arrays.VARIABLES,
            arrays.ENTRY_FIXED,
            (variables, len(graph.domains), links, links, distincts, sums, sums * coalesce),
        ),
        (
            arrays.GROUP_PARTS,
            arrays.GROUP_FIXED,
            (parts, len(spec.aggregates), len(spec.distincts), sums_width(terms)),
        ),
        (arrays.OWN, 0, (stairs, inputs, inputs, digits, inputs)),
    ):
        numbers[first : first + len(widths) + 1] = start + np.cumsum([0, *widths])


def _stairs(spec: Spec) -> list[tuple[int, int, int]]:
    """The minima and maxima of groups, as (input, argument, function), in order."""
    wanted = {(each.input, each.argument, each.function) for each in spec.aggregates if each.function in (MIN, MAX)}
    return sorted(wanted)


def _term_rows(terms: Sequence[Term]) -> list[tuple[int, ...]]:
    rows: list[tuple[int, ...]] = []
    for t, term in enumerate(terms):
        start = sums_width([other for other in terms[:t] if other.input == term.input])
        fixed = term.argument, term.is_float, term.plain, term.limbs, term.low
        rows.append((*fixed, start, sums_width(terms[:t]), term.scale))
    return rows


def _input_rows(
    spec: Spec, terms: Sequence[Term], stairs: Sequence[tuple[int, int, int]], links: Sequence[tuple[int, ...]]
) -> list[tuple[int, ...]]:
    def run(of: Sequence[int], i: int) -> tuple[int, int]:
        return sum(each < i for each in of), sum(each <= i for each in of)

    linked = [i for i, domains in enumerate(links) for _ in domains]
    owners = [term.input for term in terms], [stair[0] for stair in stairs], linked
    rows = []
    for i in range(len(spec.inputs)):
        simple = all(term.limbs <= 1 for term in terms if term.input == i)
        block = sums_width(terms, i) - 1 if simple else arrays.NONE
        start = sums_width([term for term in terms if term.input < i])
        rows.append((*(bound for of in owners for bound in run(of, i)), block, start))
    return rows


def _step_sections(graph: Graph, links: Sequence[tuple[int, ...]]) -> dict[int, list[tuple[int, ...]]]:
    steps: list[tuple[int, ...]] = []
    checks: list[tuple[int, ...]] = []
    for from_input in graph.steps:
        for step in from_input:
            link = links[step.input].index(step.domain)
            index = sum(len(domains) for domains in links[: step.input]) + link
            bounds = len(checks), len(checks) + len(step.checks)
            checks += step.checks
            steps.append((step.input, step.parent, step.domain, link, index, *bounds))
    return {arrays.STEP_ROWS: steps, arrays.CHECK_ROWS: checks}


def _aggregate_rows(spec: Spec, terms: Sequence[Term], stairs: Sequence[tuple[int, int, int]]) -> list[tuple[int, ...]]:
    known = [(term.input, term.argument) for term in terms]
    rows: list[tuple[int, ...]] = []
    for each in spec.aggregates:
        if each.function == DISTINCT:
            rows.append((DISTINCT, spec.distincts.index((each.input, each.argument)), arrays.NONE, False))
            continue
        term = arrays.NONE if each.argument < 0 else known.index((each.input, each.argument))
        is_stair = each.function in (MIN, MAX)
        stair = stairs.index((each.input, each.argument, each.function)) if is_stair else arrays.NONE
        rows.append((each.function, term, stair, is_float(spec, each)))
    return rows


def moved(sums: Ints, before: Sequence[Term], after: Sequence[Term]) -> Ints:
    """Lay sums out for wider terms: the limbs of a number move up, and get more limbs above them."""
    result = np.zeros((len(sums), sums_width(after)), np.int64)
    result[:, 0] = sums[:, 0]
    old_at, new_at = 1, 1
    for old, new in zip(before, after, strict=True):
        result[:, new_at : new_at + new.plain] = sums[:, old_at : old_at + old.plain]
        if old.is_summed and old.low != NO_LOW:
            up = (old.low - new.low) // BITS
            source = sums[:, old_at + old.plain : old_at + old.width]
            target = result[:, new_at + new.plain : new_at + new.width]
            if new.limbs == 1:
                target[:, 0] = source[:, 0] << (BITS * up)
                old_at, new_at = old_at + old.width, new_at + new.width
                continue
            target[:, up : up + old.limbs] = source
            for limb in range(up + old.limbs - 1, new.limbs - 1):
                target[:, limb + 1] = target[:, limb] >> BITS
                target[:, limb] &= MASK
        old_at, new_at = old_at + old.width, new_at + new.width
    return result


def overflow(broken: int, spec: Spec) -> AggregateOverflow:
    """What a kernel found to be too large: 1 is the number of joined rows, 2 and more the aggregates in their order."""
    if broken == 1:
        return AggregateOverflow(
            "The join gives more than 2**62 rows, too many to count. Filter an input, join on more columns, or use "
            "smaller windows."
        )
    _, source, argument = spec.aggregates[broken - 2]
    what = "decimals, in units of their last digit," if spec.inputs[source].scale(argument) > 0 else "whole numbers"
    return AggregateOverflow(f"A sum of {what} exceeds 64 bits. SUM(CAST(x AS DOUBLE)) adds float64.", broken - 2)
