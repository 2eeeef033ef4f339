"""Totals: the current total of every object, and the best of them above a threshold.

Paper:      ours. Its parts are old: a queue of rows, a table of sums, a heap of candidates.
Invariant:  for each object and stream, the sum, the largest or the latest of its live values; all objects that rank at
            the bar or above are candidates, the k best of them in order.
Cost:       push O(1) for a row of an object below the bar, O(k + log c) for one of the c candidates, when it comes and
            when it ends; all objects are looked at when candidates run out, which is kept rare. State: the window.
Choose it:  objects come again (repeat=), or you can afford memory for the whole window: it is the fastest.
"""

from __future__ import annotations

from skyband.core.options import Count
from skyband.problems.across.algorithms.totals.state import Totals
from skyband.problems.across.operator import AcrossAlgorithm, AcrossSpec

NAME = "totals"


def open(spec: AcrossSpec, *, width: Count = 256) -> Totals:
    return Totals(spec, width=width)


ALGORITHMS = (AcrossAlgorithm(NAME, open),)
