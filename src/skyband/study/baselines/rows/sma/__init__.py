"""SMA: the whole window, and those of its best rows that may still enter an answer.

Paper:      Mouratidis, Bakiras, Papadias, SIGMOD 2006, section 5 (Skyband Monitoring Algorithm), on one score; the
            baseline of Yang and others, EDBT 2011.
Invariant:  every row of the window is held, and is in its cell of a grid; the skyband has the rows that rank as high as
            the threshold, and that fewer than k better rows outlive. With k rows in it, its first k are the answer;
            with fewer, the best cells that have k rows in all are looked through for the k best, and the k-th of these
            is the new threshold.
Cost:       push O(1) a row, once for putting it into its cell and once for taking it out, O(s) for one above the
            threshold; an answer O(sqrt(n) + c + k log k) if the skyband has fewer than k rows, with c rows in those
            cells: k + sqrt(n) if scores are spread evenly; state n + s rows, s at most 2k + 16, and sqrt(n) cells.
Choose it:  for comparisons only; `mintopk` and `relaxed` keep neither the window nor a grid.
"""

from __future__ import annotations

from typing import Annotated

from skyband.core.options import Count, Range
from skyband.problems.rows.operator import Spec, row_algorithm
from skyband.study.baselines.rows.sma.state import SkybandMonitoring

NAME = "sma"


def open(spec: Spec, *, initial_room: Count = 1024, tight: Annotated[int, Range(0, 1)] = 0) -> SkybandMonitoring:
    """`tight`: after each answer the skyband has its k rows only, and the k-th is the threshold."""
    return SkybandMonitoring(spec, initial_room=initial_room, tight=bool(tight))


ALGORITHMS = (row_algorithm(NAME, open, for_comparing=True),)
