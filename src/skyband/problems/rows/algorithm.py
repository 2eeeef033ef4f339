"""Makes an algorithm for rows, with what all of them have in common."""

from __future__ import annotations

from collections.abc import Callable

from skyband.core.registry import whole_window
from skyband.problems.rows.drivers.growing import Open, opener
from skyband.problems.rows.operator import RECENT, RowAlgorithm, Spec

TOO_MANY = "it holds k rows for an answer, and more may share the k-th rank"
ONLY_TIES = "it is for equal rows that share a rank; others are faster where none do"


def row_algorithm(
    name: str,
    open: Open,
    refuses: Callable[[Spec], str | None] | None = None,
    expected_rows: Callable[[Spec, float], float] = whole_window,
    expected_ns: Callable[[Spec, float], float] | None = None,
    *,
    for_ties: bool = False,
    exact: bool = True,
    for_comparing: bool = False,
) -> RowAlgorithm:
    """Make an algorithm whose memory follows the rows, however large k is: see `drivers/growing.py`.

    It refuses queries that rank equal rows together; if it is `for_ties`, it refuses all others.
    """

    def refuses_ties_too(spec: Spec) -> str | None:
        if refuses is not None and (refused := refuses(spec)):
            return refused
        fits = (spec.ties != RECENT) == for_ties
        return None if fits else ONLY_TIES if for_ties else TOO_MANY

    return RowAlgorithm(name, opener(open), refuses_ties_too, expected_rows, expected_ns, exact, for_comparing)
