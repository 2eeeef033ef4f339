"""Which algorithm answers a top-k query, why, and what it will hold and cost."""

from __future__ import annotations

import math
from dataclasses import replace

import pyarrow as pa
from numpy import format_float_positional as in_full

from skyband.core.chooser import Choice, Plan
from skyband.core.operator import EMIT_CODES
from skyband.core.registry import algorithms_of, find
from skyband.errors import InvalidQuery
from skyband.problems.rows.algorithms import budgeted, relaxed
from skyband.problems.rows.costs import Costs, known_costs
from skyband.problems.rows.operator import RowAlgorithm, Spec
from skyband.problems.rows.query import TopK
from skyband.windows import FOREVER

NEAR = 1.05  # of algorithms that cost about the same, the one that holds fewest rows is the better choice
NEAR_IF_ASKED = 4.0  # the same where there will be ad-hoc questions, which look through the rows held

MEASURED_AS = {budgeted.NAME: relaxed.NAME}  # the same work, so one figure for both

ASSUMED_WINDOW_ROWS = 1_000_000  # of a window by value, when nobody says how many rows it holds


def specify(query: TopK, schema: pa.Schema, *, external_clock: bool = False) -> Spec:
    """`query` over rows of `schema`, in numbers."""
    ticks = query.window.ticks(schema, query.lateness)
    if external_clock:
        ticks = replace(ticks, lateness=FOREVER)
    return Spec(query.k, ticks, EMIT_CODES[str(query.emit)], bool(query.per), query.ad_hoc, query.error or 0.0)


def plan(
    spec: Spec,
    asked_for: str | None = None,
    *,
    expect: str | None = None,
    window_rows: float | None = None,
    costs: Costs | None = None,
) -> Plan:
    """The algorithm asked for by name, or else the cheapest; of those about as cheap, the one that holds least.

    `expect`: the order in which scores come (costs.ORDERS), if somebody says.
    """
    assumed = window_rows is None and (not spec.window.by_count or spec.window.size == FOREVER)
    rows = float(window_rows or (ASSUMED_WINDOW_ROWS if assumed else spec.window.size))
    figures = costs or known_costs()
    choices = tuple(_consider(algorithm, spec, rows, expect, figures) for algorithm in algorithms_of("rows").values())
    able = [
        choice for choice in choices if not choice.refused and not algorithms_of("rows")[choice.algorithm].for_comparing
    ]
    if asked_for is not None:
        chosen, why = _asked(asked_for, spec, rows, expect, figures, choices), "asked for by name"
        why += _on_error(spec, chosen)
    else:
        cheapest = min((choice.ns for choice in able if not math.isnan(choice.ns)), default=math.nan)
        factor = NEAR_IF_ASKED if spec.ad_hoc else NEAR
        near = [choice for choice in able if choice.ns <= factor * cheapest] or able
        chosen = min(near, key=lambda choice: choice.rows)
        why = _reason(spec, chosen, cheapest) + _on_error(spec, chosen)
    return Plan(chosen.algorithm, why, chosen.rows, chosen.ns, rows, assumed, choices)


def _consider(algorithm: RowAlgorithm, spec: Spec, window_rows: float, expect: str | None, costs: Costs) -> Choice:
    if not algorithm.exact and not spec.error:
        refused: str | None = "it may miss rows, and the query allows no error"
    else:
        refused = algorithm.refuses(spec) or breaks_promise(algorithm, spec)
    if refused is None and not algorithm.exact and expect not in (None, "random"):
        refused = f"which rows it may let go is known for random order, and {expect} scores are expected"
    if refused:
        return Choice(algorithm.name, refused, for_comparing=algorithm.for_comparing)
    ns = costs.ns_per_row(MEASURED_AS.get(algorithm.name, algorithm.name), spec, window_rows, expect)
    return Choice(algorithm.name, None, algorithm.expected_rows(spec, window_rows), ns, algorithm.for_comparing)


def breaks_promise(algorithm: RowAlgorithm, spec: Spec) -> str | None:
    """Why this algorithm may miss more rows than the query's `error` allows, which holds on any stream; or None."""
    if spec.error and not algorithm.exact and algorithm.for_comparing:
        return "it keeps an error only while scores come in random order, and `error` is promised on any stream"
    return None


def _asked(
    name: str, spec: Spec, window_rows: float, expect: str | None, costs: Costs, choices: tuple[Choice, ...]
) -> Choice:
    """The algorithm asked for, if it can. One that may be wrong can be asked for also where no error is allowed."""
    algorithm = find(name, "rows")
    if refused := algorithm.refuses(spec):
        possible = ", ".join(choice.algorithm for choice in choices if not choice.refused)
        raise InvalidQuery(f"{name!r} cannot answer this: {refused}. Possible here: {possible}.")
    if broken := breaks_promise(algorithm, spec):
        raise InvalidQuery(
            f"{name!r} cannot be asked for together with error={spec.error:g}: {broken}. Leave `algorithm` out, or, to "
            f"study it, leave `error` out and write '{name.partition('(')[0]}(sigma={in_full(spec.error)})'."
        )
    ns = costs.ns_per_row(MEASURED_AS.get(name, name), spec, window_rows, expect)
    return Choice(name, None, algorithm.expected_rows(spec, window_rows), ns)


def _reason(spec: Spec, chosen: Choice, cheapest: float) -> str:
    if spec.ad_hoc:
        what = "ad-hoc questions look through the rows held, and may start anywhere in the window"
    elif spec.slides_with_each_arrival:
        what = "the answer may change with each arrival"
    else:
        what = "the window slides by panes"
    if math.isnan(chosen.ns):
        return f"{what}; it holds the fewest rows"
    if chosen.ns <= cheapest:
        return f"{what}; a row costs least"
    factor = NEAR_IF_ASKED if spec.ad_hoc else NEAR
    return f"{what}; a row costs at most {factor:.2g}x the least, and it holds fewer rows"


def _on_error(spec: Spec, chosen: Choice) -> str:
    """How the `error` that the query allows is used."""
    if not spec.error:
        return ""
    if algorithms_of("rows")[chosen.algorithm.partition("(")[0]].exact:
        return "; it misses no row, so it keeps any error"
    first = math.ceil(1 / spec.error)
    return f"; it lets no row go in the first {first:,} windows, and later no more than error={spec.error:g} allows"
