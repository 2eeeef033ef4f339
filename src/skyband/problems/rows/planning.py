"""Chooses the algorithm of a top-k query, and says why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from numpy import format_float_positional as in_full

from skyband.core.chooser import Chooser, WindowRows
from skyband.core.emit import code_of
from skyband.core.plan import Choice, Plan
from skyband.core.registry import candidates_of, find
from skyband.errors import InvalidQuery
from skyband.problems.rows.costs import Costs, known_costs
from skyband.problems.rows.operator import RowAlgorithm, Spec
from skyband.problems.rows.query import TIES, TopK
from skyband.windows import Ticks

NEAR = 1.05  # an algorithm may cost this many times the least if it holds fewer rows
NEAR_IF_ASKED = 4.0  # the same for queries with ad-hoc questions, which search the rows held

ASSUMED_WINDOW_ROWS = 1_000_000  # in a window by value, if nobody says how many rows it holds


def specify(query: TopK, schema: pa.Schema, *, external_clock: bool = False) -> Spec:
    """Convert a query over rows of `schema` to numbers."""
    ticks = query.window.ticks(schema, query.lateness)
    return spec_of(query, ticks.with_outside_watermark() if external_clock else ticks)


def spec_of(query: TopK, window: Ticks) -> Spec:
    """Convert a query over this window to numbers."""
    ties = TIES.index(query.ties)
    return Spec(query.k, window, code_of(query.emit), bool(query.per), query.ad_hoc, query.error or 0.0, ties)


def plan(
    spec: Spec,
    named: str | None = None,
    *,
    expect: str | None = None,
    window_rows: float | None = None,
    costs: Costs | None = None,
) -> Plan:
    """Take the algorithm that the query names; otherwise the cheapest and, among those about as cheap, the one that
    holds fewest rows.

    `expect` is the order in which scores come (costs.ORDERS), if the query says it.
    """
    window = WindowRows.of(spec.window, window_rows, ASSUMED_WINDOW_ROWS)
    near = NEAR_IF_ASKED if spec.ad_hoc else NEAR
    chooser = Chooser(
        spec=spec,
        window=window,
        candidates=candidates_of("rows"),
        reason=lambda chosen, able: _reason(spec, chosen, able, near),
        measured_ns=(costs or known_costs()).at(spec, window.rows, expect),
        why_not=lambda algorithm: _why_not(algorithm, spec, expect),
        near=near,
    )
    if named is None:
        found = chooser.cheapest()
    else:
        algorithm = find(named, "rows")
        found = chooser.named(algorithm)
        _check_promise(algorithm, spec)
    return replace(found, why=found.why + _on_error(spec, found.base)) if spec.error else found


def _why_not(algorithm: RowAlgorithm, spec: Spec, expect: str | None) -> str | None:
    """Say why an algorithm cannot be chosen; None if it can. One that is not exact needs a query that allows errors."""
    if algorithm.exact:
        return algorithm.refuses(spec)
    if not spec.error:
        return "it may miss rows, and the query allows no error"
    if refused := algorithm.refuses(spec):
        return refused
    if expect not in (None, "random"):
        return f"it knows which rows it may drop only for random order, and {expect} scores are expected"
    return None


def breaks_promise(algorithm: RowAlgorithm, spec: Spec) -> str | None:
    """Say why this algorithm may miss more rows than the query's `error` allows on any stream; None if it cannot."""
    if spec.error and not algorithm.exact and algorithm.for_comparing:
        return "its error bound holds only while scores come in random order, and `error` must hold on any stream"
    return None


def _check_promise(algorithm: RowAlgorithm, spec: Spec) -> None:
    """Raise if the query sets `error` and this algorithm may break it."""
    if broken := breaks_promise(algorithm, spec):
        raise InvalidQuery(
            f"{algorithm.name!r} cannot be combined with error={spec.error:g}: {broken}. Leave `algorithm` "
            f"out, or, to study it, leave `error` out and write '{algorithm.base}(sigma={in_full(spec.error)})'."
        )


def _reason(spec: Spec, chosen: Choice, able: Sequence[Choice], near: float) -> str:
    if spec.ties:
        return "equal scores share a rank, so an answer may show more than k rows"
    if spec.ad_hoc:
        what = "ad-hoc queries read the rows held, and may start anywhere in the window"
    elif not spec.window.slides:
        what = "the answer may change with each arrival"
    else:
        what = "the window slides by panes"
    if math.isnan(chosen.ns):
        return f"{what}; it holds the fewest rows"
    if chosen.ns <= min(choice.ns for choice in able if not math.isnan(choice.ns)):
        return f"{what}; lowest cost per row"
    return f"{what}; a row costs at most {near:.2g}x the least, and it holds fewer rows"


def _on_error(spec: Spec, chosen: str) -> str:
    """Say how the algorithm uses the `error` that the query allows."""
    if find(chosen, "rows").exact:
        return "; it misses no row, so it is within any error"
    first = math.ceil(1 / spec.error)
    return f"; it drops no row in the first {first:,} windows, and later no more than error={spec.error:g} allows"
