"""Threshold algorithm as published: a new row meets the rows of the best local scores, and the youngest ones, by turns.

Paper:      Shen, Cheema, Lin, Zhang, Wang, TKDE 2014, section 5.2 (TA: Algorithm 5) and, for colours, section 6.4.
Invariant:  that of `staircase_published`. Rows are linked by value, one list for each local score, and by age; pairs of
            rows that no list has reached lie under the staircase.
Cost:       push O(log n) for each list, and about n^(d/(d+1)) pairs for d local scores, each with a search in the
            staircase; state n rows, linked in d + 1 lists, and the skyband.
Choose it:  for comparisons only; `threshold` lists rows in batches, and meets the latest of them in vectorised loops.
"""

from __future__ import annotations

from skyband.core.options import Count
from skyband.core.registry import Algorithm
from skyband.problems.pairs.operator import Spec
from skyband.study.baselines.pairs import staircase_published
from skyband.study.baselines.pairs.threshold_published.local_scores import local_scores
from skyband.study.baselines.pairs.threshold_published.state import PublishedThreshold

NAME = "threshold_published"


def refuses(spec: Spec) -> str | None:
    if local_scores(spec.scoring.score) is None:
        return (
            "the score is not monotonic in local scores such as abs(a.x - b.x), a.x + b.x, a.x * b.x or "
            "greatest(a.x, b.x), each of a float column of its own"
        )
    return staircase_published.refuses(spec)


def open(spec: Spec, *, initial_room: Count = 64) -> PublishedThreshold:
    return PublishedThreshold(spec, initial_room=initial_room)


ALGORITHMS = (Algorithm(NAME, open, refuses, for_comparing=True),)
