"""Recorded: the objects that may enter an answer in full, and a short record of each row of all others.

Paper:      ours, after Haghani, Michel, Aberer, CIKM 2009, section 4.
Invariant:  an object is held, with its id, while it has a point in the k-skyband of what objects are sure to score:
            only such objects can enter an answer without another row. Every other row that may still matter is on
            record, and brought back when its object comes again. So answers are those of `staircase`.
Cost:       push as `staircase`, and one look into a hash table. State: f = k (1 + ln(n / k)) objects, and 32 bytes, in
            a table that is about two thirds full, for every other row that `staircase` holds.
Choose it:  the query has recall=, and memory matters. It identifies ids by a 64-bit hash, so it is not exact.
"""

from __future__ import annotations

import math

from skyband.core.options import Count
from skyband.core.registry import Algorithm
from skyband.problems.across.algorithms.recorded.state import Recorded
from skyband.problems.across.algorithms.staircase import expected_rows as exact_rows
from skyband.problems.across.algorithms.staircase import refuses as refused_by_staircase
from skyband.problems.across.operator import AcrossSpec

NAME = "recorded"


def refuses(spec: AcrossSpec) -> str | None:
    if not spec.recall:
        return "it needs recall=, the share of objects that is enough"
    return refused_by_staircase(spec)


def expected_rows(spec: AcrossSpec, window_rows: float) -> float:
    """As measured with three streams, half in step. Rows on record do not count."""
    return min(exact_rows(spec, window_rows), 1.5 * spec.k * (1 + math.log(max(window_rows / spec.k, 1.0))))


def open(spec: AcrossSpec, *, patience: Count = 32) -> Recorded:
    return Recorded(spec, patience=patience)


ALGORITHMS = (Algorithm(NAME, open, refuses, expected_rows, exact=False),)
