"""No index: each row is scored for each query, in blocks.

Paper:      none; every index is measured against this vectorised loop.
Invariant:  as `drivers/thresholds.py`.
Cost:       a row is scored once for each query: a fraction of a nanosecond if the score is arithmetic.
Choose it:  there are few queries, a score has many columns, or nothing bounds it.
"""

from __future__ import annotations

from skyband.core.options import Count, Deviations
from skyband.problems.subscriptions.algorithms.scan.state import Scan
from skyband.problems.subscriptions.drivers.kernels.lists import SLACK
from skyband.problems.subscriptions.drivers.thresholds import FEW, HITS, PARTS, Thresholds
from skyband.problems.subscriptions.operator import Spec, SubscriptionAlgorithm

NAME = "scan"


def open(
    spec: Spec, *, slack: Deviations = SLACK, hits: Count = HITS, parts: Count = PARTS, few: Count = FEW
) -> Thresholds:
    return Thresholds(spec, Scan(spec.scoring), slack=slack, hits=hits, parts=parts, few=few)


ALGORITHMS = (SubscriptionAlgorithm(NAME, open),)
