"""The chooser collects every algorithm's refusal and cost, and chooses the cheapest. EXPLAIN prints its decision.

The cost of a row comes from `skyband calibrate` or, if nobody has measured the algorithm, from the algorithm's own
`expected_ns`. If several algorithms cost about the same, the chooser takes the one that holds the fewest rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias, TypeVar

from skyband.core.plan import Choice, Plan
from skyband.core.registry import Algorithm, algorithms_of, find
from skyband.errors import InvalidQuery
from skyband.windows import Ticks

S = TypeVar("S")  # what the problem calls a query in numbers
AnyAlgorithm: TypeAlias = Algorithm[Any, Any]

BY_NAME = "named in the query"


class WindowRows(NamedTuple):
    """How many rows a window holds."""

    rows: float
    assumed: bool  # nobody said it


def window_rows(window: Ticks, said: float | None, otherwise: int) -> WindowRows:
    """As somebody said, or as a window of arrivals knows, or else as is assumed."""
    known = window.known_rows
    return WindowRows(float(said or known or otherwise), said is None and known is None)


def choose(
    problem: str,
    spec: S,
    asked_for: str | None,
    window: WindowRows,
    *,
    reason: Callable[[Choice, list[Choice]], str],
    measured_ns: Callable[[str], float] = lambda name: math.nan,
    refuses: Callable[[AnyAlgorithm], str | None] | None = None,
    check_asked: Callable[[AnyAlgorithm], None] = lambda algorithm: None,
    unable: Mapping[str, str] | None = None,
    shows_rows: bool = True,
    near: float = 1.0,
) -> Plan:
    """The algorithm asked for by name, or else the cheapest; of those about as cheap, the one that holds least.

    reason       of the choice, and of all that can answer, in words.
    measured_ns  what a row costs with the algorithm of that name; NaN: nobody has measured it.
    refuses      why an algorithm is not chosen, where that is more than what it refuses itself; asked for, it may run.
    check_asked  raises if an algorithm that could answer may not be asked for.
    unable       names that answer nothing, and why.
    shows_rows   do algorithms differ in the rows that they hold?
    near         how many times the least may cost what holds fewer rows.
    """

    def considered(algorithm: AnyAlgorithm, refused: str | None) -> Choice:
        if refused:
            return Choice(algorithm.name, refused, for_comparing=algorithm.for_comparing)
        ns = measured_ns(algorithm.base)
        if math.isnan(ns) and algorithm.expected_ns is not None:
            ns = algorithm.expected_ns(spec, window.rows)
        rows = algorithm.expected_rows(spec, window.rows) if shows_rows else math.nan
        return Choice(algorithm.name, None, rows, ns, algorithm.for_comparing)

    refuses = refuses or (lambda algorithm: algorithm.refuses(spec))
    choices = tuple(considered(each, refuses(each)) for each in algorithms_of(problem).values())
    if asked_for is None:
        able = [choice for choice in choices if not choice.refused and not choice.for_comparing]
        chosen = cheapest(able, near)
        return _plan(chosen, reason(chosen, able), window, choices)
    possible = ", ".join(choice.algorithm for choice in choices if not choice.refused)
    name = asked_for.partition("(")[0].strip() if isinstance(asked_for, str) else ""
    if why := (unable or {}).get(name):
        raise InvalidQuery(f"{name!r} cannot answer this: {why}. Possible here: {possible}.")
    algorithm = find(asked_for, problem)
    if refused := algorithm.refuses(spec):
        raise InvalidQuery(f"{asked_for!r} cannot answer this: {refused}. Possible here: {possible}.")
    check_asked(algorithm)
    return _plan(considered(algorithm, None), BY_NAME, window, choices)


def _plan(chosen: Choice, why: str, window: WindowRows, choices: tuple[Choice, ...]) -> Plan:
    return Plan(chosen.algorithm, why, chosen.rows, chosen.ns, window.rows, window.assumed, choices)


def cheapest(able: Iterable[Choice], near: float = 1.0) -> Choice:
    """Of those that cost at most `near` times the least, the one that holds fewest rows; where nobody knows any cost,
    of all."""
    able = list(able)
    least = min((choice.ns for choice in able if not math.isnan(choice.ns)), default=math.nan)
    near_it = [choice for choice in able if choice.ns <= near * least] or able
    return min(near_it, key=lambda choice: (math.isnan(choice.rows), choice.rows))
