"""The published competitors: rows in a regular grid, from which a query's answer is computed when it runs short.

Paper:      Mouratidis and Papadias, TKDE 2007, CPM/w (`cpmw`) and SNN (`snn`), as Pripužić, Podnar Žarko, Aberer, TODS
            2015, describe them in section 2 and compare with them in section 8.
Invariant:  `cpmw` keeps the k best rows of each query; `snn` the k-skyband of the rows that reach its threshold, the
            k-th score when it was last computed. A cell knows the queries that a row in it may concern.
Cost:       a row is scored for the queries of its cell. When a list has fewer than k rows, all cells are ranked for the
            query, and the rows of the best ones scored until no other cell can hold a better one. State: all n rows.
Choose it:  never; for comparing. Windows of arrivals, an answer with each arrival, entries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from skyband.core.emit import is_once
from skyband.core.options import Parts
from skyband.core.registry import Algorithm
from skyband.errors import InvalidQuery
from skyband.problems.subscriptions.algorithms import recompute
from skyband.problems.subscriptions.operator import Spec
from skyband.study.baselines.subscriptions.grids.state import GridOperator

NAMES: Final = ("cpmw", "snn")
MOST_CELLS: Final = 1_000_000


def refuses(spec: Spec) -> str | None:
    window, score = spec.window, spec.scoring.score
    if window.known_rows is None or window.slides or not is_once(spec.emit):
        return "it is here for comparing: a window of arrivals that slides with each, and entries"
    if refused := recompute.refuses(spec):
        return refused
    if not score.columns or score.bound is None:
        return "a grid needs to know what a score can be in a cell"
    return None


def check_cells(name: str, spec: Spec, resolution: int) -> None:
    columns = len(spec.scoring.score.columns)
    if (cells := resolution**columns) > MOST_CELLS:
        raise InvalidQuery(
            f"{name!r}: {columns} columns, each in resolution={resolution} parts, make {cells:,} cells. "
            f"Up to {MOST_CELLS:,} are possible."
        )


def opener(name: str) -> Callable[..., GridOperator]:
    """How the one of that name is opened."""

    def open_grid(spec: Spec, *, resolution: Parts = 10) -> GridOperator:
        check_cells(name, spec, resolution)
        return GridOperator(spec, name == "snn", resolution)

    return open_grid


ALGORITHMS = tuple(Algorithm(name, opener(name), refuses, for_comparing=True) for name in NAMES)
