"""The chooser finds the cheapest algorithm that can answer a query. EXPLAIN prints its decision.

For a query that runs, it asks each candidate only what decides: whether it refuses the query, what a row costs and, if
several cost about the same, how many rows they hold. It makes EXPLAIN's table of all candidates when somebody reads it.

The cost of a row comes from `skyband calibrate` or, if nobody has measured the algorithm, from the algorithm's own
`expected_ns`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from skyband.core.plan import Choice, Plan
from skyband.core.registry import Algorithm
from skyband.errors import InvalidQuery
from skyband.windows import Ticks

S = TypeVar("S")  # the problem's Spec: a query in numbers
AnyAlgorithm: TypeAlias = Algorithm[Any, Any]

BY_NAME = "named in the query"


class WindowRows(NamedTuple):
    """How many rows a window holds."""

    rows: float
    assumed: bool  # is this a default, because nobody has given the number?

    @classmethod
    def of(cls, window: Ticks, given: float | None, default: int) -> WindowRows:
        """Use the given number; if there is none, the size of a window of arrivals; if it has none, the default."""
        known = window.known_rows
        return cls(float(given or known or default), given is None and known is None)


def _unknown(name: str) -> float:
    return math.nan


@dataclass(frozen=True, kw_only=True)
class Chooser(Generic[S]):
    """Chooses the algorithm of one query. The fields are what differs between problems."""

    spec: S
    window: WindowRows
    candidates: Sequence[AnyAlgorithm]
    reason: Callable[[Choice, Sequence[Choice]], str]  # explains a choice, given the costs of all that can answer
    measured_ns: Callable[[str], float] = _unknown  # the measured cost of a row, by algorithm; NaN: not measured
    why_not: Callable[[AnyAlgorithm], str | None] | None = None  # replaces `refuses`, if a problem adds reasons
    shows_rows: bool = True  # do the candidates differ in the rows that they hold?
    near: float = 1.0  # a candidate may cost this many times the least if it holds fewer rows

    def cheapest(self) -> Plan:
        """Choose the cheapest candidate; among those that are about as cheap, the one that holds fewest rows."""
        able = [(each, self._ns(each, each.name)) for each in self.candidates if not self._refused(each)]
        chosen, ns = self._near_least(able)
        why = self.reason(Choice(chosen.name, ns=ns), [Choice(each.name, ns=cost) for each, cost in able])
        return self._plan(chosen, why, ns)

    def named(self, algorithm: AnyAlgorithm) -> Plan:
        """Take the algorithm that the query names, whatever it costs; raise if it refuses the query."""
        if refused := algorithm.refuses(self.spec):
            possible = ", ".join(each.name for each in self.candidates if not self._refused(each))
            raise InvalidQuery(f"{algorithm.name!r} cannot answer this: {refused}. Possible here: {possible}.")
        return self._plan(algorithm, BY_NAME, self._ns(algorithm, algorithm.base))

    def _near_least(self, able: Sequence[tuple[AnyAlgorithm, float]]) -> tuple[AnyAlgorithm, float]:
        """Among candidates that cost at most `near` times the least, find the one that holds fewest rows. If no cost is
        known, all are compared."""
        least = min((ns for _, ns in able if not math.isnan(ns)), default=math.nan)
        near_it = [each for each in able if each[1] <= self.near * least] or able
        return near_it[0] if len(near_it) == 1 else min(near_it, key=lambda each: self._rows(each[0]))

    def _plan(self, chosen: AnyAlgorithm, why: str, ns: float) -> Plan:
        rows, window = self._rows(chosen), self.window

        def considered() -> tuple[Choice, ...]:
            found = {each.name: self._considered(each) for each in self.candidates}
            found.setdefault(chosen.base, Choice(chosen.base, None, self._shown(chosen), ns))
            return tuple(sorted(found.values(), key=_by_cost))

        return Plan(chosen.name, why, rows, ns, window.rows, window.assumed, cache(considered))

    def _considered(self, algorithm: AnyAlgorithm) -> Choice:
        if refused := self._refused(algorithm):
            return Choice(algorithm.name, refused)
        return Choice(algorithm.name, None, self._shown(algorithm), self._ns(algorithm, algorithm.name))

    def _refused(self, algorithm: AnyAlgorithm) -> str | None:
        return algorithm.refuses(self.spec) if self.why_not is None else self.why_not(algorithm)

    def _ns(self, algorithm: AnyAlgorithm, name: str) -> float:
        ns, expected = self.measured_ns(name), algorithm.expected_ns
        return expected(self.spec, self.window.rows) if math.isnan(ns) and expected is not None else ns

    def _rows(self, algorithm: AnyAlgorithm) -> float:
        return algorithm.expected_rows(self.spec, self.window.rows)

    def _shown(self, algorithm: AnyAlgorithm) -> float:
        return self._rows(algorithm) if self.shows_rows else math.nan


def _by_cost(choice: Choice) -> tuple[bool, float, str]:
    return choice.refused is not None, math.inf if math.isnan(choice.ns) else choice.ns, choice.algorithm
