"""One operator for each query: any algorithm for rows, fed with the scores that rows have for the query.

Paper:      Pripužić, Podnar Žarko, Aberer, TODS 2015, section 6 (processing without query indexing).
Invariant:  that of the algorithm, for each query by itself.
Cost:       a row is scored, and taken in, once for each query.
Choose it:  to compare algorithms, and approximate ones with exact ones.
"""

from __future__ import annotations

from functools import partial, wraps

from skyband.core.registry import Algorithm, every_algorithm_of
from skyband.problems.rows.algorithms import budgeted, tied
from skyband.problems.rows.operator import RowOperator
from skyband.problems.rows.operator import Spec as RowSpec
from skyband.problems.subscriptions.algorithms import recompute
from skyband.problems.subscriptions.algorithms.recompute.state import PerQuery, row_spec
from skyband.problems.subscriptions.operator import Spec, SubscriptionOperator
from skyband.study.baselines.rows import mintopk_published, probabilistic_published


def _of_rows(algorithm: Algorithm[RowSpec, RowOperator]) -> Algorithm[Spec, SubscriptionOperator]:
    """An algorithm for rows, once for each query."""

    @wraps(algorithm.open)  # whose options it has
    def opened(spec: Spec, **options: int | float) -> SubscriptionOperator:
        return PerQuery(spec, partial(algorithm.open, **options))

    def refuses(spec: Spec) -> str | None:
        if refused := recompute.refuses(spec):
            return refused
        return algorithm.refuses(row_spec(spec)) or algorithm.refuses(row_spec(spec, counts=False))

    def expected_rows(spec: Spec, window_rows: float) -> float:
        return algorithm.expected_rows(row_spec(spec), window_rows)

    return Algorithm(algorithm.name, opened, refuses, expected_rows, exact=algorithm.exact, for_comparing=True)


# Not `budgeted`: what it may miss is a share of the arrivals, of which a query with a condition has fewer. Not `tied`:
# subscriptions rank equal rows by their time. Not what is published for one query.
_OTHERS = (recompute.NAME, budgeted.NAME, tied.NAME, mintopk_published.NAME, probabilistic_published.NAME)
ALGORITHMS = tuple(_of_rows(each) for name, each in every_algorithm_of("rows").items() if name not in _OTHERS)
