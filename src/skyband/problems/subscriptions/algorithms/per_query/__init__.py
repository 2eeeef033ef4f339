"""One operator for each query: any algorithm for rows, fed with the scores that rows have for the query.

Paper:      Pripužić, Podnar Žarko, Aberer, TODS 2015, section 6 (processing without query indexing).
Invariant:  that of the algorithm, for each query by itself.
Cost:       a row is scored, and taken in, once for each query.
Choose it:  to compare algorithms, and approximate ones with exact ones. `recompute` is the definition.
"""

from __future__ import annotations

from functools import partial, wraps

from skyband.core.registry import Algorithm, algorithms_of
from skyband.problems.rows.algorithms import budgeted, tied
from skyband.problems.rows.operator import RowOperator
from skyband.problems.rows.operator import Spec as RowSpec
from skyband.problems.subscriptions.algorithms.per_query.state import PerQuery, row_spec
from skyband.problems.subscriptions.operator import Spec, SubscriptionOperator


def refuses(spec: Spec) -> str | None:
    """What none of those that are here for comparing can do."""
    if spec.backfill:
        return "queries see the rows that come after them"
    if spec.own_slides:
        return "windows close for all queries at once"
    return None


def _of_rows(algorithm: Algorithm[RowSpec, RowOperator]) -> Algorithm[Spec, SubscriptionOperator]:
    """An algorithm for rows, once for each query."""

    @wraps(algorithm.open)  # whose options it has
    def opened(spec: Spec, **options: int | float) -> SubscriptionOperator:
        return PerQuery(spec, partial(algorithm.open, **options))

    def refuses_any(spec: Spec) -> str | None:
        if refused := refuses(spec):
            return refused
        return algorithm.refuses(row_spec(spec)) or algorithm.refuses(row_spec(spec, counts=False))

    def expected_rows(spec: Spec, window_rows: float) -> float:
        return algorithm.expected_rows(row_spec(spec), window_rows)

    return Algorithm(algorithm.name, opened, refuses_any, expected_rows, exact=algorithm.exact, for_comparing=True)


# Not `budgeted`: what it may miss is a share of the arrivals, of which a query with a condition has fewer. Not `tied`:
# subscriptions rank equal rows by their time.
_OTHERS = (budgeted.NAME, tied.NAME)
ALGORITHMS = tuple(_of_rows(each) for each in algorithms_of("rows").values() if each.name not in _OTHERS)
