"""The chooser: of the algorithms that can answer a query, the cheapest. EXPLAIN prints its decision.

A query that runs asks only the candidates, and of these only what decides: each one's refusal, the cost of a row, and
the rows held by those that cost about the same. The table of EXPLAIN is made when somebody reads it.

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

S = TypeVar("S")  # what the problem calls a query in numbers
AnyAlgorithm: TypeAlias = Algorithm[Any, Any]

BY_NAME = "named in the query"


class WindowRows(NamedTuple):
    """How many rows a window holds."""

    rows: float
    assumed: bool  # nobody said it

    @classmethod
    def of(cls, window: Ticks, said: float | None, otherwise: int) -> WindowRows:
        """As somebody said, or as a window of arrivals knows, or else as is assumed."""
        known = window.known_rows
        return cls(float(said or known or otherwise), said is None and known is None)


def _unknown(name: str) -> float:
    return math.nan


@dataclass(frozen=True, kw_only=True)
class Chooser(Generic[S]):
    """Chooses the algorithm of one query. A problem says what is different about its choice; the rest is here."""

    spec: S
    window: WindowRows
    candidates: Sequence[AnyAlgorithm]  # what can be chosen
    reason: Callable[[Choice, Sequence[Choice]], str]  # for the choice, among the costs of all that can answer
    measured_ns: Callable[[str], float] = _unknown  # of a row, by the algorithm's name; NaN: nobody has measured it
    why_not: Callable[[AnyAlgorithm], str | None] | None = None  # it is not chosen, if that is more than it refuses
    shows_rows: bool = True  # do candidates differ in the rows that they hold?
    near: float = 1.0  # how many times the least may cost what holds fewer rows

    def cheapest(self) -> Plan:
        """The cheapest candidate; of those about as cheap, the one that holds least."""
        able = [(each, self._ns(each, each.name)) for each in self.candidates if not self._refused(each)]
        chosen, ns = self._near_least(able)
        why = self.reason(Choice(chosen.name, ns=ns), [Choice(each.name, ns=cost) for each, cost in able])
        return self._plan(chosen, why, ns)

    def named(self, algorithm: AnyAlgorithm) -> Plan:
        """The algorithm that the query names, whatever it costs."""
        if refused := algorithm.refuses(self.spec):
            possible = ", ".join(each.name for each in self.candidates if not self._refused(each))
            raise InvalidQuery(f"{algorithm.name!r} cannot answer this: {refused}. Possible here: {possible}.")
        return self._plan(algorithm, BY_NAME, self._ns(algorithm, algorithm.base))

    def _near_least(self, able: Sequence[tuple[AnyAlgorithm, float]]) -> tuple[AnyAlgorithm, float]:
        """Of those that cost at most `near` times the least, the one that holds fewest rows; where nobody knows any
        cost, of all."""
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
