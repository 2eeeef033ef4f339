"""TMA: the whole window, and its k best rows until one of them expires.

Paper:      Mouratidis, Bakiras, Papadias, SIGMOD 2006, section 4 (Top-k Monitoring Algorithm), on one score.
Invariant:  every row of the window is held, and is in its cell of a grid; the list has the k best of these and of the
            rows that expired since the last answer. If none of the listed is expired, they are the answer; else the
            best cells that have k rows in all are looked through.
Cost:       push O(1) a row, once for putting it into its cell and once for taking it out, O(k) for one that enters the
            list; an answer O(sqrt(n) + c + k log k) if a listed row expired, which on random order is k times a window,
            with c rows in those cells: k + sqrt(n) if scores are spread evenly; state n + k rows, sqrt(n) cells.
Choose it:  for comparisons only; `mintopk` and `relaxed` keep neither the window nor a grid.
"""

from __future__ import annotations

from skyband.core.options import Count
from skyband.problems.rows.operator import Spec, row_algorithm
from skyband.study.baselines.rows.tma.state import TopKMonitoring

NAME = "tma"


def open(spec: Spec, *, initial_room: Count = 1024) -> TopKMonitoring:
    return TopKMonitoring(spec, initial_room=initial_room)


ALGORITHMS = (row_algorithm(NAME, open, for_comparing=True),)
