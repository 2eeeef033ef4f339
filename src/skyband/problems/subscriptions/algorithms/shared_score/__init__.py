"""One score for all queries that see a row: the row is scored once and compared once.

Paper:      after Shen, Cheema, Lin, Zhang, Wang, TKDE 2014, section 6.3: many k and n, one scoring function.
Invariant:  as `drivers/thresholds.py`.
Cost:       a row is scored once, and looked up if a condition selects the queries that see it. The rows of a block
            that reach the lowest threshold of a score group are compared with the thresholds of its queries.
Choose it:  the score reads nothing of the query but the values that select its rows, and windows slide with each
            arrival, or never end. If they slide by more and end, `shared` needs no lists.
"""

from __future__ import annotations

from skyband.core.options import Count, Deviations
from skyband.core.registry import Algorithm
from skyband.problems.subscriptions.algorithms.shared_score.state import SharedScore
from skyband.problems.subscriptions.drivers.kernels.lists import SLACK
from skyband.problems.subscriptions.drivers.thresholds import FEW, HITS, PARTS, Thresholds
from skyband.problems.subscriptions.operator import Spec

NAME = "shared_score"


def refuses(spec: Spec) -> str | None:
    return None if spec.scoring.score.is_common else "each query has its own score"


def open(
    spec: Spec, *, slack: Deviations = SLACK, hits: Count = HITS, parts: Count = PARTS, few: Count = FEW
) -> Thresholds:
    return Thresholds(spec, SharedScore(spec.scoring), slack=slack, hits=hits, parts=parts, few=few)


ALGORITHMS = (Algorithm(NAME, open, refuses),)
