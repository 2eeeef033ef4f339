"""Sorted lists (SLA): every row of the window in a list of its stream, and the Threshold Algorithm.

Paper:      Haghani, Michel, Aberer, CIKM 2009, sections 3.1 and 5: the Threshold Algorithm, and the views of Yi et al.
Invariant:  the view holds the best objects of all, between k and 2k of them after an answer, or all; each row of the
            window is in the list of its stream, sorted by value: its own, or if the object comes again, that of all its
            rows that live as long.
Cost:       push O(n) to keep sorted arrays, and now and then the Threshold Algorithm; state n.
Choose it:  for comparisons only.
"""

from __future__ import annotations

from skyband.core.registry import Algorithm
from skyband.problems.across.operator import MAX, SUM, AcrossSpec
from skyband.study.baselines.across.early_aggregation import MOST_REPEATS
from skyband.study.baselines.across.sorted_lists.state import SortedLists

NAME = "sorted_lists"


def refuses(spec: AcrossSpec) -> str | None:
    if spec.repeat in (MAX, SUM) and not 0 < spec.max_repeats <= MOST_REPEATS:
        return f"it makes room for the rows of an object: max_repeats, at most {MOST_REPEATS}"
    return None


def open(spec: AcrossSpec) -> SortedLists:
    return SortedLists(spec)


ALGORITHMS = (Algorithm(NAME, open, refuses, for_comparing=True),)
