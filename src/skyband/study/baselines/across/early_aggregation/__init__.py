"""Early aggregation (EAA): every instance that may still enter an answer, in lists sorted by score and time.

Paper:      Haghani, Michel, Aberer, CIKM 2009, sections 3.2 and 5.
Invariant:  an instance (an object with those of its values that live until some moment) is held as long as fewer than k
            other objects, sure to live as long, are sure to score more than it ever can: exactly the k-dominance set.
            Of all other rows of the window it is remembered where their objects came, and with which value.
Cost:       push O(s) to keep three lists of s instances sorted, and for those that the new scores pass; state s grows
            with the window n, about as 1.7 k (n / k)**0.8 for three streams that are half in step.
Choose it:  for comparisons only; `staircase` remembers nothing of other rows, holds a few instances more for it, and
            costs less.
"""

from __future__ import annotations

from skyband.core.registry import Algorithm
from skyband.problems.across.algorithms.staircase import expected_rows
from skyband.problems.across.operator import LAST, ONCE, AcrossSpec
from skyband.study.baselines.across.early_aggregation.state import EarlyAggregation

NAME = "early_aggregation"
MOST_REPEATS = 64  # of which there is room for each, of every object in every stream


def refuses(spec: AcrossSpec) -> str | None:
    if spec.repeat == LAST:
        return "an object may come again with a lower value, so nothing about it is certain"
    if spec.repeat != ONCE and not 0 < spec.max_repeats <= MOST_REPEATS:
        return f"it has to know how often an object may come to a stream: max_repeats, at most {MOST_REPEATS}"
    return None


def open(spec: AcrossSpec) -> EarlyAggregation:
    return EarlyAggregation(spec)


ALGORITHMS = (Algorithm(NAME, open, refuses, expected_rows, for_comparing=True),)
