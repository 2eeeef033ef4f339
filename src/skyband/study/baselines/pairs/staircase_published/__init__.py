"""The K-skyband of pairs as published: sorted by score, a staircase for new pairs, and a search tree for questions.

Paper:      Shen, Cheema, Lin, Zhang, Wang, TKDE 2014, sections 4 and 5.1: SCase with Algorithms 1 to 4, and section 4.2
            for continuous queries.
Invariant:  it holds the pairs that fewer than k better pairs outlive, three times: by score, by age, and in a priority
            search tree. A pair belongs to them if and only if no point of the staircase dominates it.
Cost:       push O(n log s): a binary search in the staircase for each pair of the new row; O(s log k + k log s) to
            update the skyband and the tree; a question O(log s + k); state n rows and, on random order,
            s = 2k (ln n - ln sqrt k) pairs.
Choose it:  for comparisons only; `staircase` compares a pair with one number of its older row, in vectorised loops.
"""

from __future__ import annotations

from skyband.core.options import Count
from skyband.core.registry import Algorithm
from skyband.problems.pairs.operator import Spec
from skyband.study.baselines.pairs.staircase_published.state import PublishedSkyband

NAME = "staircase_published"
MOST = 10_000  # as k


def refuses(spec: Spec) -> str | None:
    return f"k is above {MOST:,}, and it has room for k pairs before a row comes" if spec.k > MOST else None


def open(spec: Spec, *, initial_room: Count = 64) -> PublishedSkyband:
    return PublishedSkyband(spec, initial_room=initial_room)


ALGORITHMS = (Algorithm(NAME, open, refuses, for_comparing=True),)
