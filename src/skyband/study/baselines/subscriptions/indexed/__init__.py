"""Many queries as published: one buffer and one list by time for all, and a grid over the thresholds of queries.

Paper:      Pripužić, Podnar Žarko, Aberer, TODS 2015, section 6: PA (`pa_grid`), SASF (`sasf_grid`) and RAPF
            (`rapf_grid`).
Invariant:  `sasf_grid` and `rapf_grid` hold for each query every row that fewer than k better rows outlive, but for
            those in the buffer; `pa_grid` holds the best rows whose chances are large enough. The cells of a query are
            all to which a row may come that reaches its threshold.
Cost:       a row is scored for the queries of its cell; a list that it enters is sorted, and searched in O(log s).
            When a threshold passes the one that the cells know, the query is put into cells anew: O(cells).
            State: as the algorithms for one query, and the buffer once.
Choose it:  never; for comparing. Windows of arrivals, an answer with each arrival, entries. With `resolution=1` there
            is one cell: all queries take their turn, as in the paper without an index.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from skyband.core.options import Chance, Count, CountOrNone, Growth, Parts, TickSpan
from skyband.core.registry import Algorithm
from skyband.problems.subscriptions.operator import Spec
from skyband.study.baselines.subscriptions.grids import check_cells, refuses
from skyband.study.baselines.subscriptions.indexed.kernels import NONE, PROBABILISTIC, RELAXED, STRICT, Kind
from skyband.study.baselines.subscriptions.indexed.state import Indexed

BUFFER: Final = 2000  # rows; what the paper settles on
ADDITIONAL: Final = 10  # candidates, and this
SIGMA: Final = 0.001


def _pa(
    spec: Spec,
    *,
    resolution: Parts = 10,
    sigma: Chance = SIGMA,
    limit: Count | None = None,
    additional: CountOrNone = ADDITIONAL,
    room: Count = 64,
) -> Indexed:
    check_cells("pa_grid", spec, resolution)
    return Indexed(spec, Kind(PROBABILISTIC, NONE, 0, additional, 0.0), resolution, sigma, limit, room)


def _filtered(name: str, query: int, before: int) -> Callable[..., Indexed]:
    def open_filtered(
        spec: Spec, *, resolution: Parts = 10, buffer: TickSpan = BUFFER, gamma: Growth = 0.2, room: Count = 64
    ) -> Indexed:
        check_cells(name, spec, resolution)
        span = min((spec.window.size + 1) // 2, buffer or BUFFER)
        return Indexed(spec, Kind(query, before, span, 0, gamma), resolution, SIGMA, None, room)

    return open_filtered


OPENERS: Final[dict[str, Callable[..., Indexed]]] = {
    "pa_grid": _pa,
    "sasf_grid": _filtered("sasf_grid", STRICT, STRICT),
    "rapf_grid": _filtered("rapf_grid", RELAXED, PROBABILISTIC),
}
NAMES: Final = tuple(OPENERS)

ALGORITHMS = tuple(
    Algorithm(name, opened, refuses, exact=name != "pa_grid", for_comparing=True) for name, opened in OPENERS.items()
)
