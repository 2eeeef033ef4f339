"""The plan in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

from skyband.errors import InvalidQuery
from skyband.expressions import many as many_expressions
from skyband.expressions import pairs as pair_expressions
from skyband.operators.many.protocol import Spec as ManySpec
from skyband.operators.many.scoring import scoring_of as many_scoring_of
from skyband.operators.pairs.protocol import Spec as PairSpec
from skyband.operators.pairs.scoring import scoring_of
from skyband.operators.protocol import EMIT_CODES, Spec
from skyband.operators.registry import ACROSS, MANY, OBJECTS, PAIRS
from skyband.planner import across, many, pairs
from skyband.planner.join_costs import Statistics
from skyband.planner.joins import JoinExplanation, explain_join
from skyband.planner.objects import Choice, Plan, plan
from skyband.queries import JoinAggregate, TopK, TopKAcross, TopKForEach, TopKPairs
from skyband.windows import FOREVER, Ticks, Window


@dataclass(frozen=True, slots=True)
class Explanation:
    """What will run and why; `str` of it is for reading."""

    query: TopK
    plan: Plan

    def __str__(self) -> str:
        query, chosen = self.query, self.plan
        groups = f" for each {', '.join(query.per)}" if query.per else ""
        by = query.by if isinstance(query.by, str) else getattr(query.by, "__name__", "a function")
        of = f"{chosen.window_rows:,.0f} in a window{' (assumed)' if chosen.assumed else ''}"
        each = " per group" if query.per else ""
        expected = f"if scores come in {query.expect or 'random'} order"
        lines = [
            f"top {query.k} by {by}{' (smallest first)' if query.ascending else ''}{groups}",
            f"  window     {query.window}",
            f"  gives      {query.emit}",
            f"  algorithm  {chosen.algorithm}: {chosen.why}",
            f"  holds      about {chosen.rows:,.0f} rows{each} of the {of}, if scores come in random order",
            f"  costs      {_nanoseconds(chosen.ns)} a row, {expected}" if not math.isnan(chosen.ns) else "",
            "  considered",
        ]
        lines = [line for line in lines if line]
        width = max(len(choice.algorithm) for choice in chosen.considered)
        for choice in sorted(chosen.considered, key=_by_cost):
            mark = "->" if choice.algorithm == chosen.algorithm.partition("(")[0] else "  "
            lines.append(f"    {mark} {choice.algorithm:<{width}} {self._verdict(choice)}")
        return "\n".join(lines)

    def _verdict(self, choice: Choice) -> str:
        if choice.refused:
            return f"cannot: {choice.refused}"
        rows = f"holds about {choice.rows:,.0f} rows"
        if OBJECTS[choice.algorithm].for_comparing and choice.algorithm != self.plan.algorithm:
            return f"for comparing: {rows}"
        if math.isnan(choice.ns) or math.isnan(self.plan.ns):
            return rows
        compared = "" if choice.algorithm == self.plan.algorithm else f" ({_ratio(choice.ns, self.plan.ns)})"
        return f"{_nanoseconds(choice.ns)} a row{compared}, {rows}"


@dataclass(frozen=True, slots=True)
class PairsExplanation:
    """What will run for pairs and why; `str` of it is for reading."""

    query: TopKPairs
    plan: pairs.Plan

    def __str__(self) -> str:
        query, chosen = self.query, self.plan
        by = query.by if isinstance(query.by, str) else getattr(query.by, "__name__", "a function")
        conditions = [
            *([f"same {', '.join(query.same)}"] if query.same else []),
            *([f"different {', '.join(query.different)}"] if query.different else []),
            *([f"where {query.where}"] if query.where else []),
        ]
        rows = f"{chosen.window_rows:,.0f} rows of a window{' (assumed)' if chosen.assumed else ''}"
        lines = [
            f"top {query.k} pairs by {by}{' (smallest first)' if query.ascending else ''}",
            f"  of         {'; '.join(conditions)}" if conditions else "",
            f"  window     {query.window}",
            f"  gives      {query.emit}",
            f"  algorithm  {chosen.algorithm}: {chosen.why}",
            f"  holds      the {rows} and about {chosen.pairs:,.0f} pairs, if scores come in random order",
            f"  costs      {_nanoseconds(chosen.ns)} a row" if not math.isnan(chosen.ns) else "",
            "  considered",
        ]
        lines = [line for line in lines if line]
        width = max(len(choice.algorithm) for choice in chosen.considered)
        for choice in sorted(chosen.considered, key=_by_cost):
            mark = "->" if choice.algorithm == chosen.algorithm.partition("(")[0] else "  "
            lines.append(f"    {mark} {choice.algorithm:<{width}} {self._verdict(choice)}")
        return "\n".join(lines)

    def _verdict(self, choice: pairs.Choice) -> str:
        if choice.refused:
            return f"cannot: {choice.refused}"
        if PAIRS[choice.algorithm].for_comparing:
            return "for comparing"
        if math.isnan(self.plan.ns) or choice.algorithm == self.plan.algorithm.partition("(")[0]:
            return f"{_nanoseconds(choice.ns)} a row"
        return f"{_nanoseconds(choice.ns)} a row ({_ratio(choice.ns, self.plan.ns)})"


@dataclass(frozen=True, slots=True)
class AcrossExplanation:
    """What will run and why; `str` of it is for reading."""

    query: TopKAcross
    plan: Plan

    def __str__(self) -> str:
        query, chosen = self.query, self.plan
        combine = dict(query.combine) if isinstance(query.combine, tuple) else query.combine
        of = f"{chosen.window_rows:,.0f} in a window{' (assumed)' if chosen.assumed else ''}"
        lines = [
            f"top {query.k} {query.id} across {', '.join(query.streams)}",
            f"  score      {combine} of {query.value}" + (f", {query.repeat} of several" if query.repeat else ""),
            f"  window     {query.window}",
            f"  gives      {query.emit}",
            f"  algorithm  {chosen.algorithm}: {chosen.why}",
            f"  holds      about {chosen.rows:,.0f} rows of the {of}, if streams are half in step",
            "  considered",
        ]
        width = max(len(choice.algorithm) for choice in chosen.considered)
        for choice in chosen.considered:
            mark = "->" if choice.algorithm == chosen.algorithm.partition("(")[0] else "  "
            holds = f"holds about {choice.rows:,.0f} rows"
            if choice.refused:
                holds = f"cannot: {choice.refused}"
            elif ACROSS[choice.algorithm].for_comparing:
                holds = f"for comparing: {holds}"
            lines.append(f"    {mark} {choice.algorithm:<{width}} {holds}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class ForEachExplanation:
    """What will run for many queries and why; `str` of it is for reading."""

    query: TopKForEach
    plan: many.Plan

    def __str__(self) -> str:
        query, chosen = self.query, self.plan
        rows = f"{chosen.window_rows:,.0f} rows of a window{' (assumed)' if chosen.assumed else ''}"
        sizes = f", each as far back as {query.size} says" if query.size else ""
        lines = [
            f"top {query.k} by {query.by}{' (smallest first)' if query.ascending else ''}",
            f"  for each   of {chosen.queries:,} queries, told apart by {', '.join(query.key)}",
            f"  window     {query.window}{sizes}",
            f"  gives      {query.emit}",
            f"  algorithm  {chosen.algorithm}: {chosen.why}",
            f"  holds      the {rows}, once for all, and a list somewhat longer than k for each query",
            f"  costs      {_nanoseconds(chosen.ns)} a row" if not math.isnan(chosen.ns) else "",
            "  considered",
        ]
        lines = [line for line in lines if line]
        shown = [choice for choice in chosen.considered if choice.algorithm not in OBJECTS]
        width = max(len(choice.algorithm) for choice in shown)
        for choice in sorted(shown, key=_by_cost):
            mark = "->" if choice.algorithm == chosen.algorithm.partition("(")[0] else "  "
            lines.append(f"    {mark} {choice.algorithm:<{width}} {self._verdict(choice)}")
        return "\n".join([*lines, "       any algorithm for rows, once for each query: for comparing"])

    def _verdict(self, choice: many.Choice) -> str:
        if choice.refused:
            return f"cannot: {choice.refused}"
        if MANY[choice.algorithm].for_comparing:
            return "for comparing"
        if math.isnan(self.plan.ns) or choice.algorithm == self.plan.algorithm.partition("(")[0]:
            return f"{_nanoseconds(choice.ns)} a row"
        return f"{_nanoseconds(choice.ns)} a row ({_ratio(choice.ns, self.plan.ns)})"


@singledispatch
def explain(query: Any, *, window_rows: float | None = None) -> Any:
    """Which algorithm the planner chooses for `query`, why, and what it expects it to hold and to cost.

    `window_rows` says how many rows a window by value holds; a window of arrivals knows.
    """
    raise InvalidQuery(f"explain takes a query such as sb.TopK(…), got {type(query).__name__}.")


@explain.register
def _(query: TopK, *, window_rows: float | None = None) -> Explanation:
    emit = EMIT_CODES[str(query.emit)]
    spec = Spec(query.k, _ticks(query.window), emit, bool(query.per), query.ad_hoc, query.error or 0.0)
    return Explanation(query, plan(spec, query.algorithm, expect=query.expect, window_rows=window_rows))


@explain.register
def _(query: TopKPairs, *, window_rows: float | None = None) -> PairsExplanation:
    # Columns are taken to be numbers: there is no schema yet to know better.
    score = pair_expressions.outline(query.by, query.where, query.ascending)
    scoring = scoring_of(score, same=bool(query.same), different=bool(query.different))
    spec = PairSpec(query.k, _ticks(query.window), scoring, EMIT_CODES[str(query.emit)])
    return PairsExplanation(query, pairs.plan(spec, query.algorithm, window_rows=window_rows))


@explain.register
def _(query: TopKForEach, *, window_rows: float | None = None) -> ForEachExplanation:
    score = many_expressions.outline(query.by, query.ascending)
    spec = ManySpec(_ticks(query.window), many_scoring_of(score), EMIT_CODES[str(query.emit)])
    known = {} if isinstance(query.k, str) else {"k": query.k}
    chosen = many.plan(spec, len(query.queries), query.algorithm, window_rows=window_rows, **known)
    return ForEachExplanation(query, chosen)


@explain.register
def _(query: TopKAcross, *, window_rows: float | None = None) -> AcrossExplanation:
    spec = across.in_numbers(query, _ticks(query.window))
    return AcrossExplanation(query, across.plan(spec, query.algorithm, window_rows=window_rows))


@explain.register
def _(
    query: JoinAggregate,
    *,
    window_rows: float | None = None,
    statistics: Mapping[str, Statistics] | None = None,
) -> JoinExplanation:
    """`statistics` says what each input is like, by its name, as `statistics()` of a running session does."""
    return explain_join(query, statistics)


def _ticks(window: Window) -> Ticks:
    """Durations and numbers mean the same to the planner: it only compares them with each other."""
    size = FOREVER if window.size is None else _number(window.size)
    return Ticks(size, 0 if window.every is None else _number(window.every), 0, window.by_count)


def _by_cost(choice: Choice | pairs.Choice | many.Choice) -> tuple[bool, float]:
    return choice.refused is not None, math.inf if math.isnan(choice.ns) else choice.ns


def _ratio(ns: float, least: float) -> str:
    ratio = ns / least
    return f"{ratio:.2g}x" if ratio < 10 else f"{ratio:,.0f}x"


def _nanoseconds(ns: float) -> str:
    if ns < 1_000:
        return f"{ns:.2g} ns" if ns < 10 else f"{ns:.0f} ns"
    return f"{ns / 1_000:.2g} µs" if ns < 10_000 else f"{ns / 1_000:.0f} µs"


def _number(span: object) -> int:
    return span if isinstance(span, int) else int(span.total_seconds() * 1_000_000)  # type: ignore[attr-defined]
